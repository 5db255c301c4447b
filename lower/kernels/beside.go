package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// What a product multiplies may be computed of tensors that the epilogue of a product before it reads anyway: the gradient of
// gelu reads the argument that gelu is computed of again for the gradient of the weights behind it. That epilogue then writes
// it too, and nobody reads the argument a second time.

// behindProducts moves an elementwise operation that alone uses a product's result right behind the product, whose epilogue it
// becomes, with what it reads and is computed of what is known there: so that the plan knows, before it comes to other products, what
// the epilogue reads.
func behindProducts(fn *ir.Op) {
	for dot := range fn.Body().Ops() {
		if !dot.Is(blu.Dot) {
			continue
		}
		if user := epilogueOf(dot); user != nil && user != dot.Next() {
			hoist(user, dot)
		}
	}
}

// epilogueOf is the elementwise operation that alone uses a product's result, perhaps through views; nil: there is none.
func epilogueOf(dot *ir.Op) *ir.Op {
	v := dot.Result(0)
	for v.HasOneUse() {
		for u := range v.Uses() {
			switch op := u.Owner(); {
			case isFusedView(op):
				v = op.Result(0)
			case isElementwise(op):
				return op
			default:
				return nil
			}
		}
	}
	return nil
}

// hoist moves an operation behind another, with those it needs; it doesn't if one of them is more than elementwise.
func hoist(op, behind *ir.Op) {
	var list []*ir.Op // in an order that they may stand in
	var collect func(op *ir.Op) bool
	collect = func(op *ir.Op) bool {
		if op == nil || op == behind || op.IsBefore(behind) || slices.Contains(list, op) {
			return true
		}
		if !isElementwise(op) && !isFusedView(op) && !isInline(op) {
			return false
		}
		for _, v := range op.Operands() {
			if !collect(v.Op()) {
				return false
			}
		}
		list = append(list, op)
		return true
	}
	if !collect(op) {
		return
	}
	for _, o := range list {
		if o != behind.Next() {
			o.MoveBefore(behind.Next())
		}
		behind = o
	}
}

// beside has the group made last, if it is a product's, write an operand of another product, where it reads all that the operand
// is computed of.
func (p *planner) beside(v *ir.Value, dot *ir.Op) {
	op := v.Op()
	if op == nil || !p.floating[op] || len(p.groups) == 0 || !slices.Contains(p.target.Beside, dot.Attrs().Str(blu.PrecisionAttr)) {
		return
	}
	g := p.groups[len(p.groups)-1]
	if g.kind != product || !isElementwise(op) {
		return
	}
	ds, ok := p.candidate(op, g, false)
	if !ok {
		return
	}
	t := p.trial(g)
	if t.repeats(ds) || !t.absorb(op, ds) || len(t.accesses)+len(t.before) > 0 || !p.fits(t) {
		return
	}
	t.commit()
}
