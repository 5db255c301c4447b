package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// dot makes a group of a product, which elementwise operations may join.
func (p *planner) dot(op *ir.Op) {
	for i := range 2 {
		p.straighten(op, i)
		for _, v := range bases(op.Operand(i)) {
			p.beside(v, op)
		}
		p.demand(op.Operand(i))
	}
	g := p.newGroup(product, op, nil)
	g.anchor = g.dom.freshDims(op.Result(0).Shape())
	g.dims[op.Result(0)] = g.anchor
	g.learn(op.Result(0).Shape(), g.anchor)
	g.ops = []*ir.Op{op}
	p.home[op.Result(0)] = g
}

// replica is a copy of a tensor, as an elementwise operation: what puts an operand into the order a product wants.
var replica = ir.Define("kernels", ir.OpDef{
	Name: "copy", Summary: "a copy", Operands: []ir.OperandDef{{Name: "x"}}, Results: []ir.ResultDef{{Name: "y"}}, Traits: ir.Pure | ir.Elementwise,
})

// straighten copies an operand of a product whose dimensions strides can't make into a matrix: rows and contracted
// dimensions each evenly spaced, one of them without gaps.
func (p *planner) straighten(dot *ir.Op, i int) {
	v := dot.Operand(i)
	lhs, rhs := blu.DotOperandAxes(dot)
	axes, prefix := lhs, "lhs"
	if i == 1 {
		axes, prefix = rhs, "rhs"
	}
	order := slices.Concat(axes.Batch, axes.Free, axes.Contract)
	strides := permuted(p.layouts.of(v), order)
	shape := permuted(v.Shape(), order)
	nb, nf := len(axes.Batch), len(axes.Free)
	rows, okRows := evenly(shape[nb:nb+nf], strides[nb:nb+nf])
	depth, okDepth := evenly(shape[nb+nf:], strides[nb+nf:])
	if okRows && okDepth && (rows == 1 || depth == 1) {
		return
	}
	b := blu.On(ir.NewBuilder(p.c, nil).Before(dot).At(dot.Loc()))
	if !slices.IsSorted(order) {
		v = b.Transpose(v, order)
	}
	n := b.CreateState(replica, ir.OpState{Operands: []*ir.Value{v}, Results: []ir.Type{v.Type()}})
	for o := n; o != nil && o != v.Op(); o = o.Prev() {
		if _, known := p.layouts.index[o]; known {
			break
		}
		p.layouts.index[o] = p.layouts.index[dot]
	}
	p.floating[n] = true
	dot.SetOperand(i, n.Result(0))
	count := func(from, n int) (out []int64) {
		for k := range n {
			out = append(out, int64(from+k))
		}
		return out
	}
	dot.SetAttr(prefix+"_batch", p.c.I64s(count(0, nb)...))
	dot.SetAttr(prefix+"_contract", p.c.I64s(count(nb+nf, len(axes.Contract))...))
}

// evenly is the stride of a run of dimensions seen as one; ok is false when they are not evenly spaced. A run of one
// element has stride 1.
func evenly(shape, strides []int64) (stride int64, ok bool) {
	stride = 1
	first := true
	for i := len(shape) - 1; i >= 0; i-- {
		switch {
		case shape[i] == 1:
		case first:
			stride, first = strides[i], false
		case strides[i] != stride*ir.NumElements(shape[i+1:]):
			return 0, false
		}
	}
	return stride, true
}

// sides is the atoms of a product's batch, rows and columns.
func (g *group) sides() (batch, rows, cols []atom) {
	lhs, rhs := blu.DotOperandAxes(g.root)
	nb, nl, nr := len(lhs.Batch), len(lhs.Free), len(rhs.Free)
	return g.dom.flat(g.anchor[:nb]), g.dom.flat(g.anchor[nb : nb+nl]), g.dom.flat(g.anchor[nb+nl : nb+nl+nr])
}

// mostAccesses is how many tensors one kernel reads at most, so that a long chain of sums is cut somewhere.
const mostAccesses = 160

// fits reports whether a group stays a good kernel with what a trial adds: a product's blocks are rows and columns, so
// that what its epilogue reads must be as well.
func (p *planner) fits(t *trial) bool {
	g := t.g
	if len(g.accesses)+len(t.accesses) > mostAccesses {
		return false
	}
	if g.kind != product {
		return true
	}
	_, rows, cols := g.sides()
	for _, a := range t.accesses {
		if a.raw || !p.merges(g, a, rows) || !p.merges(g, a, cols) {
			return false
		}
	}
	for _, list := range t.counts {
		if !orderedAs(g, dims{list}, rows) || !orderedAs(g, dims{list}, cols) {
			return false
		}
	}
	for _, ds := range t.dims {
		if !orderedAs(g, ds, rows) || !orderedAs(g, ds, cols) {
			return false
		}
	}
	return true
}

// merges reports whether a run of atoms is one dimension of a tensor in memory: whether the tensor has none of them, or all
// in order and evenly spaced.
func (p *planner) merges(g *group, a *access, run []atom) bool {
	strides := p.atomStrides(g, a.value, a.dims)
	for i := 1; i < len(run); i++ {
		outer, hasOuter := strides[run[i-1]]
		inner, hasInner := strides[run[i]]
		if hasOuter != hasInner || hasOuter && outer != inner*g.dom.size[run[i]] {
			return false
		}
	}
	return orderedAs(g, a.dims, run)
}

// orderedAs reports whether a tensor with these atoms has those of a run next to each other in the run's order, or none.
func orderedAs(g *group, ds dims, run []atom) bool {
	flat := g.dom.flat(ds)
	if !intersects(flat, run) {
		return true
	}
	at := slices.Index(flat, run[0])
	return at >= 0 && at+len(run) <= len(flat) && slices.Equal(flat[at:at+len(run)], run)
}

// atomStrides is how far apart, in elements, a tensor's points along each of its atoms lie in memory.
func (p *planner) atomStrides(g *group, v *ir.Value, ds dims) map[atom]int64 {
	out := map[atom]int64{}
	strides := p.layouts.of(v)
	for i, list := range ds {
		s := strides[i]
		leaves := g.dom.leaves(list)
		for k := len(leaves) - 1; k >= 0; k-- {
			out[leaves[k]] = s
			s *= g.dom.size[leaves[k]]
		}
	}
	return out
}
