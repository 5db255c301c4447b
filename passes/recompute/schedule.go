package recompute

// A plan says which operations of the forward part are dropped: not kept for the backward part, but computed again by it.
// A schedule is the function that a plan makes of the graph: operations by number, in order, where a number beyond those of
// the graph's operations is a copy of one. Copies come just before the first late operation that needs them.
type schedule []int32

// scheduler makes schedules of one graph. late tells the operations of the backward part: what they, and copies, use of
// dropped operations are the results of copies.
type scheduler struct {
	*graph
	late   []bool
	buffer schedule
	copied []bool
	wanted []bool // by instance: whether anything uses its results
}

func newScheduler(g *graph) *scheduler {
	return &scheduler{
		graph: g, late: make([]bool, len(g.ops)), buffer: make(schedule, 0, 2*len(g.ops)),
		copied: make([]bool, len(g.ops)), wanted: make([]bool, 2*len(g.ops)),
	}
}

// make schedules a plan. The result is good until the next call.
func (s *scheduler) make(drop []bool) schedule {
	s.buffer = s.buffer[:0]
	clear(s.copied)
	for i := range s.ops {
		if s.late[i] {
			s.copyOperands(int32(i), drop)
		}
		s.buffer = append(s.buffer, int32(i))
	}
	return s.withoutUnused(drop)
}

func (s *scheduler) copyOperands(op int32, drop []bool) {
	for _, v := range s.ops[op].in {
		d := s.values[v].def
		if d < 0 || !drop[d] || s.values[v].stored || s.copied[d] {
			continue
		}
		s.copied[d] = true
		s.copyOperands(d, drop)
		s.buffer = append(s.buffer, d+int32(len(s.ops)))
	}
}

// withoutUnused takes out operations that nothing needs any more: originals whose every use became one of a copy.
func (s *scheduler) withoutUnused(drop []bool) schedule {
	clear(s.wanted)
	n := int32(len(s.ops))
	out := len(s.buffer)
	for p := len(s.buffer) - 1; p >= 0; p-- {
		i := s.buffer[p]
		if op := &s.ops[i%n]; !s.wanted[i] && op.results > 0 && !op.pinned {
			continue
		}
		for _, v := range s.ops[i%n].in {
			if d := s.values[v].def; d >= 0 {
				if s.readsCopy(i, v, drop) {
					d += n
				}
				s.wanted[d] = true
			}
		}
		out--
		s.buffer[out] = i
	}
	return s.buffer[out:]
}

// readsCopy reports whether instance i reads the copy of value v, not the original.
func (s *scheduler) readsCopy(i, v int32, drop []bool) bool {
	val := &s.values[v]
	return val.def >= 0 && drop[val.def] && !val.stored && (i >= int32(len(s.ops)) || s.late[i])
}

// reads is the instance of value v that instance i reads: v, or v and the number of values for the copy.
func (s *scheduler) reads(i, v int32, drop []bool) int32 {
	if s.readsCopy(i, v, drop) {
		return v + int32(len(s.values))
	}
	return v
}
