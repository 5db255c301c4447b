package host

import (
	"blutrain/dialects/host"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// planFusion finds multiplications that the one operation that uses them takes in: an addition becomes a multiply-add, a
// sum along an axis an inner product. Each saves a pass over a block, and a rounding.
func (l *lowering) planFusion() {
	ir.Walk(l.kernel, func(op *ir.Op) ir.WalkResult {
		if op.Name() != "tile.mul" || l.waits[op] != nil || !isF32(op.Result(0).Elem()) || !op.Result(0).HasOneUse() {
			return ir.Advance
		}
		for u := range op.Result(0).Uses() {
			into := u.Owner()
			if into.Block() == op.Block() && l.takenIn[into] == nil && l.waits[into] == nil && l.adamws[into] == nil && l.takes(into, u.Index(), op) && l.mayWait(op, into) {
				l.waits[op], l.takenIn[into] = into, op
			}
		}
		return ir.Advance
	})
}

// takes reports whether an operation can do the multiplication of its i-th operand itself.
func (l *lowering) takes(op *ir.Op, i int, mul *ir.Op) bool {
	x, y := mul.Operand(0), mul.Operand(1)
	switch {
	case op.Name() == "tile.add":
		return op.Result(0).Type() == mul.Result(0).Type() && (x.Type() == mul.Result(0).Type() || y.Type() == mul.Result(0).Type())
	case op.Name() == "tile.sub" && i == 1:
		full, factor := factors(mul)
		return op.Result(0).Type() == mul.Result(0).Type() && full.Type() == mul.Result(0).Type() && factor.Shape()[1] == 1
	case op.Is(tile.Reduce):
		return op.Attrs().Str("kind") == "sum" && x.Type() == y.Type()
	}
	return false
}

// factors is the operands of a multiplication, one that has the extents of the result first.
func factors(mul *ir.Op) (full, other *ir.Value) {
	x, y := mul.Operand(0), mul.Operand(1)
	if x.Type() != mul.Result(0).Type() {
		return y, x
	}
	return x, y
}

// mayWait reports whether a multiplication gives the same later, where it is taken in: whether what it reads is still
// there. Memory that an output takes over is there until the operation that computes the output.
func (l *lowering) mayWait(mul, into *ir.Op) bool {
	for _, v := range mul.Operands() {
		load := v.Op()
		if load == nil || !load.Is(tile.Load) {
			continue
		}
		for _, pair := range share.Shared(l.kernel) {
			if pair[0] != load.Operand(0).Index() || load.Operand(0).Op() != nil {
				continue
			}
			store := share.OnlyStore(l.kernel.Body().Arg(pair[1]))
			if store == nil || store.Block() != into.Block() {
				return false
			}
			def := store.Operand(0).Op()
			if def == nil || def.Block() != into.Block() || def.IsBefore(into) {
				return false
			}
		}
	}
	return true
}

// user is the operation that reads a value for another: the one that takes it in, or itself.
func (l *lowering) user(op *ir.Op) *ir.Op {
	if into := l.waits[op]; into != nil {
		return into
	}
	return op
}

// multiplyAdd translates an addition or subtraction that takes in a multiplication.
func (l *lowering) multiplyAdd(op, mul *ir.Op) {
	full, factor := factors(mul)
	z := op.Operand(0)
	if z == mul.Result(0) {
		z = op.Operand(1)
	}
	values := []*ir.Value{full, factor, z}
	in := []*operand{l.blocks[full], l.blocks[factor], l.blocks[z]}
	dst := l.reuseOf(op, values, in)
	if dst == nil {
		dst = l.destination(op, in[0].rows, in[0].cols)
	}
	l.blocks[op.Result(0)] = dst
	l.emit(host.Fma, append(in, dst), l.attrs("negate", l.c.Bool(op.Name() == "tile.sub")))
}

// inner translates a sum that takes in a multiplication.
func (l *lowering) inner(op, mul *ir.Op) {
	x, y := l.blocks[mul.Operand(0)], l.blocks[mul.Operand(1)]
	rows, cols := x.rows, l.number(1)
	if axis, _ := op.Attrs().Int("axis"); axis == 0 {
		rows, cols = l.number(1), x.cols
	}
	l.emitTo(op, rows, cols, host.Inner, []*operand{x, y}, l.attrs("axis", op.Attr("axis")))
}
