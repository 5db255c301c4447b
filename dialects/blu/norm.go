package blu

import (
	"fmt"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

var floatX = ir.OperandDef{Name: "x", Type: kinds.FloatTensor}

var epsAttr = ir.AttrDef{Name: "eps", Kind: ir.F64Kind, Doc: "added to the mean square before its root"}

// Layernorm normalizes rows to mean 0 and variance 1.
var Layernorm = define(ir.OpDef{
	Name:    "layernorm",
	Summary: "layer normalization over the last axis",
	Description: "y = (x - mean) * rstd * g + b with rstd = 1 / sqrt(variance + eps), where the variance is the mean of (x - mean)^2. `mean` and `rstd`, one of each " +
		"a row, are f32, or f64 when x is.",
	Operands: []ir.OperandDef{floatX, {Name: "g", Type: kinds.FloatTensor, Doc: "gain, the shape of a row"}, {Name: "b", Type: kinds.FloatTensor, Doc: "bias, the shape of a row"}},
	Attrs:    []ir.AttrDef{epsAttr},
	Results:  []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}, {Name: "mean", Type: kinds.FloatTensor}, {Name: "rstd", Type: kinds.FloatTensor}},
	Traits:   ir.Pure | ir.Differentiable,
	Infer:    inferLayernorm,
	Eval:     evalMany(evalLayernorm),
})

// LayernormGrad is the gradient of Layernorm.
var LayernormGrad = define(ir.OpDef{
	Name:    "layernorm_grad",
	Summary: "gradient of layernorm",
	Description: "With h = (x - mean) * rstd and d = dy * g: dx = rstd * (d - mean(d) - h * mean(d * h)), means over the last axis; dg = sum(dy * h) and " +
		"db = sum(dy), sums over all other axes. `mean` may be rounded, as it is where layernorm stored it: x - mean is centered once more.",
	Operands: []ir.OperandDef{floatX, {Name: "g", Type: kinds.FloatTensor}, {Name: "mean", Type: kinds.FloatTensor}, {Name: "rstd", Type: kinds.FloatTensor}, {Name: "dy", Type: kinds.FloatTensor}},
	Results:  []ir.ResultDef{{Name: "dx", Type: kinds.FloatTensor}, {Name: "dg", Type: kinds.FloatTensor}, {Name: "db", Type: kinds.FloatTensor}},
	Traits:   ir.Pure,
	Infer:    inferLayernormGrad,
	Eval:     evalMany(evalLayernormGrad),
})

// Rmsnorm normalizes rows to mean square 1.
var Rmsnorm = define(ir.OpDef{
	Name:        "rmsnorm",
	Summary:     "root-mean-square normalization over the last axis",
	Description: "y = x * rstd * g with rstd = 1 / sqrt(mean(x^2) + eps). `rstd`, one a row, is f32, or f64 when x is.",
	Operands:    []ir.OperandDef{floatX, {Name: "g", Type: kinds.FloatTensor, Doc: "gain, the shape of a row"}},
	Attrs:       []ir.AttrDef{epsAttr},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}, {Name: "rstd", Type: kinds.FloatTensor}},
	Traits:      ir.Pure | ir.Differentiable,
	Infer:       inferRmsnorm,
	Eval:        evalMany(evalRmsnorm),
})

// RmsnormGrad is the gradient of Rmsnorm.
var RmsnormGrad = define(ir.OpDef{
	Name:        "rmsnorm_grad",
	Summary:     "gradient of rmsnorm",
	Description: "With h = x * rstd and d = dy * g: dx = rstd * (d - h * mean(d * h)), mean over the last axis; dg = sum(dy * h) over all other axes.",
	Operands:    []ir.OperandDef{floatX, {Name: "g", Type: kinds.FloatTensor}, {Name: "rstd", Type: kinds.FloatTensor}, {Name: "dy", Type: kinds.FloatTensor}},
	Results:     []ir.ResultDef{{Name: "dx", Type: kinds.FloatTensor}, {Name: "dg", Type: kinds.FloatTensor}},
	Traits:      ir.Pure,
	Infer:       inferRmsnormGrad,
	Eval:        evalMany(evalRmsnormGrad),
})

// normRows checks x for rows that can be normalized, and names a row vector of x.
func normRows(x *ir.Value) error {
	if err := wantRank("x", x, 1, "features last"); err != nil {
		return err
	}
	if last(x.Shape()) == 0 {
		return fmt.Errorf("the last axis of x (%s) has no elements: there is no mean", ir.ShapeString(x.Shape()))
	}
	return nil
}

// wantRow holds a gain or bias to the shape and type of a row of x.
func wantRow(name string, v, x *ir.Value) error {
	n := last(x.Shape())
	if err := wantShape(name, v, []int64{n}, fmt.Sprintf("the last axis of x (%s) has %d elements", ir.ShapeString(x.Shape()), n)); err != nil {
		return err
	}
	return wantElem(name, v, x.Elem())
}

// wantStat holds a statistic to one element for each row of x.
func wantStat(c *ir.Context, name string, v, x *ir.Value) error {
	rows := x.Shape()[:len(x.Shape())-1]
	if err := wantShape(name, v, rows, "one for each row of x"); err != nil {
		return err
	}
	return wantElem(name, v, statType(c, x.Elem()))
}

func statOf(c *ir.Context, x *ir.Value) ir.Type {
	return c.Tensor(x.Shape()[:len(x.Shape())-1], statType(c, x.Elem()))
}

func inferLayernorm(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, g, b := in.Operands[0], in.Operands[1], in.Operands[2]
	if err := firstError(normRows(x), func() error { return wantRow("g", g, x) }, func() error { return wantRow("b", b, x) }); err != nil {
		return nil, err
	}
	return []ir.Type{x.Type(), statOf(c, x), statOf(c, x)}, nil
}

func inferLayernormGrad(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, g, mean, rstd, dy := in.Operands[0], in.Operands[1], in.Operands[2], in.Operands[3], in.Operands[4]
	err := firstError(normRows(x),
		func() error { return wantRow("g", g, x) },
		func() error { return wantStat(c, "mean", mean, x) },
		func() error { return wantStat(c, "rstd", rstd, x) },
		func() error { return equalTypes("x", x, "dy", dy) })
	if err != nil {
		return nil, err
	}
	return []ir.Type{x.Type(), g.Type(), g.Type()}, nil
}

func inferRmsnorm(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, g := in.Operands[0], in.Operands[1]
	if err := firstError(normRows(x), func() error { return wantRow("g", g, x) }); err != nil {
		return nil, err
	}
	return []ir.Type{x.Type(), statOf(c, x)}, nil
}

func inferRmsnormGrad(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, g, rstd, dy := in.Operands[0], in.Operands[1], in.Operands[2], in.Operands[3]
	err := firstError(normRows(x),
		func() error { return wantRow("g", g, x) },
		func() error { return wantStat(c, "rstd", rstd, x) },
		func() error { return equalTypes("x", x, "dy", dy) })
	if err != nil {
		return nil, err
	}
	return []ir.Type{x.Type(), g.Type()}, nil
}

func evalLayernorm(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	x, g, b := in[0], in[1].Data, in[2].Data
	y, means, rstds := resultTensor(op, 0), resultTensor(op, 1), resultTensor(op, 2)
	eps, n := op.Attrs().FloatOr("eps", 0), len(g)
	for r := range means.Data {
		row, out := x.Data[r*n:(r+1)*n], y.Data[r*n:(r+1)*n]
		mean := meanOf(row)
		variance := 0.0
		for _, v := range row {
			variance += (v - mean) * (v - mean)
		}
		rstd := 1 / math.Sqrt(variance/float64(n)+eps)
		for i, v := range row {
			out[i] = (v-mean)*rstd*g[i] + b[i]
		}
		means.Data[r], rstds.Data[r] = mean, rstd
	}
	return []*ir.Tensor{y, means, rstds}, nil
}

func meanOf(row []float64) float64 {
	sum := 0.0
	for _, v := range row {
		sum += v
	}
	return sum / float64(len(row))
}

func evalLayernormGrad(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	x, g, means, rstds, dy := in[0].Data, in[1].Data, in[2].Data, in[3].Data, in[4].Data
	dx, dg, db := resultTensor(op, 0), resultTensor(op, 1), resultTensor(op, 2)
	n := len(g)
	for r := range means {
		mean, rstd := means[r], rstds[r]
		left := 0.0 // of the mean, where that was rounded
		for _, v := range x[r*n : (r+1)*n] {
			left += (v - mean) / float64(n)
		}
		mean += left
		meanD, meanDH := 0.0, 0.0
		for i := range n {
			h, d := (x[r*n+i]-mean)*rstd, dy[r*n+i]*g[i]
			meanD += d / float64(n)
			meanDH += d * h / float64(n)
			dg.Data[i] += dy[r*n+i] * h
			db.Data[i] += dy[r*n+i]
		}
		for i := range n {
			h, d := (x[r*n+i]-mean)*rstd, dy[r*n+i]*g[i]
			dx.Data[r*n+i] = rstd * (d - meanD - h*meanDH)
		}
	}
	return []*ir.Tensor{dx, dg, db}, nil
}

func evalRmsnorm(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	x, g := in[0].Data, in[1].Data
	y, rstds := resultTensor(op, 0), resultTensor(op, 1)
	eps, n := op.Attrs().FloatOr("eps", 0), len(g)
	for r := range rstds.Data {
		square := 0.0
		for _, v := range x[r*n : (r+1)*n] {
			square += v * v
		}
		rstd := 1 / math.Sqrt(square/float64(n)+eps)
		for i, v := range x[r*n : (r+1)*n] {
			y.Data[r*n+i] = v * rstd * g[i]
		}
		rstds.Data[r] = rstd
	}
	return []*ir.Tensor{y, rstds}, nil
}

func evalRmsnormGrad(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	x, g, rstds, dy := in[0].Data, in[1].Data, in[2].Data, in[3].Data
	dx, dg := resultTensor(op, 0), resultTensor(op, 1)
	n := len(g)
	for r, rstd := range rstds {
		meanDH := 0.0
		for i := range n {
			h := x[r*n+i] * rstd
			meanDH += dy[r*n+i] * g[i] * h / float64(n)
			dg.Data[i] += dy[r*n+i] * h
		}
		for i := range n {
			dx.Data[r*n+i] = rstd * (dy[r*n+i]*g[i] - x[r*n+i]*rstd*meanDH)
		}
	}
	return []*ir.Tensor{dx, dg}, nil
}

func decomposeLayernorm(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	shape, axis := x.Shape(), lastAxis(x)
	g, bias := b.row(b.wide(op.Operand(1)), shape), b.row(b.wide(op.Operand(2)), shape)
	mean := b.Mean(x, axis)
	d := b.centered(x, mean, shape)
	variance := b.Mean(b.Mul(d, d), axis)
	rstd := b.Rsqrt(b.Add(variance, b.SplatLike(variance, op.Attrs().FloatOr("eps", 0))))
	y := b.Add(b.Mul(b.Mul(d, b.Along(rstd, axis, shape)), g), bias)
	return []*ir.Value{b.CastTo(y, op.Result(0).Elem()), mean, rstd}
}

// decomposeLayernormGrad takes what the stored mean leaves of the mean, r = mean(x - mean), from x - mean = e. All means over rows are of
// e, d and d * e, and so can be taken in one pass: mean(d * h) = rstd * (mean(d * e) - r * mean(d)).
func decomposeLayernormGrad(b *Builder, op *ir.Op) []*ir.Value {
	x, dy := b.wide(op.Operand(0)), b.wide(op.Operand(4))
	shape, axis := x.Shape(), lastAxis(x)
	rstd := op.Operand(3)
	e := b.Sub(x, b.Along(op.Operand(2), axis, shape))
	d := b.Mul(dy, b.row(b.wide(op.Operand(1)), shape))
	meanDE := b.Mean(b.Mul(d, e), axis) // first, since it needs all that the others do
	r, meanD := b.Mean(e, axis), b.Mean(d, axis)
	meanDH := b.Mul(rstd, b.Sub(meanDE, b.Mul(r, meanD)))
	h := b.Mul(b.Sub(e, b.Along(r, axis, shape)), b.Along(rstd, axis, shape))
	dx := b.Mul(b.Along(rstd, axis, shape), b.Sub(b.Sub(d, b.Along(meanD, axis, shape)), b.Mul(h, b.Along(meanDH, axis, shape))))
	dg, db := b.columnSums(b.Mul(dy, h)), b.columnSums(dy)
	return []*ir.Value{b.CastTo(dx, op.Result(0).Elem()), b.CastTo(dg, op.Result(1).Elem()), b.CastTo(db, op.Result(2).Elem())}
}

// centered is x - mean. The mean as it is stored is rounded, by as much as the spread of the row where the mean is large, so what it
// leaves of the mean is taken away, too.
func (b *Builder) centered(x, mean *ir.Value, shape []int64) *ir.Value {
	d := b.Sub(x, b.Along(mean, lastAxis(x), shape))
	return b.Sub(d, b.rowMean(d))
}

func decomposeRmsnorm(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	shape, axis := x.Shape(), lastAxis(x)
	square := b.Mean(b.Mul(x, x), axis)
	rstd := b.Rsqrt(b.Add(square, b.SplatLike(square, op.Attrs().FloatOr("eps", 0))))
	y := b.Mul(b.Mul(x, b.Along(rstd, axis, shape)), b.row(b.wide(op.Operand(1)), shape))
	return []*ir.Value{b.CastTo(y, op.Result(0).Elem()), rstd}
}

func decomposeRmsnormGrad(b *Builder, op *ir.Op) []*ir.Value {
	x, dy := b.wide(op.Operand(0)), b.wide(op.Operand(3))
	shape := x.Shape()
	rstd := b.Along(op.Operand(2), lastAxis(x), shape)
	h := b.Mul(x, rstd)
	d := b.Mul(dy, b.row(b.wide(op.Operand(1)), shape))
	dx := b.Mul(rstd, b.Sub(d, b.Mul(h, b.rowMean(b.Mul(d, h)))))
	dg := b.columnSums(b.Mul(dy, h))
	return []*ir.Value{b.CastTo(dx, op.Result(0).Elem()), b.CastTo(dg, op.Result(1).Elem())}
}
