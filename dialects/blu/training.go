package blu

import (
	"fmt"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Accumulate adds to a sum, or begins it.
var Accumulate = define(ir.OpDef{
	Name:        "accumulate",
	Summary:     "a sum begun or continued",
	Description: "y = first ? x : sum + x. When `first`, what the sum held does not matter, be it NaN.",
	Operands:    []ir.OperandDef{{Name: "sum", Type: kinds.FloatTensor}, {Name: "x", Type: kinds.FloatTensor}, {Name: "first", Type: kinds.BoolScalar}},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:      ir.Pure,
	Infer:       inferAccumulate,
	Eval:        eval(evalAccumulate),
})

// SumSquares adds up the squares of all elements of many tensors.
var SumSquares = define(ir.OpDef{
	Name:    "sum_squares",
	Summary: "sum of the squares of all elements of tensors",
	Description: "The result is f32, or f64 when any operand is. Targets accumulate so widely that no tensors of realistic size and finite norm overflow: in " +
		"float64, or scaled. Of nothing it is 0.",
	Operands: []ir.OperandDef{{Name: "xs", Type: kinds.FloatTensor, Arity: ir.Variadic}},
	Results:  []ir.ResultDef{{Name: "sum", Type: kinds.FloatScalar}},
	Traits:   ir.Pure,
	Infer:    inferSumSquares,
	Eval:     eval(evalSumSquares),
})

// Adamw is one step of the AdamW optimizer.
var Adamw = define(ir.OpDef{
	Name:    "adamw",
	Summary: "one step of AdamW for one parameter",
	Description: "With G = g * gscale: m' = beta1 m + (1 - beta1) G; v' = beta2 v + (1 - beta2) G^2; " +
		"p' = p - lr weight_decay p - lr (m' / (1 - beta1^step)) / (sqrt(v' / (1 - beta2^step)) + eps). " +
		"`step` counts from 1. (Loshchilov and Hutter, Decoupled Weight Decay Regularization, arXiv 1711.05101, with PyTorch's places of eps and lr.)",
	Operands: []ir.OperandDef{
		{Name: "p", Type: kinds.FloatTensor, Doc: "parameter"},
		{Name: "m", Type: kinds.FloatTensor, Doc: "mean of the gradient"},
		{Name: "v", Type: kinds.FloatTensor, Doc: "mean of its square"},
		{Name: "g", Type: kinds.FloatTensor, Doc: "gradient sum"},
		{Name: "lr", Type: kinds.FloatScalar, Doc: "learning rate"},
		{Name: "gscale", Type: kinds.FloatScalar, Doc: "factor of the gradient"},
		{Name: "step", Type: kinds.FloatScalar, Doc: "number of this step, from 1"},
	},
	Attrs: []ir.AttrDef{
		{Name: "beta1", Kind: ir.F64Kind, Doc: "decay of m, in [0, 1)"},
		{Name: "beta2", Kind: ir.F64Kind, Doc: "decay of v, in [0, 1)"},
		{Name: "eps", Kind: ir.F64Kind, Doc: "added to the root, not negative"},
		{Name: "weight_decay", Kind: ir.F64Kind, Doc: "decay of p per unit of lr"},
	},
	Results: []ir.ResultDef{{Name: "new_p", Type: kinds.FloatTensor}, {Name: "new_m", Type: kinds.FloatTensor}, {Name: "new_v", Type: kinds.FloatTensor}},
	Traits:  ir.Pure,
	Infer:   inferAdamw,
	Eval:    evalMany(evalAdamw),
})

// Sgd is one step of stochastic gradient descent with momentum.
var Sgd = define(ir.OpDef{
	Name:    "sgd",
	Summary: "one step of SGD with momentum for one parameter",
	Description: "With G = g * gscale + weight_decay p: buf' = momentum buf + G; p' = p - lr buf', or with `nesterov` p' = p - lr (G + momentum buf'). " +
		"(Sutskever et al., On the importance of initialization and momentum in deep learning, ICML 2013, in PyTorch's form; buf starts as zeros.)",
	Operands: []ir.OperandDef{
		{Name: "p", Type: kinds.FloatTensor, Doc: "parameter"},
		{Name: "buf", Type: kinds.FloatTensor, Doc: "momentum"},
		{Name: "g", Type: kinds.FloatTensor, Doc: "gradient sum"},
		{Name: "lr", Type: kinds.FloatScalar, Doc: "learning rate"},
		{Name: "gscale", Type: kinds.FloatScalar, Doc: "factor of the gradient"},
	},
	Attrs: []ir.AttrDef{
		{Name: "momentum", Kind: ir.F64Kind, Doc: "decay of buf, in [0, 1)"},
		{Name: "nesterov", Kind: ir.BoolKind, Doc: "look ahead by one step"},
		{Name: "weight_decay", Kind: ir.F64Kind, Doc: "added to the gradient per unit of p"},
	},
	Results: []ir.ResultDef{{Name: "new_p", Type: kinds.FloatTensor}, {Name: "new_buf", Type: kinds.FloatTensor}},
	Traits:  ir.Pure,
	Infer:   inferSgd,
	Eval:    evalMany(evalSgd),
})

func inferAccumulate(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	if err := equalTypes("sum", in.Operands[0], "x", in.Operands[1]); err != nil {
		return nil, err
	}
	return []ir.Type{in.Operands[0].Type()}, nil
}

func inferSumSquares(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	stat := ir.Type(c.F32())
	for _, x := range in.Operands {
		if s := statType(c, x.Elem()); s != stat {
			stat = c.F64()
		}
	}
	return []ir.Type{c.Tensor(nil, stat)}, nil
}

func inferAdamw(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	p, m, v, g := in.Operands[0], in.Operands[1], in.Operands[2], in.Operands[3]
	err := firstError(equalShapes("p", p.Shape(), "m", m.Shape()),
		func() error { return equalTypes("m", m, "v", v) },
		func() error { return equalShapes("p", p.Shape(), "g", g.Shape()) },
		func() error { return fraction(in.Attrs, "beta1") },
		func() error { return fraction(in.Attrs, "beta2") },
		func() error { return notNegative(in.Attrs, "eps") },
		func() error { return notNegative(in.Attrs, "weight_decay") })
	if err != nil {
		return nil, err
	}
	return []ir.Type{p.Type(), m.Type(), v.Type()}, nil
}

func inferSgd(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	p, buf, g := in.Operands[0], in.Operands[1], in.Operands[2]
	err := firstError(equalShapes("p", p.Shape(), "buf", buf.Shape()),
		func() error { return equalShapes("p", p.Shape(), "g", g.Shape()) },
		func() error { return fraction(in.Attrs, "momentum") },
		func() error { return notNegative(in.Attrs, "weight_decay") })
	if err != nil {
		return nil, err
	}
	return []ir.Type{p.Type(), buf.Type()}, nil
}

func fraction(attrs ir.Attrs, name string) error {
	if v := attrs.FloatOr(name, 0); !(v >= 0 && v < 1) {
		return fmt.Errorf("%s is %g, it must be at least 0 and below 1", name, v)
	}
	return nil
}

func notNegative(attrs ir.Attrs, name string) error {
	if v := attrs.FloatOr(name, 0); !(v >= 0) {
		return fmt.Errorf("%s is %g, it can't be negative", name, v)
	}
	return nil
}

func evalAccumulate(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	if in[2].Data[0] != 0 {
		return in[1], nil
	}
	out := like(in[0], op, 0)
	for i, s := range in[0].Data {
		out.Data[i] = s + in[1].Data[i]
	}
	return out, nil
}

func evalSumSquares(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	for _, x := range in {
		for _, v := range x.Data {
			out.Data[0] += v * v
		}
	}
	return out, nil
}

func evalAdamw(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	p, m, v, g := in[0].Data, in[1].Data, in[2].Data, in[3].Data
	lr, scale, step := in[4].Data[0], in[5].Data[0], in[6].Data[0]
	a := op.Attrs()
	beta1, beta2, eps, decay := a.FloatOr("beta1", 0), a.FloatOr("beta2", 0), a.FloatOr("eps", 0), a.FloatOr("weight_decay", 0)
	bias1, bias2 := 1-math.Pow(beta1, step), 1-math.Pow(beta2, step)
	newP, newM, newV := resultTensor(op, 0), resultTensor(op, 1), resultTensor(op, 2)
	for i := range p {
		gi := g[i] * scale
		mi := beta1*m[i] + (1-beta1)*gi
		vi := beta2*v[i] + (1-beta2)*gi*gi
		newM.Data[i], newV.Data[i] = mi, vi
		newP.Data[i] = p[i] - lr*decay*p[i] - lr*(mi/bias1)/(math.Sqrt(vi/bias2)+eps)
	}
	return []*ir.Tensor{newP, newM, newV}, nil
}

func evalSgd(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	p, buf, g := in[0].Data, in[1].Data, in[2].Data
	lr, scale := in[3].Data[0], in[4].Data[0]
	a := op.Attrs()
	momentum, nesterov, decay := a.FloatOr("momentum", 0), a.Bool("nesterov"), a.FloatOr("weight_decay", 0)
	newP, newBuf := resultTensor(op, 0), resultTensor(op, 1)
	for i := range p {
		gi := g[i]*scale + decay*p[i]
		b := momentum*buf[i] + gi
		newBuf.Data[i] = b
		if nesterov {
			b = gi + momentum*b
		}
		newP.Data[i] = p[i] - lr*b
	}
	return []*ir.Tensor{newP, newBuf}, nil
}

func decomposeAccumulate(b *Builder, op *ir.Op) []*ir.Value {
	sum, x := op.Operand(0), op.Operand(1)
	return []*ir.Value{b.Select(b.Fill(op.Operand(2), x.Shape()), x, b.Add(sum, x))}
}

func decomposeSumSquares(b *Builder, op *ir.Op) []*ir.Value {
	sum := b.Splat(op.Result(0).Type(), 0)
	for _, x := range op.Operands() {
		x = b.CastTo(x, sum.Elem())
		sum = b.Add(sum, b.ReduceSum(b.Mul(x, x), leadingAxes(len(x.Shape()))))
	}
	return []*ir.Value{sum}
}

func decomposeAdamw(b *Builder, op *ir.Op) []*ir.Value {
	a := op.Attrs()
	beta1, beta2, eps, decay := a.FloatOr("beta1", 0), a.FloatOr("beta2", 0), a.FloatOr("eps", 0), a.FloatOr("weight_decay", 0)
	wide, shape := statType(b.Ctx, op.Operand(0).Elem()), op.Operand(0).Shape()
	in := make([]*ir.Value, op.NumOperands())
	for i, v := range op.Operands() {
		in[i] = b.CastTo(v, wide)
	}
	p, m, v, lr, step := in[0], in[1], in[2], in[4], in[6]
	g := b.Mul(in[3], b.Fill(in[5], shape))
	m = b.Add(b.scaled(m, beta1), b.scaled(g, 1-beta1))
	v = b.Add(b.scaled(v, beta2), b.scaled(b.Mul(g, g), 1-beta2))
	// What is the same for all elements is computed once: lr / (1 - beta1^step) and 1 / sqrt(1 - beta2^step).
	rate := b.Div(lr, b.biasCorrection(beta1, step))
	root := b.Mul(b.Sqrt(v), b.Fill(b.Rsqrt(b.biasCorrection(beta2, step)), shape))
	p = b.Sub(p, b.Mul(p, b.Fill(b.scaled(lr, decay), shape)))
	p = b.Sub(p, b.Mul(b.Div(m, b.plus(root, eps)), b.Fill(rate, shape)))
	return []*ir.Value{b.CastTo(p, op.Result(0).Elem()), b.CastTo(m, op.Result(1).Elem()), b.CastTo(v, op.Result(2).Elem())}
}

// biasCorrection is 1 - beta^step without cancellation, which in f32 would cost four digits for beta = 0.999 at the first
// step: with t = tanh(step ln(beta) / 2), 1 - e^(2 artanh t) = -2t / (1 - t), and t is negative.
func (b *Builder) biasCorrection(beta float64, step *ir.Value) *ir.Value {
	t := b.Tanh(b.scaled(step, math.Log(beta)/2))
	return b.Div(b.scaled(t, -2), b.plus(b.Neg(t), 1))
}

func decomposeSgd(b *Builder, op *ir.Op) []*ir.Value {
	a := op.Attrs()
	momentum, decay := a.FloatOr("momentum", 0), a.FloatOr("weight_decay", 0)
	wide, shape := statType(b.Ctx, op.Operand(0).Elem()), op.Operand(0).Shape()
	in := make([]*ir.Value, op.NumOperands())
	for i, v := range op.Operands() {
		in[i] = b.CastTo(v, wide)
	}
	p, lr := in[0], in[3]
	g := b.Add(b.Mul(in[2], b.Fill(in[4], shape)), b.scaled(p, decay))
	buf := b.Add(b.scaled(in[1], momentum), g)
	step := buf
	if a.Bool("nesterov") {
		step = b.Add(g, b.scaled(buf, momentum))
	}
	p = b.Sub(p, b.Mul(step, b.Fill(lr, shape)))
	return []*ir.Value{b.CastTo(p, op.Result(0).Elem()), b.CastTo(buf, op.Result(1).Elem())}
}
