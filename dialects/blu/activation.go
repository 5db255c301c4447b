package blu

import (
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
})

func inferGelu(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	if err := oneOf(in.Attrs, "approximate", GeluTanh, GeluErf); err != nil {
		return nil, err
	}
	return sameTypes("x", "dy")(c, in)
}
