package blu

import (
	"fmt"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// reduction describes an operation that combines the elements along some axes, which the result no longer has.
func reduction(name, summary, description string, identity func(ir.Type) float64, combine func(acc, x float64) float64) *ir.OpDef {
	return define(ir.OpDef{
		Name: name, Summary: summary, Description: description,
		Operands: []ir.OperandDef{{Name: "x", Type: kinds.NumberTensor}},
		Attrs:    []ir.AttrDef{{Name: "axes", Kind: ir.I64sKind, Doc: "the axes to reduce, ascending; none leaves x as it is"}},
		Results:  []ir.ResultDef{{Name: "y", Type: kinds.NumberTensor}},
		Traits:   ir.Pure | ir.Differentiable,
		Infer:    inferReduce,
		Fold:     foldReduce,
		Eval: eval(func(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
			out := resultTensor(op, 0)
			first := identity(out.Elem)
			for i := range out.Data {
				out.Data[i] = first
			}
			x := in[0]
			eachRun(x.Shape, reducedStrides(x.Shape, op.Attrs().Ints("axes")), 0, func(at, n int, offset, step int64) {
				for _, v := range x.Data[at : at+n] {
					out.Data[offset] = combine(out.Data[offset], v)
					offset += step
				}
			})
			wrap(out)
			return out, nil
		}),
	})
}

// Reductions. Over no elements they give the identity of their operation.
var (
	ReduceSum = reduction("reduce_sum", "sum along axes", "The sum; 0 over no elements. Integers wrap around.",
		func(ir.Type) float64 { return 0 }, func(acc, x float64) float64 { return acc + x })
	ReduceMax = reduction("reduce_max", "maximum along axes",
		"The greatest element; NaN where there is one. Over no elements -inf, or the least integer of the type.",
		func(t ir.Type) float64 { return -infinity(t) }, func(acc, x float64) float64 { return max(acc, x) })
	ReduceMin = reduction("reduce_min", "minimum along axes",
		"The least element; NaN where there is one. Over no elements inf, or the greatest integer of the type.",
		func(t ir.Type) float64 { return greatest(t) }, func(acc, x float64) float64 { return min(acc, x) })
)

// Argmax finds the place of the greatest element.
var Argmax = define(ir.OpDef{
	Name:        "argmax",
	Summary:     "index of the greatest element along an axis",
	Description: "The index, i32, of the first of the greatest elements along `axis`, which the result no longer has. NaN counts as greater than all else.",
	Operands:    []ir.OperandDef{{Name: "x", Type: kinds.NumberTensor}},
	Attrs:       []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "the axis to search, not empty"}},
	Results:     []ir.ResultDef{{Name: "index", Type: kinds.IntTensor}},
	Traits:      ir.Pure,
	Infer:       inferArgmax,
	Eval:        eval(evalArgmax),
})

// infinity is what -x of is the least value of a type: inf, or 2^(width-1).
func infinity(t ir.Type) float64 {
	if it, ok := t.(*ir.IntegerType); ok {
		return math.Ldexp(1, it.Width-1)
	}
	return math.Inf(1)
}

// greatest is the greatest value of a type. For i64 that is rounded to 2^63 - 1024, the greatest float64 below 2^63.
func greatest(t ir.Type) float64 {
	if it, ok := t.(*ir.IntegerType); ok {
		limit := math.Ldexp(1, it.Width-1)
		return min(limit-1, math.Nextafter(limit, 0))
	}
	return math.Inf(1)
}

func inferReduce(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, axes := in.Operands[0], in.Attrs.Ints("axes")
	if err := axesOf("axes", axes, "x", x.Shape()); err != nil {
		return nil, err
	}
	for i := range axes {
		if i > 0 && axes[i] < axes[i-1] {
			return nil, fmt.Errorf("axes must ascend, they are %v", axes)
		}
	}
	return []ir.Type{c.Tensor(without(x.Shape(), axes), x.Elem())}, nil
}

// reducedStrides is the strides, over the operand, of the row-major result: 0 along reduced axes.
func reducedStrides(shape, axes []int64) []int64 {
	kept := axesComplement(len(shape), axes)
	strides := make([]int64, len(shape))
	for i, s := range ir.RowMajor(permute(shape, kept)) {
		strides[kept[i]] = s
	}
	return strides
}

// axesComplement is the axes that are not in the list.
func axesComplement(rank int, axes []int64) []int64 { return without(leadingAxes(rank), axes) }

// foldReduce: along no axes it is nothing.
func foldReduce(_ *ir.Context, op *ir.Op, _ []ir.Attr) []ir.FoldResult {
	if len(op.Attrs().Ints("axes")) == 0 {
		return toValue(op.Operand(0))
	}
	return nil
}

func inferArgmax(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x := in.Operands[0]
	axis, _ := in.Attrs.Int("axis")
	if err := axisInRange(axis, "x", x.Shape()); err != nil {
		return nil, err
	}
	switch n := x.Shape()[axis]; {
	case n == 0:
		return nil, fmt.Errorf("axis %d of x (%s) has no elements: there is no greatest", axis, ir.ShapeString(x.Shape()))
	case n > math.MaxInt32:
		return nil, fmt.Errorf("axis %d of x (%s) is too long for an i32 index", axis, ir.ShapeString(x.Shape()))
	}
	return []ir.Type{c.Tensor(without(x.Shape(), []int64{axis}), c.I32())}, nil
}

func evalArgmax(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	axis, _ := op.Attrs().Int("axis")
	outer, n, inner := splitAt(in[0].Shape, axis)
	for o := range outer {
		for i := range inner {
			best := int64(0)
			at := func(k int64) float64 { return in[0].Data[(o*n+k)*inner+i] }
			for k := int64(1); k < n; k++ {
				if b := at(best); at(k) > b || at(k) != at(k) && b == b {
					best = k
				}
			}
			out.Data[o*inner+i] = float64(best)
		}
	}
	return out, nil
}
