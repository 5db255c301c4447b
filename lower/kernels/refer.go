package kernels

import (
	"math"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// referrer writes what a group computes as blu operations on a kernel's inputs. Inputs are told apart by their place, not
// by the values this group happens to give them: another group may launch the kernel with others.
type referrer struct {
	f    *form
	b    *blu.Builder
	args []*ir.Value // one for each input, after those for the operands of a product
	vals map[*ir.Value]*ir.Value
	seen map[shapedKey]*ir.Value // inputs in the shape of values
}

func (f *form) refer(b *blu.Builder, args []*ir.Value) []*ir.Value {
	r := &referrer{f, b, args[len(f.sides):], map[*ir.Value]*ir.Value{}, map[shapedKey]*ir.Value{}}
	for _, op := range f.ops {
		b.At(op.Loc())
		if f.g.kind == product && op == f.g.root {
			r.vals[op.Result(0)] = r.product(op, args[:2])
		} else {
			r.vals[op.Result(0)] = r.op(op)
		}
	}
	var out []*ir.Value
	for _, t := range f.outputs {
		if t.sum != nil {
			out = append(out, r.partial(t))
		} else {
			out = append(out, b.ReshapeTo(r.vals[t.value], t.shape...))
		}
	}
	return out
}

// product is the dot, its operands brought back from the order that the kernel has them in.
func (r *referrer) product(op *ir.Op, args []*ir.Value) *ir.Value {
	operands := make([]*ir.Value, 2)
	for i, t := range r.f.sides {
		operands[i] = r.b.ReshapeTo(args[i], permuted(t.value.Shape(), t.perm)...)
		if !slices.IsSorted(t.perm) {
			operands[i] = r.b.Transpose(operands[i], inversePerm(t.perm))
		}
		if operands[i].Elem() != op.Result(0).Elem() {
			operands[i] = r.b.CastTo(operands[i], op.Result(0).Elem())
		}
	}
	return r.again(op, operands)
}

// again writes an operation on other operands.
func (r *referrer) again(op *ir.Op, operands []*ir.Value) *ir.Value {
	return r.b.CreateState(op.Def(), ir.OpState{Loc: op.Loc(), Operands: operands, Attrs: op.Attrs(), Results: op.ResultTypes()}).Result(0)
}

// value is an operand with the given atoms: what the group computes or reads, or a view of it, or a constant.
func (r *referrer) value(v *ir.Value, ds dims) *ir.Value {
	g := r.f.g
	if w := r.vals[v]; w != nil && g.member(v) {
		return w
	}
	if i := r.f.inputAt(v, ds); i >= 0 {
		key := shapedKey{r.args[i], v.Type()}
		if r.seen[key] == nil {
			r.seen[key] = r.b.ReshapeTo(r.args[i], v.Shape()...)
		}
		return r.seen[key]
	}
	op := v.Op()
	if isInline(op) {
		if r.vals[v] == nil {
			r.vals[v] = r.again(op, nil)
		}
		return r.vals[v]
	}
	x, _ := (&trial{p: r.f.p, g: g}).backward(op, ds)
	return r.again(op, []*ir.Value{r.value(op.Operand(0), x)})
}

func (r *referrer) op(op *ir.Op) *ir.Value {
	b, f := r.b, r.f
	if f.finishes(op) {
		partial := r.args[f.sources[op][0].input]
		x := b.ReshapeTo(partial, append([]int64{partial.Shape()[0]}, op.Result(0).Shape()...)...)
		return b.Create(op.Def(), []*ir.Value{x}, ir.NamedAttr{Name: "axes", Value: b.Ctx.I64s(0)}).Result(0)
	}
	operands := make([]*ir.Value, op.NumOperands())
	for i, v := range op.Operands() {
		if op.Is(blu.Gather) && i == 0 {
			operands[i] = r.args[f.sources[op][i].input]
			continue
		}
		operands[i] = r.value(v, f.g.operandDims(op, i))
	}
	switch op.Def() {
	case replica:
		return operands[0]
	case expSum:
		x := operands[0]
		axis := int64(len(x.Shape()) - 1)
		top := b.ReduceMax(x, []int64{axis})
		shift := b.Select(b.Compare(top, b.SplatLike(top, math.Inf(-1)), "eq"), b.SplatLike(top, 0), top)
		return b.ReduceSum(b.Exp(b.Sub(x, b.Along(shift, axis, x.Shape()))), []int64{axis})
	case pick:
		x, idx := operands[0], operands[1]
		shape := x.Shape()
		axis := int64(len(shape) - 1)
		classes := b.Iota(axis, b.Ctx.Tensor(shape, idx.Elem()))
		hit := b.Compare(classes, b.Along(idx, axis, shape), "eq")
		return b.ReduceSum(b.Select(hit, x, b.SplatLike(x, 0)), []int64{axis})
	}
	return r.again(op, operands)
}

// partial is the partial results of a reduction over rows: those are padded to whole panels, and each panel is reduced.
func (r *referrer) partial(t tensor) *ir.Value {
	f, b, red := r.f, r.b, t.sum
	x, ds := r.inOrder(r.value(red.Operand(0), f.g.operand[red]), f.g.operand[red])
	whole := f.tensorOf(red.Operand(0), ds, nil)
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

// inOrder is a value with its atoms in the order in which the kernel goes over them: panels are of rows in that order.
func (r *referrer) inOrder(x *ir.Value, ds dims) (*ir.Value, dims) {
	place := map[atom]int{}
	for _, a := range r.f.axes {
		for _, atom := range a.atoms {
			place[atom] = len(place)
		}
	}
	flat := r.f.g.dom.flat(ds)
	perm, shape := make([]int64, len(flat)), make([]int64, len(flat))
	for i, a := range flat {
		perm[i], shape[i] = int64(i), r.f.g.dom.size[a]
	}
	slices.SortFunc(perm, func(i, j int64) int { return place[flat[i]] - place[flat[j]] })
	if slices.IsSorted(perm) {
		return x, ds
	}
	sorted := make(dims, len(perm))
	for i, p := range perm {
		sorted[i] = []atom{flat[p]}
	}
	return r.b.Transpose(r.b.ReshapeTo(x, shape...), perm), sorted
}
