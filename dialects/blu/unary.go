package blu

import (
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// unary describes an elementwise operation of one operand whose result has the operand's type.
func unary(name, summary, description string, kind ir.Constraint, traits ir.Traits, fn func(float64) float64) *ir.OpDef {
	return define(ir.OpDef{
		Name: name, Summary: summary, Description: description,
		Operands: []ir.OperandDef{{Name: "x", Type: kind}},
		Results:  []ir.ResultDef{{Name: "y", Type: kind}},
		Traits:   ir.Pure | ir.Elementwise | ir.SameTypes | traits,
		Infer:    sameAsFirst,
		Fold:     foldUnary,
		Eval: eval(func(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
			out := like(in[0], op, 0)
			for i, x := range in[0].Data {
				out.Data[i] = fn(x)
			}
			wrap(out)
			return out, nil
		}),
	})
}

// Elementwise operations of one operand.
var (
	Neg = unary("neg", "negation", "y = -x. Integers wrap around.", kinds.NumberTensor, ir.Differentiable,
		func(x float64) float64 { return -x })
	Abs = unary("abs", "absolute value", "y = |x|.", kinds.NumberTensor, ir.Differentiable, math.Abs)
	Exp = unary("exp", "exponential", "y = e^x.", kinds.FloatTensor, ir.Differentiable, math.Exp)
	Log = unary("log", "natural logarithm", "y = ln x; -inf at 0, NaN below.", kinds.FloatTensor, ir.Differentiable, math.Log)

	Sqrt = unary("sqrt", "square root", "y = sqrt(x); NaN below 0.", kinds.FloatTensor, ir.Differentiable, math.Sqrt)

	Rsqrt = unary("rsqrt", "reciprocal square root", "y = 1 / sqrt(x); inf at 0, NaN below.", kinds.FloatTensor, ir.Differentiable,
		func(x float64) float64 { return 1 / math.Sqrt(x) })

	Tanh = unary("tanh", "hyperbolic tangent", "y = tanh(x).", kinds.FloatTensor, ir.Differentiable, math.Tanh)
	Erf  = unary("erf", "error function", "y = 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.", kinds.FloatTensor, ir.Differentiable, math.Erf)

	Sigmoid = unary("sigmoid", "logistic function", "y = 1 / (1 + e^-x), without overflow for any x.", kinds.FloatTensor, ir.Differentiable, sigmoid)

	Sin = unary("sin", "sine", "y = sin(x), x in radians.", kinds.FloatTensor, ir.Differentiable, math.Sin)
	Cos = unary("cos", "cosine", "y = cos(x), x in radians.", kinds.FloatTensor, ir.Differentiable, math.Cos)

	Sign = unary("sign", "sign: -1, 0 or 1", "y = x / |x|, and x itself where x is 0 or NaN.", kinds.NumberTensor, ir.Differentiable, sign)

	Floor = unary("floor", "largest whole number that is not greater", "y = floor(x).", kinds.FloatTensor, ir.Differentiable, math.Floor)

	Not = unary("not", "logical negation", "y = not x.", kinds.BoolTensor, 0, func(x float64) float64 { return 1 - x })

	StopGradient = unary("stop_gradient", "the operand, through which no gradient flows",
		"y = x. Differentiation takes y to be a constant.", kinds.AnyTensor, ir.Differentiable, func(x float64) float64 { return x })
)

func sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

// foldUnary: f(f(x)) = x for neg and not, = f(x) for abs, sign and floor.
func foldUnary(_ *ir.Context, op *ir.Op, _ []ir.Attr) []ir.FoldResult {
	x := op.Operand(0)
	if !x.DefinedBy(op.Def()) {
		return nil
	}
	switch op.Def().Name {
	case "neg", "not":
		return toValue(x.Op().Operand(0))
	case "abs", "sign", "floor", "stop_gradient":
		return toValue(x)
	}
	return nil
}
