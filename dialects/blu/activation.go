package blu

import (
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// The two gelus: they differ by up to 4e-4, so the model says which it means.
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
