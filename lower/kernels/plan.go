package kernels

import (
	"cmp"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// planner puts the operations of one function into groups. It walks over them once, in order. Groups are executed in the
// order of their ranks; a group reads only what groups of lower rank compute.
type planner struct {
	c        *ir.Context
	target   Target
	layouts  *layouts
	groups   []*group // by rank
	home     map[*ir.Value]*group
	floating map[*ir.Op]bool
	kept     map[*ir.Value]bool   // values that must be in memory
	readers  map[*ir.Value]*group // the last group that reads a value
	last     *group               // the last group made for floating operations
	needs    needs
	origin   map[*ir.Op]string // the composite operation that one comes from
}

func plan(c *ir.Context, f *ir.Op, t Target, origin map[*ir.Op]string) (*planner, error) {
	p := &planner{
		c: c, target: t, layouts: newLayouts(f), home: map[*ir.Value]*group{}, floating: map[*ir.Op]bool{},
		kept: map[*ir.Value]bool{}, readers: map[*ir.Value]*group{}, origin: origin,
	}
	p.needs = newNeeds(f, p.layouts.index)
	for op := range f.Body().Ops() {
		if err := p.visit(op); err != nil {
			return nil, err
		}
	}
	if t.Lists {
		p.finishTogether()
	}
	return p, nil
}

// finishTogether puts the groups that add up partial results where they are needed first: before the collective that communicates what they
// give, or at the end. There they are next to each other, and their launches can be one.
func (p *planner) finishTogether() {
	reader := map[*group]*group{} // the first
	read := func(v *ir.Value, by *group) {
		for _, b := range bases(v) {
			if h := p.home[b]; h != by && reader[h] == nil {
				reader[h] = by
			}
		}
	}
	for _, g := range p.groups {
		for _, op := range append(slices.Clip(g.ops), g.root) {
			for _, v := range op.Operands() {
				read(v, g)
			}
		}
		for _, a := range g.accesses {
			read(a.value, g)
		}
	}
	place := func(g *group) (at, behind int) {
		finishes := slices.ContainsFunc(g.accesses, func(a *access) bool { return a.partial }) && len(g.sums) == 0
		switch first := reader[g]; {
		case finishes && first == nil:
			return len(p.groups), 0
		case finishes && isCommunication(first.root):
			return first.rank, 0
		}
		return g.rank, 1
	}
	slices.SortStableFunc(p.groups, func(a, b *group) int {
		aAt, aBehind := place(a)
		bAt, bBehind := place(b)
		return cmp.Or(cmp.Compare(aAt, bAt), cmp.Compare(aBehind, bBehind))
	})
	for i, g := range p.groups {
		g.rank = i
	}
}

func (p *planner) visit(op *ir.Op) error {
	switch {
	case isInline(op) || op.Is(blu.Constant) || isView(op) && !op.Is(blu.Concat):
	case op.Is(blu.Concat) || op.Is(fn.Return):
		for _, v := range op.Operands() {
			p.demandBefore(v, nil, smallElems)
		}
	case p.target.Lists && p.isWeight(op): // next to others of its kind
		p.floating[op] = true
		p.materialize(op.Result(0), nil)
	case floats(op):
		p.floating[op] = true
		if g := p.latestOf(op); g != nil && p.welcome(op, g) {
			p.join(op, g)
		}
	case isReduction(op):
		p.reduction(op)
	case op.Is(blu.Dot):
		p.dot(op)
	case isCommunication(op):
		p.single(op, nil) // what its operands are must be in memory, and its results are there
	case op.Is(blu.Attention) || op.Is(blu.AttentionGrad) || op.Is(blu.ScatterAdd) || op.Is(scatterInto):
		p.single(op, nil)
	default:
		return op.Errorf("%s has no kernel", op.Name())
	}
	return nil
}

// isWeight reports whether an operation rounds an argument for products.
func (p *planner) isWeight(op *ir.Op) bool {
	return op.Is(blu.Cast) && op.Operand(0).Op() == nil && isNarrow(op.Result(0).Elem()) && p.needs.of(op.Result(0)).use == stored
}

// insert adds a group before another, or at the end.
func (p *planner) insert(g, before *group) {
	at := len(p.groups)
	if before != nil {
		at = before.rank
	}
	p.groups = slices.Insert(p.groups, at, g)
	for i := at; i < len(p.groups); i++ {
		p.groups[i].rank = i
	}
}

func (p *planner) newGroup(k kind, root *ir.Op, before *group) *group {
	g := &group{kind: k, root: root, dims: map[*ir.Value]dims{}, operand: map[*ir.Op]dims{}}
	p.insert(g, before)
	return g
}

// latest is the group of the highest rank that v, or what floats below it, comes from; nil when it comes from arguments
// alone.
func (p *planner) latest(v *ir.Value) *group {
	var late *group
	seen := map[*ir.Op]bool{}
	var visit func(*ir.Value)
	visit = func(v *ir.Value) {
		if h := p.home[v]; h != nil {
			if late == nil || h.rank > late.rank {
				late = h
			}
			return
		}
		if op := v.Op(); op != nil && !seen[op] {
			seen[op] = true
			for _, o := range op.Operands() {
				visit(o)
			}
		}
	}
	visit(v)
	return late
}

func (p *planner) latestOf(op *ir.Op) *group {
	var late *group
	for _, v := range op.Operands() {
		if g := p.latest(v); g != nil && (late == nil || g.rank > late.rank) {
			late = g
		}
	}
	return late
}

// keep notes that a value, or what it looks at, must be in memory.
func (p *planner) keep(v *ir.Value) {
	for _, b := range bases(v) {
		p.kept[b] = true
	}
}

// demand makes sure that a value will be in memory when what is planned next runs.
func (p *planner) demand(v *ir.Value) { p.demandBefore(v, nil, p.target.ConstantElems) }

// demandBefore makes sure that a value will be in memory when a group runs; nil means one yet to come. Equal elements are left a constant
// if they are no more than so many, or few and one piece of several, to which they are copied.
func (p *planner) demandBefore(v *ir.Value, before *group, constant int64) {
	pieces := bases(v)
	if len(pieces) > 1 {
		constant = smallElems
	}
	for _, b := range pieces {
		p.kept[b] = true
		op := b.Op()
		switch {
		case op == nil || p.home[b] != nil:
		case p.floating[op]:
			if before != nil || !p.joinLast(op) {
				p.materialize(b, before)
			}
		case op.Is(blu.Iota), isInline(op) && ir.NumElements(b.Shape()) > constant:
			p.materialize(b, before)
		}
	}
}

// joinLast adds a floating operation to the group made last for such operations, if they read the same tensors; where what
// reads different ones is launched together anyway, a number that both read is no reason.
func (p *planner) joinLast(op *ir.Op) bool {
	g := p.last
	if g == nil || g.rank < len(p.groups)-1 {
		return false
	}
	return p.joinAs(op, g, !p.target.Lists)
}

// materialize makes a loop over the elements of a floating value, or of a constant, before another group or at the end.
func (p *planner) materialize(v *ir.Value, before *group) {
	if p.home[v] != nil {
		return
	}
	op := v.Op()
	for {
		g := p.newGroup(loops, op, before)
		g.anchor = g.dom.freshDims(v.Shape())
		t := p.trial(g)
		if p.fill(t, op) {
			t.commit()
			p.last, p.kept[v] = g, true // after what it needs, which has groups of its own before it
			return
		}
		p.groups = slices.Delete(p.groups, g.rank, g.rank+1)
		for i := g.rank; i < len(p.groups); i++ {
			p.groups[i].rank = i
		}
		if t.conflict == nil || t.conflict == v || p.home[t.conflict] != nil && p.kept[t.conflict] { // nothing more to put into memory would help
			p.single(op, before)
			return
		}
		p.materialize(t.conflict, before)
		p.kept[t.conflict] = true // a widened number that another group computes for itself is read where that leaves it
	}
}

// fill puts the group's root into it, whatever it is.
func (p *planner) fill(t *trial, op *ir.Op) bool {
	if isInline(op) {
		t.add(op, t.g.anchor)
		return true
	}
	return t.absorb(op, t.g.anchor)
}

// tooEarly reports whether an operation that is recomputed late, to save memory, would be computed early again in a group:
// in any but the last one, unless that is recomputed too.
func (p *planner) tooEarly(op *ir.Op, g *group) bool {
	return op.Attr(blu.RecomputedAttr) != nil && g.root.Attr(blu.RecomputedAttr) == nil && g.rank < len(p.groups)-1
}

// join puts a floating operation into a group that has one of its operands, or reports that it can't be there. What is not
// elementwise has none of its operands' atoms: a seed's say nothing of random numbers' shape.
func (p *planner) join(op *ir.Op, g *group) bool {
	return p.joinAs(op, g, true)
}

// joinAs is join; without expand only an operation of which the group has an operand as it is, not repeated.
func (p *planner) joinAs(op *ir.Op, g *group, expand bool) bool {
	if g.kind == single || !isElementwise(op) || p.tooEarly(op, g) {
		return false
	}
	ds, ok := p.candidate(op, g, expand)
	if !ok {
		return false
	}
	t := p.trial(g)
	if t.repeats(ds) || !t.absorb(op, ds) || !p.fits(t) {
		return false
	}
	t.commit()
	return true
}

// candidate is the atoms that an elementwise operation would have in a group: those of an operand that is there.
func (p *planner) candidate(op *ir.Op, g *group, expand bool) (dims, bool) {
	for _, e := range []bool{false, true}[:1+bit(expand)] {
		k := knower{p, g, e, map[*ir.Op]bool{}}
		if ds, ok := k.operands(op); ok {
			return ds, true
		}
	}
	return nil, false
}

// knower finds the atoms of values that a group computes or reads, through views and elementwise operations that float.
// With expand, a broadcast is looked through too when the group knows another tensor of its shape that agrees.
type knower struct {
	p      *planner
	g      *group
	expand bool
	seen   map[*ir.Op]bool
}

func (k knower) operands(op *ir.Op) (dims, bool) {
	for _, v := range op.Operands() {
		if ds, ok := k.of(v); ok {
			return ds, true
		}
	}
	return nil, false
}

func (k knower) of(v *ir.Value) (dims, bool) {
	g, op := k.g, v.Op()
	if ds, ok := g.dims[v]; ok {
		return ds, true
	}
	if ds, ok := g.accessDims(v); ok {
		return ds, true
	}
	if op == nil || k.seen[op] {
		return nil, false
	}
	k.seen[op] = true
	if k.p.floating[op] && isElementwise(op) {
		return k.operands(op)
	}
	if !isFusedView(op) {
		return nil, false
	}
	x, ok := k.of(op.Operand(0))
	if !ok {
		return nil, false
	}
	switch op.Def() {
	case blu.Reshape:
		return g.regroup(x, v.Shape())
	case blu.Transpose:
		out := make(dims, len(x))
		for i, p := range op.Attrs().Ints("perm") {
			out[i] = x[p]
		}
		return out, true
	}
	return g.widened(op, x, k.expand)
}

// widened is the atoms of a broadcast whose operand has atoms x.
func (g *group) widened(op *ir.Op, x dims, expand bool) (dims, bool) {
	from, to := op.Operand(0).Shape(), op.Result(0).Shape()
	axes := op.Attrs().Ints("axes")
	if ir.NumElements(from) == ir.NumElements(to) {
		out := make(dims, len(to))
		for i, axis := range axes {
			out[axis] = x[i]
		}
		return out, true
	}
	if !expand {
		return nil, false
	}
	agrees := func(shape []int64, ds dims) bool {
		if !slices.Equal(shape, to) {
			return false
		}
		for i, axis := range axes {
			if from[i] != 1 && !slices.Equal(g.dom.leaves(ds[axis]), g.dom.leaves(x[i])) {
				return false
			}
		}
		return true
	}
	for _, o := range g.shapes {
		if agrees(o.shape, o.dims) {
			return o.dims, true
		}
	}
	return nil, false
}

// cheap reports whether a floating operation costs less to compute again than to keep: one or two simple steps from what
// is in memory. What is compared for equality is not: rounded otherwise in another kernel, it would be equal no longer.
func (p *planner) cheap(op *ir.Op) bool { return p.steps(op) <= 2 && !comparedEqual(op.Result(0)) }

func comparedEqual(v *ir.Value) bool {
	for u := range v.Uses() {
		if o := u.Owner(); blu.ComparesEqual(o) || isView(o) && comparedEqual(o.Result(0)) {
			return true
		}
	}
	return false
}

func (p *planner) steps(op *ir.Op) int {
	switch op.Def() {
	case blu.Neg, blu.Abs, blu.Not, blu.Add, blu.Sub, blu.Mul, blu.Max, blu.Min, blu.And, blu.Or, blu.Compare, blu.Select, blu.Cast:
	default:
		return 1 << 20
	}
	n := 1
	for _, v := range op.Operands() {
		for _, b := range bases(v) {
			if o := b.Op(); o != nil && p.floating[o] {
				n += p.steps(o)
			}
			if n > 2 {
				return n
			}
		}
	}
	return n
}

// single makes a kernel of one operation, before another group or at the end.
func (p *planner) single(op *ir.Op, before *group) {
	for _, v := range op.Operands() {
		p.demandBefore(v, before, p.target.ConstantElems)
	}
	g := p.newGroup(single, op, before)
	g.ops = []*ir.Op{op}
	delete(p.floating, op)
	for _, r := range op.Results() {
		p.home[r] = g
	}
}
