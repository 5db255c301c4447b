package tile

import (
	"blutrain/ir"
)

// Gather reads rows of a table.
var Gather = define(ir.OpDef{
	Name:    "gather",
	Summary: "rows of a table by number",
	Description: "y[r, c] = table[indices[r], col + c]. The block has the rows of `indices` and the columns of its type, clipped where the table ends. " +
		"An index outside the table is a run-time error that names its position, `at` + r, and its value.",
	Operands: []ir.OperandDef{
		{Name: "table", Type: memRef, Doc: "two dimensions"}, {Name: "indices", Type: indices},
		{Name: "at", Type: index, Doc: "position of the first index in the tensor of indices, for messages"}, {Name: "col", Type: index},
	},
	Results: []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Verify:  verifyGather,
	Eval:    evalGather,
})

// Pick reads one element of each row.
var Pick = define(ir.OpDef{
	Name:    "pick",
	Summary: "one element of each row, by number",
	Description: "y[r, 0] = ref[offsets, plus r in the last dimension but one, indices[r] in the last]. Where indices[r] equals `ignore`, y is 0 and nothing is read. " +
		"Any other index outside the row is a run-time error that names its position, `at` + r, and its value.",
	Operands: []ir.OperandDef{
		{Name: "ref", Type: memRef, Doc: "at least two dimensions"}, {Name: "indices", Type: indices},
		{Name: "at", Type: index, Doc: "position of the first index in the tensor of indices, for messages"},
		{Name: "offsets", Type: index, Arity: ir.Variadic, Doc: "one for each dimension of the reference but the last"},
	},
	Attrs:   []ir.AttrDef{{Name: "ignore", Kind: ir.I64Kind, Optional: true, Doc: "the index that picks nothing"}},
	Results: []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Verify:  verifyPick,
	Eval:    evalPick,
})

// ScatterAdd adds rows to rows of a table.
var ScatterAdd = define(ir.OpDef{
	Name:    "scatter_add",
	Summary: "adds rows to the rows of a table that numbers name",
	Description: "Stores `cols` columns of out from column `col` on, all its rows: out[v, c] = init[v, c] (0 without init), then out[indices[r], c] += x[r, c] for every r " +
		"in order. An index outside the table is a run-time error that names its position and its value. init and out may be the same memory.",
	Operands: []ir.OperandDef{
		{Name: "x", Type: memRef, Doc: "rows, columns"}, {Name: "indices", Type: memRef, Doc: "i32, one a row of x"}, {Name: "col", Type: index},
		{Name: "out", Type: memRef, Doc: "the table, an output"}, {Name: "init", Type: memRef, Arity: ir.Optional, Doc: "what the table holds at first"},
	},
	Attrs:  []ir.AttrDef{{Name: "cols", Kind: ir.I64Kind, Doc: "columns, clipped where the table ends"}},
	Verify: verifyScatterAdd,
	Eval:   evalScatterAdd,
})
