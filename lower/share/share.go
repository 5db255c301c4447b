// Package share answers which references of a kernel may be the same memory: whether an output can take the place of an
// input. Buffers asks it before it lets them share, and the lowering of kernels relies on the same answer.
package share

import (
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// Attr names the attribute of a kernel that lists the references which do share memory: input, output, input, output.
const Attr = "tile.shared"

// Allowed reports whether argument in and argument out of a kernel may be the same memory. It must be that each grid point
// reads of the input exactly the block it later writes of the output, and is done with it when it computes what it writes:
// a target may read where values are used and write where they are computed. In a kernel with a contraction the product is
// written first, so there the input can only be what the product is added to.
func Allowed(kernel *ir.Op, in, out int) bool {
	body := kernel.Body()
	src, dst := body.Arg(in), body.Arg(out)
	if src.Type() != dst.Type() {
		return false
	}
	store := OnlyStore(dst)
	if store == nil || store.Block() != body {
		return false
	}
	if hasContract(body) {
		sum := AccumulationOf(store)
		return sum != nil && sum.Load.Operand(0) == src && src.HasOneUse()
	}
	done := computes(store)
	for u := range src.Uses() {
		load := u.Owner()
		if !load.Is(tile.Load) || load.Block() != body || !sameBlock(load, store) || !usedBy(load, done) {
			return false
		}
	}
	return true
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

// sameBlock reports whether load and store touch the same block: equal offsets, directions and block types.
func sameBlock(load, store *ir.Op) bool {
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
	if !x.Is(tile.Load) || !y.Is(tile.Contract) || a.Product != nil && a.Product != y || !sameBlock(x, store) || !x.Result(0).HasOneUse() {
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
