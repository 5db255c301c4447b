package tile

import (
	"blutrain/ir"
)

// Kernel is one kernel.
var Kernel = define(ir.OpDef{
	Name:    "kernel",
	Summary: "a kernel: what is run for each grid point",
	Description: "Arguments of the body are references (inputs, then `outs` outputs), then one index for each grid axis. Axis i takes the values 0, " +
		"steps[i], 2*steps[i], ... below grid[i]; the body runs once for each combination, in any order. An extent of 0 runs nothing. " +
		"Each element of each output is stored exactly once.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "the kernel's name, which the function it implements has in the nested module @reference"},
		{Name: "outs", Kind: ir.I64Kind, Doc: "number of references, from the end, that it writes"},
		{Name: "grid", Kind: ir.I64sKind, Doc: "extent of each axis, in elements"},
		{Name: "steps", Kind: ir.I64sKind, Doc: "step of each axis, in elements"},
	},
	Regions: []ir.RegionDef{{Name: "body"}},
	Traits:  ir.Symbol | ir.Isolated,
	Verify:  verifyKernel,
})

// Launch runs a kernel.
var Launch = define(ir.OpDef{
	Name:    "launch",
	Summary: "runs a kernel on all its grid points",
	Description: "On tensors: operands are the kernel's inputs, results its outputs, of the shapes and element types of its references. On memory: operands " +
		"are the references, outputs last, of exactly the kernel's types, and there are no results.",
	Operands: []ir.OperandDef{{Name: "ins", Type: tensorOrRef, Arity: ir.Variadic}},
	Attrs:    []ir.AttrDef{{Name: "kernel", Kind: ir.SymbolKind, Doc: "the kernel"}},
	Results:  []ir.ResultDef{{Name: "outs", Type: tensor, Arity: ir.Variadic}},
	Verify:   verifyLaunch,
	Eval:     evalLaunch,
})

// End ends a kernel.
var End = define(ir.OpDef{
	Name:        "end",
	Summary:     "ends a kernel",
	Description: "Every output has been stored.",
	Traits:      ir.Terminator,
})

// Yield ends the body of a contraction.
var Yield = define(ir.OpDef{
	Name:        "yield",
	Summary:     "gives the value of a region",
	Description: "The block that one step of a tile.contract adds.",
	Operands:    []ir.OperandDef{{Name: "value", Type: anyBlock}},
	Traits:      ir.Terminator,
})

// Refs is the references among a kernel's arguments: inputs and outputs.
func Refs(kernel *ir.Op) (ins, outs []*ir.Value) {
	args := kernel.Body().Args()
	n := len(args) - len(kernel.Attrs().Ints("grid"))
	k := n - int(kernel.Attrs().IntOr("outs", 0))
	return args[:k], args[k:n]
}

// Axes is the grid indices among a kernel's arguments.
func Axes(kernel *ir.Op) []*ir.Value {
	args := kernel.Body().Args()
	return args[len(args)-len(kernel.Attrs().Ints("grid")):]
}
