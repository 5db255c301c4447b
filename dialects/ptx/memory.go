package ptx

import (
	"slices"

	"blutrain/ir"
)

var spaces = []string{"global", "shared"}

var spaceAttr = ir.AttrDef{Name: "space", Kind: ir.StringKind, Doc: "global (64-bit addresses) or shared (32-bit addresses)"}

// Load reads memory.
var Load = define(ir.OpDef{
	Name:    "ld",
	Summary: "reads registers from memory",
	Description: "One register or a vector of 2 or 4, at most 16 bytes; the address is a multiple of the size. Where the predicate is false nothing is " +
		"read and the registers hold zeros.",
	Operands: []ir.OperandDef{{Name: "address", Type: address}, {Name: "if", Type: predicate, Arity: ir.Optional}},
	Attrs: []ir.AttrDef{spaceAttr, shift,
		{Name: "cache", Kind: ir.StringKind, Optional: true, Default: "", Doc: "ca, cg, cs, nc (read only while the kernel runs), or empty"}},
	Results: []ir.ResultDef{{Name: "y", Type: register}},
	Verify:  func(op *ir.Op) error { return verifyAccess(op, op.Result(0), op.Operand(0), "ca", "cg", "cs", "nc") },
})

// Store writes memory.
var Store = define(ir.OpDef{
	Name:        "st",
	Summary:     "writes registers to memory",
	Description: "One register or a vector of 2 or 4, at most 16 bytes; the address is a multiple of the size. Nothing is written where the predicate is false.",
	Operands: []ir.OperandDef{
		{Name: "address", Type: address}, {Name: "x", Type: register}, {Name: "if", Type: predicate, Arity: ir.Optional},
	},
	Attrs: []ir.AttrDef{spaceAttr, shift,
		{Name: "cache", Kind: ir.StringKind, Optional: true, Default: "", Doc: "wb, cg, cs, or empty"}},
	Verify: func(op *ir.Op) error { return verifyAccess(op, op.Operand(1), op.Operand(0), "wb", "cg", "cs") },
})

func verifyAccess(op *ir.Op, x, address *ir.Value, caches ...string) error {
	space := op.Attrs().Str("space")
	if err := verifySpace(op, space, address); err != nil {
		return err
	}
	if c := op.Attrs().Str("cache"); c != "" && (!slices.Contains(caches, c) || space != "global") {
		return op.Errorf("%s: no cache operator %q in %s memory", op.Name(), c, space)
	}
	n, w := Registers(x.Type()), Width(ir.Elem(x.Type()))
	if w == 1 || n > 4 || n == 3 || n*w > 128 {
		return op.Errorf("%s: can't move %s at once: 1, 2 or 4 registers, at most 16 bytes", op.Name(), x.Type())
	}
	if off := op.Attrs().IntOr("offset", 0); off%int64(n*w/8) != 0 {
		return op.Errorf("%s: offset %d is no multiple of %d bytes", op.Name(), off, n*w/8)
	}
	return nil
}

func verifySpace(op *ir.Op, space string, address *ir.Value) error {
	want := map[string]int{"global": 64, "shared": 32}[space]
	if want == 0 {
		return op.Errorf("%s: no space %q; there are %v", op.Name(), space, spaces)
	}
	if w := Width(address.Type()); w != want {
		return op.Errorf("%s: an address in %s memory has %d bits, not %d", op.Name(), space, want, w)
	}
	return nil
}

// CopyAsync copies from global to shared memory without registers.
var CopyAsync = define(ir.OpDef{
	Name:    "cp_async",
	Summary: "copies global to shared memory in the background",
	Description: "`bytes` are 4, 8 or 16, and both addresses multiples of it. Of the source only the first `count` bytes are read where that operand is " +
		"given, the rest is filled with zeros.",
	Operands: []ir.OperandDef{{Name: "to", Type: shared}, {Name: "from", Type: global}, {Name: "count", Type: word, Arity: ir.Optional}},
	Attrs: []ir.AttrDef{
		{Name: "bytes", Kind: ir.I64Kind}, shift,
		{Name: "from_offset", Kind: ir.I64Kind, Optional: true, Default: int64(0), Doc: "bytes added to the source's address"},
	},
	Verify: func(op *ir.Op) error {
		if n, _ := op.Attrs().Int("bytes"); n != 4 && n != 8 && n != 16 {
			return op.Errorf("ptx.cp_async: copies 4, 8 or 16 bytes, not %d", n)
		}
		return nil
	},
})

// CopyCommit closes a group of copies.
var CopyCommit = define(ir.OpDef{Name: "cp_commit", Summary: "makes the copies so far a group"})

// CopyWait waits for groups of copies.
var CopyWait = define(ir.OpDef{
	Name: "cp_wait", Summary: "waits until at most `pending` groups of this thread's copies are unfinished", Attrs: []ir.AttrDef{pending},
})

var pending = ir.AttrDef{Name: "pending", Kind: ir.I64Kind, Doc: "groups that may be unfinished"}

// LoadByte reads one byte.
var LoadByte = define(ir.OpDef{
	Name: "ld_byte", Summary: "reads a byte of global memory, with zeros above it; 0 where the predicate is false",
	Operands: []ir.OperandDef{{Name: "address", Type: global}, {Name: "if", Type: predicate, Arity: ir.Optional}},
	Attrs:    []ir.AttrDef{shift},
	Results:  []ir.ResultDef{{Name: "y", Type: word}},
	Infer:    func(c *ir.Context, _ ir.InferInput) ([]ir.Type, error) { return []ir.Type{c.I32()}, nil },
})

// StoreByte writes one byte.
var StoreByte = define(ir.OpDef{
	Name: "st_byte", Summary: "writes the low byte of a register to global memory where the predicate is true",
	Operands: []ir.OperandDef{{Name: "address", Type: global}, {Name: "x", Type: word}, {Name: "if", Type: predicate, Arity: ir.Optional}},
	Attrs:    []ir.AttrDef{shift},
})

// ReduceMin takes the smaller of memory and a register, atomically.
var ReduceMin = define(ir.OpDef{
	Name: "red_min", Summary: "memory becomes the smaller of itself and x, unsigned, as one step, where the predicate is true",
	Operands: []ir.OperandDef{{Name: "address", Type: global}, {Name: "x", Type: long}, {Name: "if", Type: predicate, Arity: ir.Optional}},
	Attrs:    []ir.AttrDef{shift},
})
