package overlap

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/passes/internal/place"
	"blutrain/passes/recompute"
)

// Costs are what Defer weighs work and communication by. All is counted in bytes that a rank sends meanwhile.
type Costs struct {
	Bucket    int64   // bytes that go into one call, which takes as long to begin as half of them take to be sent
	Intensity float64 // floating-point operations of products that take as long as a byte
}

// Defer has each function compute what its last sum over ranks doesn't depend on while that sum is under way: products whose results are
// only summed over ranks themselves, as weights' gradients are, the last ones first. The sum of a table of embeddings, for one, is ready when
// the backward pass has ended, and large; nothing would be left to go on behind it.
//
// As many are put off as leave about the least to wait for when all is computed, since their own sums come last then, and as don't raise the
// function's peak of memory, by estimate, for what they are computed from is kept until then.
func Defer(module *ir.Op, mesh dtms.Mesh, costs Costs, visit func(*ir.Op)) {
	for op := range module.Body().Ops() {
		if op.Is(fn.Func) && len(op.Region(0).Blocks()) == 1 {
			(&deferral{Costs: costs, mesh: mesh, f: op, visit: visit}).run()
		}
	}
}

// deferral is the work of Defer on a function.
type deferral struct {
	Costs
	mesh  dtms.Mesh
	f     *ir.Op
	visit func(*ir.Op)
	sums  map[*ir.Op]bool // of all ranks, which are only stored
	last  *ir.Op          // of them
}

// product is one that can be put off.
type product struct {
	ops   []*ir.Op // it, and all that depends on it
	work  float64  // what its computing takes
	sent  float64  // what its sums take
	bytes int64    // of the tensors that they are of
}

func (d *deferral) run() {
	if d.findSums(); d.last == nil {
		return
	}
	ps := d.products()
	target := recompute.TargetFor("cpu", "") // what of logits there is at once matters to no order of sums
	before, known := recompute.Estimate(d.f, target)
	for n := d.best(ps); known && n > 0; n-- {
		if d.exposed(ps[len(ps)-n:]) >= d.exposed(nil) {
			continue // fewer than the best may be worse than none
		}
		order := slices.Collect(d.f.Body().Ops())
		d.putOff(ps[len(ps)-n:])
		if after, _ := recompute.Estimate(d.f, target); after <= before {
			return
		}
		restore(order)
	}
}

// findSums finds the sums over ranks that are only stored, and the one whose operands are ready last.
func (d *deferral) findSums() {
	d.sums = map[*ir.Op]bool{}
	for _, op := range collectives(d.f.Body()) {
		if op.Is(dtms.AllReduce) || op.Is(dtms.ReduceScatter) {
			if need, _ := place.FirstNeed(op); need == d.f.Body().Last() {
				d.sums[op] = true
			}
		}
	}
	for _, op := range collectives(d.f.Body()) {
		if d.sums[op] {
			d.visit(op)
			place.Prepare(op)
			place.After(op, place.Ready(op))
		}
	}
	for _, op := range collectives(d.f.Body()) {
		if d.sums[op] {
			d.last = op
		}
	}
}

// products lists what can be put off, in its order.
func (d *deferral) products() (ps []product) {
	for op := range d.f.Body().Ops() {
		flops := blu.Flops(op)
		if flops == 0 || slices.ContainsFunc(op.Operands(), again) {
			continue
		}
		d.visit(op)
		p := product{work: flops / d.Intensity}
		if d.follow(op, &p, map[*ir.Op]bool{}) && p.sent > 0 {
			ps = append(ps, p)
		}
	}
	return ps
}

// again reports whether a value is computed again for its only use: it is a part of the work before it, as gelu is of the product of its
// gradient, as long as the use comes next.
func again(v *ir.Value) bool {
	op := v.Op()
	if op == nil || !v.HasOneUse() {
		return false
	}
	if op.Has(ir.View) {
		return again(op.Operand(0))
	}
	return op.Attr(blu.RecomputedAttr) != nil && !slices.ContainsFunc(op.Results(), func(r *ir.Value) bool { return r != v && !r.Unused() })
}

// follow adds an operation to a product, with all that depends on it. It is false where that is more than sums and what brings them into
// storage, or the last sum.
func (d *deferral) follow(op *ir.Op, p *product, seen map[*ir.Op]bool) bool {
	if seen[op] || op == d.f.Body().Last() {
		return true
	}
	if seen[op] = true; op == d.last || op.Block() != d.f.Body() || len(p.ops) > 0 && !d.sums[op] && !place.Light(op) {
		return false
	}
	p.ops = append(p.ops, op)
	if d.sums[op] {
		p.sent, p.bytes = p.sent+d.sent(op), p.bytes+dtms.CallOf(op).Bytes()
	}
	for _, v := range op.Results() {
		for u := range v.Uses() {
			if !d.follow(u.Owner(), p, seen) {
				return false
			}
		}
	}
	return true
}

// sent is the bytes that a rank sends for a sum: as many as among very many ranks where their number isn't known.
func (d *deferral) sent(op *ir.Op) float64 {
	c := dtms.CallOf(op)
	n := d.mesh.Ranks(c.Group)
	if n == 0 {
		n = dtms.MaxRanks
	}
	return c.Sent(int64(n))
}

// best is how many of the products, the last ones, are to be put off so that least is left to wait for, or little more: the fewest that have
// most of the gain, since predictions may be wrong and what is put off is kept.
func (d *deferral) best(ps []product) int {
	least := d.exposed(nil)
	for i := range ps {
		least = min(least, d.exposed(ps[i:]))
	}
	const most = 7. / 8
	enough := d.exposed(nil) - most*(d.exposed(nil)-least)
	for n := range len(ps) + 1 {
		if d.exposed(ps[len(ps)-n:]) <= enough {
			return n
		}
	}
	return 0 // not reached: the least is among them
}

// exposed is what is left to wait for when products that were put off have been computed. Calls go on one after the other, in buckets.
func (d *deferral) exposed(ps []product) float64 {
	call := func(bytes float64) float64 { return bytes + float64(d.Bucket)/2 }
	free, now, sent, bucket := call(d.sent(d.last)), 0.0, 0.0, int64(0)
	for i, p := range ps {
		now, sent, bucket = now+p.work, sent+p.sent, bucket+p.bytes
		if i+1 == len(ps) || bucket+ps[i+1].bytes > d.Bucket {
			free, sent, bucket = max(free, now)+call(sent), 0, 0
		}
	}
	return max(free-now, 0)
}

// putOff moves products, with what depends on them, to the end of the function.
func (d *deferral) putOff(ps []product) {
	moves := map[*ir.Op]bool{}
	for _, p := range ps {
		for _, op := range p.ops {
			moves[op] = true
		}
	}
	end := d.f.Body().Last()
	for _, op := range slices.Collect(d.f.Body().Ops()) {
		if moves[op] {
			op.MoveBefore(end)
		}
	}
}

// restore gives operations, which are all of a block, an order that they had.
func restore(order []*ir.Op) {
	end := order[len(order)-1]
	for _, op := range order[:len(order)-1] {
		op.MoveBefore(end)
	}
}
