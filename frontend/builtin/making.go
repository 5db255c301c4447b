package builtin

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
	"blutrain/ir/diag"
)

func inferFull(c *Call) shape.Type {
	dims, ok := c.sizes("shape")
	if !ok {
		return shape.Type{}
	}
	d := c.dtype("dtype")
	if c.Row.Name == "full" {
		if err := c.arg("value").Const.Fits(d); err != nil {
			return c.fail("value", "%s", err)
		}
	}
	return shape.Tensor(d, dims...)
}

func inferArange(c *Call) shape.Type {
	n, d := c.int("n"), c.dtype("dtype")
	if n.N < 1 {
		return c.fail("n", "n must be at least 1, this is %v", n)
	}
	if d == shape.Bool {
		return c.fail("dtype", "arange counts in a number type, not in bool")
	}
	if err := shape.IntOf(shape.Lit(n.N - 1)).Fits(d); err != nil {
		return c.fail("n", "%s", err)
	}
	return shape.Tensor(d, n)
}

func inferOneHot(c *Call) shape.Type {
	x, n := c.typ("x"), c.int("n")
	if n.N < 1 {
		return c.fail("n", "n must be at least 1, this is %v", n)
	}
	return shape.Tensor(c.dtype("dtype"), append(slices.Clone(x.Dims), n)...)
}

func inferGather(c *Call) shape.Type {
	x, rows := c.typ("x"), c.typ("indices")
	if !c.least("x", 1) {
		return shape.Type{}
	}
	return x.WithDims(append(slices.Clone(rows.Dims), x.Dims[1:]...)...)
}

// IndexItem is one item of x[...]: a position, or a slice with ends that may be left out.
type IndexItem struct {
	At        diag.Range
	Slice     bool
	Low, High *shape.Int // Low is the position, when not a slice
}

func inferIndex(c *Call) shape.Type {
	x := c.typ("x")
	if c.arg("rows").Given {
		if !c.least("x", 1) {
			return shape.Type{}
		}
		return x.WithDims(append(slices.Clone(c.typ("rows").Dims), x.Dims[1:]...)...)
	}
	if len(c.Index) > x.Rank() {
		d := c.failAt(c.Index[x.Rank()].At, "x has %s, the brackets have %d", plural(x.Rank(), "dimension"), len(c.Index))
		c.notes(d, "x")
		return shape.Type{}
	}
	var dims []shape.Int
	for i, d := range x.Dims {
		from, to, ok := c.indexSpan(i, d)
		if !ok {
			return shape.Type{}
		}
		if i >= len(c.Index) || c.Index[i].Slice {
			size, _ := shape.Sub(to, from)
			if size.N == d.N {
				size = preferNamed(size, d)
			}
			dims = append(dims, size)
		}
	}
	return x.WithDims(dims...)
}

// indexSpan is what item i takes of its dimension; a dimension without an item is taken whole.
func (c *Call) indexSpan(i int, d shape.Int) (from, to shape.Int, ok bool) {
	if i >= len(c.Index) {
		return shape.Lit(0), d, true
	}
	item := c.Index[i]
	if item.Slice {
		return c.span(item.At, d, item.Low, item.High)
	}
	at := fromEnd(*item.Low, d)
	if at.N < 0 || at.N >= d.N {
		c.failAt(item.At, "position %v is outside a dimension of %v", *item.Low, d)
		return at, at, false
	}
	next, _ := shape.Add(at, shape.Lit(1))
	return at, next, true
}

func emitFull(value float64) func(*Emitter) []*ir.Value {
	return func(e *Emitter) []*ir.Value { return []*ir.Value{e.splat(value, e.resultType())} }
}

func emitFullValue(e *Emitter) []*ir.Value {
	return []*ir.Value{e.splat(e.Call.num("value"), e.resultType())}
}

func emitArange(e *Emitter) []*ir.Value {
	return []*ir.Value{e.iota(e.resultType(), 0)}
}

// emitOneHot compares x, beside a new last dimension, with 0..n-1 along it.
func emitOneHot(e *Emitter) []*ir.Value {
	x, dims := e.val("x"), e.Call.Result.Sizes()
	wide := e.broadcast(x, dims, counting(len(dims)-1))
	hot := e.one(blu.Compare, wide, e.iota(wide.Type(), len(dims)-1), e.attr("predicate", e.Ctx.String("eq")))
	return []*ir.Value{e.cast(hot, e.Call.dtype("dtype"))}
}

func emitGather(e *Emitter) []*ir.Value { return e.op(blu.Gather, e.val("x"), e.val("indices")) }

func emitIndex(e *Emitter) []*ir.Value {
	x := e.val("x")
	if e.Call.arg("rows").Given {
		return e.op(blu.Gather, x, e.val("rows"))
	}
	starts, limits := make([]int64, len(x.Shape())), make([]int64, len(x.Shape()))
	for i, d := range e.Call.typ("x").Dims {
		from, to, _ := e.Call.indexSpan(i, d)
		starts[i], limits[i] = from.N, to.N
	}
	return []*ir.Value{e.reshape(e.slices(x, starts, limits), e.Call.Result.Sizes())}
}
