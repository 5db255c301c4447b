package recompute

// launches is the groups of a schedule as the kernels that they become, to predict how long these take.
type launches struct {
	head, next []int32 // by place: the first operation of the group that begins there, and the one that comes after an operation; -1: none
	seen       []int32 // by value: the group that was counted last to read it
	readBy     []int32 // by value: the group that reads it; -1: none, severalGroups: more than one
	readLate   []int32 // by value: the group of the backward part that does
}

const severalGroups = -2

// hidden is what of the shorter of a kernel's two times, that of moving memory and that of arithmetic, still counts: they pass side by
// side, but one delays the other, and both take of the power that clocks are limited by.
const hidden = 0.1

func newLaunches(places, values int) launches {
	return launches{head: make([]int32, places), next: make([]int32, places), seen: make([]int32, values), readBy: make([]int32, values), readLate: make([]int32, values)}
}

// seconds predicts the time of a schedule of which the groups are known: that of each group is the longer one of its arithmetic at
// the target's speed and of the bytes it reads and writes.
func (m *meter) seconds() (sum float64) {
	m.chain()
	for g := range m.seq {
		if m.head[g] >= 0 {
			sum += m.kernel(int32(g))
		}
	}
	return sum
}

// chain lists the operations of each group, and notes which groups of the backward part read what.
func (m *meter) chain() {
	for p := range m.seq {
		m.head[p], m.next[p] = -1, -1
	}
	for v := range m.seen {
		m.seen[v], m.readBy[v], m.readLate[v] = -1, -1, -1
	}
	for p := int32(len(m.seq)) - 1; p >= 0; p-- {
		i := m.seq[p]
		op, _ := m.node(i)
		if op.role == view || op.role == inline || op.role == terminator {
			continue
		}
		g := m.group[i]
		m.next[p], m.head[g] = m.head[g], p
		late := m.isCopy(i) || m.late[i]
		for _, v := range op.in {
			r := m.root(m.reads(i, v, m.drop))
			note(m.readBy, r, g)
			if late {
				note(m.readLate, r, g)
			}
		}
	}
}

// note adds a group to those that read a value.
func note(groups []int32, v, g int32) {
	switch groups[v] {
	case -1:
		groups[v] = g
	case g:
	default:
		groups[v] = severalGroups
	}
}

// kernel is the seconds of a group.
func (m *meter) kernel(g int32) float64 {
	compute, bytes, starts := 0.0, int64(0), int64(1)
	simple, writes := true, false // all elementwise; anything in memory
	beside := m.beside && m.onlyCopies(g)
	for p := m.head[g]; p >= 0; p = m.next[p] {
		i := m.seq[p]
		op, first := m.node(i)
		compute += op.flops/m.target.speed(op.op) + op.simple/m.target.Simple
		simple = simple && op.role == elementwise
		if op.chunked != nil {
			starts = m.chunks(op.chunked.logits)
			bytes += (starts - 1) * m.again(op.chunked)
		}
		for _, v := range op.in {
			n := m.read(i, v, g, beside)
			if op.role == gather {
				n = min(n, m.sizeOf(first)) // the rows, not all of the table
			}
			bytes += n
		}
		for v := first; v < first+op.results; v++ {
			if m.kept(v) && !m.inPlanes(op, v) {
				bytes, writes = bytes+m.sizeOf(v), true
			}
		}
	}
	if simple && !writes {
		return compute * hidden // part of what makes planes
	}
	moves := float64(bytes) / m.target.Bandwidth
	return float64(starts)*m.target.Start + max(compute, moves) + hidden*min(compute, moves)
}

// inPlanes reports whether a result, v, is computed where planes are made of it for the only product that reads it, and nowhere else.
func (m *meter) inPlanes(op *node, v int32) bool {
	by := m.readBy[v]
	return m.planes && op.role == elementwise && by >= 0 && m.groupRole(by) == product
}

// read is the bytes that a group reads of a value, if it has not yet. Where the group is computed beside another, that reads the same.
func (m *meter) read(i, v, g int32, beside bool) int64 {
	v = m.reads(i, v, m.drop)
	r := m.root(v)
	if m.graph.values[r%int32(len(m.graph.values))].def >= 0 && m.ready[r] == g || beside && m.readLate[r] == severalGroups {
		return 0
	}
	if m.sizeOf(v) == m.sizeOf(r) {
		v = r
	}
	if m.seen[v] == g {
		return 0
	}
	m.seen[v] = g
	return m.sizeOf(v)
}

// onlyCopies reports whether a group is a chain of elementwise operations that are computed again.
func (m *meter) onlyCopies(g int32) bool {
	for p := m.head[g]; p >= 0; p = m.next[p] {
		if op, _ := m.node(m.seq[p]); op.role != elementwise || !m.isCopy(m.seq[p]) {
			return false
		}
	}
	return true
}

// sizeOf is the bytes of a value where it is read or written.
func (m *meter) sizeOf(v int32) int64 { return m.graph.values[v%int32(len(m.graph.values))].size }
