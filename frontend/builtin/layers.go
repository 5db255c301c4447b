package builtin

import (
	"math"

	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
)

// inferNorm is layernorm and rmsnorm: g and b have the size of x's last dimension.
func inferNorm(c *Call) shape.Type {
	x := c.typ("x")
	names := []string{"g"}
	if c.Row.Name == "layernorm" {
		names = append(names, "b")
	}
	if !c.least("x", 1) || !c.sameDType(append([]string{"x"}, names...)...) {
		return shape.Type{}
	}
	channels := x.Dims[x.Rank()-1]
	for _, n := range names {
		if !c.has(n) {
			continue
		}
		if !c.rank(n, 1, "[channels]") {
			return shape.Type{}
		}
		if d := c.typ(n).Dims[0]; d.N != channels.N {
			return c.clash(n, []string{"x"}, "x has %v, %s has %v", shape.Count{Of: channels, Noun: "channels"}, n, d)
		}
	}
	if eps := c.num("eps"); !(eps >= 0) {
		return c.fail("eps", "eps must not be negative, this is %g", eps)
	}
	return x
}

func inferAttention(c *Call) shape.Type {
	q, k, v := c.typ("q"), c.typ("k"), c.typ("v")
	if !c.rank("q", 4, "[B, H, S, D]") || !c.rank("k", 4, "[B, K, T, D]") || !c.rank("v", 4, "[B, K, T, D]") || !c.sameDType("q", "k", "v") {
		return shape.Type{}
	}
	for i, what := range []string{"batch", "heads", "keys", "channels a head"} {
		if a, b := k.Dims[i], v.Dims[i]; a.N != b.N {
			return c.clash("v", []string{"k"}, "%s: k has %v, v has %v", what, a, b)
		}
	}
	if q.Dims[0].N != k.Dims[0].N {
		return c.clash("k", []string{"q"}, "batch: q has %v, k has %v", q.Dims[0], k.Dims[0])
	}
	if q.Dims[3].N != k.Dims[3].N {
		return c.clash("k", []string{"q"}, "channels a head: q has %v, k has %v", q.Dims[3], k.Dims[3])
	}
	if q.Dims[1].N%k.Dims[1].N != 0 {
		return c.clash("k", []string{"q"}, "q has %v, which the %v of k do not divide", shape.Count{Of: q.Dims[1], Noun: "heads"}, k.Dims[1])
	}
	if c.bool("causal") && q.Dims[2].N > k.Dims[2].N {
		return c.clash("k", []string{"q"}, "causal: q has %v, more than the %v of k, so that the first would see nothing",
			shape.Count{Of: q.Dims[2], Noun: "queries"}, shape.Count{Of: k.Dims[2], Noun: "keys"})
	}
	return q
}

func inferRope(c *Call) shape.Type {
	x := c.typ("x")
	if !c.least("x", 2) {
		return shape.Type{}
	}
	if d := x.Dims[x.Rank()-1]; d.N%2 != 0 {
		return c.clash("x", nil, "the last dimension turns in pairs, %v is odd", d)
	}
	if base := c.num("base"); !(base > 0) {
		return c.fail("base", "base must be positive, this is %g", base)
	}
	return x
}

func inferDropout(c *Call) shape.Type {
	if p := c.num("p"); !(p >= 0 && p < 1) {
		return c.fail("p", "p must be at least 0 and less than 1, this is %g", p)
	}
	return c.typ("x")
}

func inferCrossEntropy(c *Call) shape.Type {
	logits, targets := c.typ("logits"), c.typ("targets")
	if !c.least("logits", 1) {
		return shape.Type{}
	}
	rows := logits.Dims[:logits.Rank()-1]
	if !shape.SameDims(rows, targets.Dims) {
		return c.clash("targets", []string{"logits"}, "logits is %v, so targets must have dimensions %v, it is %v", logits, rows, targets)
	}
	return lossTuple(logits)
}

// lossTuple is a sum and a count of terms made from x: f32, or f64 where x is.
func lossTuple(x shape.Type) shape.Type {
	d := shape.F32
	if x.DType == shape.F64 {
		d = shape.F64
	}
	return shape.Tuple(shape.Tensor(d), shape.Tensor(d))
}

func inferMse(c *Call) shape.Type {
	x, y := c.typ("x"), c.typ("y")
	if !c.sameDType("x", "y") {
		return shape.Type{}
	}
	if !shape.SameDims(x.Dims, y.Dims) {
		return c.clash("y", []string{"x"}, "x is %v, y is %v: the shapes must be equal", x, y)
	}
	return lossTuple(x)
}

func emitLayernorm(e *Emitter) []*ir.Value {
	g, b := e.val("g"), e.val("b")
	if b == nil {
		b = e.splat(0, g.Type())
	}
	return e.op(blu.Layernorm, e.val("x"), g, b, e.attr("eps", e.f64("eps")))[:1]
}

func emitRmsnorm(e *Emitter) []*ir.Value {
	return e.op(blu.Rmsnorm, e.val("x"), e.val("g"), e.attr("eps", e.f64("eps")))[:1]
}

func emitAttention(e *Emitter) []*ir.Value {
	scale := 1 / math.Sqrt(float64(e.Call.typ("q").Dims[3].N))
	if e.Call.has("scale") {
		scale = e.Call.num("scale")
	}
	return e.op(blu.Attention, e.val("q"), e.val("k"), e.val("v"),
		e.attr("causal", e.Ctx.Bool(e.Call.bool("causal"))), e.attr("scale", e.Ctx.FloatAttr(scale, e.Ctx.F64())))[:1]
}

func emitRope(e *Emitter) []*ir.Value {
	return e.op(blu.Rope, e.val("x"), e.attr("base", e.f64("base")), e.attr("inverse", e.Ctx.Bool(false)))
}

// emitDropout keeps an element where training is off or its uniform number in [0, 1) is at least p.
func emitDropout(e *Emitter) []*ir.Value {
	x, p := e.val("x"), e.Call.num("p")
	if p == 0 {
		return []*ir.Value{x}
	}
	dims := x.Shape()
	u := e.uniform(x.Type())
	drawn := e.one(blu.Compare, u, e.splat(p, u.Type()), e.attr("predicate", e.Ctx.String("ge")))
	kept := e.one(blu.Select, drawn, e.one(blu.Mul, x, e.splat(1/(1-p), x.Type())), e.splat(0, x.Type()))
	return e.op(blu.Select, e.broadcast(e.Training(), dims, nil), kept, x)
}

func emitCrossEntropy(e *Emitter) []*ir.Value {
	return e.op(blu.CrossEntropy, e.val("logits"), e.val("targets"), e.attr("ignore", e.Ctx.Int64(e.Call.int("ignore").N)))[:2]
}

func emitMse(e *Emitter) []*ir.Value {
	x := e.val("x")
	d := e.one(blu.Sub, x, e.val("y"))
	all := make([]int, len(x.Shape()))
	for i := range all {
		all[i] = i
	}
	sum := e.one(blu.Mul, d, d)
	if len(all) > 0 {
		sum = e.one(blu.ReduceSum, sum, e.axesAttr("axes", all))
	}
	stat := e.Call.Result.Elems[0]
	scalar := TensorType(e.Ctx, stat)
	return []*ir.Value{e.cast(sum, stat.DType), e.splat(float64(ir.NumElements(x.Shape())), scalar)}
}
