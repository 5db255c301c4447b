package tile

import (
	"blutrain/ir"
)

// Constant is a scalar.
var Constant = define(ir.OpDef{
	Name:        "constant",
	Summary:     "a number, as a 1x1 block",
	Description: "The result's type is given. i1 is 0 or 1.",
	Attrs:       []ir.AttrDef{{Name: "value", Kind: ir.F64Kind, Doc: "the number, exact for every integer up to 2^53"}},
	Results:     []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Traits:      ir.Pure,
	Verify:      verifyConstant,
	Eval:        evalConstant,
})

// Iota counts along rows or columns.
var Iota = define(ir.OpDef{
	Name:    "iota",
	Summary: "start, start + 1, ... along one dimension of a block",
	Description: "With `axis` 0, a block of n rows and one column, with 1, of one row and n columns. `n` says the actual extent. " +
		"The result's type is given; f32 or an integer.",
	Operands: []ir.OperandDef{{Name: "start", Type: index}, {Name: "n", Type: index}},
	Attrs:    []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind, Doc: "0: along rows, 1: along columns"}},
	Results:  []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Traits:   ir.Pure,
	Verify:   verifyIota,
	Eval:     evalIota,
})

// Broadcast repeats a block.
var Broadcast = define(ir.OpDef{
	Name:    "broadcast",
	Summary: "repeats one row, one column or one element",
	Description: "A block of `rows` rows and `cols` columns, the actual extents, at most those of the result's type. x has as many or, by its type, one. " +
		"Elementwise operations repeat by themselves: this is for stores and reductions.",
	Operands: []ir.OperandDef{{Name: "x", Type: anyBlock}, {Name: "rows", Type: index}, {Name: "cols", Type: index}},
	Results:  []ir.ResultDef{{Name: "y", Type: anyBlock}},
	Traits:   ir.Pure,
	Verify:   verifyBroadcast,
	Eval:     evalBroadcast,
})

var randomOperands = []ir.OperandDef{
	{Name: "seed", Type: seed}, {Name: "start", Type: index, Doc: "number of the first element"},
	{Name: "rows", Type: index, Doc: "actual rows"}, {Name: "cols", Type: index, Doc: "actual columns"},
}

// RandomUniform draws from [0, 1).
var RandomUniform = define(ir.OpDef{
	Name:    "random_uniform",
	Summary: "uniform random numbers by position",
	Description: "y[r, c] is the number with counter start + r*pitch + c of blu.random_uniform with that seed and stream: " +
		"the value depends on the element's place in the whole tensor alone.",
	Operands: randomOperands,
	Attrs: []ir.AttrDef{
		{Name: "stream", Kind: ir.I64Kind, Doc: "keeps the draws of different operations apart"},
		{Name: "pitch", Kind: ir.I64Kind, Doc: "elements of the whole tensor from row to row"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: floatBlock}},
	Traits:  ir.Pure | ir.Random,
	Verify:  verifyRandom,
	Eval:    evalRandomUniform,
})

// RandomNormal draws from a normal distribution.
var RandomNormal = define(ir.OpDef{
	Name:        "random_normal",
	Summary:     "normally distributed random numbers by position",
	Description: "Like tile.random_uniform, with the numbers of blu.random_normal.",
	Operands:    randomOperands,
	Attrs: []ir.AttrDef{
		{Name: "stream", Kind: ir.I64Kind, Doc: "keeps the draws of different operations apart"},
		{Name: "pitch", Kind: ir.I64Kind, Doc: "elements of the whole tensor from row to row"},
		{Name: "mean", Kind: ir.F64Kind, Doc: "mean"}, {Name: "std", Kind: ir.F64Kind, Doc: "standard deviation"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: floatBlock}},
	Traits:  ir.Pure | ir.Random,
	Verify:  verifyRandom,
	Eval:    evalRandomNormal,
})
