package kernels

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// needs answers by whom, and when, a value is needed first: whether it should be computed where its operands are, or float
// until the group that uses it.
type needs struct {
	index    map[*ir.Op]int
	ancestor map[*ir.Op]int // the latest operation below one that is no elementwise one
	first    map[*ir.Value]need
}

// use is how a value is used.
type use uint8

const (
	later  use = iota // by an elementwise operation that needs something computed later too
	folded            // by a reduction, which can take in what it reduces
	stored            // by an operation that reads it from memory
)

// need is the first use of a value and its place in the program.
type need struct {
	at  int
	use use
}

const never = 1 << 40

func newNeeds(f *ir.Op, index map[*ir.Op]int) needs {
	n := needs{index: index, ancestor: map[*ir.Op]int{}, first: map[*ir.Value]need{}}
	for op := range f.Body().Ops() {
		at := -1
		if isElementwise(op) || isView(op) || op.Is(blu.Gather) {
			for _, v := range op.Operands() {
				if o := v.Op(); o != nil {
					at = max(at, n.ancestor[o])
				}
			}
		} else if !op.Has(ir.ConstantLike) && !op.Is(blu.Iota) {
			at = index[op]
		}
		n.ancestor[op] = at
	}
	return n
}

// of is the first need of a value.
func (n needs) of(v *ir.Value) need {
	if d, ok := n.first[v]; ok {
		return d
	}
	d := need{never, later}
	for u := range v.Uses() {
		e := n.by(v, u.Owner())
		if e.at < d.at || e.at == d.at && e.use > d.use {
			d = e
		}
	}
	n.first[v] = d
	return d
}

// by is how an operation needs v.
func (n needs) by(v *ir.Value, op *ir.Op) need {
	at := n.index[op]
	switch {
	case isFusedView(op):
		return n.of(op.Result(0))
	case isElementwise(op):
		own := -1
		if v.Op() != nil {
			own = n.ancestor[v.Op()]
		}
		if a := n.ancestor[op]; a > own {
			return need{a, later}
		}
		return n.of(op.Result(0))
	case isReduction(op) && !op.Is(pick):
		return need{at, folded}
	}
	return need{at, stored}
}

// welcome reports whether a floating operation does well to join the group its operands come from, rather than one that
// uses it.
func (p *planner) welcome(op *ir.Op, g *group) bool {
	need := p.needs.of(op.Result(0))
	switch {
	case p.soleUse(op, g), p.origin[op] == blu.Accumulate.Name: // in the place of the sum, where later terms are added to it
		return true
	case need.use == later && need.at != never:
		return false
	}
	return g.kind != product || need.use == stored
}

// soleUse reports whether the operation alone uses one of its operands that the group computes, and that takes no less memory
// than the result: the result is then in memory in its place.
func (p *planner) soleUse(op *ir.Op, g *group) bool {
	n := memory(op.Result(0))
	for _, v := range op.Operands() {
		for v.Op() != nil && isFusedView(v.Op()) && v.HasOneUse() {
			v = v.Op().Operand(0)
		}
		if g.member(v) && onlyUser(v, op) && memory(v) >= n {
			return true
		}
	}
	return false
}

// memory is how many bytes a value takes.
func memory(v *ir.Value) int64 { return ir.NumElements(v.Shape()) * ir.ByteSize(v.Elem()) }

func onlyUser(v *ir.Value, op *ir.Op) bool {
	for u := range v.Uses() {
		if o := u.Owner(); o != op && !(isFusedView(o) && onlyUser(o.Result(0), op)) {
			return false
		}
	}
	return true
}
