package autodiff

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// y = broadcast(x): each element of x is summed over its copies.
func broadcast(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	x, axes := op.Operand(0), blu.BroadcastOp{Op: op}.Axes()
	from, to := x.Shape(), op.Result(0).Shape()
	var copied []int64
	for d := range int64(len(to)) {
		if i := slices.Index(axes, d); i < 0 || from[i] != to[d] {
			copied = append(copied, d)
		}
	}
	if len(copied) > 0 {
		dy = r.ReduceSum(dy, copied)
	}
	return one(r.ReshapeTo(dy, from...))
}

// y = reshape(x):  dx = reshape(dy)
func reshape(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.ReshapeTo(dy, op.Operand(0).Shape()...))
}

// y[i...] = x at the permuted index: dx is dy permuted back.
func transpose(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.Transpose(dy, inverse(blu.TransposeOp{Op: op}.Perm())))
}

// y = x[start:limit:step]: dx is dy with zeros in between and around.
func slice(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	x, starts := op.Operand(0), blu.SliceOp{Op: op}.Starts()
	for axis, step := range (blu.SliceOp{Op: op}).Steps() {
		if step > 1 {
			dy = r.spread(dy, axis, step)
		}
	}
	low, high := slices.Clone(starts), make([]int64, len(starts))
	for i, n := range x.Shape() {
		high[i] = n - low[i] - dy.Shape()[i]
		if high[i] < 0 { // zeros that spread put behind the last element, beyond the end of x
			dy = r.cut(dy, i, 0, n-low[i])
			high[i] = 0
		}
	}
	return one(r.Pad(dy, low, high, 0))
}

// spread puts step-1 zeros behind each element along an axis.
func (r *reverse) spread(x *ir.Value, axis int, step int64) *ir.Value {
	shape := x.Shape()
	apart := slices.Insert(slices.Clone(shape), axis+1, 1)
	x = r.ReshapeTo(x, apart...)
	high := make([]int64, len(apart))
	high[axis+1] = step - 1
	x = r.Pad(x, make([]int64, len(apart)), high, 0)
	joined := slices.Clone(shape)
	joined[axis] *= step
	return r.ReshapeTo(x, joined...)
}

// y = x with constants around: dx is the part of dy that x fills.
func pad(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	low, shape := blu.PadOp{Op: op}.Low(), op.Operand(0).Shape()
	limits, steps := make([]int64, len(shape)), make([]int64, len(shape))
	for i, n := range shape {
		limits[i], steps[i] = low[i]+n, 1
	}
	return one(r.Slice(dy, low, limits, steps))
}

// y = concat(xs): each x gets its part of dy.
func concat(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	axis := blu.ConcatOp{Op: op}.Axis()
	ds, at := make([]*ir.Value, op.NumOperands()), int64(0)
	for i, x := range op.Operands() {
		n := x.Shape()[axis]
		if r.wants(x) {
			ds[i] = r.cut(dy, int(axis), at, at+n)
		}
		at += n
	}
	return ds
}

// cut is x[from:to] along one axis.
func (r *reverse) cut(x *ir.Value, axis int, from, to int64) *ir.Value {
	shape := x.Shape()
	starts, limits, steps := make([]int64, len(shape)), slices.Clone(shape), make([]int64, len(shape))
	for i := range steps {
		steps[i] = 1
	}
	starts[axis], limits[axis] = from, to
	return r.Slice(x, starts, limits, steps)
}

// permute transposes; x itself when nothing moves.
func (r *reverse) permute(x *ir.Value, perm []int64) *ir.Value {
	if slices.IsSorted(perm) {
		return x
	}
	return r.Transpose(x, perm)
}

// inverse is the permutation that undoes perm.
func inverse(perm []int64) []int64 {
	inv := make([]int64, len(perm))
	for i, p := range perm {
		inv[p] = int64(i)
	}
	return inv
}

// except lists the dimensions of a tensor of that rank that are not among axes, ascending.
func except(rank int, axes []int64) []int64 {
	var rest []int64
	for d := range int64(rank) {
		if !slices.Contains(axes, d) {
			rest = append(rest, d)
		}
	}
	return rest
}
