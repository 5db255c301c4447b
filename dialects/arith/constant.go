package arith

import (
	"fmt"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Constant is a constant.
var Constant = define(ir.OpDef{
	Name:        "constant",
	Summary:     "a constant",
	Description: "An integer, index, floating-point number, or a dense constant of a vector or tensor.",
	Attrs:       []ir.AttrDef{{Name: "value", Kind: ir.AnyAttr, Doc: "the value, whose type is the result's"}},
	Results:     []ir.ResultDef{{Name: "result", Type: kinds.Any}},
	Traits:      ir.ConstantLike | ir.Properties,
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		t := ir.AttrType(in.Attrs.Get("value"))
		if t == nil {
			return nil, fmt.Errorf("value must be a number or a dense constant")
		}
		return []ir.Type{t}, nil
	},
	Eval: func(_ *ir.Frame, op *ir.Op, _ []ir.Datum) ([]ir.Datum, error) {
		t, err := TensorOf(op.Attr("value"))
		return []ir.Datum{t}, err
	},
})

// NewIndex makes a constant of type index.
func NewIndex(b *ir.Builder, v int64) *ir.Value {
	return b.Create(Constant, nil, ir.NamedAttr{Name: "value", Value: b.Ctx.Integer(v, b.Ctx.Index())}).Result(0)
}

// IntValue is the value of an integer or index constant; ok is false for every other value.
func IntValue(v *ir.Value) (n int64, ok bool) {
	if !v.DefinedBy(Constant) {
		return 0, false
	}
	a, ok := v.Op().Attr("value").(*ir.IntegerAttr)
	if !ok {
		return 0, false
	}
	return a.Value, true
}

// TensorOf is the reference value of a constant.
func TensorOf(a ir.Attr) (*ir.Tensor, error) {
	switch a := a.(type) {
	case *ir.IntegerAttr:
		return &ir.Tensor{Elem: a.Type, Data: []float64{float64(a.Value)}}, nil
	case *ir.FloatAttr:
		return &ir.Tensor{Elem: a.Type, Data: []float64{a.Value}}, nil
	case *ir.DenseAttr:
		shape, _ := ir.Shape(a.Type)
		t := ir.NewTensor(ir.Elem(a.Type), shape...)
		size := int(ir.ByteSize(t.Elem))
		for i := range t.Data {
			at := i * size
			if a.Splat {
				at = 0
			}
			t.Data[i] = ir.DecodeElement(t.Elem, a.Raw[at:])
		}
		return t, nil
	case *ir.ElidedAttr:
		return nil, fmt.Errorf("the constant's value was elided from the text")
	}
	return nil, fmt.Errorf("not a constant: %s", a)
}

// Select chooses between two values.
var Select = define(ir.OpDef{
	Name:        "select",
	Summary:     "chooses between two values",
	Description: "Where the condition is true the first value, elsewhere the second. A single condition chooses whole vectors and tensors.",
	Operands: []ir.OperandDef{
		{Name: "condition", Type: kinds.BoolLike}, {Name: "true_value", Type: kinds.Any}, {Name: "false_value", Type: kinds.Any},
	},
	Results: []ir.ResultDef{{Name: "result", Type: kinds.Any}},
	Traits:  ir.Elementwise,
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		a, b := in.Operands[1].Type(), in.Operands[2].Type()
		if a != b {
			return nil, fmt.Errorf("chooses between types %s and %s: they must be one type", a, b)
		}
		return []ir.Type{a}, nil
	},
	Fold: func(_ *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
		if c, ok := consts[0].(*ir.IntegerAttr); ok {
			if c.Value != 0 {
				return []ir.FoldResult{{Value: op.Operand(1)}}
			}
			return []ir.FoldResult{{Value: op.Operand(2)}}
		}
		if op.Operand(1) == op.Operand(2) {
			return []ir.FoldResult{{Value: op.Operand(1)}}
		}
		return nil
	},
	Eval: evalSelect,
})

func evalSelect(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	c, ok := in[0].(*ir.Tensor)
	if !ok {
		return nil, fmt.Errorf("the condition is %T, not a number", in[0])
	}
	if len(c.Shape) == 0 {
		if c.Data[0] != 0 {
			return in[1:2], nil
		}
		return in[2:3], nil
	}
	x, y, err := pair(in[1:])
	if err != nil {
		return nil, err
	}
	r := ir.NewTensor(x.Elem, x.Shape...)
	for i := range r.Data {
		r.Data[i] = y.Data[i]
		if c.Data[i] != 0 {
			r.Data[i] = x.Data[i]
		}
	}
	return []ir.Datum{r}, nil
}

// pair is two operands as tensors of one shape.
func pair(in []ir.Datum) (x, y *ir.Tensor, err error) {
	x, okx := in[0].(*ir.Tensor)
	y, oky := in[1].(*ir.Tensor)
	if !okx || !oky || len(x.Data) != len(y.Data) {
		return nil, nil, fmt.Errorf("operands are %T and %T, not numbers of one shape", in[0], in[1])
	}
	return x, y, nil
}
