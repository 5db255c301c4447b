package blu

import "blutrain/ir"

// What the generated methods leave long-winded: operations whose result type is given, and constants.

// On is a Builder at the insertion point of another.
func On(b *ir.Builder) *Builder { return &Builder{b} }

// ReshapeTo is a reshape to the shape, or x itself where it has it.
func (b *Builder) ReshapeTo(x *ir.Value, shape ...int64) *ir.Value {
	to := b.Ctx.Tensor(shape, x.Elem())
	if x.Type() == to {
		return x
	}
	return b.Reshape(x, to)
}

// BroadcastTo is a broadcast to the shape, axis i of x becoming axes[i]; x itself where it has the shape.
func (b *Builder) BroadcastTo(x *ir.Value, axes, shape []int64) *ir.Value {
	to := b.Ctx.Tensor(shape, x.Elem())
	if x.Type() == to {
		return x
	}
	return b.Broadcast(x, axes, to)
}

// CastTo is a cast to elements of a type, or x itself where it has them.
func (b *Builder) CastTo(x *ir.Value, elem ir.Type) *ir.Value {
	if x.Elem() == elem {
		return x
	}
	return b.Cast(x, b.Ctx.Tensor(x.Shape(), elem))
}

// Splat is a constant with v everywhere.
func (b *Builder) Splat(t ir.Type, v float64) *ir.Value { return b.Constant(b.Ctx.Splat(t, v)) }

// SplatLike is a constant of the type of x with v everywhere.
func (b *Builder) SplatLike(x *ir.Value, v float64) *ir.Value { return b.Splat(x.Type(), v) }

// Along repeats x, which has every axis of shape but one, along that axis.
func (b *Builder) Along(x *ir.Value, axis int64, shape []int64) *ir.Value {
	return b.BroadcastTo(x, axesWithout(len(shape), axis), shape)
}

// Fill repeats a scalar over a shape.
func (b *Builder) Fill(scalar *ir.Value, shape []int64) *ir.Value {
	return b.BroadcastTo(scalar, nil, shape)
}

// Mean is the mean along axes, which the result no longer has.
func (b *Builder) Mean(x *ir.Value, axes ...int64) *ir.Value {
	sum := b.ReduceSum(x, axes)
	return b.Mul(sum, b.SplatLike(sum, 1/float64(countAlong(x.Shape(), axes))))
}
