package blu

import (
	"fmt"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Constant is a tensor known at compile time.
var Constant = define(ir.OpDef{
	Name:        "constant",
	Summary:     "a tensor known at compile time",
	Description: "The value is the attribute; one element stands for all where they are equal (a splat).",
	Attrs:       []ir.AttrDef{{Name: "value", Kind: ir.DenseKind, Doc: "the elements"}},
	Results:     []ir.ResultDef{{Name: "result", Type: kinds.AnyTensor}},
	Traits:      ir.Pure | ir.ConstantLike,
	Infer:       inferConstant,
	Eval:        eval(evalConstant),
})

// Iota counts along an axis.
var Iota = define(ir.OpDef{
	Name:        "iota",
	Summary:     "0, 1, 2, ... along one axis",
	Description: "Each element is its index along `axis`. The result's type is given.",
	Attrs:       []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "the axis that counts"}},
	Results:     []ir.ResultDef{{Name: "result", Type: kinds.NumberTensor}},
	Traits:      ir.Pure,
	Verify:      verifyIota,
	Eval:        eval(evalIota),
})

func inferConstant(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	switch a := in.Attrs.Get("value").(type) {
	case *ir.DenseAttr:
		return []ir.Type{a.Type}, nil
	case *ir.ElidedAttr:
		return []ir.Type{a.Type}, nil
	}
	return nil, fmt.Errorf("value is no dense constant")
}

func evalConstant(op *ir.Op, _ []*ir.Tensor) (*ir.Tensor, error) {
	a, ok := op.Attr("value").(*ir.DenseAttr)
	if !ok {
		return nil, fmt.Errorf("the constant's value was left out of the dump it comes from")
	}
	return TensorOf(a), nil
}

func verifyIota(op *ir.Op) error {
	axis, _ := op.Attrs().Int("axis")
	return located(op, axisInRange(axis, "the result", op.Result(0).Shape()))
}

func evalIota(op *ir.Op, _ []*ir.Tensor) (*ir.Tensor, error) {
	axis, _ := op.Attrs().Int("axis")
	out := resultTensor(op, 0)
	outer, n, inner := splitAt(out.Shape, axis)
	i := 0
	for range outer {
		for k := range n {
			for range inner {
				out.Data[i] = float64(k)
				i++
			}
		}
	}
	return out, nil
}
