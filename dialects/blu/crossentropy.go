package blu

import (
	"fmt"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

var ignoreAttr = ir.AttrDef{Name: "ignore", Kind: ir.I64Kind, Doc: "the target that does not count"}

// CrossEntropy scores logits against target classes.
var CrossEntropy = define(ir.OpDef{
	Name:    "cross_entropy",
	Summary: "cross entropy of logits and target classes: a sum and a count",
	Description: "logits is [..., V], targets [...]. `sum` is the sum of lse - logits[target] over the targets that are not `ignore`, `count` their number, `lse` the " +
		"logarithm of the sum of the exponentials of each row; all are f32, or f64 when the logits are. When every target is ignored sum and count are 0. " +
		"Any other target outside 0..V-1 is a run-time error that names its position and value.",
	Operands: []ir.OperandDef{{Name: "logits", Type: kinds.FloatTensor}, {Name: "targets", Type: kinds.IntTensor}},
	Attrs:    []ir.AttrDef{ignoreAttr},
	Results:  []ir.ResultDef{{Name: "sum", Type: kinds.FloatScalar}, {Name: "count", Type: kinds.FloatScalar}, {Name: "lse", Type: kinds.FloatTensor}},
	Traits:   ir.Pure | ir.Differentiable,
	Infer:    inferCrossEntropy,
	Eval:     evalMany(evalCrossEntropy),
})

// CrossEntropyGrad is the gradient of CrossEntropy's sum.
var CrossEntropyGrad = define(ir.OpDef{
	Name:        "cross_entropy_grad",
	Summary:     "gradient of the sum of cross_entropy",
	Description: "dlogits = dsum * (exp(logits - lse) - [class is the target]), and zeros in the rows whose target is ignored. Targets are checked as in cross_entropy.",
	Operands: []ir.OperandDef{{Name: "logits", Type: kinds.FloatTensor}, {Name: "targets", Type: kinds.IntTensor},
		{Name: "lse", Type: kinds.FloatTensor}, {Name: "dsum", Type: kinds.FloatScalar}},
	Attrs:   []ir.AttrDef{ignoreAttr},
	Results: []ir.ResultDef{{Name: "dlogits", Type: kinds.FloatTensor}},
	Traits:  ir.Pure,
	Infer:   inferCrossEntropyGrad,
	Eval:    eval(evalCrossEntropyGrad),
})

func checkTargets(logits, targets *ir.Value) error {
	if err := wantRank("logits", logits, 1, "classes last"); err != nil {
		return err
	}
	s := logits.Shape()
	return wantShape("targets", targets, s[:len(s)-1], fmt.Sprintf("one for each row of the logits (%s)", ir.ShapeString(s)))
}

func inferCrossEntropy(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	logits, targets := in.Operands[0], in.Operands[1]
	if err := checkTargets(logits, targets); err != nil {
		return nil, err
	}
	stat := statType(c, logits.Elem())
	return []ir.Type{c.Tensor(nil, stat), c.Tensor(nil, stat), c.Tensor(targets.Shape(), stat)}, nil
}

func inferCrossEntropyGrad(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	logits, targets, lse, dsum := in.Operands[0], in.Operands[1], in.Operands[2], in.Operands[3]
	err := firstError(checkTargets(logits, targets),
		func() error { return wantStat(c, "lse", lse, logits) },
		func() error { return wantElem("dsum", dsum, statType(c, logits.Elem())) })
	if err != nil {
		return nil, err
	}
	return []ir.Type{logits.Type()}, nil
}

func evalCrossEntropy(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	logits, targets := in[0], in[1]
	sum, count, lse := resultTensor(op, 0), resultTensor(op, 1), resultTensor(op, 2)
	classes := last(logits.Shape)
	ignore, _ := op.Attrs().Int("ignore")
	for r, t := range targets.Data {
		row := logits.Data[int64(r)*classes : int64(r+1)*classes]
		lse.Data[r] = logSumExp(row)
		if t == float64(ignore) {
			continue
		}
		if err := checkTarget(targets, r, classes, ignore); err != nil {
			return nil, err
		}
		sum.Data[0] += lse.Data[r] - row[int64(t)]
		count.Data[0]++
	}
	return []*ir.Tensor{sum, count, lse}, nil
}

func checkTarget(targets *ir.Tensor, i int, classes, ignore int64) error {
	if v := targets.Data[i]; v < 0 || v >= float64(classes) {
		return fmt.Errorf("target %d at position %s is out of range: there are %d classes, and %d is what is ignored",
			int64(v), position(targets.Shape, i), classes, ignore)
	}
	return nil
}

func evalCrossEntropyGrad(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	logits, targets, lse, dsum := in[0], in[1], in[2], in[3].Data[0]
	out := resultTensor(op, 0)
	classes := last(logits.Shape)
	ignore, _ := op.Attrs().Int("ignore")
	for r, t := range targets.Data {
		if t == float64(ignore) {
			continue
		}
		if err := checkTarget(targets, r, classes, ignore); err != nil {
			return nil, err
		}
		row := out.Data[int64(r)*classes : int64(r+1)*classes]
		for i := range row {
			row[i] = dsum * probability(logits.Data[int64(r)*classes+int64(i)], lse.Data[r])
		}
		row[int64(t)] -= dsum
	}
	return out, nil
}

// hits is, for logits of a shape, whether each class is its row's target, and whether each row counts.
func (b *Builder) hits(op *ir.Op, shape []int64) (target, counts *ir.Value) {
	targets := op.Operand(1)
	ignore, _ := op.Attrs().Int("ignore")
	axis := int64(len(shape) - 1)
	classes := b.Iota(axis, b.Ctx.Tensor(shape, targets.Elem()))
	target = b.Compare(classes, b.Along(targets, axis, shape), "eq")
	return target, b.Compare(targets, b.SplatLike(targets, float64(ignore)), "ne")
}

func decomposeCrossEntropy(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	axis := lastAxis(x)
	_, sum, shift := b.exponentials(x, axis)
	log := b.Log(sum)
	target, counts := b.hits(op, x.Shape())
	picked := b.ReduceSum(b.Select(target, x, b.SplatLike(x, 0)), []int64{axis})
	// Not lse - picked: of a target that is all but certain, that leaves nothing but the rounding of large numbers.
	loss := b.Select(counts, b.Sub(log, b.Sub(picked, shift)), b.SplatLike(log, 0))
	rows := leadingAxes(len(log.Shape()))
	return []*ir.Value{b.ReduceSum(loss, rows), b.ReduceSum(b.CastTo(counts, log.Elem()), rows), b.Add(shift, log)}
}

func decomposeCrossEntropyGrad(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	shape, axis := x.Shape(), lastAxis(x)
	p := b.Exp(b.Sub(x, b.Along(b.finite(op.Operand(2)), axis, shape)))
	target, counts := b.hits(op, shape)
	d := b.Mul(b.Sub(p, b.CastTo(target, x.Elem())), b.Fill(op.Operand(3), shape))
	d = b.Select(b.Along(counts, axis, shape), d, b.SplatLike(d, 0))
	return []*ir.Value{b.CastTo(d, op.Result(0).Elem())}
}
