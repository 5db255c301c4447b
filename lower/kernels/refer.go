package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// referrer writes what a group computes as blu operations on a kernel's inputs.
type referrer struct {
	f    *form
	b    *blu.Builder
	vals map[*ir.Value]*ir.Value
	sums map[*ir.Value]*ir.Value // partial results that are inputs
}

func (f *form) refer(b *blu.Builder, args []*ir.Value) []*ir.Value {
	r := &referrer{f, b, map[*ir.Value]*ir.Value{}, map[*ir.Value]*ir.Value{}}
	for i, t := range slices.Concat(f.sides, f.inputs) {
		r.input(t, args[i])
	}
	for _, op := range f.ops {
		b.At(op.Loc())
		r.vals[op.Result(0)] = r.op(op)
	}
	var out []*ir.Value
	for _, t := range f.outputs {
		if t.sum != nil {
			out = append(out, r.partial(t))
		} else {
			out = append(out, b.ReshapeTo(r.get(t.value), t.shape...))
		}
	}
	return out
}

// input gives a value the argument that holds it, seen in the value's shape.
func (r *referrer) input(t tensor, arg *ir.Value) {
	switch {
	case t.from != nil && t.from.partial:
		r.sums[t.value] = arg
	case t.perm != nil:
		v := r.b.ReshapeTo(arg, permuted(t.value.Shape(), t.perm)...)
		if !slices.IsSorted(t.perm) {
			v = r.b.Transpose(v, inversePerm(t.perm))
		}
		r.vals[t.value] = v
	case r.vals[t.value] == nil:
		r.vals[t.value] = r.b.ReshapeTo(arg, t.value.Shape()...)
	}
}

func (r *referrer) get(v *ir.Value) *ir.Value {
	if r.vals[v] == nil {
		r.vals[v] = clone(r.b, v.Op(), r.get)
	}
	return r.vals[v]
}

func (r *referrer) op(op *ir.Op) *ir.Value {
	b := r.b
	y := op.Result(0)
	if partial := r.sums[y]; partial != nil {
		n := partial.Shape()[0]
		x := b.ReshapeTo(partial, append([]int64{n}, y.Shape()...)...)
		return b.Create(op.Def(), []*ir.Value{x}, ir.NamedAttr{Name: "axes", Value: b.Ctx.I64s(0)}).Result(0)
	}
	switch op.Def() {
	case replica:
		return r.get(op.Operand(0))
	case pick:
		x, idx := r.get(op.Operand(0)), r.get(op.Operand(1))
		shape := x.Shape()
		axis := int64(len(shape) - 1)
		classes := b.Iota(axis, b.Ctx.Tensor(shape, idx.Elem()))
		hit := b.Compare(classes, b.Along(idx, axis, shape), "eq")
		return b.ReduceSum(b.Select(hit, x, b.SplatLike(x, 0)), []int64{axis})
	}
	return clone(b, op, r.get)
}

// partial is the partial results of a reduction over rows: those are padded to whole panels, and each panel is reduced.
func (r *referrer) partial(t tensor) *ir.Value {
	f, b, red := r.f, r.b, t.sum
	x := r.get(red.Operand(0))
	whole := f.tensorOf(red.Operand(0), f.g.operand[red], nil)
	x = b.ReshapeTo(x, whole.shape...)
	var order []int64
	var shape []int64
	for k, a := range f.axes {
		if i := slices.Index(whole.axes, k); i >= 0 && a.sum {
			order, shape = append(order, int64(i)), append(shape, a.size)
		}
	}
	axis := slices.Index(order, int64(slices.Index(whole.axes, f.row)))
	for _, k := range t.axes {
		order, shape = append(order, int64(slices.Index(whole.axes, k))), append(shape, f.axes[k].size)
	}
	if !slices.IsSorted(order) {
		x = b.Transpose(x, order)
	}
	a := f.axes[f.row]
	panel := min(a.step, a.size)
	n := (a.size + panel - 1) / panel
	if missing := n*panel - a.size; missing > 0 {
		high := make([]int64, len(shape))
		high[axis] = missing
		x = b.Pad(x, make([]int64, len(shape)), high, identity(red))
	}
	split := slices.Concat(shape[:axis], []int64{n, panel}, shape[axis+1:])
	x = b.ReshapeTo(x, split...)
	return b.Create(red.Def(), []*ir.Value{x}, ir.NamedAttr{Name: "axes", Value: b.Ctx.I64s(int64(axis + 1))}).Result(0)
}
