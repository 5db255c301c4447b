package kernels

import (
	"cmp"
	"math/bits"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// axis is a run of atoms that every tensor of a kernel has as one dimension, or not at all.
type axis struct {
	atoms  []atom
	size   int64
	reduce bool  // reduced within blocks
	sum    bool  // summed over: partial results
	extent int64 // of a block along the axis: 1 unless it is the kernel's row or column axis
	step   int64 // of the grid
	grid   bool  // whether the grid has the axis; otherwise a block, or a loop, covers it
}

// tensor is a reference of a kernel: a tensor, seen with one dimension for each of its axes.
type tensor struct {
	value *ir.Value
	axes  []int
	shape []int64
	perm  []int64 // of a product's operand: the order of the value's dimensions
	from  *access // of an input
	sum   *ir.Op  // of an output with partial results
}

// source is where an operand of an operation in a group comes from.
type source struct {
	member *ir.Value // computed in the group
	input  int       // or read: an index into the inputs; -1 otherwise
	inline *ir.Op    // or made on the spot: a constant or a count
	dims   dims      // of a count
}

// form is a group with everything decided that its kernel depends on.
type form struct {
	p       *planner
	g       *group
	ops     []*ir.Op
	sources map[*ir.Op][]source
	axes    []axis
	row     int // axes of blocks; -1 for one row, one column
	col     int
	along   int      // the dimension of blocks that reductions run over: 0 or 1; -1 without
	across  bool     // rows of blocks run along the memory of a tensor whose columns don't
	held    bool     // blocks hold all of what is reduced
	loops   []int    // reduced axes besides the block's
	sides   []tensor // the operands of a product
	inputs  []tensor
	outputs []tensor
	panels  []int64 // of a group with partial results: the dimensions that count them
}

func (p *planner) resolve(g *group) *form {
	f := &form{p: p, g: g, sources: map[*ir.Op][]source{}, row: -1, col: -1, along: -1, held: true}
	for _, op := range slices.Concat(g.ops, g.sums) {
		f.sources[op] = f.operands(op)
	}
	f.order()
	f.findAxes()
	if g.kind == product {
		f.blockProduct()
	} else {
		f.block()
	}
	for _, a := range g.accesses {
		f.inputs = append(f.inputs, f.tensorOf(a.value, a.dims, a))
	}
	for _, op := range f.ops {
		if r := op.Result(0); p.kept[r] && p.home[r] == g {
			f.outputs = append(f.outputs, f.tensorOf(r, g.dims[r], nil))
		}
		if op.Is(pick) { // its tensor has rows, if only one
			t := &f.inputs[f.sources[op][0].input]
			if f.along < 0 { // of one column
				t.axes, t.shape = append(t.axes, -1), append(t.shape, 1)
			}
			if len(t.axes) == 1 {
				t.axes, t.shape = []int{-1, t.axes[0]}, []int64{1, t.shape[0]}
			}
		}
	}
	f.partials()
	return f
}

// order lists the group's operations so that each comes after its operands, in an order that depends on what they compute
// alone: the results in program order, each after what it is made of.
func (f *form) order() {
	p, g := f.p, f.g
	results := slices.Clone(g.sums)
	for _, op := range g.ops {
		if r := op.Result(0); p.kept[r] && p.home[r] == g {
			results = append(results, op)
		}
	}
	slices.SortStableFunc(results, func(a, b *ir.Op) int { return cmp.Compare(p.layouts.index[a], p.layouts.index[b]) })
	done := map[*ir.Op]bool{}
	var visit func(op *ir.Op)
	visit = func(op *ir.Op) {
		if done[op] {
			return
		}
		done[op] = true
		for _, s := range f.sources[op] {
			if s.member != nil {
				visit(s.member.Op())
			}
		}
		if !slices.Contains(g.sums, op) {
			f.ops = append(f.ops, op)
		}
	}
	for _, op := range results {
		visit(op)
	}
}

// operands finds the sources of an operation's operands.
func (f *form) operands(op *ir.Op) []source {
	g := f.g
	if g.kind == product && op == g.root || isInline(op) {
		return nil
	}
	if f.finishes(op) {
		return []source{{input: slices.IndexFunc(g.accesses, func(a *access) bool { return a.partial && a.value == op.Result(0) })}}
	}
	out := make([]source, op.NumOperands())
	for i, v := range op.Operands() {
		if op.Is(blu.Gather) && i == 0 {
			out[i] = source{input: slices.IndexFunc(g.accesses, func(a *access) bool { return a.raw && a.value == v })}
			continue
		}
		out[i] = f.source(v, g.operandDims(op, i))
	}
	return out
}

// operandDims is the atoms of an operand.
func (g *group) operandDims(op *ir.Op, i int) dims {
	ds := g.dims[op.Result(0)]
	switch {
	case g.operand[op] != nil && i == 0:
		return g.operand[op]
	case op.Is(blu.Gather) && i == 1:
		return ds[:len(op.Operand(1).Shape())]
	case op.Is(blu.RandomUniform) || op.Is(blu.RandomNormal):
		return dims{}
	}
	return ds
}

func (f *form) source(v *ir.Value, ds dims) source {
	g := f.g
	if g.member(v) {
		return source{member: v, input: -1}
	}
	if i := f.inputAt(v, ds); i >= 0 {
		return source{input: i}
	}
	op := v.Op()
	if op != nil && isInline(op) {
		return source{inline: op, input: -1, dims: ds}
	}
	if op == nil || !isFusedView(op) {
		panic("kernels: an operand is neither computed nor read: " + v.Type().String())
	}
	x, ok := (&trial{p: f.p, g: g}).backward(op, ds)
	if !ok {
		panic("kernels: a view was not read where it has no atoms")
	}
	return f.source(op.Operand(0), x)
}

// inputAt is the input that is v at the given atoms, or -1.
func (f *form) inputAt(v *ir.Value, ds dims) int {
	return slices.IndexFunc(f.g.accesses, func(a *access) bool {
		return a.value == v && !a.partial && !a.raw && f.g.dom.same(a.dims, ds)
	})
}

// finishes reports whether an operation adds up partial results.
func (f *form) finishes(op *ir.Op) bool {
	return slices.ContainsFunc(f.g.accesses, func(a *access) bool { return a.partial && a.value == op.Result(0) })
}

// spaced is a tensor's atoms in its own order and how far apart its points along each lie.
type spaced struct {
	order   []atom
	strides map[atom]int64
}

// tensors lists everything that says which atoms go together: what is read and stored, counts, random numbers.
func (f *form) tensors() []spaced {
	g, p := f.g, f.p
	var out []spaced
	add := func(v *ir.Value, ds dims) {
		out = append(out, spaced{g.dom.flat(ds), p.atomStrides(g, v, ds)})
	}
	dense := func(list []atom) {
		s := spaced{list, map[atom]int64{}}
		n := int64(1)
		for i := len(list) - 1; i >= 0; i-- {
			s.strides[list[i]] = n
			n *= g.dom.size[list[i]]
		}
		out = append(out, s)
	}
	for _, a := range g.accesses {
		switch {
		case a.partial:
			dense(g.dom.flat(a.dims))
		case !a.raw:
			add(a.value, a.dims)
		}
	}
	for _, op := range f.ops {
		r := op.Result(0)
		if p.kept[r] && p.home[r] == g {
			add(r, g.dims[r])
		}
		switch {
		case op.Is(blu.Iota):
			dense(g.dom.leaves(g.dims[r][op.Attrs().IntOr("axis", 0)]))
		case op.Is(blu.RandomUniform) || op.Is(blu.RandomNormal):
			dense(g.dom.flat(g.dims[r]))
		case op.Is(blu.Gather):
			dense(g.dom.leaves(g.dims[r][len(g.dims[r])-1]))
		}
		for _, s := range f.sources[op] {
			if s.inline.Is(blu.Iota) {
				dense(g.dom.leaves(s.dims[s.inline.Attrs().IntOr("axis", 0)]))
			}
		}
	}
	for _, r := range g.sums {
		_, kept := g.split(r, g.operand[r])
		dense(g.dom.flat(kept))
	}
	if g.kind == product {
		lhs, rhs := blu.DotOperandAxes(g.root)
		for i, side := range [][]int64{lhs.Batch, rhs.Batch} {
			strides := p.layouts.of(g.root.Operand(i))
			s := spaced{strides: map[atom]int64{}}
			for k, axis := range side {
				for _, a := range g.dom.leaves(g.anchor[k]) { // one atom: no view splits a batch before the product
					s.order = append(s.order, a)
					s.strides[a] = strides[axis]
				}
			}
			out = append(out, s)
		}
	}
	return out
}

// findAxes orders the atoms and merges those that lie together everywhere.
func (f *form) findAxes() {
	g := f.g
	order := g.atoms()
	inner, sum := g.dom.leaves(g.inner), g.dom.leaves(g.sumOver)
	ts := f.tensors()
	switch {
	case len(inner) > 0:
		order = reorder(order, inner)
	case g.kind == loops && len(sum) == 0 && !g.ordered:
		order = mostCommon(ts, order)
	}
	var batch, rows, cols []atom
	if g.kind == product {
		batch, rows, cols = g.sides()
	}
	class := func(a atom) int {
		for i, list := range [][]atom{batch, rows, cols, inner, sum} {
			if slices.Contains(list, a) {
				return i + 1
			}
		}
		return 0
	}
	for i, a := range order {
		last := len(f.axes) - 1
		if i > 0 && class(a) == class(order[i-1]) && (class(a) == 2 || class(a) == 3 || mergeable(ts, order[i-1], a, g.dom.size[a])) {
			f.axes[last].atoms = append(f.axes[last].atoms, a)
			f.axes[last].size *= g.dom.size[a]
			continue
		}
		f.axes = append(f.axes, axis{
			atoms: []atom{a}, size: g.dom.size[a], reduce: slices.Contains(inner, a), sum: slices.Contains(sum, a), extent: 1, step: 1,
		})
	}
}

// mostCommon is the order of atoms that most of the whole tensors have whose innermost atom has stride 1; order where none
// is better.
func mostCommon(ts []spaced, order []atom) []atom {
	votes := func(list []atom) (n int) {
		for _, t := range ts {
			if len(t.order) == len(order) && len(order) > 0 && slices.Equal(t.order, list) && t.strides[list[len(list)-1]] == 1 {
				n++
			}
		}
		return n
	}
	best, most := order, votes(order)
	for _, t := range ts {
		if len(t.order) == len(order) {
			if n := votes(t.order); n > most {
				best, most = t.order, n
			}
		}
	}
	return best
}

// reorder puts what is reduced together: last where the innermost atom is reduced, else before the atoms that are inside
// of all that is reduced.
func reorder(order, inner []atom) []atom {
	end := len(order)
	if !slices.Contains(inner, order[end-1]) {
		for end > 0 && !slices.Contains(inner, order[end-1]) {
			end--
		}
	}
	var before, reduced []atom
	for _, a := range order[:end] {
		if slices.Contains(inner, a) {
			reduced = append(reduced, a)
		} else {
			before = append(before, a)
		}
	}
	return slices.Concat(before, reduced, order[end:])
}

func mergeable(ts []spaced, outer, inner atom, n int64) bool {
	for _, t := range ts {
		so, hasOuter := t.strides[outer]
		si, hasInner := t.strides[inner]
		if hasOuter != hasInner {
			return false
		}
		if !hasOuter {
			continue
		}
		if at := slices.Index(t.order, outer); at+1 >= len(t.order) || t.order[at+1] != inner || so != si*n {
			return false
		}
	}
	return true
}

// tensorOf sees a tensor with one dimension for each axis it has.
func (f *form) tensorOf(v *ir.Value, ds dims, from *access) tensor {
	t := tensor{value: v, from: from}
	if from != nil && from.raw {
		t.shape = v.Shape()
		return t
	}
	flat := f.g.dom.flat(ds)
	for i := 0; i < len(flat); {
		k := f.axisOf(flat[i])
		t.axes = append(t.axes, k)
		t.shape = append(t.shape, f.axes[k].size)
		i += len(f.axes[k].atoms)
	}
	return t
}

func (f *form) axisOf(a atom) int {
	return slices.IndexFunc(f.axes, func(x axis) bool { return slices.Contains(x.atoms, a) })
}

// has reports whether a tensor with these atoms varies along an axis.
func (f *form) has(ds dims, k int) bool {
	return k >= 0 && slices.Contains(f.g.dom.flat(ds), f.axes[k].atoms[0])
}

// block chooses the axes and extents of blocks in a loop over a domain.
func (f *form) block() {
	t := f.p.target
	n := len(f.axes)
	last := func(from int, want func(axis) bool) int {
		for i := from; i >= 0; i-- {
			if want(f.axes[i]) {
				return i
			}
		}
		return -1
	}
	reduced := func(a axis) bool { return a.reduce }
	free := func(a axis) bool { return !a.reduce }
	summed := func(a axis) bool { return a.sum }
	switch inner := last(n-1, reduced); {
	case inner < 0 && len(f.g.sums) > 0:
		f.col = last(n-1, func(a axis) bool { return !a.sum })
		f.row = last(n-1, summed)
	case inner < 0:
		f.col, f.row = n-1, n-2
		if k := f.otherWay(); k >= 0 && t.TransposeEdge > 0 {
			f.row, f.across = k, true
		}
	case inner == n-1:
		f.col, f.row, f.along = inner, last(n-1, free), 1
	default:
		f.row, f.col, f.along = inner, n-1, 0
	}
	if f.along < 0 && slices.ContainsFunc(f.ops, func(op *ir.Op) bool { return op.Is(pick) }) { // of rows of one element
		if len(f.g.sums) == 0 {
			f.row = n - 1
		}
		f.col = -1
	}
	f.row = max(f.row, -1)
	for i, a := range f.axes {
		if a.reduce && i != f.row && i != f.col {
			f.loops = append(f.loops, i)
		}
	}
	f.extents(t)
	f.walkGrid(t)
}

// otherWay is the axis along which the memory of something that is read runs, if that is another than the results' and both
// are long; else -1.
func (f *form) otherWay() int {
	const long = 16
	for _, a := range f.g.accesses {
		if a.raw || a.partial {
			continue
		}
		t, strides := f.tensorOf(a.value, a.dims, a), f.p.layouts.of(a.value)
		if len(t.axes) < 2 || strides[len(strides)-1] != 1 {
			continue
		}
		last := len(f.axes) - 1
		if k := t.axes[len(t.axes)-1]; k != last && slices.Contains(t.axes, last) && f.axes[k].size >= long && f.axes[last].size >= long {
			return k
		}
	}
	return -1
}

// extents sizes the blocks.
func (f *form) extents(t Target) {
	size := func(k int) int64 {
		if k < 0 {
			return 1
		}
		return max(f.axes[k].size, 1)
	}
	rows, cols := size(f.row), size(f.col)
	switch f.along {
	case 0:
		f.held = len(f.loops) == 0 && rows <= t.ColumnElems
		if !f.held {
			rows = min(rows, t.PanelRows)
		}
		cols = min(cols, max(t.BlockElems/rows, t.Columns))
	case 1:
		f.held = len(f.loops) == 0 && cols <= t.RowElems
		if !f.held {
			cols = min(cols, t.PassElems)
		}
		rows = min(rows, max(t.BlockElems/cols, 1))
	default:
		if f.across {
			rows, cols = min(rows, t.TransposeEdge), min(cols, t.TransposeEdge)
			break
		}
		cols = min(cols, t.BlockElems)
		most := max(t.BlockElems/cols, 1)
		if len(f.g.sums) > 0 && most < t.SumRows {
			most = max(t.SumRows/int64(max(len(f.g.accesses), 1)), 1)
		}
		rows = min(rows, most)
	}
	if t.EvenRows && f.along != 0 && rows < size(f.row) {
		rows = 1 << (bits.Len64(uint64(rows)) - 1)
	}
	if f.row >= 0 {
		f.axes[f.row].extent = rows
	}
	if f.col >= 0 {
		f.axes[f.col].extent = cols
	}
}

// walkGrid decides which axes the grid has. Of a group with partial results a grid point takes a panel of blocks.
func (f *form) walkGrid(t Target) {
	for i := range f.axes {
		a := &f.axes[i]
		a.step = a.extent
		if i == f.row && a.sum {
			panel := max(t.PanelRows, (a.size+t.Panels-1)/t.Panels)
			if !f.held {
				panel = min(panel, max(1, t.PanelElems/f.reducedElements()))
			}
			a.step = (panel + a.extent - 1) / a.extent * a.extent
		}
		a.grid = !a.reduce && a.size > a.step
	}
}

// reducedElements is how many elements are reduced within blocks for each result.
func (f *form) reducedElements() int64 {
	n := int64(1)
	for _, a := range f.axes {
		if a.reduce {
			n *= a.size
		}
	}
	return n
}

// blockProduct chooses the blocks of a product: its axes are those of the batch, then rows and columns.
func (f *form) blockProduct() {
	_, rows, cols := f.g.sides()
	if len(rows) > 0 {
		f.row = f.axisOf(rows[0])
		f.axes[f.row].extent = min(f.axes[f.row].size, f.p.target.GemmRows)
	}
	if len(cols) > 0 {
		f.col = f.axisOf(cols[0])
		f.axes[f.col].extent = min(f.axes[f.col].size, f.p.target.GemmCols)
	}
	f.shrinkProduct()
	for i := range f.axes {
		f.axes[i].step = f.axes[i].extent
		f.axes[i].grid = true
	}
	for i := range 2 {
		f.sides = append(f.sides, f.side(i))
	}
}

// shrinkProduct halves blocks, the longer side first, until there are as many as the target wants.
func (f *form) shrinkProduct() {
	const least = 64
	for {
		points := int64(1)
		for i, a := range f.axes {
			extent := int64(1)
			if i == f.row || i == f.col {
				extent = a.extent
			}
			points *= (a.size + extent - 1) / extent
		}
		side := f.row
		if side < 0 || f.col >= 0 && f.axes[f.col].extent >= f.axes[side].extent {
			side = f.col
		}
		if points >= f.p.target.GemmPoints || side < 0 || f.axes[side].extent < 2*least {
			return
		}
		f.axes[side].extent /= 2
	}
}

// side is an operand of a product with one dimension for each axis of the batch, one for its rows, and one for what is
// contracted.
func (f *form) side(i int) tensor {
	lhs, rhs := blu.DotOperandAxes(f.g.root)
	axes, row := lhs, f.row
	if i == 1 {
		axes, row = rhs, f.col
	}
	t := tensor{value: f.g.root.Operand(i)}
	batch, _, _ := f.g.sides()
	for k, a := range f.axes {
		if slices.Contains(batch, a.atoms[0]) {
			t.axes, t.shape = append(t.axes, k), append(t.shape, a.size)
		}
	}
	rows, depth := int64(1), int64(1)
	for _, d := range axes.Free {
		rows *= t.value.Shape()[d]
	}
	for _, d := range axes.Contract {
		depth *= t.value.Shape()[d]
	}
	t.axes, t.shape = append(t.axes, row), append(t.shape, rows, depth)
	t.perm = slices.Concat(axes.Batch, axes.Free, axes.Contract)
	return t
}

// partials adds the outputs for partial results: for each, dimensions that count grid points, then what is kept.
func (f *form) partials() {
	g := f.g
	if len(g.sums) == 0 {
		return
	}
	total := int64(1)
	for _, a := range f.axes {
		if a.sum {
			n := (a.size + a.step - 1) / a.step
			f.panels = append(f.panels, n)
			total *= n
		}
	}
	for _, r := range g.sums {
		_, kept := g.split(r, g.operand[r])
		t := f.tensorOf(r.Result(0), kept, nil)
		t.sum = r
		t.shape = slices.Concat(f.panels, t.shape)
		f.outputs = append(f.outputs, t)
	}
	for _, final := range g.finals {
		final.dom.size[final.inner[0]] = total
	}
}
