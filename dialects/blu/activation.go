package blu

import (
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// The two gelus: they differ by up to 4.8e-4, so the model says which it means.
const (
	GeluTanh = "tanh"
	GeluErf  = "erf"
)

var approximateAttr = ir.AttrDef{Name: "approximate", Kind: ir.StringKind, Doc: `"tanh" or "erf"`}

// Gelu is the Gaussian error linear unit.
var Gelu = define(ir.OpDef{
	Name:    "gelu",
	Summary: "Gaussian error linear unit",
	Description: `"erf": y = x * (1 + erf(x / sqrt(2))) / 2. "tanh": y = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2. ` +
		"(Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv 1606.08415.)",
	Operands: []ir.OperandDef{floatX},
	Attrs:    []ir.AttrDef{approximateAttr},
	Results:  []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:   ir.Pure | ir.Elementwise | ir.SameTypes | ir.Differentiable,
	Infer:    inferGelu,
	Eval:     eval(evalGelu),
})

// GeluGrad is the gradient of Gelu.
var GeluGrad = define(ir.OpDef{
	Name:        "gelu_grad",
	Summary:     "gradient of gelu",
	Description: "dx = dy * gelu'(x).",
	Operands:    []ir.OperandDef{floatX, {Name: "dy", Type: kinds.FloatTensor}},
	Attrs:       []ir.AttrDef{approximateAttr},
	Results:     []ir.ResultDef{{Name: "dx", Type: kinds.FloatTensor}},
	Traits:      ir.Pure | ir.Elementwise | ir.SameTypes,
	Infer:       inferGelu,
	Eval:        eval(evalGeluGrad),
})

// Silu is the sigmoid linear unit.
var Silu = define(ir.OpDef{
	Name:        "silu",
	Summary:     "sigmoid linear unit",
	Description: "y = x * sigmoid(x).",
	Operands:    []ir.OperandDef{floatX},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:      ir.Pure | ir.Elementwise | ir.SameTypes | ir.Differentiable,
	Infer:       sameAsFirst,
	Eval:        eval(evalSilu),
})

// SiluGrad is the gradient of Silu.
var SiluGrad = define(ir.OpDef{
	Name:        "silu_grad",
	Summary:     "gradient of silu",
	Description: "dx = dy * s * (1 + x * (1 - s)) with s = sigmoid(x).",
	Operands:    []ir.OperandDef{floatX, {Name: "dy", Type: kinds.FloatTensor}},
	Results:     []ir.ResultDef{{Name: "dx", Type: kinds.FloatTensor}},
	Traits:      ir.Pure | ir.Elementwise | ir.SameTypes,
	Infer:       sameTypes("x", "dy"),
	Eval:        eval(evalSiluGrad),
})

func inferGelu(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	if err := oneOf(in.Attrs, "approximate", GeluTanh, GeluErf); err != nil {
		return nil, err
	}
	return sameTypes("x", "dy")(c, in)
}

// The formulas are arranged so that nothing cancels far from 0, where gelu is tiny: 1 + erf(z) = erfc(-z), and
// (1 + tanh(u)) / 2 = sigmoid(2u).

// cdf is the factor gelu gives x, and its derivative.
func cdf(approximate string, x float64) (p, dp float64) {
	if approximate == GeluErf {
		return math.Erfc(-x/math.Sqrt2) / 2, math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
	}
	u := geluA * (x + geluB*x*x*x)
	p = sigmoid(2 * u)
	return p, 2 * p * sigmoid(-2*u) * geluA * (1 + 3*geluB*x*x)
}

// The constants of the tanh approximation.
const (
	geluA = math.Sqrt2 / math.SqrtPi // sqrt(2 / pi)
	geluB = 0.044715
)

func evalGelu(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := like(in[0], op, 0)
	approximate := op.Attrs().Str("approximate")
	for i, x := range in[0].Data {
		p, _ := cdf(approximate, x)
		out.Data[i] = x * p
	}
	return out, nil
}

func evalGeluGrad(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := like(in[0], op, 0)
	approximate := op.Attrs().Str("approximate")
	for i, x := range in[0].Data {
		p, dp := cdf(approximate, x)
		out.Data[i] = in[1].Data[i] * (p + x*dp)
	}
	return out, nil
}

func evalSilu(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := like(in[0], op, 0)
	for i, x := range in[0].Data {
		out.Data[i] = x * sigmoid(x)
	}
	return out, nil
}

func evalSiluGrad(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := like(in[0], op, 0)
	for i, x := range in[0].Data {
		out.Data[i] = in[1].Data[i] * sigmoid(x) * (1 + x*sigmoid(-x))
	}
	return out, nil
}

// scaled is x times a number.
func (b *Builder) scaled(x *ir.Value, factor float64) *ir.Value {
	return b.Mul(x, b.SplatLike(x, factor))
}

// plus is x plus a number.
func (b *Builder) plus(x *ir.Value, v float64) *ir.Value { return b.Add(x, b.SplatLike(x, v)) }

// geluCDF is the factor gelu gives x.
func (b *Builder) geluCDF(x *ir.Value, approximate string) *ir.Value {
	if approximate == GeluErf {
		return b.scaled(b.plus(b.Erf(b.scaled(x, 1/math.Sqrt2)), 1), 0.5)
	}
	return b.Sigmoid(b.geluTwoU(x))
}

// geluTwoU is 2 sqrt(2/pi) (x + 0.044715 x^3), whose logistic function is the factor of the tanh approximation.
func (b *Builder) geluTwoU(x *ir.Value) *ir.Value {
	return b.Mul(b.scaled(x, 2*geluA), b.plus(b.scaled(b.Mul(x, x), geluB), 1))
}

func decomposeGelu(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	y := b.Mul(x, b.geluCDF(x, op.Attrs().Str("approximate")))
	return []*ir.Value{b.CastTo(y, op.Result(0).Elem())}
}

// gelu'(x) = p + x p': p' is the normal density, or 2 p (1 - p) u' of the tanh approximation, where 1 - p is a logistic
// function again, so that it doesn't cancel.
func decomposeGeluGrad(b *Builder, op *ir.Op) []*ir.Value {
	x, dy := b.wide(op.Operand(0)), b.wide(op.Operand(1))
	approximate := op.Attrs().Str("approximate")
	p := b.geluCDF(x, approximate)
	var density *ir.Value
	if approximate == GeluErf {
		density = b.scaled(b.Exp(b.scaled(b.Mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
	} else {
		slope := b.scaled(b.plus(b.scaled(b.Mul(x, x), 3*geluB), 1), 2*geluA)
		density = b.Mul(b.Mul(p, b.Sigmoid(b.Neg(b.geluTwoU(x)))), slope)
	}
	dx := b.Mul(dy, b.Add(p, b.Mul(x, density)))
	return []*ir.Value{b.CastTo(dx, op.Result(0).Elem())}
}

func decomposeSilu(b *Builder, op *ir.Op) []*ir.Value {
	x := b.wide(op.Operand(0))
	return []*ir.Value{b.CastTo(b.Mul(x, b.Sigmoid(x)), op.Result(0).Elem())}
}

func decomposeSiluGrad(b *Builder, op *ir.Op) []*ir.Value {
	x, dy := b.wide(op.Operand(0)), b.wide(op.Operand(1))
	dx := b.Mul(b.Mul(dy, b.Sigmoid(x)), b.plus(b.Mul(x, b.Sigmoid(b.Neg(x))), 1))
	return []*ir.Value{b.CastTo(dx, op.Result(0).Elem())}
}
