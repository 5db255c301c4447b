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
// the one of the least peak. Where there is room for what auto keeps, nothing is computed again that auto doesn't: so that a plan with
// more memory than by default is no slower, whatever the predictions are worth; then more rows of logits at once may be the better use of it.
func (c *chooser) within(limit int64) (plan choice, ok bool) {
	c.weigh()
	if auto := c.auto(); auto.peak > limit {
		return c.frontier().within(limit)
	}
	for _, n := range c.multiples() {
		c.setTimes(n)
		if auto := c.auto(); auto.peak <= limit {
			if p, fits := c.parts(auto).within(limit); fits && (!ok || p.cost < plan.cost) {
				plan, ok = p, true
			}
		}
	}
	c.setTimes(plan.times)
	return plan, ok
}

// within is the fastest plan whose peak is at most limit, or the one of the least peak.
func (f frontier) within(limit int64) (plan choice, ok bool) {
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
	for _, p := range []choice{c.none(), c.auto(), c.full()} {
		f.add(p)
	}
	for _, size := range c.segmentSizes() {
		items, _ := c.segments(size)
		c.begin(&f, c.byRatio(items))
	}
	return c.near(f, counted(len(c.items)))
}

// parts is plans that recompute some items of another.
func (c *chooser) parts(whole choice) (f frontier) {
	f.add(c.none())
	f.add(whole)
	c.begin(&f, c.byRatio(slices.Clone(whole.items)))
	return c.near(f, whole.items)
}

// begin tries the beginnings of a list of items.
func (c *chooser) begin(f *frontier, order []int) {
	for n := len(order); n > 0; n -= 1 + len(order)/beginnings {
		f.add(c.try(order[:n]))
	}
}

// near looks for plans that differ from those of a frontier in one or two of some items, for so many trials as there are; or for all
// plans, if those are no more.
func (c *chooser) near(f frontier, items []int) frontier {
	s := search{chooser: c, found: f, left: c.trials}
	if len(items) < 20 && 1<<len(items) <= c.trials {
		s.all(items, nil)
		return s.found
	}
	s.run(func(p choice) {
		for _, i := range items {
			s.try(toggled(p.items, i))
		}
	})
	s.run(func(p choice) {
		for k, i := range items {
			for _, j := range items[:k] {
				s.try(toggled(toggled(p.items, i), j))
			}
		}
	})
	return s.found
}

// counted is the numbers below n.
func counted(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
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

// all tries all choices of some items, beside those that are chosen.
func (s *search) all(items, chosen []int) {
	if len(items) == 0 {
		s.try(slices.Clone(chosen))
		return
	}
	s.all(items[1:], chosen)
	s.all(items[1:], append(slices.Clip(chosen), items[0]))
}

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
