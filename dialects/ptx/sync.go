package ptx

import (
	"slices"

	"blutrain/ir"
)

var (
	barrierID = ir.AttrDef{Name: "id", Kind: ir.I64Kind, Optional: true, Default: int64(0), Doc: "0 to 15, added to the operand where there is one"}
	threads   = ir.AttrDef{Name: "threads", Kind: ir.I64Kind, Optional: true, Default: int64(0), Doc: "threads that take part; 0 for all of the block"}
)

func verifyBarrier(op *ir.Op) error {
	id, n := op.Attrs().IntOr("id", 0), op.Attrs().IntOr("threads", 0)
	if id < 0 || id > 15 || n < 0 || n%32 != 0 || n > 1024 {
		return op.Errorf("%s: barrier %d of %d threads; ids are 0 to 15, threads a multiple of 32", op.Name(), id, n)
	}
	return nil
}

// Sync is a barrier of threads.
var Sync = define(ir.OpDef{
	Name: "bar_sync", Summary: "waits for the threads of a barrier; orders their memory accesses in the block",
	Operands: []ir.OperandDef{{Name: "which", Type: word, Arity: ir.Optional}},
	Attrs:    []ir.AttrDef{barrierID, threads}, Verify: verifyBarrier,
})

// Arrive is a barrier that isn't waited for.
var Arrive = define(ir.OpDef{
	Name: "bar_arrive", Summary: "counts as there at a barrier, without waiting",
	Operands: []ir.OperandDef{{Name: "which", Type: word, Arity: ir.Optional}},
	Attrs:    []ir.AttrDef{barrierID, threads}, Verify: func(op *ir.Op) error {
		if op.Attrs().IntOr("threads", 0) == 0 {
			return op.Errorf("ptx.bar_arrive: needs the number of threads")
		}
		return verifyBarrier(op)
	},
})

// WarpSync is a barrier of a warp.
var WarpSync = define(ir.OpDef{Name: "warp_sync", Summary: "waits for the threads of the warp; orders their memory accesses"})

// Fences by kind.
var fences = []string{"mbarrier_init", "async", "block", "device"}

// Fence orders memory accesses.
var Fence = define(ir.OpDef{
	Name:    "fence",
	Summary: "orders memory accesses",
	Description: "mbarrier_init: barriers made so far are seen by the cluster. async: what ordinary accesses did to the block's shared memory comes before what TMA and " +
		"matrix products do to it later: they see what was written, and write over what was read. block, device: what was written before is seen by the others before what is written after.",
	Attrs: []ir.AttrDef{{Name: "kind", Kind: ir.StringKind, Doc: "mbarrier_init, async, block or device"}},
	Verify: func(op *ir.Op) error {
		if k := op.Attrs().Str("kind"); !slices.Contains(fences, k) {
			return op.Errorf("ptx.fence: no kind %q; there are %v", k, fences)
		}
		return nil
	},
})

// ClusterArrive counts as there at the cluster's barrier.
var ClusterArrive = define(ir.OpDef{Name: "cluster_arrive", Summary: "counts as there at the cluster's barrier (release)"})

// ClusterWait waits for the cluster.
var ClusterWait = define(ir.OpDef{Name: "cluster_wait", Summary: "waits for all threads of the cluster (acquire)"})

// MapShared is the address of the same place in another block of the cluster.
var MapShared = define(ir.OpDef{
	Name: "mapa", Summary: "the address of the same place in another block's shared memory",
	Operands: []ir.OperandDef{{Name: "address", Type: shared}, {Name: "block", Type: word, Doc: "its rank in the cluster"}},
	Results:  []ir.ResultDef{{Name: "y", Type: shared}}, Traits: ir.Pure, Infer: likeFirst,
})

var shuffles = []string{"idx", "bfly", "down", "up"}

// Shuffle reads a register of another lane.
var Shuffle = define(ir.OpDef{
	Name: "shfl", Summary: "a register of another lane of the warp",
	Operands: []ir.OperandDef{{Name: "x", Type: ir.Constraint{Doc: "32-bit register", OK: func(t ir.Type) bool { return Width(t) == 32 }}}, {Name: "lane", Type: word}},
	Attrs:    []ir.AttrDef{{Name: "mode", Kind: ir.StringKind, Doc: "idx: that lane; bfly: lane xor; down, up: lane plus, minus"}},
	Results:  []ir.ResultDef{{Name: "y", Type: scalar}}, Infer: likeFirst,
	Verify: func(op *ir.Op) error {
		if m := op.Attrs().Str("mode"); !slices.Contains(shuffles, m) {
			return op.Errorf("ptx.shfl: no mode %q; there are %v", m, shuffles)
		}
		return nil
	},
})

// Elect chooses one lane.
var Elect = define(ir.OpDef{
	Name: "elect", Summary: "true in one lane of the warp", Results: []ir.ResultDef{{Name: "p", Type: predicate}},
	Infer: func(c *ir.Context, _ ir.InferInput) ([]ir.Type, error) { return []ir.Type{c.I1()}, nil },
})

// SetMaxRegisters moves registers between warpgroups.
var SetMaxRegisters = define(ir.OpDef{
	Name: "setmaxnreg", Summary: "changes the registers each thread of the warpgroup has",
	Attrs: []ir.AttrDef{
		{Name: "count", Kind: ir.I64Kind, Doc: "24 to 256, a multiple of 8"},
		{Name: "inc", Kind: ir.UnitKind, Optional: true, Doc: "more; waits until they are free. Otherwise fewer"},
	},
	Verify: func(op *ir.Op) error {
		if n, _ := op.Attrs().Int("count"); n < 24 || n > 256 || n%8 != 0 {
			return op.Errorf("ptx.setmaxnreg: %d registers; 24 to 256, a multiple of 8", n)
		}
		return nil
	},
})

// GridWait waits for the kernel before.
var GridWait = define(ir.OpDef{Name: "grid_wait", Summary: "waits until the grids this one depends on are complete"})

// GridLaunch lets the next kernel start.
var GridLaunch = define(ir.OpDef{Name: "grid_launch", Summary: "lets grids that depend on this one start"})
