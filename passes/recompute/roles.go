package recompute

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// role is what the estimate knows about an operation.
type role uint8

const (
	opaque      role = iota // a kernel of its own, operands and results in memory
	inline                  // made where it is used: constants
	view                    // another look at its operand
	concat                  // its operands, next to each other in memory
	elementwise             // one element from the same element of each operand
	rows                    // goes over its operand row by row, or adds it up
	gather                  // rows of a table
	product                 // a dot: operands in memory, elementwise operations may follow
	terminator
)

// cheap reports whether auto may recompute operations of this role.
func (r role) cheap() bool { return r != opaque && r != product && r != terminator }

// loops reports whether operations of this role are loops over elements, which others may join.
func (r role) loops() bool { return r == elementwise || r == rows }

// rowOps lists the operations that go over rows, besides reductions.
var rowOps = map[*ir.OpDef]bool{
	blu.Softmax: true, blu.LogSoftmax: true, blu.Layernorm: true, blu.LayernormGrad: true, blu.Rmsnorm: true, blu.RmsnormGrad: true,
	blu.Rope: true, blu.CrossEntropy: true, blu.CrossEntropyGrad: true, blu.Argmax: true, blu.ReduceSum: true, blu.ReduceMax: true, blu.ReduceMin: true,
}

func roleOf(op *ir.Op) role {
	switch op.Def() {
	case blu.Dot:
		return product
	case blu.Concat, blu.Pad:
		return concat
	case blu.Gather:
		return gather
	case blu.Iota:
		return inline
	case blu.Accumulate, blu.RandomUniform, blu.RandomNormal, blu.Adamw, blu.Sgd:
		return elementwise
	case blu.StopGradient:
		return view
	case dtms.AllReduce:
		if op.NumOperands() == 1 {
			return view // in place
		}
	}
	switch {
	case op.Has(ir.Terminator):
		return terminator
	case op.Has(ir.ConstantLike):
		return inline
	case op.Has(ir.View):
		return view
	case op.Has(ir.Elementwise):
		return elementwise
	case rowOps[op.Def()]:
		return rows
	}
	return opaque
}

func newNode(op *ir.Op) node {
	n := node{op: op, role: roleOf(op), flops: blu.Flops(op), simple: simpleFlops(op), isAddition: op.Is(blu.Add), again: op.Attr(blu.RecomputedAttr) != nil}
	n.pinned = !op.Has(ir.Pure) || n.role == terminator || op.Is(dtms.AllReduce)
	n.fusedView = n.role == view && !op.Is(blu.Slice) && !op.Is(dtms.AllReduce)
	switch n.role {
	case rows:
		n.elems = ir.NumElements(op.Operand(0).Shape())
		n.sumsUp = sumsUp(op)
		n.inPlace = true
	case elementwise, product, gather:
		n.inPlace = n.role == elementwise
		n.elems = ir.NumElements(op.Result(0).Shape())
	}
	return n
}

// sumsUp reports whether the results of a row operation are over other elements than rows hold, so that nothing can be
// computed from them in the same pass.
func sumsUp(op *ir.Op) bool {
	switch op.Def() {
	case blu.CrossEntropy:
		return true
	case blu.ReduceSum, blu.ReduceMax, blu.ReduceMin:
		axes, rank := op.Attrs().Ints("axes"), len(op.Operand(0).Shape())
		return len(axes) == rank || len(axes) > 0 && axes[len(axes)-1] != int64(rank-1)
	}
	return false
}
