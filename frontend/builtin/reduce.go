package builtin

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
)

func reductionRow(name, doc string, k Kind, emit func(*Emitter) []*ir.Value) *Row {
	return &Row{Name: name, Doc: doc, Result: "without the axes, or with size 1 where keep", Infer: inferReduction, Emit: emit,
		Params: []Param{tensor("x", k), {Name: "axis", Kind: AxesArg, Optional: true}, boolDefault("keep", false)}}
}

func inferReduction(c *Call) shape.Type {
	x := c.typ("x")
	axes, ok := c.axes("axis", x.Rank())
	if !ok {
		return shape.Type{}
	}
	var dims []shape.Int
	for i, d := range x.Dims {
		switch {
		case !slices.Contains(axes, i):
			dims = append(dims, d)
		case c.bool("keep"):
			dims = append(dims, shape.Lit(1))
		}
	}
	return x.WithDims(dims...)
}

func inferArgmax(c *Call) shape.Type {
	x := c.typ("x")
	axis, ok := c.axis("axis", x.Rank())
	if !ok {
		return shape.Type{}
	}
	return shape.Tensor(shape.I32, slices.Delete(slices.Clone(x.Dims), axis, axis+1)...)
}

func inferAlongAxis(c *Call) shape.Type {
	if _, ok := c.axis("axis", c.typ("x").Rank()); !ok {
		return shape.Type{}
	}
	return c.typ("x")
}

// reduce is the reduction of x over the call's axes, without keep.
func (e *Emitter) reduce(def *ir.OpDef, x *ir.Value) *ir.Value {
	axes, _ := e.Call.axes("axis", len(x.Shape()))
	if len(axes) == 0 {
		return x
	}
	return e.one(def, x, e.axesAttr("axes", axes))
}

// kept gives a reduced value the dimensions of the result, which keep may want as size 1.
func (e *Emitter) kept(v *ir.Value) []*ir.Value {
	return []*ir.Value{e.reshape(v, e.Call.Result.Sizes())}
}

// spread gives a reduced value the dimensions of x again.
func (e *Emitter) spread(v, x *ir.Value) *ir.Value {
	axes, _ := e.Call.axes("axis", len(x.Shape()))
	var stay []int64
	for i := range x.Shape() {
		if !slices.Contains(axes, i) {
			stay = append(stay, int64(i))
		}
	}
	return e.broadcast(v, x.Shape(), stay)
}

// mean is the mean of x over the call's axes, without keep.
func (e *Emitter) mean(x *ir.Value) *ir.Value {
	s := e.reduce(blu.ReduceSum, x)
	count := ir.NumElements(x.Shape()) / ir.NumElements(s.Shape())
	return e.one(blu.Div, s, e.splat(float64(count), s.Type()))
}

func emitReduce(def *ir.OpDef) func(*Emitter) []*ir.Value {
	return func(e *Emitter) []*ir.Value { return e.kept(e.reduce(def, e.val("x"))) }
}

func emitSum(e *Emitter) []*ir.Value { return e.kept(e.reduce(blu.ReduceSum, e.val("x"))) }

func emitMean(e *Emitter) []*ir.Value { return e.kept(e.mean(e.val("x"))) }

func emitVar(e *Emitter) []*ir.Value {
	x := e.val("x")
	d := e.one(blu.Sub, x, e.spread(e.mean(x), x))
	d = e.one(blu.Sub, d, e.spread(e.mean(d), d)) // a large mean is rounded by as much as x varies
	return e.kept(e.mean(e.one(blu.Mul, d, d)))
}

// emitNorm keeps the square root away from zero, where its slope is infinite: n = s > 0 ? sqrt(s > 0 ? s : 1) : 0.
func emitNorm(e *Emitter) []*ir.Value {
	x := e.val("x")
	s := e.reduce(blu.ReduceSum, e.one(blu.Mul, x, x))
	zero := e.splat(0, s.Type())
	positive := e.one(blu.Compare, s, zero, e.attr("predicate", e.Ctx.String("gt")))
	root := e.one(blu.Sqrt, e.one(blu.Select, positive, s, e.splat(1, s.Type())))
	return e.kept(e.one(blu.Select, positive, root, zero))
}

func emitArgmax(e *Emitter) []*ir.Value {
	axis, _ := e.Call.axis("axis", len(e.val("x").Shape()))
	return e.op(blu.Argmax, e.val("x"), e.attr("axis", e.Ctx.Int64(int64(axis))))
}

func emitAlongAxis(def *ir.OpDef) func(*Emitter) []*ir.Value {
	return func(e *Emitter) []*ir.Value {
		axis, _ := e.Call.axis("axis", len(e.val("x").Shape()))
		return e.op(def, e.val("x"), e.attr("axis", e.Ctx.Int64(int64(axis))))
	}
}
