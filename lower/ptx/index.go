package ptx

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// indexOp translates arithmetic on indices, which are never negative where they are used.
func (l *lowering) indexOp(op *ir.Op) error {
	b := l.b
	if op.Name() == "arith.constant" {
		n, ok := constant(op.Result(0))
		if !ok || n != int64(int32(n)) {
			return op.Errorf("%s has no lowering for GPUs", op.Name())
		}
		l.index[op.Result(0)] = b.I32(int(n))
		return nil
	}
	x, y := l.index[op.Operand(0)], l.index[op.Operand(1)]
	var v *ir.Value
	switch op.Name() {
	case "arith.addi":
		v = b.Add(x, y)
	case "arith.subi":
		v = b.Sub(x, y)
	case "arith.muli":
		v = b.Mul(x, y)
	case "arith.minsi":
		v = l.least(op, x, y)
	case "arith.maxsi":
		v = l.folded(ptx.Max, x, y, func(x, y int64) int64 { return max(x, y) })
	case "arith.divsi", "arith.divui":
		if n, ok := ptx.ConstInt(y); ok && n > 0 {
			v = b.DivI(x, int(n))
		} else {
			v = b.Binary(ptx.Div, x, y)
		}
	case "arith.remsi", "arith.remui":
		if n, ok := ptx.ConstInt(y); ok && n > 0 {
			v = b.RemI(x, int(n))
		} else {
			v = b.Binary(ptx.Rem, x, y)
		}
	default:
		return op.Errorf("%s has no lowering for GPUs", op.Name())
	}
	l.index[op.Result(0)] = v
	return nil
}

func (l *lowering) folded(def *ir.OpDef, x, y *ir.Value, f func(x, y int64) int64) *ir.Value {
	m, okX := ptx.ConstInt(x)
	n, okY := ptx.ConstInt(y)
	if okX && okY {
		return l.b.I32(int(f(m, n)))
	}
	return l.b.Binary(def, x, y)
}

// least is the smaller of two indices. The extent of a block, min(most, n - offset), is `most` where it divides both.
func (l *lowering) least(op *ir.Op, x, y *ir.Value) *ir.Value {
	if most, ok := ptx.ConstInt(x); ok {
		if left := op.Operand(1).Op(); left != nil && left.Name() == "arith.subi" {
			if n, ok := constant(left.Operand(0)); ok && (full(n, most, divisor(left.Operand(1))) || l.inWhole(left.Operand(1), n, most)) {
				return x
			}
		}
	}
	return l.folded(ptx.Min, x, y, func(x, y int64) int64 { return min(x, y) })
}

// full reports whether a block of `most` elements at a multiple of `at` below n is never clipped.
func full(n, most, at int64) bool { return most > 0 && n%most == 0 && at%most == 0 }

func constant(v *ir.Value) (int64, bool) {
	if v.Op() == nil || v.Op().Name() != "arith.constant" {
		return 0, false
	}
	a, ok := v.Op().Attr("value").(*ir.IntegerAttr)
	if !ok {
		return 0, false
	}
	return a.Value, true
}

// divisor is a number that an index is known to be a multiple of; 0 for the index 0.
func divisor(v *ir.Value) int64 {
	if n, ok := constant(v); ok {
		return n
	}
	op := v.Op()
	if op == nil {
		return argumentDivisor(v)
	}
	if op.NumOperands() != 2 {
		return 1
	}
	switch x, y := op.Operand(0), op.Operand(1); op.Name() {
	case "arith.addi", "arith.subi", "arith.minsi", "arith.maxsi":
		return gcd(divisor(x), divisor(y))
	case "arith.muli":
		return divisor(x) * divisor(y)
	}
	return 1
}

// argumentDivisor is that of a grid axis or a loop's index.
func argumentDivisor(v *ir.Value) int64 {
	parent := v.Arg().ParentOp()
	switch {
	case parent.Name() == "scf.for" && v.Index() == 0:
		return gcd(divisor(parent.Operand(0)), divisor(parent.Operand(2)))
	case parent.Name() == "tile.kernel":
		axes := parent.Attrs().Ints("steps")
		if i := v.Index() - (len(parent.Body().Args()) - len(axes)); i >= 0 {
			return axes[i]
		}
	}
	return 1
}

// clip is the actual extent of at most `most` elements at an offset in a dimension of n.
func (l *lowering) clip(offset *ir.Value, n int64, most int) extent {
	d := divisor(offset)
	if at, ok := ptx.ConstInt(l.index[offset]); ok {
		if left := n - at; left < int64(most) {
			return extent{l.b.I32(int(left)), left}
		}
		return extent{nil, int64(most)}
	}
	if most == 1 || full(n, int64(most), d) || l.axisNeverClips(offset, n, int64(most)) || l.inWhole(offset, n, int64(most)) {
		return extent{nil, int64(most)}
	}
	type key struct {
		offset  *ir.Value
		n, most int64
	}
	v := l.remember(key{offset, n, int64(most)}, func() *ir.Value {
		return l.b.Min(l.b.I32(most), l.b.Sub(l.b.I32(int(n)), l.index[offset]))
	})
	return extent{v, gcd(gcd(int64(most), n), d)}
}

// inWhole reports whether an offset is the index of a loop that leaves room for a whole block in each round.
func (l *lowering) inWhole(offset *ir.Value, n, most int64) bool {
	w, ok := l.whole[offset]
	return ok && w.end <= n && most <= w.step
}

// axisNeverClips reports whether the last step of a grid axis leaves room for a whole block.
func (l *lowering) axisNeverClips(offset *ir.Value, n, most int64) bool {
	if offset.Arg() != l.kernel.Body() {
		return false
	}
	grid, steps := l.kernel.Attrs().Ints("grid"), l.kernel.Attrs().Ints("steps")
	i := offset.Index() - (len(l.kernel.Body().Args()) - len(grid))
	if i < 0 || grid[i] == 0 {
		return false
	}
	last := (grid[i] - 1) / steps[i] * steps[i]
	return last+most <= n
}

// extentOf is the actual extent that an index says, of at most `most`.
func (l *lowering) extentOf(v *ir.Value, most int) extent {
	x := l.index[v]
	if n, ok := ptx.ConstInt(x); ok && n == int64(most) {
		return extent{nil, int64(most)}
	}
	d := divisor(v)
	if n, ok := ptx.ConstInt(x); ok {
		d = n
	}
	return extent{x, max(d, 1)}
}
