package recompute

import (
	"cmp"
	"math"
	"slices"
)

// frontier is plans of which none needs both less memory and less time than another one, the fastest first. It depends on no budget:
// so a larger one never gets a slower plan.
type frontier []choice

// add puts a plan where it belongs, and takes out those that it is better than; it reports whether it is not worse than one there.
func (f *frontier) add(p choice) bool {
	for _, q := range *f {
		if q.peak <= p.peak && q.cost <= p.cost {
			return false
		}
	}
	*f = slices.DeleteFunc(*f, func(q choice) bool { return p.peak <= q.peak && p.cost <= q.cost })
	at, _ := slices.BinarySearchFunc(*f, p, func(a, b choice) int { return cmp.Compare(a.cost, b.cost) })
	*f = slices.Insert(*f, at, p)
	return true
}

// within looks for the plan of the least time whose peak is at most limit. ok is false when it finds none; then the plan is
// the one of the least peak.
func (c *chooser) within(limit int64) (plan choice, ok bool) {
	f := c.frontier()
	for _, p := range f {
		if p.peak <= limit {
			return p, true
		}
	}
	return f[len(f)-1], false
}

// beginnings is how many beginnings of an ordered list of items are tried.
const beginnings = 64

// frontier tries, for every size of segments, the items from the cheapest byte on, and then what is near the plans that are best of these.
func (c *chooser) frontier() (f frontier) {
	c.weigh()
	for _, p := range []choice{c.none(), c.auto(), c.full()} {
		f.add(p)
	}
	for _, size := range c.segmentSizes() {
		items, _ := c.segments(size)
		order := c.byRatio(items)
		for n := len(order); n > 0; n -= 1 + len(order)/beginnings {
			f.add(c.try(order[:n]))
		}
	}
	s := search{chooser: c, found: f, left: c.trials()}
	s.run(func(p choice) {
		for i := range c.items {
			s.try(toggled(p.items, i))
		}
	})
	s.run(func(p choice) {
		for i := range c.items {
			for k := range i {
				s.try(toggled(toggled(p.items, i), k))
			}
		}
	})
	return s.found
}

// search looks for better plans near those it has found, for as many trials as are left.
type search struct {
	*chooser
	found frontier
	left  int
}

// try adds a plan to the frontier, if it is time for it.
func (s *search) try(items []int) {
	if s.left > 0 {
		s.left--
		s.found.add(s.chooser.try(items))
	}
}

// run visits every plan of the frontier once, those too that are found on the way.
func (s *search) run(visit func(choice)) {
	seen := map[usage]bool{}
	for again := true; again && s.left > 0; {
		again = false
		for _, p := range slices.Clone(s.found) {
			if !seen[p.usage] {
				seen[p.usage], again = true, true
				visit(p)
			}
		}
	}
}

// trials is how many plans may be tried in a search: as many as take some hundredths of a second.
func (c *chooser) trials() int { return max(32, 1<<19/len(c.ops)) }

// toggled adds an item to a list, or takes it out.
func toggled(items []int, i int) []int {
	if at := slices.Index(items, i); at >= 0 {
		return slices.Delete(slices.Clone(items), at, at+1)
	}
	return append(slices.Clone(items), i)
}

// weigh measures what recomputing each item costs by itself, in whole nanoseconds: so that items alike cost the same.
func (c *chooser) weigh() {
	for i := range c.items {
		c.items[i].cost = math.Round(1e9*(c.try([]int{i}).cost-c.base.cost)) / 1e9
	}
}

// byRatio orders items by what a byte costs, then from early to late: what is saved early is needed again when most other
// memory has been given back.
func (c *chooser) byRatio(items []int) []int {
	slices.SortStableFunc(items, func(a, b int) int { return cmp.Compare(c.items[a].ratio(), c.items[b].ratio()) })
	return items
}
