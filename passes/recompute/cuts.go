package recompute

// findCuts tells the operations at whose groups little else is needed: no more bytes than they save themselves, or no more
// than at the groups before and after.
func (c *chooser) findCuts() map[int32]bool {
	needed, places := c.forwardBytes()
	cuts := map[int32]bool{}
	low := map[int32]bool{}
	for k, p := range places {
		before, after := max(0, k-1), min(len(places)-1, k+1)
		low[p] = needed[p] <= needed[places[before]] && needed[p] <= needed[places[after]]
	}
	for _, i := range c.seq {
		if bytes := c.savedBytes(i); bytes > 0 && !c.late[i] {
			cuts[i] = low[c.group[i]] || needed[c.group[i]] <= bytes
		}
	}
	return cuts
}

// forwardBytes is, by place, the bytes that the forward part still needs after it, and the places where groups begin.
func (c *chooser) forwardBytes() (needed []int64, places []int32) {
	last := make([]int32, len(c.graph.values)) // the last group of the forward part that reads a value
	for p, i := range c.seq {
		op := &c.ops[i]
		if c.late[i] || op.role == view || op.role == inline || i == c.end {
			continue
		}
		if c.group[i] == int32(p) {
			places = append(places, int32(p))
		}
		for _, v := range op.in {
			r := c.graph.values[v].root
			last[r] = max(last[r], c.group[i])
		}
	}
	needed = make([]int64, len(c.seq)+1)
	for v := range c.graph.values {
		if val := &c.graph.values[v]; val.bytes > 0 && c.computed(int32(v)) && last[v] > c.ready[v] {
			needed[c.ready[v]] += val.bytes
			needed[last[v]] -= val.bytes
		}
	}
	for p := 1; p < len(needed); p++ {
		needed[p] += needed[p-1]
	}
	return needed, places
}
