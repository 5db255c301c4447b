package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// kind is what sort of kernel a group becomes.
type kind uint8

const (
	loops   kind = iota // elementwise operations and reductions over blocks of a domain
	product             // a dot and what is done with each block of it
	single              // one operation with a kernel of its own, or a collective
)

// group is operations that become one kernel.
type group struct {
	kind   kind
	rank   int // place in the order of execution
	dom    domain
	root   *ir.Op
	ops    []*ir.Op
	dims   map[*ir.Value]dims // of what its operations compute
	anchor dims               // of the root: the order in which the domain is walked

	operand  map[*ir.Op]dims // of a reduction: the atoms of what it reduces
	shapes   []shaped        // of what it computes and reads, each once
	accesses []*access
	inner    []atom   // what reductions within a block run over
	sums     []*ir.Op // reductions over all rows, of which this group stores partial results
	sumOver  []atom   // what those run over
	finals   []*group // the groups that add up partial results
	solid    []atom   // atoms that must not be split
	ordered  bool     // an operation needs the atoms in the order of the anchor
}

// shaped is a shape and the atoms that tensors of that shape have.
type shaped struct {
	shape []int64
	dims  dims
}

// learn notes that the group has a tensor of a shape with the given atoms.
func (g *group) learn(shape []int64, ds dims) {
	for _, s := range g.shapes {
		if slices.Equal(s.shape, shape) && g.dom.same(s.dims, ds) {
			return
		}
	}
	g.shapes = append(g.shapes, shaped{shape, ds})
}

// access is a tensor from outside that a group reads.
type access struct {
	value   *ir.Value
	dims    dims
	partial bool // the partial results of the reduction that defines value, not value
	raw     bool // read in another way than block by block: a table
}

func (g *group) member(v *ir.Value) bool { _, ok := g.dims[v]; return ok }

// accessDims is the atoms of a value that the group reads.
func (g *group) accessDims(v *ir.Value) (dims, bool) {
	for _, a := range g.accesses {
		if a.value == v && !a.raw && !a.partial {
			return a.dims, true
		}
	}
	return nil, false
}

// atoms is the leaves of the anchor, in order. Whatever is in the group has some of them.
func (g *group) atoms() []atom { return g.dom.flat(g.anchor) }

// elements is how many points the atoms have.
func (d *domain) elements(list []atom) int64 {
	n := int64(1)
	for _, a := range list {
		n *= d.size[a]
	}
	return n
}

// isElementwise reports whether an operation computes each element from the same element of its operands, in an operation
// tile has too.
func isElementwise(op *ir.Op) bool {
	return op.Is(replica) || op.Has(ir.Elementwise) && op.Def().DialectName() == "blu" && tile.ElementwiseOp(op.Def().Name) != nil
}

// floats reports whether an operation may wait for a group that needs it.
func floats(op *ir.Op) bool {
	switch op.Def() {
	case blu.Gather, blu.RandomUniform, blu.RandomNormal:
		return true
	}
	return isElementwise(op)
}

// isInline reports whether a value is made where it is needed: a constant of equal elements, or a count.
func isInline(op *ir.Op) bool {
	if op.Is(blu.Iota) {
		return true
	}
	d, ok := op.Attr("value").(*ir.DenseAttr)
	return op.Is(blu.Constant) && ok && d.Splat
}

// isFusedView reports whether operations on both sides of a view may be in one group.
func isFusedView(op *ir.Op) bool {
	return op.Is(blu.Reshape) || op.Is(blu.Transpose) || op.Is(blu.Broadcast)
}

// isView reports whether an operation only looks at its operands in another way.
func isView(op *ir.Op) bool { return isFusedView(op) || op.Is(blu.Slice) || op.Is(blu.Concat) }

func isReduction(op *ir.Op) bool {
	switch op.Def() {
	case blu.ReduceSum, blu.ReduceMax, blu.ReduceMin, blu.Argmax, pick, expSum:
		return true
	}
	return false
}

// inPieces reports whether a reduction can be cut into sums, greatest or least elements of parts of its rows, and those of
// these.
func inPieces(r *ir.Op) bool { return !r.Is(blu.Argmax) && !r.Is(pick) && !r.Is(expSum) }

// isCommunication reports whether an operation is a collective, or begins or ends one. It stays as it is, between kernels.
func isCommunication(op *ir.Op) bool {
	return dtms.IsCollective(op) || op.Is(dtms.Start) || op.Is(dtms.Wait)
}

// reducedAxes is the axes of the operand that a reduction's result no longer has.
func reducedAxes(op *ir.Op) []int64 {
	switch op.Def() {
	case blu.Argmax:
		axis, _ := op.Attrs().Int("axis")
		return []int64{axis}
	case pick, expSum:
		return []int64{int64(len(op.Operand(0).Shape()) - 1)}
	}
	return op.Attrs().Ints("axes")
}

// split tells the atoms that a reduction runs over from the dimensions that are left.
func (g *group) split(op *ir.Op, x dims) (over []atom, kept dims) {
	axes := reducedAxes(op)
	for i, list := range x {
		if slices.Contains(axes, int64(i)) {
			over = append(over, g.dom.leaves(list)...)
		} else {
			kept = append(kept, list)
		}
	}
	return over, kept
}

func sameSet(a, b []atom) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}

func intersects(a, b []atom) bool {
	return slices.ContainsFunc(a, func(x atom) bool { return slices.Contains(b, x) })
}

func contains(a, b []atom) bool {
	for _, x := range b {
		if !slices.Contains(a, x) {
			return false
		}
	}
	return true
}
