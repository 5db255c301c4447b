package ptx

import "blutrain/ir"

// BarrierInit makes an mbarrier.
var BarrierInit = define(ir.OpDef{
	Name: "mbarrier_init", Summary: "makes a barrier in shared memory, whose phases end after `count` arrivals and the bytes expected",
	Operands: []ir.OperandDef{{Name: "barrier", Type: shared}},
	Attrs:    []ir.AttrDef{{Name: "count", Kind: ir.I64Kind}, shift},
})

// BarrierExpect arrives and expects bytes.
var BarrierExpect = define(ir.OpDef{
	Name: "mbarrier_expect", Summary: "arrives at a barrier and has its phase wait for bytes copied in the background",
	Operands: []ir.OperandDef{{Name: "barrier", Type: shared}},
	Attrs:    []ir.AttrDef{{Name: "bytes", Kind: ir.I64Kind}, shift},
	Verify: func(op *ir.Op) error {
		if n, _ := op.Attrs().Int("bytes"); n < 1 || n >= 1<<20 {
			return op.Errorf("ptx.mbarrier_expect: %d bytes; a phase can expect 1 to 1048575", n)
		}
		return nil
	},
})

// BarrierArrive arrives.
var BarrierArrive = define(ir.OpDef{
	Name: "mbarrier_arrive", Summary: "arrives at a barrier of this block, or with `cluster` at an address made by ptx.mapa",
	Operands: []ir.OperandDef{{Name: "barrier", Type: shared}, {Name: "if", Type: predicate, Arity: ir.Optional}},
	Attrs:    []ir.AttrDef{{Name: "cluster", Kind: ir.UnitKind, Optional: true, Doc: "the address is one of the cluster"}, shift},
})

// BarrierWait waits for a phase.
var BarrierWait = define(ir.OpDef{
	Name: "mbarrier_wait", Summary: "waits until the phase of that parity has ended",
	Description: "The phase before a barrier's first counts as ended with parity 1.",
	Operands:    []ir.OperandDef{{Name: "barrier", Type: shared}, {Name: "parity", Type: word}},
	Attrs:       []ir.AttrDef{shift},
})

// TMALoad copies a box of a tensor to shared memory.
var TMALoad = define(ir.OpDef{
	Name:    "tma_load",
	Summary: "copies a box of a tensor to shared memory in the background; the barrier counts its bytes",
	Description: "Coordinates are elements, the contiguous dimension first and there a multiple of 16 bytes; what lies outside the tensor is filled with zeros. With `mask` the box goes to the same " +
		"place, and the bytes to the same barrier, in each block of the cluster whose bit is set. Ordinary accesses to where the box goes, reads too, need a ptx.fence {kind = \"async\"} between them and the copy.",
	Operands: []ir.OperandDef{
		{Name: "map", Type: mapParam}, {Name: "to", Type: shared}, {Name: "barrier", Type: shared},
		{Name: "at", Type: word, Arity: ir.Variadic, Doc: "1 to 5 coordinates"}, {Name: "mask", Type: half, Arity: ir.Optional},
	},
	Attrs: []ir.AttrDef{shift,
		{Name: "barrier_offset", Kind: ir.I64Kind, Optional: true, Default: int64(0), Doc: "bytes added to the barrier's address"}},
	Traits: ir.SegmentedOperand,
	Verify: func(op *ir.Op) error { return verifyRank(op, len(op.OperandGroup(3))) },
})

// TMAStore copies a box from shared memory.
var TMAStore = define(ir.OpDef{
	Name:        "tma_store",
	Summary:     "copies a box from shared memory to a tensor in the background",
	Description: "What lies behind the tensor's end is not written; a box may not start before its first row or column. Ordinary stores to the box need a ptx.fence {kind = \"async\"} first.",
	Operands: []ir.OperandDef{
		{Name: "map", Type: mapParam}, {Name: "from", Type: shared}, {Name: "at", Type: word, Arity: ir.Variadic, Doc: "1 to 5 coordinates"},
	},
	Attrs:  []ir.AttrDef{shift},
	Verify: func(op *ir.Op) error { return verifyRank(op, op.NumOperands()-2) },
})

func verifyRank(op *ir.Op, n int) error {
	if n < 1 || n > 5 {
		return op.Errorf("%s: %d coordinates; a tensor map has 1 to 5", op.Name(), n)
	}
	return nil
}

// TMACommit closes a group of stores.
var TMACommit = define(ir.OpDef{Name: "tma_commit", Summary: "makes this thread's TMA stores so far a group"})

// TMAWait waits for groups of stores.
var TMAWait = define(ir.OpDef{
	Name: "tma_wait", Summary: "waits until at most `pending` groups of this thread's TMA stores are unfinished",
	Attrs: []ir.AttrDef{pending, {Name: "read", Kind: ir.UnitKind, Optional: true, Doc: "only until shared memory has been read"}},
})

// PrefetchBulk fetches global memory into the second-level cache.
var PrefetchBulk = define(ir.OpDef{
	Name:        "prefetch_bulk",
	Summary:     "has global memory fetched into the second-level cache",
	Description: "The address and the number of bytes are multiples of 16.",
	Operands:    []ir.OperandDef{{Name: "address", Type: global}, {Name: "bytes", Type: word}, {Name: "if", Type: predicate, Arity: ir.Optional}},
})

// TMAPrefetch fetches a tensor map.
var TMAPrefetch = define(ir.OpDef{
	Name: "tma_prefetch", Summary: "has a tensor map fetched", Operands: []ir.OperandDef{{Name: "map", Type: mapParam}},
})
