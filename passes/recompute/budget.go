package recompute

import (
	"cmp"
	"slices"
	"sort"
)

// within looks for the plan of the least cost whose peak is at most limit. ok is false when it finds none; then the plan is
// the one of the least peak.
func (c *chooser) within(limit int64) (plan choice, ok bool) {
	if c.base.peak <= limit {
		return c.none(), true
	}
	least := c.full()
	var best *choice
	sizes := c.segmentSizes()
	slices.Reverse(sizes)
sizes:
	for _, size := range sizes {
		items, _ := c.segments(size)
		found, ok := c.shortest(c.byRatio(items), limit)
		if better(found.usage, least.usage) {
			least = found
		}
		switch {
		case ok && (best == nil || found.cost < best.cost):
			best = &found
		case best != nil:
			break sizes // what keeps more cuts costs more elsewhere
		}
	}
	if best == nil {
		least = c.lowered(least, limit)
		best = &least
	}
	if best.peak > limit {
		return *best, false
	}
	return c.thinned(*best, limit), true
}

// lowered looks for a plan that fits, or has at least a lower peak, by adding and taking out one item or two, as long as that
// helps and for as many trials as there is time for.
func (c *chooser) lowered(plan choice, limit int64) choice {
	trials := c.trials()
	lower := func(items []int) bool {
		trials--
		t := c.try(items)
		if !better(t.usage, plan.usage) {
			return false
		}
		plan = t
		return true
	}
	for changed := true; changed; {
		changed = false
		for i := range c.items {
			changed = lower(toggled(plan.items, i)) || changed
			for k := 0; k < i && !changed && trials > 0; k++ {
				changed = lower(toggled(toggled(plan.items, i), k))
			}
			if plan.peak <= limit || trials <= 0 {
				return plan
			}
		}
	}
	return plan
}

// trials is how many plans may be tried in a search: as many as take some milliseconds.
func (c *chooser) trials() int { return max(32, 1<<17/len(c.ops)) }

// toggled adds an item to a list, or takes it out.
func toggled(items []int, i int) []int {
	if at := slices.Index(items, i); at >= 0 {
		return slices.Delete(slices.Clone(items), at, at+1)
	}
	return append(slices.Clone(items), i)
}

// byRatio orders items by what a byte costs, then from early to late: what is saved early is needed again when most other
// memory has been given back.
func (c *chooser) byRatio(items []int) []int {
	slices.SortStableFunc(items, func(a, b int) int { return cmp.Compare(c.items[a].ratio(), c.items[b].ratio()) })
	return items
}

// shortest is the shortest beginning of a list of items whose recomputation fits; ok is false when none was found, and the
// plan then the one of the least peak. More items mean a lower peak up to a point: beyond it, what must be recomputed at
// once grows.
func (c *chooser) shortest(order []int, limit int64) (found choice, ok bool) {
	const steps = 8
	found = c.none()
	fits := func(n int) bool {
		t := c.try(order[:n])
		if better(t.usage, found.usage) {
			found = t
		}
		return t.peak <= limit
	}
	from, to := 0, len(order)
	if !fits(to) {
		for k := 1; ; k++ {
			if k == steps {
				return found, false
			}
			if to = len(order) * k / steps; fits(to) {
				break
			}
			from = to
		}
	}
	n := from + sort.Search(to-from, func(n int) bool { return fits(from + n) })
	return c.try(order[:n]), true
}

// thinned makes a plan cheaper that fits: it takes out items as long as it still fits, of the plan itself and of the plan
// with all cheap items, which make room for costly ones.
func (c *chooser) thinned(plan choice, limit int64) choice {
	best := c.reduced(plan, limit)
	if all := c.try(c.withCheap(plan.items)); all.peak <= limit {
		if other := c.reduced(all, limit); other.cost < best.cost {
			best = other
		}
	}
	return best
}

// reduced makes a plan cheaper by taking items out, the most costly ones first, and by putting cheaper ones in their place,
// as long as it fits and there is time.
func (c *chooser) reduced(plan choice, limit int64) choice {
	trials := c.trials()
	within := c.contains(plan.items)
	fits := func(items []int) bool {
		trials--
		t := c.try(items)
		if t.peak > limit || t.cost >= plan.cost {
			return false
		}
		plan, within = t, c.contains(items)
		return true
	}
	order := c.costlyFirst()
	for changed := true; changed && trials > 0; {
		changed = false
		for _, i := range order {
			if within[i] && trials > 0 {
				changed = fits(toggled(plan.items, i)) || changed
			}
		}
		for a, i := range order {
			for b := a + 1; b < len(order) && within[i] && trials > 0; b++ {
				if k := order[b]; !within[k] {
					changed = fits(toggled(toggled(plan.items, i), k)) || changed
				}
			}
		}
	}
	return plan
}

// contains is, by item, whether it is in a list.
func (c *chooser) contains(items []int) []bool {
	in := make([]bool, len(c.items))
	for _, i := range items {
		in[i] = true
	}
	return in
}

func (c *chooser) costlyFirst() []int {
	order := make([]int, len(c.items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.items[b].cost, c.items[a].cost) })
	return order
}

// withCheap adds the cheap items to some.
func (c *chooser) withCheap(items []int) []int {
	out := slices.Clone(items)
	for i := range c.items {
		if c.items[i].cheap && !slices.Contains(items, i) {
			out = append(out, i)
		}
	}
	return out
}
