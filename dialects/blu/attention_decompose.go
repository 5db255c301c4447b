package blu

import (
	"math"
	"slices"

	"blutrain/ir"
)

// grouped is an attention in primitive operations: q as [B, Hk, G, S, D], where the G query heads that share a key head
// stand together, and scores as [B, Hk, G, S, T].
type grouped struct {
	q, k, v *ir.Value
	shape   []int64 // B, Hk, G, S
	scores  *ir.Value
}

func (b *Builder) group(op *ir.Op) grouped {
	q, k, v := b.wide(op.Operand(0)), b.wide(op.Operand(1)), b.wide(op.Operand(2))
	qs, hk := q.Shape(), k.Shape()[1]
	g := grouped{k: k, v: v, shape: []int64{qs[0], hk, qs[1] / max(hk, 1), qs[2]}}
	g.q = b.split(g, q)
	scores := b.Dot(g.q, k, []int64{0, 1}, []int64{0, 1}, []int64{4}, []int64{3})
	scores = b.scaled(scores, op.Attrs().FloatOr("scale", 1))
	if op.Attrs().Bool("causal") {
		scores = b.Select(b.seen(scores.Shape()), scores, b.SplatLike(scores, math.Inf(-1)))
	}
	g.scores = scores
	return g
}

// split is [B, H, S, n] as [B, Hk, G, S, n].
func (b *Builder) split(g grouped, x *ir.Value) *ir.Value {
	return b.ReshapeTo(x, append(slices.Clone(g.shape), last(x.Shape()))...)
}

// seen is whether query s, axis 3 of the shape, sees key t, axis 4: t <= s + T - S.
func (b *Builder) seen(shape []int64) *ir.Value {
	s, t := shape[3], shape[4]
	square := b.Ctx.Tensor([]int64{s, t}, b.Ctx.I32())
	latest := b.Add(b.Iota(0, square), b.Splat(square, float64(t-s)))
	return b.BroadcastTo(b.Compare(b.Iota(1, square), latest, "le"), []int64{3, 4}, shape)
}

func decomposeAttention(b *Builder, op *ir.Op) []*ir.Value {
	g := b.group(op)
	e, sum, shift := b.exponentials(g.scores, 4)
	p := b.Div(e, b.Along(b.replaced(sum, 0, 1), 4, e.Shape()))
	o := b.Dot(p, g.v, []int64{0, 1}, []int64{0, 1}, []int64{4}, []int64{2})
	lse := b.Add(shift, b.Log(sum))
	return []*ir.Value{
		b.CastTo(b.ReshapeTo(o, op.Result(0).Shape()...), op.Result(0).Elem()),
		b.ReshapeTo(lse, op.Result(1).Shape()...),
	}
}

func decomposeAttentionGrad(b *Builder, op *ir.Op) []*ir.Value {
	g := b.group(op)
	o, do := b.split(g, b.wide(op.Operand(3))), b.split(g, b.wide(op.Operand(5)))
	lse := b.finite(b.ReshapeTo(op.Operand(4), g.shape...))
	p := b.Exp(b.Sub(g.scores, b.Along(lse, 4, g.scores.Shape())))
	delta := b.ReduceSum(b.Mul(do, o), []int64{4})
	dp := b.Dot(do, g.v, []int64{0, 1}, []int64{0, 1}, []int64{4}, []int64{3})
	ds := b.scaled(b.Mul(p, b.Sub(dp, b.Along(delta, 4, dp.Shape()))), op.Attrs().FloatOr("scale", 1))
	dq := b.Dot(ds, g.k, []int64{0, 1}, []int64{0, 1}, []int64{4}, []int64{2})
	dk := b.Dot(ds, g.q, []int64{0, 1}, []int64{0, 1}, []int64{2, 3}, []int64{2, 3})
	dv := b.Dot(p, do, []int64{0, 1}, []int64{0, 1}, []int64{2, 3}, []int64{2, 3})
	return []*ir.Value{
		b.CastTo(b.ReshapeTo(dq, op.Result(0).Shape()...), op.Result(0).Elem()),
		b.CastTo(dk, op.Result(1).Elem()),
		b.CastTo(dv, op.Result(2).Elem()),
	}
}
