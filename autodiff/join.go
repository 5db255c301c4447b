package autodiff

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// The gradient of a tensor that was split is the sum of its parts' gradients, each padded with zeros to the whole. Where
// the parts are neighbours the sum is their concatenation, which costs one copy instead of a sum for each part:
//
//	pad(a) + pad(b) = pad(concat(a, b))

// joined is a + b as a concatenation, or nil where they are no neighbours. The paddings, and concatenations within them,
// may be left unused.
func (r *reverse) joined(a, b *ir.Value) *ir.Value {
	p, q, axis, ok := neighbours(a, b)
	if !ok {
		return nil
	}
	whole := r.Concat(slices.Concat(parts(p.X(), axis), parts(q.X(), axis)), axis)
	low, high := p.Low(), slices.Clone(p.High())
	high[axis] = q.High()[axis]
	if slices.ContainsFunc(slices.Concat(low, high), func(n int64) bool { return n != 0 }) {
		whole = r.Pad(whole, low, high, 0)
	}
	return whole
}

// neighbours recognizes two paddings with zeros of tensors that lie side by side along one axis, and orders them.
func neighbours(a, b *ir.Value) (p, q blu.PadOp, axis int64, ok bool) {
	if !a.DefinedBy(blu.Pad) || !b.DefinedBy(blu.Pad) {
		return p, q, 0, false
	}
	p, q = blu.PadOp{Op: a.Op()}, blu.PadOp{Op: b.Op()}
	axis = -1
	for i := range int64(len(a.Shape())) {
		if p.Low()[i] == q.Low()[i] && p.High()[i] == q.High()[i] {
			continue
		}
		if axis >= 0 {
			return p, q, 0, false
		}
		axis = i
	}
	if axis < 0 || p.Value() != 0 || q.Value() != 0 {
		return p, q, 0, false
	}
	if p.Low()[axis] > q.Low()[axis] {
		p, q = q, p
	}
	return p, q, axis, p.Low()[axis]+p.X().Shape()[axis] == q.Low()[axis]
}

// parts is what x was concatenated from along that axis, or x.
func parts(x *ir.Value, axis int64) []*ir.Value {
	if x.DefinedBy(blu.Concat) && (blu.ConcatOp{Op: x.Op()}).Axis() == axis {
		return x.Op().Operands()
	}
	return []*ir.Value{x}
}
