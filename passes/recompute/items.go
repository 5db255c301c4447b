package recompute

import (
	"cmp"
	"slices"
)

// item is an operation with saved values: kept, or recomputed late from what is saved before it.
type item struct {
	op     int32
	ops    []int32 // what to drop to recompute it: itself, and what lies between it and saved values
	gain   int64   // bytes at the turning point
	cost   float64 // seconds that it takes to recompute this one alone, once weighed
	cheap  bool    // no products
	cut    bool    // nothing else is needed by the forward part when it has been computed
	placed int32   // the group that computes it
	again  int32   // the first group after the turning point that uses it
}

// ratio is what a byte costs.
func (it *item) ratio() float64 { return it.cost / float64(it.gain) }

// Bounds on items. One saves no less than a part of the peak, and than some bytes: less is not worth a kernel. It has no
// more operations to recompute than a number, and makes no value again that is larger than some times what it saves.
const (
	leastShare = 1.0 / 4096
	leastBytes = 1024
	mostOps    = 256
	mostGrowth = 4
)

// chooser picks a plan for one function.
type chooser struct {
	*meter
	base  usage
	saved []bool // by value: computed before the turning point and used after it
	items []item // in the order of execution
	plan  []bool // by operation: whether it is dropped

	trials int // how many plans may be tried in a search: as many as take some hundredths of a second
}

// newChooser measures the function as it is and finds its items.
func newChooser(g *graph) *chooser {
	c := &chooser{meter: newMeter(g), saved: make([]bool, len(g.values)), plan: make([]bool, len(g.ops)), trials: max(32, 1<<19/len(g.ops))}
	c.base = c.measure(c.plan)
	for p, i := range c.seq {
		op := &c.ops[i]
		place := int32(p)
		if op.role != view && op.role != inline {
			place = c.group[i]
		}
		c.late[i] = place > c.base.at && i != c.end
	}
	for v := range c.saved {
		v := int32(v)
		c.saved[v] = c.graph.values[v].root == v && c.kept(v) && c.ready[v] < c.base.at && c.last[v] > c.base.at
	}
	c.findItems()
	return c
}

// findItems walks over the forward part and looks at every operation with saved values.
func (c *chooser) findItems() {
	cuts := c.findCuts()
	b := itemBuilder{chooser: c, mark: make([]int32, len(c.ops))}
	again, across := c.firstLateUses(), c.across()
	for _, i := range c.seq {
		bytes := c.savedBytes(i)
		if c.late[i] || bytes < leastBytes || float64(bytes) < leastShare*float64(c.base.peak) {
			continue
		}
		if it, ok := b.build(i, bytes); ok {
			it.cut, it.placed, it.again = cuts[i], c.group[i], again[i]
			if !c.waits(&it, across) {
				c.items = append(c.items, it)
			}
		}
	}
	slices.SortStableFunc(c.items, func(a, b item) int { return cmp.Compare(a.placed, b.placed) })
}

// firstLateUses is, by operation, the first group after the turning point that uses one of its saved values.
func (c *chooser) firstLateUses() []int32 {
	first := make([]int32, len(c.ops))
	for p := len(c.seq) - 1; p >= 0; p-- {
		op := &c.ops[c.seq[p]]
		if !c.late[c.seq[p]] || op.role == view {
			continue
		}
		for _, v := range op.in {
			if d := c.graph.values[c.graph.values[v].root].def; d >= 0 {
				first[d] = c.group[c.seq[p]]
			}
		}
	}
	return first
}

func (c *chooser) savedBytes(i int32) (n int64) {
	op := &c.ops[i]
	for v := op.first; v < op.first+op.results; v++ {
		if c.saved[v] {
			n += c.graph.values[v].bytes
		}
	}
	return n
}

// itemBuilder finds what must be recomputed for items, one after another.
type itemBuilder struct {
	*chooser
	mark  []int32 // the item that reached an operation last, plus one
	count int32
	it    item
	kept  int64 // bytes of values that are not saved yet and would be
}

// build is the item of an operation; ok is false when it can't be recomputed or nothing would be gained.
func (b *itemBuilder) build(op int32, bytes int64) (it item, ok bool) {
	b.count++
	b.kept = 0
	b.it = item{op: op, cheap: true}
	if !b.visit(op, bytes) {
		return item{}, false
	}
	b.it.gain = bytes - b.kept
	return b.it, b.it.gain > 0
}

// visit adds an operation to the item, and what it needs that is not in memory anyway.
func (b *itemBuilder) visit(i int32, bytes int64) bool {
	op := &b.ops[i]
	if b.mark[i] == b.count {
		return true
	}
	if op.pinned || len(b.it.ops) == mostOps {
		return false
	}
	b.mark[i] = b.count
	b.it.ops = append(b.it.ops, i)
	b.it.cheap = b.it.cheap && op.role.cheap()
	for _, v := range op.in {
		if !b.need(b.graph.values[v].root, bytes) {
			return false
		}
	}
	return true
}

// need makes sure that a value can be had late: it is saved, or computed again as well, or it is so much smaller than what
// is gained that it is better kept.
func (b *itemBuilder) need(v int32, bytes int64) bool {
	val := &b.graph.values[v]
	if val.def < 0 || val.stored || b.saved[v] || b.ops[val.def].role == inline {
		return true
	}
	if b.ops[val.def].rounds {
		b.kept += val.bytes
		return true
	}
	if b.chooser.kept(v) {
		if !b.ops[val.def].role.cheap() && 8*val.bytes <= bytes {
			b.kept += val.bytes
			return true
		}
		if val.bytes > mostGrowth*bytes {
			return false
		}
	}
	return b.visit(val.def, bytes)
}
