package blu

import (
	"fmt"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Reshape sees the same elements, in row-major order, under another shape.
var Reshape = define(ir.OpDef{
	Name:        "reshape",
	Summary:     "the same elements in row-major order under another shape",
	Description: "The result's type is given; it has as many elements as x.",
	Operands:    []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:      ir.Pure | ir.View | ir.Differentiable,
	Verify:      verifyReshape,
	Fold:        foldReshape,
	Eval:        eval(evalReshape),
})

// Transpose permutes axes.
var Transpose = define(ir.OpDef{
	Name:        "transpose",
	Summary:     "permutation of axes",
	Description: "Axis i of the result is axis `perm[i]` of x.",
	Operands:    []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}},
	Attrs:       []ir.AttrDef{{Name: "perm", Kind: ir.I64sKind, Doc: "for each axis of the result, the axis of x it is"}},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:      ir.Pure | ir.View | ir.Differentiable,
	Infer:       inferTranspose,
	Fold:        foldTranspose,
	Eval:        eval(evalTranspose),
})

// Slice takes a strided range of each axis.
var Slice = define(ir.OpDef{
	Name:        "slice",
	Summary:     "a strided range of every axis",
	Description: "Along axis i the elements at `starts[i]`, `starts[i] + steps[i]`, ... below `limits[i]`. 0 <= start <= limit <= size, steps are positive.",
	Operands:    []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}},
	Attrs: []ir.AttrDef{
		{Name: "starts", Kind: ir.I64sKind, Doc: "first index along each axis"},
		{Name: "limits", Kind: ir.I64sKind, Doc: "index each axis stops before"},
		{Name: "steps", Kind: ir.I64sKind, Doc: "distance of indices along each axis"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:  ir.Pure | ir.View | ir.Differentiable,
	Infer:   inferSlice,
	Fold:    foldSlice,
	Eval:    eval(evalSlice),
})

// Pad puts a constant around a tensor.
var Pad = define(ir.OpDef{
	Name:        "pad",
	Summary:     "a constant border",
	Description: "Along axis i, `low[i]` elements of `value` come before those of x and `high[i]` after.",
	Operands:    []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}},
	Attrs: []ir.AttrDef{
		{Name: "low", Kind: ir.I64sKind, Doc: "elements added before, not negative"},
		{Name: "high", Kind: ir.I64sKind, Doc: "elements added after, not negative"},
		{Name: "value", Kind: ir.F64Kind, Doc: "what is added, a value of the element type"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:  ir.Pure | ir.Differentiable,
	Infer:   inferPad,
	Fold:    foldPad,
	Eval:    eval(evalPad),
})

// Concat joins tensors along an axis.
var Concat = define(ir.OpDef{
	Name:        "concat",
	Summary:     "tensors joined along an axis",
	Description: "The operands, at least one, have equal shapes but for `axis`, along which they follow each other.",
	Operands:    []ir.OperandDef{{Name: "xs", Type: kinds.AnyTensor, Arity: ir.Variadic}},
	Attrs:       []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "the axis that grows"}},
	Results:     []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:      ir.Pure | ir.Differentiable,
	Infer:       inferConcat,
	Fold:        foldConcat,
	Eval:        eval(evalConcat),
})

func verifyReshape(op *ir.Op) error {
	x, y := op.Operand(0), op.Result(0)
	if x.Elem() != y.Elem() {
		return located(op, fmt.Errorf("x has elements of type %s, the result of type %s", x.Elem(), y.Elem()))
	}
	return located(op, CheckReshape(x.Shape(), y.Shape()))
}

// CheckReshape says why a shape can't become another.
func CheckReshape(from, to []int64) error {
	if a, b := ir.NumElements(from), ir.NumElements(to); a != b {
		return fmt.Errorf("%s has %d elements, %s has %d", ir.ShapeString(from), a, ir.ShapeString(to), b)
	}
	return nil
}

func evalReshape(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	return &ir.Tensor{Shape: op.Result(0).Shape(), Elem: in[0].Elem, Data: in[0].Data}, nil
}

// foldReshape: to the same shape it is nothing; of a constant it is a constant; two that undo each other
// are nothing.
func foldReshape(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	x := op.Operand(0)
	if x.Type() == op.Result(0).Type() {
		return toValue(x)
	}
	if d, ok := consts[0].(*ir.DenseAttr); ok {
		return toAttr(c.Dense(op.Result(0).Type(), []byte(d.Raw)))
	}
	if x.DefinedBy(op.Def()) && x.Op().Operand(0).Type() == op.Result(0).Type() {
		return toValue(x.Op().Operand(0))
	}
	return nil
}

func inferTranspose(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, perm := in.Operands[0], in.Attrs.Ints("perm")
	if len(perm) != len(x.Shape()) {
		return nil, fmt.Errorf("x is %s (rank %d), perm has length %d", ir.ShapeString(x.Shape()), len(x.Shape()), len(perm))
	}
	if err := axesOf("perm", perm, "x", x.Shape()); err != nil {
		return nil, err
	}
	return []ir.Type{c.Tensor(permute(x.Shape(), perm), x.Elem())}, nil
}

// permute takes the entry perm[i] of a list to place i.
func permute(list, perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, p := range perm {
		out[i] = list[p]
	}
	return out
}

func evalTranspose(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	gatherStrided(out.Data, in[0].Data, out.Shape, permute(ir.RowMajor(in[0].Shape), op.Attrs().Ints("perm")), 0)
	return out, nil
}

// foldTranspose: the identity is nothing; of a splat it is a splat; two that undo each other are nothing.
func foldTranspose(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	x, perm := op.Operand(0), op.Attrs().Ints("perm")
	if slices.Equal(perm, leadingAxes(len(perm))) {
		return toValue(x)
	}
	if d, ok := splat(consts[0]); ok {
		return toAttr(c.Dense(op.Result(0).Type(), []byte(d.Raw)))
	}
	if x.DefinedBy(op.Def()) && slices.Equal(permute(x.Op().Attrs().Ints("perm"), perm), leadingAxes(len(perm))) {
		return toValue(x.Op().Operand(0))
	}
	return nil
}

func inferSlice(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x := in.Operands[0]
	starts, limits, steps := in.Attrs.Ints("starts"), in.Attrs.Ints("limits"), in.Attrs.Ints("steps")
	shape := x.Shape()
	if len(starts) != len(shape) || len(limits) != len(shape) || len(steps) != len(shape) {
		return nil, fmt.Errorf("x is %s (rank %d): starts, limits and steps need an entry for each axis, they have %d, %d and %d",
			ir.ShapeString(shape), len(shape), len(starts), len(limits), len(steps))
	}
	out := make([]int64, len(shape))
	for i, n := range shape {
		if starts[i] < 0 || starts[i] > limits[i] || limits[i] > n {
			return nil, fmt.Errorf("%d:%d is no range of axis %d of x (%s), which has %d elements", starts[i], limits[i], i, ir.ShapeString(shape), n)
		}
		if steps[i] <= 0 {
			return nil, fmt.Errorf("the step along axis %d is %d, it must be positive", i, steps[i])
		}
		out[i] = (limits[i] - starts[i] + steps[i] - 1) / steps[i]
	}
	return []ir.Type{c.Tensor(out, x.Elem())}, nil
}

func evalSlice(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	starts, steps := op.Attrs().Ints("starts"), op.Attrs().Ints("steps")
	strides := ir.RowMajor(in[0].Shape)
	offset := int64(0)
	for i := range strides {
		offset += starts[i] * strides[i]
		strides[i] *= steps[i]
	}
	gatherStrided(out.Data, in[0].Data, out.Shape, strides, offset)
	return out, nil
}

// foldSlice: all of it is nothing; of a splat it is a splat.
func foldSlice(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	x := op.Operand(0)
	if slices.Equal(x.Shape(), op.Result(0).Shape()) {
		return toValue(x)
	}
	if d, ok := splat(consts[0]); ok {
		return toAttr(c.Dense(op.Result(0).Type(), []byte(d.Raw)))
	}
	return nil
}

func inferPad(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, low, high := in.Operands[0], in.Attrs.Ints("low"), in.Attrs.Ints("high")
	shape := slices.Clone(x.Shape())
	if len(low) != len(shape) || len(high) != len(shape) {
		return nil, fmt.Errorf("x is %s (rank %d): low and high need an entry for each axis, they have %d and %d",
			ir.ShapeString(shape), len(shape), len(low), len(high))
	}
	for i := range shape {
		if low[i] < 0 || high[i] < 0 {
			return nil, fmt.Errorf("the padding of axis %d is negative: %d before, %d after", i, low[i], high[i])
		}
		sum := shape[i] + low[i] + high[i]
		if sum < shape[i] {
			return nil, fmt.Errorf("axis %d of x (%s) with %d before and %d after is too long", i, ir.ShapeString(x.Shape()), low[i], high[i])
		}
		shape[i] = sum
	}
	return []ir.Type{c.Tensor(shape, x.Elem())}, nil
}

func evalPad(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	value := converter(out.Elem)(op.Attrs().FloatOr("value", 0))
	for i := range out.Data {
		out.Data[i] = value
	}
	strides := ir.RowMajor(out.Shape)
	offset := int64(0)
	for i, l := range op.Attrs().Ints("low") {
		offset += l * strides[i]
	}
	scatterStrided(out.Data, in[0].Data, in[0].Shape, strides, offset)
	return out, nil
}

// foldPad: no border is nothing; a border like the splat it is around makes a larger splat.
func foldPad(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	if op.Operand(0).Type() == op.Result(0).Type() {
		return toValue(op.Operand(0))
	}
	border := ir.EncodeElement(nil, op.Result(0).Elem(), op.Attrs().FloatOr("value", 0))
	if d, ok := splat(consts[0]); ok && d.Raw == string(border) {
		return toAttr(c.Dense(op.Result(0).Type(), border))
	}
	return nil
}

func inferConcat(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	if len(in.Operands) == 0 {
		return nil, fmt.Errorf("there is nothing to join: at least one operand is needed")
	}
	axis, _ := in.Attrs.Int("axis")
	first := in.Operands[0]
	if err := axisInRange(axis, "operand 0", first.Shape()); err != nil {
		return nil, err
	}
	shape := slices.Clone(first.Shape())
	for i, x := range in.Operands[1:] {
		s := x.Shape()
		if x.Elem() != first.Elem() {
			return nil, fmt.Errorf("operand 0 has elements of type %s, operand %d of type %s", first.Elem(), i+1, x.Elem())
		}
		if len(s) != len(shape) || !slices.Equal(without(s, []int64{axis}), without(shape, []int64{axis})) {
			return nil, fmt.Errorf("operand 0 is %s, operand %d is %s: they may differ along axis %d only",
				ir.ShapeString(first.Shape()), i+1, ir.ShapeString(s), axis)
		}
		shape[axis] += s[axis]
	}
	return []ir.Type{c.Tensor(shape, first.Elem())}, nil
}

func evalConcat(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	axis, _ := op.Attrs().Int("axis")
	outer, n, inner := splitAt(out.Shape, axis)
	at := int64(0)
	for _, x := range in {
		block := x.Shape[axis] * inner
		for o := range outer {
			copy(out.Data[o*n*inner+at:], x.Data[o*block:(o+1)*block])
		}
		at += block
	}
	return out, nil
}

// foldConcat: one operand is itself.
func foldConcat(_ *ir.Context, op *ir.Op, _ []ir.Attr) []ir.FoldResult {
	if op.NumOperands() == 1 {
		return toValue(op.Operand(0))
	}
	return nil
}
