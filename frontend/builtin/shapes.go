package builtin

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
	"blutrain/ir/diag"
)

func inferReshape(c *Call) shape.Type {
	x, dims := c.typ("x"), slices.Clone(c.ints("shape"))
	total, ok := c.product(x.Dims)
	if !ok {
		return shape.Type{}
	}
	isHole := func(d shape.Int) bool { return d.N == -1 }
	hole := slices.IndexFunc(dims, isHole)
	if hole >= 0 && slices.ContainsFunc(dims[hole+1:], isHole) {
		return c.fail("shape", "only one size can be -1")
	}
	if hole >= 0 {
		dims[hole] = shape.Lit(1)
		known, ok := c.product(dims)
		if !ok {
			return shape.Type{}
		}
		if known.N < 1 || total.N%known.N != 0 {
			return c.clash("shape", []string{"x"}, "the elements of x do not fill the other sizes: x has %v, they hold %v", shape.Count{Of: total, Noun: "elements"}, known)
		}
		dims[hole], _ = shape.Div(total, known)
	}
	for _, d := range dims {
		if d.N < 1 {
			return c.fail("shape", "a size must be at least 1 (or -1, once), this is %v", d)
		}
	}
	known, ok := c.product(dims)
	if ok && known.N != total.N {
		return c.clash("shape", []string{"x"}, "x has %v, the shape holds %v", shape.Count{Of: total, Noun: "elements"}, known)
	}
	if !ok {
		return shape.Type{}
	}
	return x.WithDims(dims...)
}

func inferTranspose(c *Call) shape.Type {
	x, perm := c.typ("x"), c.ints("perm")
	if len(perm) != x.Rank() {
		return c.clash("perm", []string{"x"}, "perm names %s, x is %v", plural(len(perm), "dimension"), x)
	}
	seen := make([]bool, len(perm))
	dims := make([]shape.Int, len(perm))
	for i, p := range perm {
		if p.N < 0 || p.N >= int64(len(perm)) || seen[p.N] {
			return c.fail("perm", "perm must hold each of 0 to %d once", len(perm)-1)
		}
		seen[p.N] = true
		dims[i] = x.Dims[p.N]
	}
	return x.WithDims(dims...)
}

func inferBroadcast(c *Call) shape.Type {
	x := c.typ("x")
	dims, ok := c.sizes("shape")
	if !ok {
		return shape.Type{}
	}
	if x.Rank() > len(dims) {
		return c.clash("x", nil, "x is %v, the shape %v has fewer dimensions", x, dims)
	}
	for i, d := range x.Dims {
		if to := dims[len(dims)-x.Rank()+i]; d.N != 1 && d.N != to.N {
			return c.clash("x", nil, "dimension %d of x is %v, the shape has %v there", i, d, to)
		}
	}
	return x.WithDims(dims...)
}

func inferUnsqueeze(c *Call) shape.Type {
	x := c.typ("x")
	axis, ok := c.axis("axis", x.Rank()+1)
	if !ok {
		return shape.Type{}
	}
	return x.WithDims(slices.Insert(slices.Clone(x.Dims), axis, shape.Lit(1))...)
}

func inferSqueeze(c *Call) shape.Type {
	x := c.typ("x")
	axis, ok := c.axis("axis", x.Rank())
	if !ok {
		return shape.Type{}
	}
	if d := x.Dims[axis]; d.N != 1 {
		return c.clash("x", nil, "dimension %d of x is %v, only a size of 1 can go", axis, d)
	}
	return x.WithDims(slices.Delete(slices.Clone(x.Dims), axis, axis+1)...)
}

// span is a piece of a dimension, low to high, or an error about it at r.
func (c *Call) span(r diag.Range, d shape.Int, low, high *shape.Int) (from, to shape.Int, ok bool) {
	from, to = shape.Lit(0), d
	if low != nil {
		from = fromEnd(*low, d)
	}
	if high != nil {
		to = fromEnd(*high, d)
	}
	switch {
	case from.N < 0 || to.N > d.N || from.N > d.N || to.N < 0:
		c.failAt(r, "%v to %v is outside a dimension of %v", from, to, d)
	case from.N >= to.N:
		c.failAt(r, "%v to %v is empty", from, to)
	default:
		return from, to, true
	}
	return from, to, false
}

// fromEnd counts a negative position from the end of a dimension.
func fromEnd(i, d shape.Int) shape.Int {
	if i.N >= 0 {
		return i
	}
	at, err := shape.Add(d, i)
	if err != nil {
		return i
	}
	return at
}

func inferSlice(c *Call) shape.Type {
	x := c.typ("x")
	axis, ok := c.axis("axis", x.Rank())
	if !ok {
		return shape.Type{}
	}
	from, to, ok := c.sliceSpan(x.Dims[axis])
	if !ok {
		return shape.Type{}
	}
	dims := slices.Clone(x.Dims)
	dims[axis], _ = shape.Sub(to, from)
	return x.WithDims(dims...)
}

func (c *Call) sliceSpan(d shape.Int) (from, to shape.Int, ok bool) {
	start := c.int("start")
	var end *shape.Int
	if c.has("end") {
		v := c.int("end")
		end = &v
	}
	return c.span(c.place("start"), d, &start, end)
}

func inferSplit(c *Call) shape.Type {
	x := c.typ("x")
	axis, ok := c.axis("axis", x.Rank())
	if !ok {
		return shape.Type{}
	}
	sizes, ok := c.splitSizes(x.Dims[axis])
	if !ok {
		return shape.Type{}
	}
	elems := make([]shape.Type, len(sizes))
	for i, s := range sizes {
		dims := slices.Clone(x.Dims)
		dims[axis] = s
		elems[i] = x.WithDims(dims...)
	}
	return shape.Tuple(elems...)
}

// maxParts bounds a split: each part is a value of the program.
const maxParts = 4096

func (c *Call) splitSizes(d shape.Int) ([]shape.Int, bool) {
	if c.has("sizes") {
		sizes, ok := c.sizes("sizes")
		if !ok {
			return nil, false
		}
		sum := shape.Lit(0)
		for _, s := range sizes {
			var err error
			if sum, err = shape.Add(sum, s); err != nil {
				c.fail("sizes", "%s", err)
				return nil, false
			}
		}
		if sum.N != d.N {
			c.clash("sizes", []string{"x"}, "the sizes make %v, the axis has %v", sum, d)
			return nil, false
		}
		return sizes, len(sizes) > 0
	}
	parts := shape.Lit(int64(c.Parts))
	if c.has("parts") {
		parts = c.int("parts")
	}
	switch {
	case parts.N == 0 && !c.has("parts"):
		c.failAt(c.At, "the number of parts is not known: write let (a, b) = split(...), or say parts or sizes")
		return nil, false
	case parts.N < 2 || parts.N > maxParts:
		c.fail("parts", "parts must be from 2 to %d, this is %v", maxParts, parts)
		return nil, false
	case d.N%parts.N != 0:
		c.clash("x", nil, "%v does not split into %v equal parts", d, parts)
		return nil, false
	}
	each, _ := shape.Div(d, parts)
	return slices.Repeat([]shape.Int{each}, int(parts.N)), true
}

func inferConcat(c *Call) shape.Type {
	xs := c.arg("xs").List
	first := xs[0].Type
	axis, ok := c.axis("axis", first.Rank())
	if !ok {
		return shape.Type{}
	}
	sum := first.Dims[axis]
	for i, x := range xs[1:] {
		t := x.Type
		if t.DType != first.DType {
			c.failAt(x.At, "tensor 1 is %s, tensor %d is %s: cast one of them", first.DType, i+2, t.DType)
			return shape.Type{}
		}
		if t.Rank() != first.Rank() {
			c.failAt(x.At, "tensor 1 is %v, tensor %d is %v: the ranks differ", first, i+2, t)
			return shape.Type{}
		}
		for j, d := range t.Dims {
			if j != axis && d.N != first.Dims[j].N {
				c.failAt(x.At, "dimension %d of tensor 1 is %v, of tensor %d it is %v", j, first.Dims[j], i+2, d)
				return shape.Type{}
			}
		}
		var err error
		if sum, err = shape.Add(sum, t.Dims[axis]); err != nil {
			return c.fail("", "%s", err)
		}
	}
	dims := slices.Clone(first.Dims)
	dims[axis] = sum
	return first.WithDims(dims...)
}

func inferPad(c *Call) shape.Type {
	x := c.typ("x")
	axis, ok := c.axis("axis", x.Rank())
	if !ok {
		return shape.Type{}
	}
	if err := c.arg("value").Const.Fits(x.DType); err != nil {
		return c.fail("value", "%s", err)
	}
	d := x.Dims[axis]
	for _, side := range []string{"low", "high"} {
		n := c.int(side)
		if n.N < 0 {
			return c.fail(side, "%s must not be negative, this is %v", side, n)
		}
		var err error
		if d, err = shape.Add(d, n); err != nil {
			return c.fail(side, "%s", err)
		}
	}
	dims := slices.Clone(x.Dims)
	dims[axis] = d
	return x.WithDims(dims...)
}

func inferHeads(c *Call) shape.Type {
	x, n := c.typ("x"), c.int("n")
	if !c.least("x", 2) {
		return shape.Type{}
	}
	channels := x.Dims[x.Rank()-1]
	if n.N < 1 {
		return c.fail("n", "the number of heads must be at least 1, this is %v", n)
	}
	if channels.N%n.N != 0 {
		return c.clash("n", []string{"x"}, "x has %v, which %v heads do not divide", shape.Count{Of: channels, Noun: "channels"}, n)
	}
	width, _ := shape.Div(channels, n)
	dims := append(slices.Clone(x.Dims[:x.Rank()-2]), n, x.Dims[x.Rank()-2], width)
	return x.WithDims(dims...)
}

func inferMerge(c *Call) shape.Type {
	x := c.typ("x")
	if !c.least("x", 3) {
		return shape.Type{}
	}
	r := x.Rank()
	width, err := shape.Mul(x.Dims[r-3], x.Dims[r-1])
	if err != nil {
		return c.fail("x", "%s", err)
	}
	return x.WithDims(append(slices.Clone(x.Dims[:r-3]), x.Dims[r-2], width)...)
}

// emitReshape is any built-in that only changes dimensions.
func emitReshape(e *Emitter) []*ir.Value {
	return []*ir.Value{e.reshape(e.val("x"), e.Call.Result.Sizes())}
}

func emitTranspose(e *Emitter) []*ir.Value {
	var perm []int64
	for _, p := range e.Call.ints("perm") {
		perm = append(perm, p.N)
	}
	return []*ir.Value{e.transpose(e.val("x"), perm)}
}

func emitBroadcast(e *Emitter) []*ir.Value {
	return []*ir.Value{e.as("x", e.Call.Result.Sizes())}
}

func emitSlice(e *Emitter) []*ir.Value {
	x := e.val("x")
	axis, _ := e.Call.axis("axis", len(x.Shape()))
	from, to, _ := e.Call.sliceSpan(e.Call.typ("x").Dims[axis])
	return []*ir.Value{e.slice(x, axis, from.N, to.N)}
}

func emitSplit(e *Emitter) []*ir.Value {
	x := e.val("x")
	axis, _ := e.Call.axis("axis", len(x.Shape()))
	var parts []*ir.Value
	var at int64
	for _, t := range e.Call.Result.Elems {
		size := t.Dims[axis].N
		parts = append(parts, e.slice(x, axis, at, at+size))
		at += size
	}
	return parts
}

func emitConcat(e *Emitter) []*ir.Value {
	axis, _ := e.Call.axis("axis", e.Call.Result.Rank())
	return []*ir.Value{e.Create(blu.Concat, e.vals("xs"), e.attr("axis", e.Ctx.Int64(int64(axis)))).Result(0)}
}

func emitPad(e *Emitter) []*ir.Value {
	x := e.val("x")
	axis, _ := e.Call.axis("axis", len(x.Shape()))
	low, high := make([]int64, len(x.Shape())), make([]int64, len(x.Shape()))
	low[axis], high[axis] = e.Call.int("low").N, e.Call.int("high").N
	return e.op(blu.Pad, x, e.attr("low", e.Ctx.I64s(low...)), e.attr("high", e.Ctx.I64s(high...)),
		e.attr("value", e.Ctx.FloatAttr(e.Call.num("value"), e.Ctx.F64())))
}

// emitHeads is [..., S, C] to [..., S, n, C/n] to [..., n, S, C/n].
func emitHeads(e *Emitter) []*ir.Value {
	x, d := e.val("x"), e.Call.Result.Sizes()
	r := len(d)
	split := append(slices.Clone(d[:r-3]), d[r-2], d[r-3], d[r-1])
	return []*ir.Value{e.swap(e.reshape(x, split), r-3, r-2)}
}

func emitMerge(e *Emitter) []*ir.Value {
	x := e.val("x")
	r := len(x.Shape())
	return []*ir.Value{e.reshape(e.swap(x, r-3, r-2), e.Call.Result.Sizes())}
}
