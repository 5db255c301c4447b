// Package exec is the dialect of compiled programs: what a runtime executes step by step. A program declares the state it
// keeps, and for each function the kernels to launch on which memory, in order. All offsets are in bytes and all sizes are
// known, so that a runtime checks every access before it runs anything.
package exec

import (
	"slices"

	"blutrain/dialects/mem"
	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "exec",
	Summary: "compiled programs: state, functions, launches, collectives",
	Ops:     []*ir.OpDef{State, Kernel, Func, Ref, Launch, Copy, Collective, Wait, End},
}

var memRef = ir.Constraint{Doc: "memref", OK: func(t ir.Type) bool { _, ok := t.(*ir.MemRefType); return ok }}

// State declares named storage that lives as long as the program.
var State = ir.Define("exec", ir.OpDef{
	Name:        "state",
	Summary:     "declares named storage",
	Description: "Storage for one row-major tensor of `type`. What persists is written to checkpoints.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "the name: wte, grads/wte"},
		{Name: "type", Kind: ir.TypeKind, Doc: "memref type"},
		{Name: "role", Kind: ir.StringKind, Doc: "param, gradient, optimizer, accumulator or copy"},
		{Name: "persist", Kind: ir.BoolKind, Doc: "whether checkpoints hold it"},
		{Name: "of", Kind: ir.SymbolKind, Optional: true, Doc: "of a copy: the parameter that it is one of"},
		{Name: "init", Kind: ir.DictKind, Optional: true, Doc: "of a parameter: how it starts"},
		{Name: "dims", Kind: ir.ArrayKind, Optional: true, Doc: "of a parameter: its dimensions as written"},
		{Name: "weight_decay", Kind: ir.F64Kind, Optional: true, Doc: "of a parameter: its weight decay"},
		{Name: "shard", Kind: ir.DictKind, Optional: true, Doc: "of a state that is a rank's piece of a tensor: {group, ranks, shape of the tensor}"},
	},
	Traits: ir.Symbol,
})

// Kernel declares a kernel whose code is in a file.
var Kernel = ir.Define("exec", ir.OpDef{
	Name:    "kernel",
	Summary: "declares a kernel whose code is in a file of the artifact",
	Description: "A launch starts `blocks` blocks of `threads` threads. The kernel's parameters are the addresses of the launch's references, or with `table` the " +
		"address of a list of them, then, where it has error records, the address of the first, then, where it has a workspace, that of the first block's. An error record is 64 bits, all of them set at " +
		"first, which the kernel lowers to the position of an index that is out of range, in the upper half, and that index, in the lower.\n\n" +
		"With `params` the parameters are what that says. With `then`, a launch goes on with another kernel on the same references: what a kernel of several steps " +
		"hands from one to the next is in `scratch`. All launches have that memory in common: what one leaves there stays until a later one writes to its place.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "the name"},
		{Name: "file", Kind: ir.StringKind, Doc: "the file with its code"},
		{Name: "entry", Kind: ir.StringKind, Doc: "its name there"},
		{Name: "refs", Kind: ir.ArrayKind, Doc: "memref types of what it works on, inputs first"},
		{Name: "outs", Kind: ir.I64Kind, Doc: "number of references, from the end, that it writes"},
		{Name: "blocks", Kind: ir.I64Kind}, {Name: "threads", Kind: ir.I64Kind},
		{Name: "shared", Kind: ir.I64Kind, Optional: true, Default: int64(0), Doc: "bytes of dynamic shared memory"},
		{Name: "cluster", Kind: ir.I64Kind, Optional: true, Default: int64(1), Doc: "blocks in a cluster"},
		{Name: "params", Kind: ir.ArrayKind, Optional: true, Doc: "what each parameter is: see Param"},
		{Name: "scratch", Kind: ir.I64Kind, Optional: true, Doc: "bytes of memory for a launch, all its steps together"},
		{Name: "then", Kind: ir.SymbolKind, Optional: true, Doc: "the kernel that is launched next, on the same references"},
		{Name: "table", Kind: ir.UnitKind, Optional: true, Doc: "the references' addresses are in memory"},
		{Name: "workspace", Kind: ir.I64Kind, Optional: true, Doc: "bytes of memory for each block"},
		{Name: "errors", Kind: ir.ArrayKind, Optional: true, Doc: "what each error record is about: {what = the rest of the message, extent}"},
		{Name: "reference", Kind: ir.StringKind, Optional: true, Doc: "the function it implements; absent: of the kernel's name, empty: none, it copies"},
	},
	Traits: ir.Symbol,
	Verify: verifyKernel,
})

func verifyKernel(op *ir.Op) error {
	refs, _ := op.Attr("refs").(*ir.ArrayAttr)
	if refs == nil {
		return op.Errorf("exec.kernel @%s: no references", ir.SymName(op))
	}
	for i, a := range refs.Elems {
		t, ok := a.(*ir.TypeAttr)
		if !ok || !memRef.OK(t.Type) {
			return op.Errorf("exec.kernel @%s: reference %d is no memref type", ir.SymName(op), i)
		}
	}
	if n, _ := op.Attrs().Int("outs"); n < 0 || n > int64(len(refs.Elems)) {
		return op.Errorf("exec.kernel @%s: writes %d of %d references", ir.SymName(op), n, len(refs.Elems))
	}
	for name, most := range map[string]int64{"blocks": 1<<31 - 1, "threads": 1024, "shared": 1 << 20, "workspace": 1 << 40, "scratch": 1 << 40, "cluster": 8} {
		if n, ok := op.Attrs().Int(name); ok && (n < 0 || n > most) {
			return op.Errorf("exec.kernel @%s: %s is %d, at most %d is allowed", ir.SymName(op), name, n, most)
		}
	}
	params, err := Params(op, "params")
	if err != nil {
		return op.Errorf("exec.kernel @%s: %v", ir.SymName(op), err)
	}
	for i, p := range params {
		if err := p.check(refs.Elems, op.Attrs().IntOr("scratch", 0)); err != nil {
			return op.Errorf("exec.kernel @%s: parameter %d: %v", ir.SymName(op), i, err)
		}
	}
	return nil
}

// Func is a function of the program.
var Func = ir.Define("exec", ir.OpDef{
	Name:        "func",
	Summary:     "a function: a straight list of launches and copies",
	Description: "Inputs, outputs and scalars are the exec.ref operations of those spaces in its body.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "the name: accumulate"},
		{Name: "arena", Kind: ir.I64Kind, Doc: "bytes of scratch memory it needs"},
	},
	Regions: []ir.RegionDef{{Name: "body"}},
	Traits:  ir.Symbol | ir.Isolated,
	Verify:  verifyCollectives,
})

// Ref is a place in memory.
var Ref = ir.Define("exec", ir.OpDef{
	Name:        "ref",
	Summary:     "a place in memory: base, byte offset, strides",
	Description: "The layout of the result says the strides in elements; its offset is 0, since `offset` carries it in bytes.",
	Attrs: []ir.AttrDef{
		{Name: "space", Kind: ir.StringKind, Doc: "state, input, output, scalar, const or arena"},
		{Name: "name", Kind: ir.StringKind, Optional: true, Doc: "the name within the space"},
		{Name: "offset", Kind: ir.I64Kind, Doc: "bytes from the start of the named storage or of the arena"},
		{Name: "value", Kind: ir.DenseKind, Optional: true, Doc: "the constant, for space const"},
	},
	Results: []ir.ResultDef{{Name: "ref", Type: memRef}},
	Verify:  verifyRef,
})

func verifyRef(op *ir.Op) error {
	space := op.Attrs().Str("space")
	if !slices.Contains(mem.Spaces, space) {
		return op.Errorf("exec.ref: no space %q; there are %v", space, mem.Spaces)
	}
	if named := op.Attr("name") != nil; named == (space == mem.Arena || space == mem.Const) {
		return op.Errorf("exec.ref in space %q: name given where there is none, or missing", space)
	}
	if valued := op.Attr("value") != nil; valued != (space == mem.Const) {
		return op.Errorf("exec.ref in space %q: a value belongs to space const alone", space)
	}
	t := op.Result(0).Type().(*ir.MemRefType)
	if d, ok := op.Attr("value").(*ir.DenseAttr); ok && ir.Elem(d.Type) != t.Elem {
		return op.Errorf("exec.ref: a constant of %s, referred to as one of %s", ir.Elem(d.Type), t.Elem)
	}
	off := op.Attrs().IntOr("offset", 0)
	if off < 0 || off%ir.ByteSize(t.Elem) != 0 {
		return op.Errorf("exec.ref: offset %d is not a multiple of the element size", off)
	}
	if _, layoutOffset := mem.Layout(t); layoutOffset != 0 {
		return op.Errorf("exec.ref: the layout has an offset of its own")
	}
	return nil
}

// Constant is the value of a reference to a constant, and the bytes that it takes: a value of equal elements is one of them, written out.
func Constant(ref *ir.Op) (*ir.DenseAttr, int64, error) {
	a, ok := ref.Attr("value").(*ir.DenseAttr)
	if !ok {
		return nil, 0, ref.Errorf("the constant's value was left out")
	}
	shape, _ := ir.Shape(a.Type) // of at most 2^40 elements, as constants are
	return a, ir.NumElements(shape) * ir.ByteSize(ir.Elem(a.Type)), nil
}

// Launch runs a kernel on places in memory.
var Launch = ir.Define("exec", ir.OpDef{
	Name:        "launch",
	Summary:     "runs a kernel",
	Description: "Operand types equal the types of the kernel's arguments. Launches take effect in order.",
	Operands:    []ir.OperandDef{{Name: "refs", Type: memRef, Arity: ir.Variadic, Doc: "inputs, then outputs"}},
	Attrs: []ir.AttrDef{
		{Name: "kernel", Kind: ir.SymbolKind, Doc: "the kernel"},
		{Name: "flops", Kind: ir.I64Kind, Optional: true, Doc: "floating-point operations of the launch, for the profile"},
	},
})

// Copy copies between two places of one shape.
var Copy = ir.Define("exec", ir.OpDef{
	Name:        "copy",
	Summary:     "copies all elements from one place to another",
	Description: "Shapes and element types are equal, layouts may differ, the places don't overlap.",
	Operands:    []ir.OperandDef{{Name: "src", Type: memRef}, {Name: "dst", Type: memRef}},
	Verify: func(op *ir.Op) error {
		src, dst := op.Operand(0).Type().(*ir.MemRefType), op.Operand(1).Type().(*ir.MemRefType)
		if src.Elem != dst.Elem || !slices.Equal(src.Shape, dst.Shape) {
			return op.Errorf("exec.copy: from %s to %s", src, dst)
		}
		return nil
	},
})

// End ends a function.
var End = ir.Define("exec", ir.OpDef{
	Name:        "end",
	Summary:     "ends a function",
	Description: "Everything launched before has taken effect.",
	Traits:      ir.Terminator,
})
