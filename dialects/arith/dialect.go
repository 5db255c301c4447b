// Package arith is the part of MLIR's dialect of that name that is used: constants and arithmetic on integers, indices and
// floating-point numbers, one by one or elementwise on vectors and tensors. Integers wrap around; index is 64 bits wide.
package arith

import (
	"slices"

	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "arith",
	Summary: "constants and arithmetic on numbers",
	Ops: slices.Concat(
		[]*ir.OpDef{Constant, Select},
		[]*ir.OpDef{Addi, Subi, Muli, Divsi, Remsi, Ceildivsi, Floordivsi, Minsi, Maxsi, Andi, Ori, Xori, Cmpi},
		[]*ir.OpDef{Addf, Subf, Mulf, Divf, Maximumf, Minimumf, Negf, Cmpf},
		[]*ir.OpDef{IndexCast, Extsi, Trunci, Extf, Truncf, Sitofp, Fptosi},
	),
}

func define(def ir.OpDef) *ir.OpDef {
	def.Traits |= ir.Pure
	return ir.Define("arith", def)
}
