package recompute

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// apply makes a plan true and counts the copies: operations that are computed twice then.
func (c *chooser) apply(ctx *ir.Context, plan choice) (copies int) {
	c.setPlan(plan.items)
	seq := c.make(c.plan)
	n := int32(len(c.ops))
	stays := make([]bool, n)
	var waiting []int32 // copies that come before the next original
	mapping := map[*ir.Value]*ir.Value{}
	b := ir.NewBuilder(ctx, nil)
	for _, i := range seq {
		if i >= n {
			waiting = append(waiting, i-n)
			continue
		}
		op := c.ops[i].op
		stays[i] = true
		if op == nil {
			continue
		}
		b.Before(op)
		for _, w := range waiting {
			widen(b, c.ops[w].op, mapping)
			b.Insert(c.copy(ctx, w, mapping))
		}
		waiting = waiting[:0]
		if c.late[i] {
			widen(b, op, mapping)
			useCopies(op, mapping)
		}
	}
	for _, i := range seq {
		if i >= n && stays[i-n] {
			copies++
		}
	}
	c.eraseUnused(stays)
	return copies
}

// copy clones an operation whose operands are, where they are recomputed, already in the mapping.
func (c *chooser) copy(ctx *ir.Context, i int32, mapping map[*ir.Value]*ir.Value) *ir.Op {
	op := &c.ops[i]
	n := op.op.Clone(ctx, mapping)
	for r := range op.op.NumResults() {
		if c.graph.values[op.first+int32(r)].stored {
			delete(mapping, op.op.Result(r))
		}
	}
	n.SetAttr(blu.RecomputedAttr, ctx.Unit())
	return n
}

// widen gives float32 made of copies in bfloat16 to an operation that reads such of the originals, rounded: casts that are computed nowhere,
// which plans therefore don't have.
func widen(b *ir.Builder, op *ir.Op, mapping map[*ir.Value]*ir.Value) {
	for _, v := range op.Operands() {
		if cast := v.Op(); mapping[v] == nil && cast != nil && widens(cast) && mapping[cast.Operand(0)] != nil {
			b.Insert(cast.Clone(b.Ctx, mapping))
		}
	}
}

// useCopies makes a late operation use copies.
func useCopies(op *ir.Op, mapping map[*ir.Value]*ir.Value) {
	for i := range op.NumOperands() {
		if v, ok := mapping[op.Operand(i)]; ok {
			op.SetOperand(i, v)
		}
	}
}

// eraseUnused takes away the originals that only had late uses, but not casts that give float32 to what reads it rounded: those stay with it.
func (c *chooser) eraseUnused(stays []bool) {
	for i := len(c.ops) - 1; i >= 0; i-- {
		if op := c.ops[i].op; !stays[i] && (!widens(op) || op.Result(0).NumUses() == 0) {
			op.Erase()
		}
	}
}
