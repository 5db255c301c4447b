package blu

import (
	"fmt"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Predicates lists what blu.compare can ask.
var Predicates = []string{"eq", "ne", "lt", "le", "gt", "ge"}

// Compare compares elements.
var Compare = define(ir.OpDef{
	Name:        "compare",
	Summary:     "comparison of elements",
	Description: "y = a ? b for the predicate: eq, ne, lt, le, gt or ge. Comparisons with NaN are false, except ne, which is true.",
	Operands:    []ir.OperandDef{{Name: "a", Type: kinds.AnyTensor}, {Name: "b", Type: kinds.AnyTensor}},
	Attrs:       []ir.AttrDef{{Name: "predicate", Kind: ir.StringKind, Doc: "eq, ne, lt, le, gt or ge"}},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.BoolTensor}},
	Traits:      ir.Pure | ir.Elementwise,
	Infer:       inferCompare,
	Fold:        foldCompare,
	Eval:        eval(evalCompare),
})

// Select takes elements of one of two tensors.
var Select = define(ir.OpDef{
	Name:        "select",
	Summary:     "elements of one of two tensors by a condition",
	Description: "y = c ? a : b. What is not taken does not matter, be it NaN.",
	Operands:    []ir.OperandDef{{Name: "c", Type: kinds.BoolTensor}, {Name: "a", Type: kinds.AnyTensor}, {Name: "b", Type: kinds.AnyTensor}},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:      ir.Pure | ir.Elementwise | ir.Differentiable,
	Infer:       inferSelect,
	Fold:        foldSelect,
	Eval:        eval(evalSelect),
})

// Cast converts elements.
var Cast = define(ir.OpDef{
	Name:    "cast",
	Summary: "conversion of the element type",
	Description: "The result's type is given. Floating-point types narrower than f64 round to nearest even. To an integer type the value is cut toward " +
		"zero and held within the type's range, NaN gives 0; to i1 it becomes whether it is not 0. i1 gives 0 or 1. " +
		"The reference evaluation keeps more than f32 has.",
	Operands: []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}},
	Results:  []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:   ir.Pure | ir.Elementwise | ir.Differentiable,
	Verify:   verifyCast,
	Fold:     foldCast,
	Eval:     eval(evalCast),
})

func inferCompare(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	a, b := in.Operands[0], in.Operands[1]
	if err := equalTypes("a", a, "b", b); err != nil {
		return nil, err
	}
	if err := oneOf(in.Attrs, "predicate", Predicates...); err != nil {
		return nil, err
	}
	return []ir.Type{c.Tensor(a.Shape(), c.I1())}, nil
}

func predicate(op *ir.Op) func(a, b float64) bool {
	switch op.Attrs().Str("predicate") {
	case "eq":
		return func(a, b float64) bool { return a == b }
	case "ne":
		return func(a, b float64) bool { return a != b }
	case "lt":
		return func(a, b float64) bool { return a < b }
	case "le":
		return func(a, b float64) bool { return a <= b }
	case "gt":
		return func(a, b float64) bool { return a > b }
	}
	return func(a, b float64) bool { return a >= b }
}

func evalCompare(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	holds := predicate(op)
	out := like(in[0], op, 0)
	b := in[1].Data
	for i, a := range in[0].Data {
		if holds(a, b[i]) {
			out.Data[i] = 1
		}
	}
	return out, nil
}

// foldCompare: an integer compares with itself as 0 with 0.
func foldCompare(c *ir.Context, op *ir.Op, _ []ir.Attr) []ir.FoldResult {
	if op.Operand(0) != op.Operand(1) || !ir.IsInteger(op.Operand(0).Type()) {
		return nil
	}
	if predicate(op)(0, 0) {
		return toSplat(c, op, 1)
	}
	return toSplat(c, op, 0)
}

func inferSelect(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	cond, a, b := in.Operands[0], in.Operands[1], in.Operands[2]
	if err := equalTypes("a", a, "b", b); err != nil {
		return nil, err
	}
	if err := equalShapes("the condition", cond.Shape(), "a", a.Shape()); err != nil {
		return nil, err
	}
	return []ir.Type{a.Type()}, nil
}

func evalSelect(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := like(in[0], op, 0)
	a, b := in[1].Data, in[2].Data
	for i, c := range in[0].Data {
		if c != 0 {
			out.Data[i] = a[i]
		} else {
			out.Data[i] = b[i]
		}
	}
	return out, nil
}

// foldSelect: a constant condition takes its side; equal sides are the result.
func foldSelect(_ *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	switch {
	case isSplat(consts[0], 1), op.Operand(1) == op.Operand(2):
		return toValue(op.Operand(1))
	case isSplat(consts[0], 0):
		return toValue(op.Operand(2))
	}
	return nil
}

func verifyCast(op *ir.Op) error {
	if len(op.Operand(0).Shape()) != len(op.Result(0).Shape()) {
		return located(op, fmt.Errorf("a cast keeps the shape, %s became %s", ir.ShapeString(op.Operand(0).Shape()), ir.ShapeString(op.Result(0).Shape())))
	}
	return located(op, equalShapes("x", op.Operand(0).Shape(), "the result", op.Result(0).Shape()))
}

func evalCast(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := like(in[0], op, 0)
	convert := converter(out.Elem)
	for i, x := range in[0].Data {
		out.Data[i] = convert(x)
	}
	return out, nil
}

// converter brings a float64 to the values of an element type. f32 keeps all of it: see ir.Tensor.
func converter(t ir.Type) func(float64) float64 {
	if f, ok := t.(*ir.FloatType); ok {
		if f.Kind == ir.F64 || f.Kind == ir.F32 {
			return func(x float64) float64 { return x }
		}
		return func(x float64) float64 { return round(t, x) }
	}
	width := t.(*ir.IntegerType).Width
	if width == 1 {
		return func(x float64) float64 {
			if x != 0 {
				return 1
			}
			return 0
		}
	}
	limit := math.Ldexp(1, width-1)
	top := limit - 1 // for i64 this is 2^63 in float64, the nearest there is
	return func(x float64) float64 {
		if x != x {
			return 0
		}
		return min(max(math.Trunc(x), -limit), top)
	}
}

// foldCast: a cast to the same type, and a cast back from a type that holds every value of the first.
func foldCast(_ *ir.Context, op *ir.Op, _ []ir.Attr) []ir.FoldResult {
	x := op.Operand(0)
	to := op.Result(0).Type()
	if x.Type() == to {
		return toValue(x)
	}
	if x.DefinedBy(op.Def()) && x.Op().Operand(0).Type() == to && holdsAll(x.Elem(), ir.Elem(to)) {
		return toValue(x.Op().Operand(0))
	}
	return nil
}

// holdsAll reports whether every value of narrow is one of wide.
func holdsAll(wide, narrow ir.Type) bool {
	wf, wFloat := wide.(*ir.FloatType)
	nf, nFloat := narrow.(*ir.FloatType)
	switch {
	case wFloat && nFloat:
		return wf.Kind == ir.F64 || wf.Kind == ir.F32 && (nf.Kind == ir.F16 || nf.Kind == ir.BF16)
	case wFloat:
		bits := map[ir.FloatKind]int{ir.F64: 53, ir.F32: 24, ir.F16: 11, ir.BF16: 8}[wf.Kind]
		return narrow.(*ir.IntegerType).Width <= bits
	case nFloat:
		return false
	}
	return wide.(*ir.IntegerType).Width >= narrow.(*ir.IntegerType).Width
}

// ComparesEqual reports whether an operation compares floating-point numbers for equality, neither of them a constant: it
// relies on how they were rounded.
func ComparesEqual(op *ir.Op) bool {
	if p := op.Attrs().Str("predicate"); !op.Is(Compare) || p != "eq" && p != "ne" || !ir.IsFloat(op.Operand(0).Elem()) {
		return false
	}
	for _, v := range op.Operands() {
		for v.Op() != nil && v.Op().Has(ir.View) {
			v = v.Op().Operand(0)
		}
		if v.Op() != nil && v.Op().Has(ir.ConstantLike) {
			return false
		}
	}
	return true
}
