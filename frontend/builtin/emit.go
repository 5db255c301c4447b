package builtin

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
)

// Emitter builds the IR of one call. Values holds the call's tensor arguments by parameter; a constant's is nil.
type Emitter struct {
	*ir.Builder
	Call   *Call
	Values [][]*ir.Value
	// Seed and Stream give a random operation its numbers; Training is an i1 scalar, whether the program trains.
	Seed     func() *ir.Value
	Stream   func() int64
	Training func() *ir.Value
}

// ElemType is the IR's element type.
func ElemType(c *ir.Context, d shape.DType) ir.Type {
	switch d {
	case shape.F64:
		return c.Float(ir.F64)
	case shape.BF16:
		return c.Float(ir.BF16)
	case shape.F16:
		return c.Float(ir.F16)
	case shape.I32:
		return c.I32()
	case shape.I64:
		return c.I64()
	case shape.Bool:
		return c.I1()
	}
	return c.Float(ir.F32)
}

// TensorType is the IR's type of a tensor.
func TensorType(c *ir.Context, t shape.Type) *ir.TensorType {
	return c.Tensor(t.Sizes(), ElemType(c, t.DType))
}

func (e *Emitter) resultType() ir.Type { return TensorType(e.Ctx, e.Call.Result) }

func (e *Emitter) vals(name string) []*ir.Value { return e.Values[e.Call.index(name)] }

// val is a tensor argument, nil where it was left out.
func (e *Emitter) val(name string) *ir.Value {
	if vs := e.vals(name); len(vs) > 0 {
		return vs[0]
	}
	return nil
}

func (e *Emitter) attr(name string, a ir.Attr) ir.NamedAttr {
	return ir.NamedAttr{Name: name, Value: a}
}

func (e *Emitter) f64(param string) ir.Attr { return e.Ctx.FloatAttr(e.Call.num(param), e.Ctx.F64()) }

func (e *Emitter) axesAttr(name string, axes []int) ir.NamedAttr {
	ns := make([]int64, len(axes))
	for i, a := range axes {
		ns[i] = int64(a)
	}
	return e.attr(name, e.Ctx.I64s(ns...))
}

// op makes an operation of the operands and attributes in args and returns its results.
func (e *Emitter) op(def *ir.OpDef, args ...any) []*ir.Value {
	var operands []*ir.Value
	var attrs []ir.NamedAttr
	for _, a := range args {
		switch a := a.(type) {
		case *ir.Value:
			operands = append(operands, a)
		case ir.NamedAttr:
			attrs = append(attrs, a)
		}
	}
	return e.Create(def, operands, attrs...).Results()
}

func (e *Emitter) one(def *ir.OpDef, args ...any) *ir.Value { return e.op(def, args...)[0] }

// typed is one for an operation whose result type is given.
func (e *Emitter) typed(def *ir.OpDef, t ir.Type, operands []*ir.Value, attrs ...ir.NamedAttr) *ir.Value {
	return e.CreateState(def, ir.OpState{Operands: operands, Attrs: attrs, Results: []ir.Type{t}}).Result(0)
}

// as is an argument in the given dimensions: a tensor broadcast to them, or a constant repeated.
func (e *Emitter) as(name string, dims []int64) *ir.Value { return e.nth(e.Call.index(name), dims) }

func (e *Emitter) nth(i int, dims []int64) *ir.Value {
	a := e.Call.Args[i]
	if a.IsConst() {
		value := a.Const.Number()
		if a.Const.Bool {
			value = 1
		}
		return e.splat(value, e.Ctx.Tensor(dims, ElemType(e.Ctx, a.Type.DType)))
	}
	v := e.Values[i][0]
	lead := len(dims) - len(v.Shape())
	axes := counting(len(v.Shape()))
	for j := range axes {
		axes[j] += int64(lead)
	}
	return e.broadcast(v, dims, axes)
}

// counting is 0, 1, ..., n - 1.
func counting(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func (e *Emitter) splat(value float64, t ir.Type) *ir.Value {
	return e.typed(blu.Constant, t, nil, e.attr("value", e.Ctx.Splat(t, value)))
}

func (e *Emitter) iota(t ir.Type, axis int) *ir.Value {
	return e.typed(blu.Iota, t, nil, e.attr("axis", e.Ctx.Int64(int64(axis))))
}

func (e *Emitter) cast(x *ir.Value, d shape.DType) *ir.Value {
	t := e.Ctx.Tensor(x.Shape(), ElemType(e.Ctx, d))
	if x.Type() == ir.Type(t) {
		return x
	}
	return e.typed(blu.Cast, t, []*ir.Value{x})
}

// broadcast gives x the dimensions dims; dimension i of x becomes dimension axes[i].
func (e *Emitter) broadcast(x *ir.Value, dims, axes []int64) *ir.Value {
	if slices.Equal(x.Shape(), dims) {
		return x
	}
	return e.typed(blu.Broadcast, e.Ctx.Tensor(dims, x.Elem()), []*ir.Value{x}, e.attr("axes", e.Ctx.I64s(axes...)))
}

func (e *Emitter) reshape(x *ir.Value, dims []int64) *ir.Value {
	if slices.Equal(x.Shape(), dims) {
		return x
	}
	return e.typed(blu.Reshape, e.Ctx.Tensor(dims, x.Elem()), []*ir.Value{x})
}

func (e *Emitter) transpose(x *ir.Value, perm []int64) *ir.Value {
	if slices.Equal(perm, counting(len(perm))) {
		return x
	}
	return e.one(blu.Transpose, x, e.attr("perm", e.Ctx.I64s(perm...)))
}

// swap exchanges two dimensions.
func (e *Emitter) swap(x *ir.Value, i, j int) *ir.Value {
	perm := counting(len(x.Shape()))
	perm[i], perm[j] = perm[j], perm[i]
	return e.transpose(x, perm)
}

// slice takes low to high along an axis.
func (e *Emitter) slice(x *ir.Value, axis int, low, high int64) *ir.Value {
	starts, limits := make([]int64, len(x.Shape())), slices.Clone(x.Shape())
	starts[axis], limits[axis] = low, high
	return e.slices(x, starts, limits)
}

func (e *Emitter) slices(x *ir.Value, starts, limits []int64) *ir.Value {
	if slices.Equal(limits, x.Shape()) && !slices.ContainsFunc(starts, func(s int64) bool { return s != 0 }) {
		return x
	}
	steps := slices.Repeat([]int64{1}, len(starts))
	return e.one(blu.Slice, x, e.attr("starts", e.Ctx.I64s(starts...)), e.attr("limits", e.Ctx.I64s(limits...)), e.attr("steps", e.Ctx.I64s(steps...)))
}

func (e *Emitter) dot(x, y *ir.Value, xBatch, yBatch, xSum, ySum []int64) *ir.Value {
	return e.one(blu.Dot, x, y, e.attr("lhs_batch", e.Ctx.I64s(xBatch...)), e.attr("rhs_batch", e.Ctx.I64s(yBatch...)),
		e.attr("lhs_contract", e.Ctx.I64s(xSum...)), e.attr("rhs_contract", e.Ctx.I64s(ySum...)))
}

// uniform is random numbers in [0, 1) in the dimensions of t, always as f32: a narrower type could round up to 1.
func (e *Emitter) uniform(t ir.Type) *ir.Value {
	dims, _ := ir.Shape(t)
	return e.typed(blu.RandomUniform, e.Ctx.Tensor(dims, e.Ctx.F32()), []*ir.Value{e.Seed()}, e.attr("stream", e.Ctx.Int64(e.Stream())))
}
