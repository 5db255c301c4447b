// Package mem is the dialect of values placed in memory: what functions hold after the buffers phase. A buffer is named by
// the space it is in; a view is another strided way of looking at a buffer; copies and kernel launches move data. The
// package knows nothing of how places were chosen.
package mem

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "mem",
	Summary: "values placed in memory: buffers, views, copies, collectives",
	Ops:     []*ir.OpDef{Buffer, View, Copy, Collective, Wait},
}

// The spaces a buffer can be in.
const (
	State  = "state"  // parameters, gradients, optimizer state: named, lives as long as the program
	Input  = "input"  // an argument of the call, named
	Output = "output" // a result of the call, named
	Scalar = "scalar" // a run-time scalar, named
	Const  = "const"  // a constant, its value in the attribute
	Arena  = "arena"  // scratch memory of the call, at an offset
)

// Spaces lists them.
var Spaces = []string{State, Input, Output, Scalar, Const, Arena}

var memRef = ir.Constraint{Doc: "memref", OK: func(t ir.Type) bool { _, ok := t.(*ir.MemRefType); return ok }}

// Buffer is a piece of memory: all of a named storage, or a range of the arena.
var Buffer = ir.Define("mem", ir.OpDef{
	Name:    "buffer",
	Summary: "a piece of memory in a space",
	Description: "All of the state, input, output or scalar called `name`, the constant `value`, or the bytes of the arena from `offset` on. " +
		"The result is row-major.",
	Attrs: []ir.AttrDef{
		{Name: "space", Kind: ir.StringKind, Doc: "state, input, output, scalar, const or arena"},
		{Name: "name", Kind: ir.StringKind, Optional: true, Doc: "the name within the space"},
		{Name: "offset", Kind: ir.I64Kind, Optional: true, Doc: "bytes from the start of the arena"},
		{Name: "value", Kind: ir.DenseKind, Optional: true, Doc: "the constant"},
	},
	Results: []ir.ResultDef{{Name: "buffer", Type: memRef}},
	Verify:  verifyBuffer,
})

func verifyBuffer(op *ir.Op) error {
	space := op.Attrs().Str("space")
	if !slices.Contains(Spaces, space) {
		return op.Errorf("mem.buffer: no space %q; there are %v", space, Spaces)
	}
	want := map[string]string{Const: "value", Arena: "offset"}[space]
	if want == "" {
		want = "name"
	}
	for _, a := range []string{"name", "offset", "value"} {
		if has := op.Attr(a) != nil; has != (a == want) {
			return op.Errorf("mem.buffer in space %q: wants attribute %q and neither of the others", space, want)
		}
	}
	if off, ok := op.Attrs().Int("offset"); ok && off < 0 {
		return op.Errorf("mem.buffer: negative offset %d", off)
	}
	if t := op.Result(0).Type().(*ir.MemRefType); t.Layout != nil {
		return op.Errorf("mem.buffer: a buffer is row-major, not %s", t)
	}
	return nil
}

// View looks at a buffer with other dimensions, strides and offset.
var View = ir.Define("mem", ir.OpDef{
	Name:        "view",
	Summary:     "a buffer seen with another shape and strides",
	Description: "The layout of the result is relative to the start of the buffer, in elements. A stride of 0 repeats.",
	Operands:    []ir.OperandDef{{Name: "buffer", Type: memRef, Doc: "a mem.buffer"}},
	Results:     []ir.ResultDef{{Name: "view", Type: memRef}},
	Traits:      ir.Pure | ir.View,
	Verify:      verifyView,
})

func verifyView(op *ir.Op) error {
	if !op.Operand(0).DefinedBy(Buffer) {
		return op.Errorf("mem.view: wants a mem.buffer")
	}
	base, view := op.Operand(0).Type().(*ir.MemRefType), op.Result(0).Type().(*ir.MemRefType)
	if base.Elem != view.Elem {
		return op.Errorf("mem.view: element type %s of a buffer of %s", view.Elem, base.Elem)
	}
	strides, offset := Layout(view)
	if err := CheckRange(view.Shape, strides, offset, ir.NumElements(base.Shape)); err != nil {
		return op.Errorf("mem.view: %v", err)
	}
	return nil
}

// Copy copies all elements between two places of the same shape.
var Copy = ir.Define("mem", ir.OpDef{
	Name:        "copy",
	Summary:     "copies all elements from one place to another",
	Description: "Shapes and element types are equal, layouts may differ, the places don't overlap.",
	Operands:    []ir.OperandDef{{Name: "src", Type: memRef}, {Name: "dst", Type: memRef}},
	Verify: func(op *ir.Op) error {
		src, dst := op.Operand(0).Type().(*ir.MemRefType), op.Operand(1).Type().(*ir.MemRefType)
		if src.Elem != dst.Elem || !slices.Equal(src.Shape, dst.Shape) {
			return op.Errorf("mem.copy: from %s to %s", src, dst)
		}
		return nil
	},
})

// Layout is a memref's strides and offset in elements.
func Layout(t *ir.MemRefType) (strides []int64, offset int64) {
	if s, ok := t.Layout.(*ir.StridedAttr); ok {
		return s.Strides, s.Offset
	}
	return ir.RowMajor(t.Shape), 0
}

// CheckRange says whether every element of a strided view lies within a buffer of n elements. It holds for any numbers:
// nothing overflows.
func CheckRange(shape, strides []int64, offset, n int64) error {
	if len(shape) != len(strides) {
		return fmt.Errorf("%d strides for %d dimensions", len(strides), len(shape))
	}
	for i, d := range shape {
		if d < 0 || strides[i] < 0 {
			return fmt.Errorf("dimension %d of extent %d and stride %d", i, d, strides[i])
		}
	}
	if slices.Contains(shape, 0) && offset >= 0 {
		return nil
	}
	if offset < 0 || offset >= n {
		return fmt.Errorf("elements from %d on of a buffer of %d", offset, n)
	}
	last := offset
	for i, d := range shape {
		if d > 1 && strides[i] > 0 && d-1 > (n-1-last)/strides[i] {
			return fmt.Errorf("dimension %d of extent %d and stride %d, from element %d on, of a buffer of %d", i, d, strides[i], offset, n)
		}
		last += (d - 1) * strides[i]
	}
	return nil
}
