// Package place moves operations around collectives, for the passes bucket and overlap: what prepares the operands goes to
// where these are ready, what brings the results into storage goes to where they have arrived. All of it is pure, so that
// nothing but definitions and uses decides what may stand where.
package place

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// Light reports whether an operation only brings a value into the form in which it is communicated or stored: a view, zeros
// behind it, a sum continued.
func Light(op *ir.Op) bool {
	return op.Has(ir.View) || op.Is(blu.Pad) || op.Is(blu.Accumulate)
}

// Ready is the last of the operations that define the operands of op, or nil when all are arguments.
func Ready(op *ir.Op) *ir.Op {
	var last *ir.Op
	for i := range op.NumOperands() {
		if def := op.Operand(i).Op(); def != nil && def.Block() == op.Block() && (last == nil || last.IsBefore(def)) {
			last = def
		}
	}
	return last
}

// Prepare moves the light operations that op's operands are made by to where what they work on is ready, so that Ready says
// when the values were computed, not when they were brought into form.
func Prepare(op *ir.Op) {
	for i := range op.NumOperands() {
		def := op.Operand(i).Op()
		if def == nil || def.Block() != op.Block() || !Light(def) {
			continue
		}
		Prepare(def)
		After(def, Ready(def))
	}
}

// After moves op to just after another operation of its block, or with nil to the start.
func After(op, ready *ir.Op) {
	switch {
	case ready == nil:
		op.MoveBefore(op.Block().First())
	case ready.Next() != op:
		op.MoveBefore(ready.Next())
	}
}

// FirstNeed is the first operation that works with the results of op, directly or after light operations: the terminator
// when they are only brought into storage. Of settle it is told which light operations come before that.
func FirstNeed(op *ir.Op) (need *ir.Op, settle []*ir.Op) {
	seen := map[*ir.Op]bool{}
	need = op.Block().Last()
	var follow func(*ir.Op)
	follow = func(o *ir.Op) {
		for i := range o.NumResults() {
			for u := range o.Result(i).Uses() {
				user := topmost(u.Owner(), op.Block())
				switch {
				case seen[user] || user == op.Block().Last():
				case Light(user):
					seen[user] = true
					settle = append(settle, user)
					follow(user)
				case user.IsBefore(need):
					need = user
				}
			}
		}
	}
	follow(op)
	settle = slices.DeleteFunc(settle, func(o *ir.Op) bool { return !o.IsBefore(need) })
	slices.SortFunc(settle, func(a, b *ir.Op) int {
		if a.IsBefore(b) {
			return -1
		}
		return 1
	})
	return need, settle
}

// topmost is the operation of the block that is op or holds it.
func topmost(op *ir.Op, b *ir.Block) *ir.Op {
	for op.Block() != b {
		op = op.Parent()
	}
	return op
}

// Settle moves the operations that are before at, in their order, to just before at.
func Settle(ops []*ir.Op, at *ir.Op) {
	for _, o := range ops {
		if o.IsBefore(at) {
			o.MoveBefore(at)
		}
	}
}
