package tile

import (
	"blutrain/ir"
)

// Reductions lists the kinds of tile.reduce.
var Reductions = []string{"sum", "max", "min", "argmax"}

// Reduce reduces rows or columns.
var Reduce = define(ir.OpDef{
	Name:    "reduce",
	Summary: "reduces a block along one dimension",
	Description: "Axis 0 reduces over rows and leaves one row, axis 1 over columns and leaves one column. max and min give NaN where there is one. " +
		"argmax gives the first position of the greatest element within the block, as i32, a NaN being greater than all. Sums are wide: targets add in more " +
		"precision than the elements have, or pairwise.",
	Operands: []ir.OperandDef{{Name: "x", Type: anyBlock}},
	Attrs: []ir.AttrDef{
		{Name: "kind", Kind: ir.StringKind, Doc: "sum, max, min or argmax"},
		{Name: "axis", Kind: ir.I64Kind, Doc: "0: over rows, 1: over columns"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Traits:  ir.Pure,
	Infer:   inferReduce,
	Verify:  verifyReduce,
	Eval:    evalReduce,
})

// Transpose exchanges rows and columns.
var Transpose = define(ir.OpDef{
	Name:        "transpose",
	Summary:     "exchanges rows and columns",
	Description: "y[c, r] = x[r, c].",
	Operands:    []ir.OperandDef{{Name: "x", Type: anyBlock}},
	Results:     []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Traits:      ir.Pure,
	Infer:       inferTranspose,
	Eval:        evalTranspose,
})
