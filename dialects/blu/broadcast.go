package blu

import (
	"fmt"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Broadcast repeats a tensor along new or unit axes.
var Broadcast = define(ir.OpDef{
	Name:    "broadcast",
	Summary: "repetition along new axes and axes of one element",
	Description: "Axis i of x becomes axis `axes[i]` of the result, whose type is given; `axes` ascends. An axis of one element stretches to any " +
		"number; other axes keep theirs. The axes of the result that are not named are new, and x repeats along them.",
	Operands: []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}},
	Attrs:    []ir.AttrDef{{Name: "axes", Kind: ir.I64sKind, Doc: "where each axis of x goes"}},
	Results:  []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:   ir.Pure | ir.View | ir.Differentiable,
	Verify:   verifyBroadcast,
	Fold:     foldBroadcast,
	Eval:     eval(evalBroadcast),
})

func verifyBroadcast(op *ir.Op) error {
	x, y := op.Operand(0), op.Result(0)
	if x.Elem() != y.Elem() {
		return located(op, fmt.Errorf("x has elements of type %s, the result of type %s", x.Elem(), y.Elem()))
	}
	return located(op, CheckBroadcast(x.Shape(), y.Shape(), op.Attrs().Ints("axes")))
}

// CheckBroadcast says why a shape can't be broadcast to another along those axes.
func CheckBroadcast(from, to, axes []int64) error {
	if len(axes) != len(from) {
		return fmt.Errorf("x is %s (rank %d), axes has length %d", ir.ShapeString(from), len(from), len(axes))
	}
	for i, a := range axes {
		switch {
		case a < 0 || a >= int64(len(to)):
			return fmt.Errorf("there is no axis %d in the result, which is %s", a, ir.ShapeString(to))
		case i > 0 && a <= axes[i-1]:
			return fmt.Errorf("axes must ascend, they are %v", axes)
		case from[i] != 1 && from[i] != to[a]:
			return fmt.Errorf("axis %d of x (%s) has %d elements and can't become axis %d of the result (%s), which has %d",
				i, ir.ShapeString(from), from[i], a, ir.ShapeString(to), to[a])
		}
	}
	return nil
}

// broadcastStrides is the strides, over the result, of a row-major operand: 0 where it repeats.
func broadcastStrides(from, to, axes []int64) []int64 {
	strides := make([]int64, len(to))
	for i, s := range ir.RowMajor(from) {
		if from[i] != 1 {
			strides[axes[i]] = s
		}
	}
	return strides
}

func evalBroadcast(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	gatherStrided(out.Data, in[0].Data, out.Shape, broadcastStrides(in[0].Shape, out.Shape, op.Attrs().Ints("axes")), 0)
	return out, nil
}

// foldBroadcast: to the same shape it is nothing; of a splat it is a splat.
func foldBroadcast(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	x := op.Operand(0)
	if x.Type() == op.Result(0).Type() {
		return toValue(x)
	}
	if d, ok := splat(consts[0]); ok {
		return toAttr(c.Dense(op.Result(0).Type(), []byte(d.Raw)))
	}
	return nil
}

// trailingAxes is the axes that align a shape of that rank with the end of a larger one.
func trailingAxes(rank, of int) []int64 {
	axes := make([]int64, rank)
	for i := range axes {
		axes[i] = int64(of - rank + i)
	}
	return axes
}

// leadingAxes is 0, 1, ..., rank-1.
func leadingAxes(rank int) []int64 { return trailingAxes(rank, rank) }

// axesWithout is 0, 1, ..., rank-1 without one.
func axesWithout(rank int, axis int64) []int64 {
	return slices.DeleteFunc(leadingAxes(rank), func(a int64) bool { return a == axis })
}
