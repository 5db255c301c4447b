package blu

import (
	"fmt"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Softmax normalizes exponentials along one axis.
var Softmax = define(ir.OpDef{
	Name:    "softmax",
	Summary: "normalized exponentials along one axis",
	Description: "y = exp(x - max) / sum(exp(x - max)), so that no finite x overflows. Where all of x is -inf y is zeros, so that a fully masked " +
		"query attends to nothing. inf and NaN give NaN.",
	Operands: []ir.OperandDef{{Name: "x", Type: kinds.FloatTensor}},
	Attrs:    []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "the axis that sums to 1"}},
	Results:  []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:   ir.Pure | ir.SameTypes | ir.Differentiable,
	Infer:    inferSoftmax,
	Eval:     eval(evalSoftmax),
})

// LogSoftmax is the logarithm of softmax.
var LogSoftmax = define(ir.OpDef{
	Name:        "log_softmax",
	Summary:     "logarithm of softmax along one axis",
	Description: "y = x - log(sum(exp(x))), so that no finite x overflows. Where all of x is -inf, y is -inf.",
	Operands:    []ir.OperandDef{{Name: "x", Type: kinds.FloatTensor}},
	Attrs:       []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "the axis whose exponentials sum to 1"}},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:      ir.Pure | ir.SameTypes | ir.Differentiable,
	Infer:       inferSoftmax,
	Eval:        eval(evalLogSoftmax),
})

func inferSoftmax(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x := in.Operands[0]
	axis, _ := in.Attrs.Int("axis")
	if err := axisInRange(axis, "x", x.Shape()); err != nil {
		return nil, fmt.Errorf("axis: %w", err)
	}
	return []ir.Type{x.Type()}, nil
}

func evalSoftmax(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	return alongAxis(op, in[0], func(row []float64) {
		sum := expShifted(row)
		if sum == 0 {
			return // all -inf: zeros already
		}
		for i := range row {
			row[i] /= sum
		}
	})
}

func evalLogSoftmax(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	return alongAxis(op, in[0], func(row []float64) {
		lse := logSumExp(row)
		for i, x := range row {
			if !math.IsInf(lse, -1) {
				row[i] = x - lse
			}
		}
	})
}

// alongAxis applies a function to each line of x along the operation's axis.
func alongAxis(op *ir.Op, x *ir.Tensor, fn func(row []float64)) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	axis, _ := op.Attrs().Int("axis")
	outer, n, inner := splitAt(x.Shape, axis)
	row := make([]float64, n)
	for o := range outer {
		for i := range inner {
			for k := range n {
				row[k] = x.Data[(o*n+k)*inner+i]
			}
			fn(row)
			for k := range n {
				out.Data[(o*n+k)*inner+i] = row[k]
			}
		}
	}
	return out, nil
}

// expShifted replaces x by exp(x - max) and returns the sum; a row that is all -inf becomes zeros. The greatest element
// contributes 1, so the sum of any other row is at least that.
func expShifted(row []float64) (sum float64) {
	shift := maxOf(row)
	for i, x := range row {
		row[i] = math.Exp(x - shift)
		sum += row[i]
	}
	return sum
}

// maxOf is the greatest element (NaN if there is one), and 0 when it would be -inf: something that can be subtracted.
func maxOf(row []float64) float64 {
	m := math.Inf(-1)
	for _, x := range row {
		m = max(m, x)
	}
	if math.IsInf(m, -1) {
		return 0
	}
	return m
}

// logSumExp is the logarithm of the sum of the exponentials, -inf when all of the row is.
func logSumExp(row []float64) float64 {
	shift, sum := maxOf(row), 0.0
	for _, x := range row {
		sum += math.Exp(x - shift)
	}
	return shift + math.Log(sum)
}

func decomposeSoftmax(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	axis, _ := op.Attrs().Int("axis")
	e, sum, _ := b.exponentials(x, axis)
	y := b.Div(e, b.Along(b.replaced(sum, 0, 1), axis, x.Shape()))
	return []*ir.Value{b.CastTo(y, op.Result(0).Elem())}
}

func decomposeLogSoftmax(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	axis, _ := op.Attrs().Int("axis")
	_, sum, shift := b.exponentials(x, axis)
	y := b.Sub(b.Sub(x, b.Along(shift, axis, x.Shape())), b.Along(b.Log(b.replaced(sum, 0, 1)), axis, x.Shape()))
	return []*ir.Value{b.CastTo(y, op.Result(0).Elem())}
}
