package tile

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "tile",
	Summary: "kernels: a language of clipped blocks",
	Ops: slices.Concat(
		[]*ir.OpDef{Kernel, Launch, End, Yield},
		[]*ir.OpDef{Load, Store, Scratch},
		[]*ir.OpDef{Constant, Iota, Broadcast, RandomUniform, RandomNormal},
		[]*ir.OpDef{Gather, Pick, ScatterAdd},
		[]*ir.OpDef{Reduce, Transpose},
		[]*ir.OpDef{Dot, Contract},
		Elementwise,
	),
	Types: []ir.TypeDef{{Name: "block", Summary: "a block of at most the given rows and columns", Verify: verifyBlockType}},
}

func verifyBlockType(t *ir.DialectType) error {
	if t.Elem == nil || len(t.Shape) != 2 || len(t.Params) > 0 {
		return fmt.Errorf("a block has rows, columns and an element type, as in !tile.block<64x128xf32>")
	}
	if t.Shape[0] < 1 || t.Shape[1] < 1 {
		return fmt.Errorf("a block has at least one row and one column, not %s", ir.ShapeString(t.Shape))
	}
	return nil
}

// Block is the type of blocks with at most that many rows and columns.
func Block(c *ir.Context, rows, cols int64, elem ir.Type) *ir.DialectType {
	return c.DialectType("tile", "block", []int64{rows, cols}, elem)
}

// IsBlock reports whether t is a block type.
func IsBlock(t ir.Type) bool {
	d, ok := t.(*ir.DialectType)
	return ok && d.Dialect == "tile" && d.Name == "block"
}

func blockOf(doc string, elem func(ir.Type) bool) ir.Constraint {
	return ir.Constraint{Doc: doc, OK: func(t ir.Type) bool { return IsBlock(t) && elem(ir.Elem(t)) }}
}

func intOf(width int) func(ir.Type) bool {
	return func(t ir.Type) bool { i, ok := t.(*ir.IntegerType); return ok && i.Width == width }
}

var (
	anyBlock   = blockOf("block", func(ir.Type) bool { return true })
	floatBlock = blockOf("block of floating-point numbers", ir.IsFloat)
	indices    = blockOf("block of i32 with one column", func(t ir.Type) bool { return intOf(32)(t) })
	seed       = blockOf("1x1 block of i64", intOf(64))

	memRef = ir.Constraint{Doc: "memref", OK: func(t ir.Type) bool { _, ok := t.(*ir.MemRefType); return ok }}
	index  = ir.Constraint{Doc: "index", OK: func(t ir.Type) bool { _, ok := t.(*ir.IndexType); return ok }}

	tensorOrRef = ir.Constraint{Doc: "tensor or memref", OK: func(t ir.Type) bool {
		switch t.(type) {
		case *ir.TensorType, *ir.MemRefType:
			return true
		}
		return false
	}}
	tensor = ir.Constraint{Doc: "tensor", OK: func(t ir.Type) bool { _, ok := t.(*ir.TensorType); return ok }}
)

func define(def ir.OpDef) *ir.OpDef { return ir.Define("tile", def) }

// extents is the rows and columns of a block's type.
func extents(v *ir.Value) (rows, cols int64) {
	s := v.Shape()
	return s[0], s[1]
}

func wantExtents(op *ir.Op, what string, v *ir.Value, rows, cols int64) error {
	if r, c := extents(v); r != rows || c != cols {
		return op.Errorf("%s: %s is %dx%d, expected %dx%d", op.Name(), what, r, c, rows, cols)
	}
	return nil
}
