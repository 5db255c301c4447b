package overlap

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// Hidden is what a function computes while a collective is under way.
type Hidden struct {
	Start *ir.Op
	Call  dtms.Call
	Flops float64 // of matrix products between start and wait
	Share float64 // of all the function's
}

// Behind lists the collectives that a block starts, with the work that lies behind each.
func Behind(b *ir.Block) []Hidden {
	var all []Hidden
	total := 0.0
	before := map[*ir.Op]float64{} // flops before a start
	for op := range b.Ops() {
		if op.Is(dtms.Start) {
			before[op] = total
		}
		total += blu.Flops(op)
		if start := waited(op); start != nil {
			all = append(all, Hidden{Start: start, Call: dtms.CallOf(start), Flops: total - before[start]})
		}
	}
	for i := range all {
		if total > 0 {
			all[i].Share = all[i].Flops / total
		}
	}
	return all
}

// waited is the start of what op waits for, or nil.
func waited(op *ir.Op) *ir.Op {
	if op.Is(dtms.Wait) {
		return dtms.StartOf(op)
	}
	return nil
}
