package shard

import (
	"math"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// Attention in blocks: at step i a rank attends to the keys of the rank i places before it, r-i modulo n; at step 0 to its
// own. The keys come in one of two ways.

// carrier brings keys and values from rank to rank, and gradients of them back.
type carrier interface {
	// keys is the keys and values of step i, from 1 to n-1, asked for in order.
	keys(i int64) (k, v *ir.Value)
	// add takes the gradients, of step i, of the keys and values that keys gave.
	add(i int64, dk, dv *ir.Value)
	// own is the gradients of the rank's own keys and values, when those of all ranks' queries have been added.
	own() (dk, dv *ir.Value)
}

// carrier is the way of the method. again: the keys were brought before, for the forward part, and are brought once more so
// that they need not be kept.
func (a attention) carrier(k, v *ir.Value, again bool) carrier {
	if a.method == gather {
		return a.pool(k, v)
	}
	r := &ringCarrier{attention: a, again: again}
	r.k, r.v = r.passKeys(k, v)
	return r
}

// again marks what is built as a computation of what was computed before, for the forward part: it is not merged with that,
// which would then have to be kept.
func (a attention) again(build func()) {
	before := a.OnInsert
	a.OnInsert = func(op *ir.Op) {
		if !op.Has(ir.ConstantLike) {
			op.SetAttr(blu.RecomputedAttr, a.Ctx.Unit())
		}
	}
	build()
	a.OnInsert = before
}

// inBlocks is attention to all keys, block by block.
func (a attention) inBlocks(q, k, v *ir.Value) merged {
	from := a.carrier(k, v, false)
	y := a.block(q, k, v, a.causal)
	if a.causal {
		return a.zigzagBlocks(y, q, from)
	}
	for i := int64(1); i < a.n; i++ {
		k, v := from.keys(i)
		y = a.merge(y, a.block(q, k, v, false))
	}
	return y
}

// zigzagBlocks adds, to causal attention within a rank's chunks a = r and b = 2n-1-r, that to other ranks' chunks. Those of
// rank j are a' = j and b' = 2n-1-j. b sees all of a'. If j < r, a sees all of a' too, and neither sees b'; if j > r, b sees
// all of b', and a sees nothing. So there are two blocks without a mask at every step, whatever the rank.
func (a attention) zigzagBlocks(y merged, q *ir.Value, from carrier) merged {
	qa, qb := a.halves(q, 2)
	ya, yb := y.halves(a.divider)
	for i := int64(1); i < a.n; i++ {
		k, v := from.keys(i)
		ka, kb := a.halves(k, 2)
		va, vb := a.halves(v, 2)
		before := a.isBefore(i)
		yb = a.merge(yb, a.block(qb, ka, va, false))
		y := a.block(a.either(before, qa, qb), a.either(before, ka, kb), a.either(before, va, vb), false)
		nothing := a.SplatLike(y.lse, math.Inf(-1))
		ya = a.merge(ya, merged{y.o, a.either(before, y.lse, nothing)})
		yb = a.merge(yb, merged{y.o, a.either(before, nothing, y.lse)})
	}
	return merged{a.Concat([]*ir.Value{ya.o, yb.o}, 2), a.Concat([]*ir.Value{ya.lse, yb.lse}, 2)}
}

// isBefore is whether the rank whose keys are there at step i comes before this one: r-i is not negative.
func (a attention) isBefore(i int64) *ir.Value {
	return a.Compare(a.rank, a.SplatLike(a.rank, float64(i)), "ge")
}

// gradInBlocks is the gradient of inBlocks: each block's is found with the weights of the whole, which lse gives.
func (a attention) gradInBlocks(x queries, k, v *ir.Value) []*ir.Value {
	from := a.carrier(k, v, true)
	if a.causal {
		return a.zigzagGrads(x, k, v, from)
	}
	dq, dk, dv := a.grad(x, k, v, false)
	for i := int64(1); i < a.n; i++ {
		k, v := from.keys(i)
		dqi, dki, dvi := a.grad(x, k, v, false)
		dq = a.Add(dq, dqi)
		from.add(i, dki, dvi)
	}
	dk2, dv2 := from.own()
	return []*ir.Value{dq, a.Add(dk, dk2), a.Add(dv, dv2)}
}

// zigzagGrads is the gradient of zigzagBlocks and of what is attended to within the rank's chunks: b's part of that comes
// first, while the keys of the first step are on their way, and a's last, while the last gradients are.
func (a attention) zigzagGrads(x queries, k, v *ir.Value, from carrier) []*ir.Value {
	xa, xb := x.halves(a.divider)
	dqb, dk, dv := a.grad(xb, k, v, true)
	dqa := a.SplatLike(dqb, 0)
	for i := int64(1); i < a.n; i++ {
		k, v := from.keys(i)
		ka, kb := a.halves(k, 2)
		va, vb := a.halves(v, 2)
		before := a.isBefore(i)
		pick := func(x, y *ir.Value) *ir.Value { return a.either(before, x, y) }
		dq1, dk1, dv1 := a.grad(xb, ka, va, false)
		var chosen queries
		var chosenK, chosenV *ir.Value
		a.again(func() {
			chosen = queries{pick(xa.q, xb.q), pick(xa.o, xb.o), pick(xa.lse, xb.lse), pick(xa.do, xb.do)}
			chosenK, chosenV = pick(ka, kb), pick(va, vb)
		})
		dq2, dk2, dv2 := a.grad(chosen, chosenK, chosenV, false)
		zero := a.SplatLike(dq2, 0)
		dqa = a.Add(dqa, pick(dq2, zero))
		dqb = a.Add(dqb, a.Add(dq1, pick(zero, dq2)))
		join := func(first, either *ir.Value) *ir.Value { // gradients of ka, and of ka or kb
			zero := a.SplatLike(either, 0)
			return a.Concat([]*ir.Value{a.Add(first, pick(either, zero)), pick(zero, either)}, 2)
		}
		from.add(i, join(dk1, dk2), join(dv1, dv2))
	}
	ka, _ := a.halves(k, 2)
	va, _ := a.halves(v, 2)
	dqa1, dka, dva := a.grad(xa, ka, va, true)
	dk2, dv2 := from.own()
	dqa = a.Add(dqa, dqa1)
	addFirst := func(sum, first *ir.Value) *ir.Value {
		return a.Add(sum, a.Concat([]*ir.Value{first, a.SplatLike(first, 0)}, 2))
	}
	return []*ir.Value{
		a.Concat([]*ir.Value{dqa, dqb}, 2),
		addFirst(a.Add(dk, dk2), dka),
		addFirst(a.Add(dv, dv2), dva),
	}
}

// ringCarrier passes keys and values on, one step ahead of their use: those of the next step are on their way while the
// blocks of this one are computed. The gradients' sums follow the keys, a step behind.
type ringCarrier struct {
	attention
	again  bool
	k, v   *ir.Value // of the step to come
	dk, dv *ir.Value // sums for the keys of the step to come
}

// pass gives what this rank has to the next one, and takes what the one before has.
func (r *ringCarrier) pass(x, y *ir.Value) (*ir.Value, *ir.Value) {
	p := r.comm().Permute([]*ir.Value{x, y}, dtms.CP, r.n, 1)
	return p.Result(0), p.Result(1)
}

func (r *ringCarrier) passKeys(k, v *ir.Value) (nextK, nextV *ir.Value) {
	if !r.again {
		return r.pass(k, v)
	}
	r.attention.again(func() { nextK, nextV = r.pass(k, v) })
	return nextK, nextV
}

func (r *ringCarrier) keys(i int64) (k, v *ir.Value) {
	k, v = r.k, r.v
	if i+1 < r.n {
		r.k, r.v = r.passKeys(k, v)
	}
	return k, v
}

func (r *ringCarrier) add(i int64, dk, dv *ir.Value) {
	if i > 1 {
		dk, dv = r.Add(r.dk, dk), r.Add(r.dv, dv)
	}
	r.dk, r.dv = r.pass(dk, dv) // after step n-1 home, to the rank after this one
}

func (r *ringCarrier) own() (dk, dv *ir.Value) { return r.dk, r.dv }
