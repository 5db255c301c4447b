package passes

import (
	"math/rand/v2"

	"blutrain/ir"
)

// ShuffleOps permutes the operations of every block in root at random, as far as nothing depends on their order: a value is
// still defined before its uses, and operations with effects, symbols and the terminator keep their order. A pass whose
// result is wrong or differs in value after it depended on order by accident.
func ShuffleOps(root *ir.Op, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	ir.WalkPost(root, func(op *ir.Op) {
		for _, reg := range op.Regions() {
			for _, b := range reg.Blocks() {
				shuffleBlock(b, r)
			}
		}
	})
}

// node is an operation with what waits for it.
type node struct {
	op      *ir.Op
	waiting []*node // those that come after it
	missing int     // how many must still come before it
}

func shuffleBlock(b *ir.Block, r *rand.Rand) {
	nodes := map[*ir.Op]*node{}
	var list []*node
	var lastEffect *node
	for op := range b.Ops() {
		n := &node{op: op}
		nodes[op] = n
		list = append(list, n)
		n.waitForOperands(b, nodes)
		if !op.Has(ir.Pure) {
			n.waitFor(lastEffect)
			lastEffect = n
		}
	}
	if last := b.Last(); last != nil && last.Has(ir.Terminator) {
		for _, n := range list[:len(list)-1] {
			nodes[last].waitFor(n)
		}
	}
	var ready []*node
	for _, n := range list {
		if n.missing == 0 {
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		i := r.IntN(len(ready))
		n := ready[i]
		ready[i] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		n.op.MoveToEnd(b)
		for _, w := range n.waiting {
			if w.missing--; w.missing == 0 {
				ready = append(ready, w)
			}
		}
	}
}

func (n *node) waitFor(before *node) {
	if before != nil && before != n {
		before.waiting = append(before.waiting, n)
		n.missing++
	}
}

// waitForOperands makes n wait for what it, or anything inside it, uses of its block.
func (n *node) waitForOperands(b *ir.Block, nodes map[*ir.Op]*node) {
	ir.Walk(n.op, func(op *ir.Op) ir.WalkResult {
		for _, v := range op.Operands() {
			if v.Block() == b && v.Op() != nil {
				n.waitFor(nodes[v.Op()])
			}
		}
		return ir.Advance
	})
}
