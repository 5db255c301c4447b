package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// trial is what a group would gain if an operation joined it. Nothing is changed until commit, but that atoms may have
// been split, which does no harm.
type trial struct {
	p        *planner
	g        *group
	ops      []*ir.Op
	dims     map[*ir.Value]dims
	clones   map[*ir.Op]bool // computed here too, because that is cheaper than keeping them
	accesses []*access
	counts   [][]atom    // what counts run over
	before   []*ir.Value // floating values that get a group of their own, before this one
	conflict *ir.Value   // why it failed: a value that can't be computed here
}

func (p *planner) trial(g *group) *trial {
	return &trial{p: p, g: g, dims: map[*ir.Value]dims{}, clones: map[*ir.Op]bool{}}
}

func (t *trial) refuse(v *ir.Value) bool {
	t.conflict = v
	return false
}

// need makes v available in the group at the given atoms: as one of its operations, or read from outside.
func (t *trial) need(v *ir.Value, ds dims) bool {
	g := t.g
	if have, ok := g.dims[v]; ok {
		return g.dom.same(have, ds) || t.refuse(v)
	}
	if have, ok := t.dims[v]; ok {
		return g.dom.same(have, ds) || t.refuse(v)
	}
	op := v.Op()
	switch {
	case op == nil:
		return t.read(v, ds)
	case isInline(op) && t.p.home[v] == nil:
		if op.Is(blu.Iota) {
			t.counts = append(t.counts, ds[op.Attrs().IntOr("axis", 0)])
		}
		return true
	case isFusedView(op):
		if x, ok := t.backward(op, ds); ok {
			return t.need(op.Operand(0), x)
		}
		return t.read(v, ds)
	case isWidening(op) && !t.p.kept[v] && !slices.Contains(t.before, v): // each widens it itself: what is in memory is smaller
		t.clones[op] = true
		t.add(op, ds)
		return t.need(op.Operand(0), ds)
	case !t.p.floating[op] || slices.Contains(t.before, v):
		return t.read(v, ds)
	}
	return t.absorb(op, ds)
}

// isWidening reports whether an operation makes 16 bits 32, exactly.
func isWidening(op *ir.Op) bool {
	return op.Is(blu.Cast) && isNarrow(op.Operand(0).Elem()) && !isNarrow(op.Result(0).Elem())
}

// backward is the atoms of a view's operand, given those of its result.
func (t *trial) backward(op *ir.Op, ds dims) (dims, bool) {
	x := op.Operand(0).Shape()
	switch op.Def() {
	case blu.Reshape:
		return t.g.regroup(ds, x)
	case blu.Transpose:
		out := make(dims, len(x))
		for i, p := range op.Attrs().Ints("perm") {
			out[p] = ds[i]
		}
		return out, true
	}
	out := make(dims, len(x))
	for i, axis := range op.Attrs().Ints("axes") {
		if x[i] != 1 {
			out[i] = ds[axis]
		}
	}
	return out, true
}

// regroup is domain.regroup that leaves solid atoms whole.
func (g *group) regroup(ds dims, shape []int64) (dims, bool) {
	to, ok := g.dom.regroup(ds, shape)
	for _, a := range g.solid {
		if g.dom.parts[a] != nil {
			g.dom.parts[a] = nil // the parts are new, and in no list but the one given up
			return nil, false
		}
	}
	return to, ok
}

// read makes the group read v, which an earlier group computes.
func (t *trial) read(v *ir.Value, ds dims) bool {
	if !t.reachable(v) {
		if t.conflict == nil {
			t.conflict = v
		}
		return false
	}
	for _, a := range slices.Concat(t.g.accesses, t.accesses) {
		if a.value == v && !a.raw && !a.partial && t.g.dom.same(a.dims, ds) {
			return true
		}
	}
	t.accesses = append(t.accesses, &access{value: v, dims: ds})
	return true
}

// readRaw makes the group read v, a table.
func (t *trial) readRaw(v *ir.Value) bool {
	if !t.reachable(v) {
		if t.conflict == nil {
			t.conflict = v
		}
		return false
	}
	t.accesses = append(t.accesses, &access{value: v, raw: true})
	return true
}

// reachable reports whether v can be in memory before the group runs, and notes what must be computed for that.
func (t *trial) reachable(v *ir.Value) bool {
	for _, b := range bases(v) {
		op := b.Op()
		if _, here := t.dims[b]; here { // what this group computes can't be read back by it
			return t.refuse(b)
		}
		switch h := t.p.home[b]; {
		case op == nil:
		case h != nil:
			if h.rank >= t.g.rank {
				return false
			}
		case t.p.floating[op]:
			if late := t.p.latest(b); late != nil && late.rank >= t.g.rank {
				return false
			}
			t.before = append(t.before, b)
		case op.Is(blu.Constant) || op.Is(blu.Iota):
			if isInline(op) {
				t.before = append(t.before, b)
			}
		default:
			return false
		}
	}
	return true
}

// bases is the values that v looks at, through views of every kind.
func bases(v *ir.Value) []*ir.Value {
	op := v.Op()
	if op == nil || !isView(op) {
		return []*ir.Value{v}
	}
	if !op.Is(blu.Concat) {
		return bases(op.Operand(0))
	}
	var out []*ir.Value
	for _, o := range op.Operands() {
		out = append(out, bases(o)...)
	}
	return out
}

// absorb takes a floating operation into the group.
func (t *trial) absorb(op *ir.Op, ds dims) bool {
	v := op.Result(0)
	if t.repeats(ds) {
		if !t.p.cheap(op) {
			return t.read(v, ds)
		}
		t.clones[op] = true
	}
	switch op.Def() {
	case blu.Gather:
		return t.absorbGather(op, ds)
	case blu.RandomUniform, blu.RandomNormal:
		return t.absorbRandom(op, ds)
	}
	t.add(op, ds)
	for _, o := range op.Operands() {
		if !t.need(o, ds) {
			return false
		}
	}
	return true
}

func (t *trial) add(op *ir.Op, ds dims) {
	t.ops = append(t.ops, op)
	t.dims[op.Result(0)] = ds
}

// repeats reports whether a value with these atoms would be computed more than once in the group: whether it lacks atoms
// other than those that blocks hold whole.
func (t *trial) repeats(ds dims) bool { return lacks(t.g, ds, nil) }

// absorbGather takes a gather in where blocks are rows of the table.
func (t *trial) absorbGather(op *ir.Op, ds dims) bool {
	g, table, indices := t.g, op.Operand(0), op.Operand(1)
	k := len(indices.Shape())
	if g.kind != loops || len(table.Shape()) != 2 || table.Shape()[1] == 1 || len(g.dom.leaves(ds[k])) != 1 {
		return t.refuse(op.Result(0))
	}
	row, order, inner := g.dom.leaves(ds[k])[0], g.dom.flat(g.anchor), g.dom.leaves(g.inner)
	if order[len(order)-1] != row || len(inner) > 0 && !slices.Equal(inner, []atom{row}) {
		return t.refuse(op.Result(0))
	}
	t.add(op, ds)
	if !t.readRaw(table) || !t.need(indices, ds[:k]) {
		return false
	}
	g.solid = append(g.solid, row)
	g.ordered = true
	return true
}

// absorbRandom takes random numbers in where the group walks their elements in order.
func (t *trial) absorbRandom(op *ir.Op, ds dims) bool {
	g := t.g
	inner := g.dom.leaves(g.inner)
	order := g.dom.flat(g.anchor)
	suffix := len(inner) <= len(order) && sameSet(inner, order[len(order)-len(inner):])
	if !slices.Equal(g.dom.flat(ds), order) || !suffix {
		return t.refuse(op.Result(0))
	}
	t.add(op, ds)
	g.ordered = true
	return t.need(op.Operand(0), dims{})
}

// commit makes the trial true.
func (t *trial) commit() {
	g, p := t.g, t.p
	for _, v := range t.before {
		p.materialize(v, g)
	}
	for _, op := range t.ops {
		g.ops = append(g.ops, op)
		for _, r := range op.Results() {
			if ds, ok := t.dims[r]; ok {
				g.dims[r] = ds
				g.learn(r.Shape(), ds)
			}
			if !t.clones[op] {
				p.home[r] = g
			}
		}
		if !t.clones[op] {
			delete(p.floating, op)
		}
	}
	for _, a := range t.accesses {
		g.accesses = append(g.accesses, a)
		if !a.raw {
			g.learn(a.value.Shape(), a.dims)
		}
		if !a.partial {
			p.keep(a.value)
			p.readers[a.value] = g
		}
	}
}
