package recompute

import (
	"cmp"
	"sort"
)

// choice is a plan with what it comes to.
type choice struct {
	items []int // the items that are recomputed
	times int64 // how many times as many rows of logits are computed at once as by default
	usage
}

// try estimates the recomputation of some items.
func (c *chooser) try(items []int) choice {
	c.setPlan(items)
	return choice{items, c.times, c.measure(c.plan)}
}

// setPlan drops the operations of items, and the views of what they compute.
func (c *chooser) setPlan(items []int) {
	clear(c.plan)
	for _, i := range items {
		for _, op := range c.items[i].ops {
			c.plan[op] = true
		}
	}
	for i := range c.ops {
		if op := &c.ops[i]; op.role == view && !op.pinned {
			d := c.graph.values[op.in[0]].def
			c.plan[i] = d >= 0 && c.plan[d]
		}
	}
}

// none keeps everything.
func (c *chooser) none() choice { return choice{times: c.times, usage: c.base} }

// auto recomputes what is cheap, if that makes a difference.
func (c *chooser) auto() choice {
	var cheap []int
	for i := range c.items {
		if c.items[i].cheap {
			cheap = append(cheap, i)
		}
	}
	if found := c.try(cheap); found.peak < c.base.peak {
		return c.withoutLast(found)
	}
	return c.none()
}

// full is the plan of the least peak that keeps nothing but ends of segments and, where that is no worse, the last segment.
func (c *chooser) full() choice {
	best := c.none()
	for _, size := range c.segmentSizes() {
		items, last := c.segments(size)
		for _, n := range []int{last, len(items)} {
			if found := c.try(items[:n]); better(found.usage, best.usage) {
				best = found
			}
		}
	}
	return c.withoutLast(best)
}

// better is less memory or, for the same, less work.
func better(a, b usage) bool {
	return cmp.Or(cmp.Compare(a.peak, b.peak), cmp.Compare(a.cost, b.cost)) < 0
}

// segments is the items that are recomputed when cuts are kept wherever a segment would otherwise save more than so many
// bytes. Those from number last on are in the last segment, which is needed again at once.
func (c *chooser) segments(size int64) (items []int, last int) {
	saved := int64(0)
	for i := range c.items {
		it := &c.items[i]
		if it.cut && saved+it.gain > size {
			saved, last = 0, len(items)
			continue
		}
		saved += it.gain
		items = append(items, i)
	}
	return items, last
}

// segmentSizes lists sizes worth trying: 0, where every cut is kept, then from what lies between two cuts up to
// everything, each by a half more.
func (c *chooser) segmentSizes() []int64 {
	total, cuts := int64(0), int64(0)
	for i := range c.items {
		total += c.items[i].gain
		if c.items[i].cut {
			cuts++
		}
	}
	sizes := []int64{0}
	for size := total/(cuts+1) + 1; size < total; size += size/2 + 1 {
		sizes = append(sizes, size)
	}
	return append(sizes, total+1)
}

// withoutLast keeps the last of the recomputed items, as many as it can without a higher peak: what is needed again at once
// gains nothing.
func (c *chooser) withoutLast(best choice) choice {
	n := sort.Search(len(best.items), func(n int) bool { return c.try(best.items[:n]).peak <= best.peak })
	return c.try(best.items[:n])
}
