package recompute

import (
	"slices"

	"blutrain/dialects/blu"
)

// usage is what a schedule costs: the most bytes in the arena at one time, when that is, and the seconds that it is predicted to take.
type usage struct {
	peak int64
	at   int32 // index in the schedule
	cost float64
}

// meter estimates the usage of schedules of one graph: see the package comment. Its slices are by instance of an operation
// or value (copies after originals), or by place in the schedule; they are kept to be used again.
type meter struct {
	*scheduler
	drop []bool
	seq  schedule

	group  []int32 // by operation: the place of the first operation of its group
	size   []int32 // by place: the operations of the group that begins there
	ready  []int32 // by value: the group that computes it or what it is a view of, -1 for arguments
	direct []bool  // by value: whether operations of that group may use it without memory
	reader []int32 // by value: the only group that uses it, or one of the constants below
	last   []int32 // by value: the last group that uses it
	start  []int32 // by place of a concatenation: the first group that writes to it
	change []int64 // by place: bytes taken less bytes given back
	dying  [][]int32
	launches
}

// Readers of values that are no group.
const (
	unread   = -1
	inMemory = -2 // several groups, or one that reads memory
)

func newMeter(g *graph) *meter {
	n, v := 2*len(g.ops), 2*len(g.values)
	return &meter{
		scheduler: newScheduler(g),
		group:     make([]int32, n), size: make([]int32, n), start: make([]int32, n), change: make([]int64, n+1), dying: make([][]int32, n),
		ready: make([]int32, v), direct: make([]bool, v), reader: make([]int32, v), last: make([]int32, v),
		launches: newLaunches(n, v),
	}
}

// measure schedules a plan and estimates its usage.
func (m *meter) measure(drop []bool) usage {
	m.drop, m.seq = drop, m.make(drop)
	for i := range m.graph.values {
		m.ready[i], m.direct[i] = -1, false // arguments and constants; all else is set below
	}
	for i := range m.reader {
		m.reader[i], m.last[i] = unread, -1
	}
	for p := range m.seq {
		m.size[p], m.start[p], m.change[p], m.dying[p] = 0, int32(p), 0, m.dying[p][:0]
	}
	m.change[len(m.seq)] = 0
	m.makeGroups()
	m.findReaders()
	m.allot()
	u := usage{cost: m.seconds()}
	live := int64(0)
	for p := range m.seq {
		if live += m.change[p]; live > u.peak {
			u.peak, u.at = live, int32(p)
		}
	}
	return u
}

// node is the operation of an instance, and copyOf what to add to the numbers of its results.
func (m *meter) node(i int32) (op *node, results int32) {
	if n := int32(len(m.ops)); i >= n {
		return &m.ops[i-n], m.ops[i-n].first + int32(len(m.graph.values))
	}
	return &m.ops[i], m.ops[i].first
}

func (m *meter) isCopy(i int32) bool { return i >= int32(len(m.ops)) || m.ops[i].again }

// makeGroups puts each operation into a group.
func (m *meter) makeGroups() {
	for p, i := range m.seq {
		op, first := m.node(i)
		latest, direct := int32(-1), false
		for _, v := range op.in {
			r := m.reads(i, v, m.drop)
			switch t := m.ready[r]; {
			case t > latest:
				latest, direct = t, m.direct[r]
			case t == latest:
				direct = direct && m.direct[r]
			}
		}
		home := int32(p)
		switch {
		case op.role == inline:
			home = -1
		case op.role == view:
			home, direct = latest, direct && op.fusedView
		case latest >= 0 && direct && m.joins(i, op, latest):
			home = latest
		}
		if op.role != view && op.role != inline {
			m.group[i] = home
			m.size[home]++
			direct = m.groupRole(home) != opaque && m.groupRole(home) != concat && !op.sumsUp
		}
		for r := range op.results {
			m.ready[first+r], m.direct[first+r] = home, direct
		}
	}
}

// groupRole is the role of a group's first operation.
func (m *meter) groupRole(g int32) role {
	op, _ := m.node(m.seq[g])
	return op.role
}

// joins reports whether an operation is computed together with a group that it uses a result of.
func (m *meter) joins(i int32, op *node, g int32) bool {
	head, _ := m.node(m.seq[g])
	if op.elems != head.elems || m.isCopy(i) && !m.isCopy(m.seq[g]) {
		return false
	}
	switch op.role {
	case elementwise:
		if head.role == product && m.isCopy(m.seq[g]) && !m.isCopy(i) {
			return false // what is computed again has other users: kernels leave such an operation by itself
		}
		return head.role.loops() || head.role == product || head.role == gather
	case rows:
		return head.role.loops() || head.role == gather || head.role == product && m.target.ColumnSums && op.sumsUp && op.op.Is(blu.ReduceSum)
	}
	return false
}

// findReaders tells for each value who uses it, last operations first, so that an operation whose result is used by one
// later group alone is taken into that group before its operands are looked at.
func (m *meter) findReaders() {
	for p := int32(len(m.seq)) - 1; p >= 0; p-- {
		i := m.seq[p]
		op, first := m.node(i)
		by, at := inMemory, p
		switch op.role {
		case inline:
			continue
		case view:
			m.lookThrough(i, op, first)
			continue
		case elementwise, rows:
			m.float(i, op, first, p)
			at = m.group[i]
			by = int(at)
		case concat:
			by = int(p)
		}
		for k, v := range op.in {
			if op.role == concat && k > 0 && slices.Contains(op.in[:k], v) {
				by = inMemory // it can't be in two places
			}
			m.note(m.reads(i, v, m.drop), int32(by), at)
		}
	}
}

// float moves an elementwise operation that is a group by itself into the only group that uses its result.
func (m *meter) float(i int32, op *node, first, p int32) {
	if op.role != elementwise || m.group[i] != p || m.size[p] != 1 {
		return
	}
	to := int32(unread)
	for v := first; v < first+op.results; v++ {
		switch {
		case m.reader[v] == unread || m.reader[v] == to:
		case to == unread && m.reader[v] >= 0:
			to = m.reader[v]
		default:
			return
		}
	}
	if to < 0 {
		return
	}
	if r := m.groupRole(to); r.loops() || r == product || r == gather {
		m.group[i] = to
		for v := first; v < first+op.results; v++ {
			m.ready[v] = to
		}
	}
}

// lookThrough has those who use a view's results use what it looks at.
func (m *meter) lookThrough(i int32, op *node, first int32) {
	for k, v := range op.in {
		by := int(m.reader[first+int32(k)])
		if !op.fusedView && by != unread {
			by = inMemory
		}
		m.note(m.reads(i, v, m.drop), int32(by), m.last[first+int32(k)])
	}
}

func (m *meter) note(v, by, at int32) {
	if by == unread {
		return
	}
	if m.reader[v] == unread {
		m.reader[v] = by
	} else if m.reader[v] != by {
		m.reader[v] = inMemory
	}
	m.last[v] = max(m.last[v], at)
}

// allot counts the memory of every value that leaves its group.
func (m *meter) allot() {
	for _, i := range m.seq {
		op, _ := m.node(i)
		if !op.inPlace {
			continue
		}
		g := m.group[i]
		if m.groupRole(g) == product && !op.isAddition {
			continue // such a kernel writes its results before it has read all of what it takes in
		}
		for _, v := range op.in {
			r := m.reads(i, v, m.drop)
			if m.root(r) == r && m.kept(r) && m.last[r] == g && m.ready[r] < g && !slices.Contains(m.dying[g], r) {
				m.dying[g] = append(m.dying[g], r)
			}
		}
	}
	for _, i := range m.seq {
		op, first := m.node(i)
		for r := range op.results {
			if v := first + r; m.kept(v) {
				m.take(v, op)
			}
		}
	}
}

// kept reports whether a value is in the arena.
func (m *meter) kept(v int32) bool {
	val := &m.graph.values[v%int32(len(m.graph.values))]
	return val.bytes > 0 && m.reader[v] != unread && (m.reader[v] != m.ready[v] || val.whole)
}

// root is the value that v is a view of.
func (m *meter) root(v int32) int32 {
	n := int32(len(m.graph.values))
	if v >= n {
		return m.graph.values[v-n].root + n
	}
	return m.graph.values[v].root
}

// take gives a value memory: its place in a concatenation, that of a value it takes over from, or new.
func (m *meter) take(v int32, op *node) {
	g, by := m.ready[v], m.reader[v]
	if by >= 0 && m.groupRole(by) == concat {
		m.start[by] = min(m.start[by], m.start[g])
		return
	}
	bytes := m.graph.values[v%int32(len(m.graph.values))].bytes
	from := g
	if op.role == concat {
		from = m.start[g]
	}
	for k, u := range m.dying[g] {
		if u >= 0 && m.graph.values[u%int32(len(m.graph.values))].bytes == bytes {
			m.change[g+1] += bytes // u gives its memory back when its last reader is done, v takes it then
			from = -1
			m.dying[g][k] = -1
			break
		}
	}
	if from >= 0 {
		m.change[from] += bytes
	}
	m.change[m.last[v]+1] -= bytes
}
