package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// reduction puts a reduction into the group that computes or reads its operand, or makes a group for it.
//
// There are two ways to reduce. Within a block: the block holds all of what is reduced, or is gone over in pieces, and what
// follows can use the result at once: softmax, norms. Over rows: every grid point adds up the rows it has, and stores a
// partial result; a second kernel adds those in order.
func (p *planner) reduction(r *ir.Op) {
	x := r.Operand(0)
	if p.sumOfGradients(r) {
		return
	}
	for _, g := range p.hosts(r) {
		if p.joinReduction(r, g) {
			return
		}
	}
	if r.Is(pick) {
		p.demand(x)
	}
	if p.halve(r) {
		return
	}
	p.rootReduction(r)
}

// halve cuts a large reduction over everything into one over the last dimension and one over the others, so that it has
// rows.
func (p *planner) halve(r *ir.Op) bool {
	x := r.Operand(0)
	shape := x.Shape()
	if !inPieces(r) || len(r.Result(0).Shape()) > 0 || ir.NumElements(shape) <= p.target.RowElems {
		return false
	}
	last := len(shape) - 1
	for last > 0 && shape[last] == 1 {
		last--
	}
	if ir.NumElements(shape[:last]) == 1 {
		return false
	}
	axes := func(from, to int) ir.NamedAttr {
		var list []int64
		for i := from; i < to; i++ {
			list = append(list, int64(i))
		}
		return ir.NamedAttr{Name: "axes", Value: p.c.I64s(list...)}
	}
	inner := ir.NewBuilder(p.c, nil).Before(r).At(r.Loc()).Create(r.Def(), []*ir.Value{x}, axes(last, len(shape)))
	p.layouts.index[inner] = p.layouts.index[r]
	p.origin[inner] = p.origin[r]
	r.SetOperand(0, inner.Result(0))
	r.SetAttr("axes", axes(0, last).Value)
	p.reduction(inner)
	p.reduction(r)
	return true
}

// recent is how many groups back one may be that a reduction joins only because it reads the same tensors.
const recent = 4

// hosts lists the groups that a reduction may join: the one its operands come from, and those that read what it reads.
func (p *planner) hosts(r *ir.Op) (out []*group) {
	add := func(g *group) {
		if g != nil && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	add(p.latestOf(r))
	seen := map[*ir.Op]bool{}
	var visit func(v *ir.Value)
	visit = func(v *ir.Value) {
		if g := p.readers[v]; g != nil && g.rank >= len(p.groups)-recent {
			add(g)
		}
		if op := v.Op(); op != nil && p.home[v] == nil && !seen[op] && (p.floating[op] || isFusedView(op)) {
			seen[op] = true
			for _, o := range op.Operands() {
				visit(o)
			}
		}
	}
	visit(r.Operand(0))
	return out
}

func (p *planner) joinReduction(r *ir.Op, g *group) bool {
	x := r.Operand(0)
	k := knower{p, g, true, map[*ir.Op]bool{}}
	xd, ok := k.of(x)
	if !ok || g.kind == single || p.tooEarly(r, g) || r.Is(pick) && (g.member(x) || !slices.Equal(g.dom.flat(xd), g.dom.flat(g.anchor))) {
		return false
	}
	over, kept := g.split(r, xd)
	t := p.trial(g)
	if lacks(g, xd, over) || !t.operands(r, xd, kept) || !p.fits(t) {
		return false
	}
	switch {
	case p.withinBlock(g, over):
		t.ops, t.dims[r.Result(0)] = append(t.ops, r), kept
		t.commit()
		p.reducesWithin(g, r, xd, over)
		return true
	case g.kind == product && !g.member(x): // it would read more than the product does
		return false
	case !inPieces(r) || !p.overRows(g, over, g.leavesOf(kept)):
		return false
	}
	t.commit()
	p.addSum(g, r, xd, over)
	return true
}

// lacks reports whether a tensor lacks atoms of the group other than those reduced: it would be computed, and stored, more
// than once.
func lacks(g *group, ds dims, over []atom) bool {
	have := g.dom.flat(ds)
	if len(have) == len(g.atoms()) {
		return false
	}
	inner := g.dom.leaves(g.inner)
	return slices.ContainsFunc(g.atoms(), func(a atom) bool {
		return !slices.Contains(have, a) && !slices.Contains(inner, a) && !slices.Contains(over, a)
	})
}

// operands makes the operands of a reduction available: what it reduces at x; a pick reads that from memory, and its
// indices at what is kept. Indices that are gathered, from the targets of a whole sequence, are gathered before: a group that
// goes over rows of logits can't do that, and the pick would be left out of it.
func (t *trial) operands(r *ir.Op, x, kept dims) bool {
	if !r.Is(pick) {
		return t.need(r.Operand(0), x)
	}
	indices := r.Operand(1)
	available := t.need
	if op := bases(indices)[0].Op(); op.Is(blu.Gather) && t.p.floating[op] {
		available = t.read
	}
	return t.read(r.Operand(0), x) && available(indices, kept)
}

func (g *group) leavesOf(ds dims) []atom { return g.dom.flat(ds) }

// reducesWithin makes a reduction one that blocks hold.
func (p *planner) reducesWithin(g *group, r *ir.Op, x dims, over []atom) {
	g.inner = over
	g.operand[r] = x
	if r.Is(pick) {
		g.solid = append(g.solid, over...)
	}
}

// withinBlock reports whether a group can reduce over these atoms within its blocks: whether it does so already, or reduces
// over nothing yet and may.
func (p *planner) withinBlock(g *group, over []atom) bool {
	if g.kind != loops {
		return false
	}
	if len(g.inner) == 0 && slices.ContainsFunc(g.ops, func(op *ir.Op) bool { return op.Is(pick) }) {
		return false // its rows have one element, and are rows of blocks nonetheless
	}
	if len(g.inner) > 0 {
		return sameSet(g.dom.leaves(g.inner), over)
	}
	order := g.dom.flat(g.anchor)
	if len(over) == 0 || len(g.sums) > 0 || !contains(order, over) {
		return false
	}
	suffix := sameSet(order[len(order)-len(over):], over)
	if g.ordered && !suffix {
		return false
	}
	return slices.Contains(over, order[len(order)-1]) || g.dom.elements(over) <= p.target.ColumnElems
}

// overRows reports whether a group can store partial sums over these atoms: whether they are all but those of a row.
func (p *planner) overRows(g *group, over, kept []atom) bool {
	if g.kind == product && !p.target.GemmColumnSums || len(over) == 0 {
		return false
	}
	if len(g.sums) > 0 && !sameSet(g.dom.leaves(g.sumOver), over) {
		return false
	}
	inner := g.dom.leaves(g.inner)
	order := g.atoms()
	rest := slices.DeleteFunc(slices.Clone(order), func(a atom) bool { return slices.Contains(inner, a) })
	if g.kind == product { // blocks have all of a product's rows, or of its columns, along one dimension
		if _, _, cols := g.sides(); !slices.Equal(cols, kept) {
			return false
		}
	}
	if len(inner) == 0 { // a group without rows yet: what is kept is the row
		n := len(order) - len(kept)
		return n >= 0 && len(kept) > 0 && slices.Equal(order[n:], kept) && sameSet(order[:n], over)
	}
	last := g.dom.flat(g.anchor)
	if !sameSet(rest, over) || !slices.Contains(inner, last[len(last)-1]) {
		return false
	}
	return len(kept) == 0 || sameSet(kept, inner) && len(inner) == 1 && g.dom.elements(inner) <= p.target.RowElems
}

// addSum makes a group store partial results of a reduction, and another add them up.
func (p *planner) addSum(g *group, r *ir.Op, x dims, over []atom) {
	g.sums = append(g.sums, r)
	g.operand[r] = x
	g.sumOver = over
	g.solid = append(g.solid, g.dom.leaves(g.inner)...) // blocks hold whole rows of what is summed
	p.finish(g, r)
}

// finish makes a group add up partial results that another stores.
func (p *planner) finish(g *group, r *ir.Op) *group {
	y := r.Result(0)
	for _, f := range g.finals {
		if slices.Equal(f.root.Result(0).Shape(), y.Shape()) && f.root.Def() == r.Def() {
			p.addFinal(f, r, dims(f.anchor[1:]))
			return f
		}
	}
	f := p.newGroup(loops, r, nil)
	panels := f.dom.fresh(-1) // their number is known when the first group's blocks are
	kept := f.dom.freshDims(y.Shape())
	f.anchor = append(dims{{panels}}, kept...)
	f.inner = []atom{panels}
	f.solid = []atom{panels}
	g.finals = append(g.finals, f)
	p.addFinal(f, r, kept)
	return f
}

func (p *planner) addFinal(f *group, r *ir.Op, kept dims) {
	f.ops = append(f.ops, r)
	f.operand[r] = append(dims{f.anchor[0]}, kept...)
	f.dims[r.Result(0)] = kept
	f.learn(r.Result(0).Shape(), kept)
	f.accesses = append(f.accesses, &access{value: r.Result(0), dims: f.operand[r], partial: true})
	p.home[r.Result(0)] = f
}

// rootReduction makes a group for a reduction.
func (p *planner) rootReduction(r *ir.Op) {
	x := r.Operand(0)
	for {
		g := p.newGroup(loops, r, nil)
		g.anchor = g.dom.freshDims(x.Shape())
		over, kept := g.split(r, g.anchor)
		within := p.withinBlock(g, over) || !inPieces(r) || !p.overRows(g, over, g.leavesOf(kept))
		if within {
			g.inner = over
		}
		t := p.trial(g)
		if t.operands(r, g.anchor, kept) {
			if within {
				t.ops, t.dims[r.Result(0)] = append(t.ops, r), kept
				t.commit()
				p.reducesWithin(g, r, g.anchor, over)
			} else {
				t.commit()
				p.addSum(g, r, g.anchor, over)
			}
			return
		}
		p.groups = slices.Delete(p.groups, g.rank, g.rank+1)
		if t.conflict == nil {
			panic("kernels: a reduction has no group, and nothing stands in its way")
		}
		p.materialize(t.conflict, nil)
	}
}
