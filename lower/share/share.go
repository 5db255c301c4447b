// Package share answers which references of a kernel may be the same memory: whether an output can take the place of an
// input. Buffers asks it before it lets them share, and the lowering of kernels relies on the same answer.
package share

import (
	"slices"

	"blutrain/dialects/tile"
	"blutrain/ir"
)

// Attr names the attribute of a kernel that lists the references which do share memory: input, output, input, output.
const Attr = "tile.shared"

// ApartAttr marks a kernel whose outputs are never in the place of inputs: a target computes it in several steps, the later of
// which read the inputs again.
const ApartAttr = "tile.apart"

// SumsAttr marks a kernel of attention's gradient with one more output: the sums of the gradients' columns over a few positions each. It
// lists the columns of that where those of queries, keys and values begin.
const SumsAttr = "tile.sums"

// Allowed reports whether argument in and argument out of a kernel may be the same memory. It must be that whatever is read
// of the input is done with when the same elements of the output are written: a target may read where values are used and
// write where they are computed. So each load is either of exactly the block that is stored, used no later than what
// computes that, or it comes before the loop that stores, and stays within the rows that are stored there. In a kernel with
// a contraction the product is written first, so there the input can only be what the product is added to.
func Allowed(kernel *ir.Op, in, out int) bool {
	body := kernel.Body()
	src, dst := body.Arg(in), body.Arg(out)
	if src.Type() != dst.Type() || kernel.Attr(ApartAttr) != nil {
		return false
	}
	if scatter := scatterFrom(src); scatter != nil {
		return scatter.Operand(3) == dst && dst.HasOneUse()
	}
	store := OnlyStore(dst)
	if store == nil {
		return false
	}
	if hasContract(body) {
		sum := AccumulationOf(store)
		return store.Block() == body && sum != nil && sum.Load.Operand(0) == src && src.HasOneUse()
	}
	if repeats(kernel, store) {
		return false
	}
	done := computes(store)
	for u := range src.Uses() {
		switch load := u.Owner(); {
		case load.Is(tile.Load) && load.Block() == store.Block() && SameBlock(load, store) && usedBy(load, done):
		case (load.Is(tile.Load) || load.Is(tile.Pick)) && u.Index() == 0 && goneBefore(load, store):
		default:
			return false
		}
	}
	return true
}

// scatterFrom is the scatter_add that alone uses a reference, as what its table holds at first: it says that the table may be the
// same memory. It is nil where the reference is used otherwise.
func scatterFrom(init *ir.Value) *ir.Op {
	for u := range init.Uses() {
		if op := u.Owner(); init.HasOneUse() && op.Is(tile.ScatterAdd) && u.Index() == 4 {
			return op
		}
	}
	return nil
}

// repeats reports whether a store may be made more than once for the same elements: whether a grid axis or a loop around it has no part
// in where it goes. What is read for the second time would be what the first has stored.
func repeats(kernel, store *ir.Op) bool {
	at := offsets(store)
	places := func(index *ir.Value) bool {
		return slices.ContainsFunc(at, func(v *ir.Value) bool { return dependsOn(v, index) })
	}
	grid, steps := kernel.Attrs().Ints("grid"), kernel.Attrs().Ints("steps")
	for i, axis := range tile.Axes(kernel) {
		if grid[i] > steps[i] && !places(axis) {
			return true
		}
	}
	for op := store.Parent(); op != kernel; op = op.Parent() {
		if !places(op.Body().Arg(0)) {
			return true
		}
	}
	return false
}

// dependsOn reports whether an index is, or is computed from, another, as one that counts from another on.
func dependsOn(v, index *ir.Value) bool {
	if v == index {
		return true
	}
	from := v.Op()
	if from == nil {
		if from = v.Arg().ParentOp(); from.Is(tile.Kernel) {
			return false
		}
	}
	return slices.ContainsFunc(from.Operands(), func(o *ir.Value) bool { return o.Type() == v.Type() && dependsOn(o, index) })
}

// goneBefore reports whether a load, and every use of what it gives, comes before the operation around the store that is in
// the same block, and whether it reads nothing that another round of the loops around both, or another grid point, stores:
// each index from around both that places the store places the load, in the same dimension and as far.
func goneBefore(load, store *ir.Op) bool {
	common := commonBlock(load, store)
	if common == nil {
		return false
	}
	around := within(store, common)
	writes := around
	if around == store {
		writes = computes(store)
	}
	if !within(load, common).IsBefore(writes) {
		return false
	}
	for u := range load.Result(0).Uses() { // a load may be read when it is used; a pick is done
		if user := within(u.Owner(), common); load.Is(tile.Load) && (user == nil || !user.IsBefore(writes)) {
			return false
		}
	}
	at := offsets(load)
	for d, v := range offsets(store) {
		if isInside(v, around) || isConstant(v) {
			continue
		}
		if d >= len(at) || at[d] != v || extent(load, d) != extent(store, d) {
			return false
		}
	}
	return true
}

// commonBlock is the innermost block that both operations are in, themselves or with what is around them.
func commonBlock(a, b *ir.Op) *ir.Block {
	for p := a; p != nil; p = p.Parent() {
		if p.Block() != nil && within(b, p.Block()) != nil {
			return p.Block()
		}
	}
	return nil
}

// within is op, or what is around it, in the given block; nil where it is elsewhere.
func within(op *ir.Op, b *ir.Block) *ir.Op {
	for op != nil && op.Block() != b {
		op = op.Parent()
	}
	return op
}

// isInside reports whether a value is defined inside the regions of op.
func isInside(v *ir.Value, op *ir.Op) bool {
	if v.Op() != nil {
		return v.Op() != op && op.IsAncestorOf(v.Op())
	}
	p := v.Arg().ParentOp()
	return p != nil && op.IsAncestorOf(p)
}

func isConstant(v *ir.Value) bool { return v.Op() != nil && v.Op().Name() == "arith.constant" }

// offsets is where a load, pick or store is placed in its reference.
func offsets(op *ir.Op) []*ir.Value {
	switch op.Def() {
	case tile.Load:
		return op.Operands()[1:]
	case tile.Pick:
		return op.Operands()[3:]
	}
	return op.Operands()[2:]
}

// extent is how far a load, pick or store reaches along a dimension of its reference.
func extent(op *ir.Op, dim int) int64 {
	if op.Is(tile.Pick) {
		if dim == len(op.Operand(0).Shape())-2 {
			return op.Result(0).Shape()[0]
		}
		return 1
	}
	block := op.Operand(0)
	if op.Is(tile.Load) {
		block = op.Result(0)
	}
	row, col := tile.Window(op)
	switch int64(dim) {
	case row:
		return block.Shape()[0]
	case col:
		return block.Shape()[1]
	}
	return 1
}

func hasContract(body *ir.Block) bool {
	for op := range body.Ops() {
		if op.Is(tile.Contract) {
			return true
		}
	}
	return false
}

// OnlyStore is the single tile.store to a reference, or nil when it is used in any other way.
func OnlyStore(ref *ir.Value) *ir.Op {
	if !ref.HasOneUse() {
		return nil
	}
	for u := range ref.Uses() {
		if op := u.Owner(); op.Is(tile.Store) && u.Index() == 1 {
			return op
		}
	}
	return nil
}

// computes is the operation in the store's block that computes what is stored.
func computes(store *ir.Op) *ir.Op {
	def := store.Operand(0).Op()
	if def == nil || def.Block() != store.Block() {
		return store
	}
	return def
}

// usedBy reports whether every use of the load comes no later than operation last of the same block.
func usedBy(load, last *ir.Op) bool {
	if load != last && !load.IsBefore(last) {
		return false
	}
	for u := range load.Result(0).Uses() {
		op := u.Owner()
		for op.Block() != last.Block() {
			op = op.Parent()
		}
		if op != last && !op.IsBefore(last) {
			return false
		}
	}
	return true
}

// SameBlock reports whether load and store touch the same block: equal offsets, directions and block types.
func SameBlock(load, store *ir.Op) bool {
	if load.Result(0).Type() != store.Operand(0).Type() || load.NumOperands()-1 != store.NumOperands()-2 {
		return false
	}
	lr, lc := tile.Window(load)
	sr, sc := tile.Window(store)
	if lr != sr || lc != sc {
		return false
	}
	for i := 1; i < load.NumOperands(); i++ {
		if load.Operand(i) != store.Operand(i+1) {
			return false
		}
	}
	return true
}

// Accumulation is a sum that a contraction is added to: what is stored is first ? product : load + product, or the sum
// alone, where First is nil.
type Accumulation struct {
	Load, Product *ir.Op
	First         *ir.Value
	Ops           []*ir.Op // that the recognized sum consists of: add and, with First, select
}

// AccumulationOf recognizes a store of a contraction's result added to what a load of the same block gives.
func AccumulationOf(store *ir.Op) *Accumulation {
	v := store.Operand(0)
	a := &Accumulation{}
	if sel := v.Op(); sel != nil && sel.Name() == "tile.select" && v.HasOneUse() {
		a.First, a.Product, v = sel.Operand(0), sel.Operand(1).Op(), sel.Operand(2)
		a.Ops = append(a.Ops, sel)
	}
	add := v.Op()
	if add == nil || add.Name() != "tile.add" || !v.HasOneUse() {
		return nil
	}
	x, y := add.Operand(0).Op(), add.Operand(1).Op()
	if x == nil || y == nil {
		return nil
	}
	if !x.Is(tile.Load) {
		x, y = y, x
	}
	if !x.Is(tile.Load) || !y.Is(tile.Contract) || a.Product != nil && a.Product != y || !SameBlock(x, store) || !x.Result(0).HasOneUse() {
		return nil
	}
	for u := range y.Result(0).Uses() {
		if op := u.Owner(); op != add && op != store.Operand(0).Op() {
			return nil // the product is wanted by itself too
		}
	}
	a.Load, a.Product, a.Ops = x, y, append(a.Ops, add)
	return a
}

// Shared lists the pairs of input and output of a kernel that share memory.
func Shared(kernel *ir.Op) (pairs [][2]int) {
	list := kernel.Attrs().Ints(Attr)
	for i := 0; i+1 < len(list); i += 2 {
		pairs = append(pairs, [2]int{int(list[i]), int(list[i+1])})
	}
	return pairs
}
