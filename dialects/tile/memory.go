package tile

import (
	"blutrain/ir"
)

var windowAttrs = []ir.AttrDef{
	{Name: "row", Kind: ir.I64Kind, Optional: true, Doc: "the dimension rows run along, or -1; the last but one when absent (-1 in one dimension)"},
	{Name: "col", Kind: ir.I64Kind, Optional: true, Doc: "the dimension columns run along, or -1; the last when absent (-1 without dimensions)"},
}

// Load reads a block.
var Load = define(ir.OpDef{
	Name:    "load",
	Summary: "a block of a reference",
	Description: "y[r, c] = ref[offsets, plus r in dimension `row` and c in dimension `col`]. The block has the extents of its type, clipped where the " +
		"reference ends. Offsets lie within the reference.",
	Operands: []ir.OperandDef{{Name: "ref", Type: memRef}, {Name: "offsets", Type: index, Arity: ir.Variadic, Doc: "one for each dimension of the reference"}},
	Attrs:    windowAttrs,
	Results:  []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Verify:   verifyLoad,
	Eval:     evalLoad,
})

// Store writes a block.
var Store = define(ir.OpDef{
	Name:    "store",
	Summary: "writes a block to a reference",
	Description: "ref[offsets, plus r in dimension `row` and c in dimension `col`] = x[r, c]. The block's actual extents are those that a load at the same place " +
		"would have: nothing is repeated, nothing cut off.",
	Operands: []ir.OperandDef{
		{Name: "x", Type: anyBlock}, {Name: "ref", Type: memRef},
		{Name: "offsets", Type: index, Arity: ir.Variadic, Doc: "one for each dimension of the reference"},
	},
	Attrs:  windowAttrs,
	Verify: verifyStore,
	Eval:   evalStore,
})

// Scratch is memory of the grid point's own.
var Scratch = define(ir.OpDef{
	Name:        "scratch",
	Summary:     "memory that belongs to the grid point",
	Description: "A row-major reference that may be stored to and loaded from any number of times. It holds nothing of use at first.",
	Results:     []ir.ResultDef{{Name: "ref", Type: memRef}},
	Verify:      verifyScratch,
	Eval:        evalScratch,
})

// Window is the dimensions of ref that the rows and columns of a load or store run along; -1 for none.
func Window(op *ir.Op) (row, col int64) {
	ref := op.Operand(0)
	if IsBlock(ref.Type()) { // a store: the block comes first
		ref = op.Operand(1)
	}
	rank := int64(len(ref.Shape()))
	return op.Attrs().IntOr("row", max(rank-2, -1)), op.Attrs().IntOr("col", rank-1)
}
