package recompute

// waits reports whether a value is a result that waits, such as a gradient of which another part comes last: whether it is
// used again after most of what was saved before it has died. What a forward part saves comes back in reverse order;
// computing a gradient again would take all of the forward part with it.
func (c *chooser) waits(it *item, across []int32) bool {
	before, sooner := 0, 0
	for _, v := range across {
		if c.ready[v] < it.placed {
			before++
			if c.last[v] < it.again {
				sooner++
			}
		}
	}
	return 2*sooner > before
}

// across lists the values that live where most bytes do: those computed before a group and used after it.
func (c *chooser) across() (values []int32) {
	change := make([]int64, len(c.seq)+2)
	for v := range c.graph.values {
		if v := int32(v); c.computed(v) && c.last[v] > c.ready[v] {
			change[c.ready[v]+1] += c.graph.values[v].bytes
			change[c.last[v]] -= c.graph.values[v].bytes
		}
	}
	live, most, at := int64(0), int64(0), int32(0)
	for p, n := range change {
		if live += n; live > most {
			most, at = live, int32(p)
		}
	}
	for v := range c.graph.values {
		if v := int32(v); c.computed(v) && c.ready[v] < at && at < c.last[v] {
			values = append(values, v)
		}
	}
	return values
}

// computed reports whether a value is in the arena, and more than an argument that was rounded.
func (c *chooser) computed(v int32) bool {
	val := &c.graph.values[v]
	return val.root == v && c.kept(v) && c.ops[val.def].op != nil
}
