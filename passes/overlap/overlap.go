// Package overlap splits collectives into a start and a wait, and moves them apart: a start goes to where the operands are
// ready, a wait to before the first operation that needs the results. Between them the program goes on working.
//
// Starts keep the order of the collectives, so that all ranks, which have the same program, begin the same ones one after
// the other.
package overlap

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/passes/internal/place"
)

// inFlight is how many reduce_scatters, and how many all_gathers, are under way at most. They go on one after the other anyhow,
// and each holds gradients or updated shards until its wait.
const inFlight = 2

// Run splits the collectives of every function, but for those whose results are needed at once.
func Run(c *ir.Context, module *ir.Op, visit func(*ir.Op)) {
	for op := range module.Body().Ops() {
		if op.Is(fn.Func) {
			for _, b := range op.Region(0).Blocks() {
				block(c, b, visit)
			}
		}
	}
}

// block does one block.
func block(c *ir.Context, b *ir.Block, visit func(*ir.Op)) {
	var last *ir.Op                // the start, or the collective, before
	waits := map[string][]*ir.Op{} // by collective
	for _, op := range collectives(b) {
		visit(op)
		if op.Attr(blu.RecomputedAttr) == nil { // else what it brings again late would be kept from early on
			early(op, last)
		}
		name := op.Def().Name
		if before := waits[name]; len(before) >= inFlight && (op.Is(dtms.ReduceScatter) || op.Is(dtms.AllGather)) {
			end(before[len(before)-inFlight], op)
		}
		if last = split(c, op); last.Is(dtms.Start) {
			waits[name] = append(waits[name], dtms.WaitOf(last))
		}
	}
}

// collectives lists those of a block, in their order.
func collectives(b *ir.Block) []*ir.Op {
	var ops []*ir.Op
	for op := range b.Ops() {
		if dtms.IsCollective(op) {
			ops = append(ops, op)
		}
	}
	return ops
}

// early moves a collective to where its operands are ready, but not before the one before it.
func early(op, last *ir.Op) {
	place.Prepare(op)
	ready := place.Ready(op)
	if ready == nil || last != nil && ready.IsBefore(last) {
		ready = last
	}
	place.After(op, ready)
}

// end moves a wait, with what brings its results into storage, up to before an operation.
func end(wait, before *ir.Op) {
	if wait.IsBefore(before) {
		return
	}
	_, settle := place.FirstNeed(wait)
	wait.MoveBefore(before)
	for _, o := range settle {
		if r := place.Ready(o); r.IsBefore(before) {
			o.MoveBefore(before)
		}
	}
}

// split makes a start of a collective, and a wait as late as can be. It returns the start, or the collective when nothing
// comes between.
func split(c *ir.Context, op *ir.Op) *ir.Op {
	need, settle := place.FirstNeed(op)
	place.Settle(settle, need)
	if len(settle) > 0 {
		need = settle[0]
	}
	if !works(op.Next(), need) {
		return op
	}
	b := ir.NewBuilder(c, nil).Before(op).At(op.Loc())
	attrs := append([]ir.NamedAttr{{Name: "op", Value: c.String(op.Def().Name)}}, op.Attrs()...)
	start := b.Create(dtms.Start, op.Operands(), attrs...)
	wait := b.Before(need).Create(dtms.Wait, append(start.Results(), start.Operands()...))
	op.ReplaceWith(wait.Results()...)
	return start
}

// works reports whether there is anything to do from an operation to before another.
func works(from, to *ir.Op) bool {
	for op := from; op != to; op = op.Next() {
		if !op.Has(ir.ConstantLike) {
			return true
		}
	}
	return false
}
