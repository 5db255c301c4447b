package blu

import (
	"fmt"

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
})

func inferSoftmax(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x := in.Operands[0]
	axis, _ := in.Attrs.Int("axis")
	if err := axisInRange(axis, "x", x.Shape()); err != nil {
		return nil, fmt.Errorf("axis: %w", err)
	}
	return []ir.Type{x.Type()}, nil
}
