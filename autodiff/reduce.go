package autodiff

import (
	"blutrain/ir"
)

// y = sum(x, axes): every summand gets dy.
func reduceSum(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.expandOver(dy, op.Operand(0), op.Attrs().Ints("axes")))
}

// y = max(x, axes), or min: dy is shared equally by the elements that are equal to y.
func reduceExtremum(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	x, axes := op.Operand(0), op.Attrs().Ints("axes")
	attains := r.Compare(x, r.expandOver(op.Result(0), x, axes), "eq")
	zero := r.SplatLike(x, 0)
	ties := r.ReduceSum(r.Select(attains, r.SplatLike(x, 1), zero), axes)
	share := r.expandOver(r.Div(dy, ties), x, axes)
	return one(r.Select(attains, share, zero))
}

// expandOver repeats v, a reduction over some axes of a tensor like x, along those axes.
func (r *reverse) expandOver(v, x *ir.Value, axes []int64) *ir.Value {
	shape := x.Shape()
	return r.BroadcastTo(v, except(len(shape), axes), shape)
}

// sumOver sums x along axes and repeats the sums along them.
func (r *reverse) sumOver(x *ir.Value, axes ...int64) *ir.Value {
	return r.expandOver(r.ReduceSum(x, axes), x, axes)
}
