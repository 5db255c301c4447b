package shard

import (
	"blutrain/ir"
)

// The ways to share attention.
const (
	ring    = "ring"
	ulysses = "ulysses"
	gather  = "gather" // of keys and values
)

// positions is how q, k, v, o, lse and their gradients are divided where attention is shared: along axis 2 of
// [batch, heads, positions, features].
var positions = sharding{divided, 2, 1}

// own reports whether an attention, or its gradient, is of pieces of queries to keys that every rank has, all of which are
// seen: each rank attends for its own queries.
func (d *divider) own(op *ir.Op) bool {
	for i, v := range op.Operands() {
		h := d.get(v)
		if keys := i == 1 || i == 2; keys && h.how != whole || !keys && h.how == divided && h.sharding != positions {
			return false
		}
	}
	return !op.Attrs().Bool("causal")
}

// ownOperands is those of such an attention.
func (d *divider) ownOperands(op *ir.Op) []*ir.Value {
	vs := op.Operands()
	for i, v := range vs {
		if i == 1 || i == 2 {
			vs[i] = d.as(v, sharding{})
		} else {
			vs[i] = d.as(v, positions)
		}
	}
	return vs
}

// shared reports whether an attention, or its gradient, is of pieces of a sequence that can be shared: the queries are, or
// can be, divided and so are the keys.
func (d *divider) shared(op *ir.Op) bool {
	q, k := op.Operand(0).Shape(), op.Operand(1).Shape()
	for _, v := range op.Operands() {
		if h := d.get(v); h.how == divided && h.sharding != positions {
			return false
		}
	}
	if !d.fits(q, positions) || !d.fits(k, positions) {
		return false
	}
	return !op.Attrs().Bool("causal") || q[2] == k[2] // a query's last key is at a place that is known
}

// attention of pieces of sequences, or of whole sequences of a piece of the batch.
func (d *divider) attention(op *ir.Op) (bool, error) {
	if s := d.common(op); s.axis == 0 {
		d.replace(op, d.local(op, s), op.Attrs(), s, s)
		return true, nil
	}
	if d.own(op) {
		d.replace(op, d.ownOperands(op), op.Attrs(), positions, positions)
		return true, nil
	}
	if !d.shared(op) {
		return false, nil
	}
	x := d.local(op, positions)
	a := attention{d, op.Attrs().Bool("causal"), op.Attrs().FloatOr("scale", 1)}
	var y merged
	switch {
	case d.method == ulysses:
		if err := d.checkHeads(op); err != nil {
			return false, err
		}
		y = a.byHeads(x[0], x[1], x[2])
	case d.method == gather && !a.causal:
		y = a.ofAll(x[0], x[1], x[2])
	default:
		y = a.inBlocks(x[0], x[1], x[2])
	}
	d.become(op, []*ir.Value{d.CastTo(y.o, op.Result(0).Elem()), y.lse}, positions, positions)
	return true, nil
}

// attentionGrad is the gradient of what attention does.
func (d *divider) attentionGrad(op *ir.Op) (bool, error) {
	if s := d.common(op); s.axis == 0 {
		d.replace(op, d.local(op, s), op.Attrs(), s, s, s)
		return true, nil
	}
	if d.own(op) {
		d.replace(op, d.ownOperands(op), op.Attrs(), positions, sharding{how: partial}, sharding{how: partial})
		return true, nil
	}
	if !d.shared(op) {
		return false, nil
	}
	x := d.local(op, positions)
	a := attention{d, op.Attrs().Bool("causal"), op.Attrs().FloatOr("scale", 1)}
	rows := queries{x[0], x[3], x[4], x[5]}
	var dx []*ir.Value
	switch {
	case d.method == ulysses:
		dx = a.gradByHeads(rows, x[1], x[2])
	case d.method == gather && !a.causal:
		dx = a.gradOfAll(rows, x[1], x[2])
	default:
		dx = a.gradInBlocks(rows, x[1], x[2])
	}
	for i, v := range dx {
		dx[i] = d.CastTo(v, op.Result(i).Elem())
	}
	d.become(op, dx, positions, positions, positions)
	return true, nil
}

// attention is one that is shared by the ranks of a sequence.
type attention struct {
	*divider
	causal bool
	scale  float64
}

// merged is attention to some of the keys: the mean of their values, and the logarithm of the sum of the exponentials, by
// which it weighs beside attention to others.
type merged struct{ o, lse *ir.Value }

// queries is rows of queries with what the gradient needs of them: their results of attention to all keys, and the
// gradients of those.
type queries struct{ q, o, lse, do *ir.Value }

// block is attention of some queries to some keys.
func (a attention) block(q, k, v *ir.Value, causal bool) merged {
	op := a.Attention(q, k, v, causal, a.scale)
	return merged{a.wide(op.O()), op.Lse()}
}

// grad is the gradient of a block.
func (a attention) grad(x queries, k, v *ir.Value, causal bool) (dq, dk, dv *ir.Value) {
	g := a.AttentionGrad(x.q, k, v, x.o, x.lse, x.do, causal, a.scale)
	return a.wide(g.Result(0)), a.wide(g.Result(1)), a.wide(g.Result(2))
}

// merge is attention to the keys of both, which are none in common: each weighs exp(lse). x must have keys.
func (a attention) merge(x, y merged) merged {
	shift := a.Max(x.lse, y.lse)
	wx, wy := a.Exp(a.Sub(x.lse, shift)), a.Exp(a.Sub(y.lse, shift))
	sum := a.Add(wx, wy)
	shape := x.o.Shape()
	along := func(w *ir.Value) *ir.Value { return a.Along(a.Div(w, sum), 3, shape) }
	return merged{
		a.Add(a.Mul(x.o, along(wx)), a.Mul(y.o, along(wy))),
		a.Add(shift, a.Log(sum)),
	}
}

// halves is by the two chunks of queries that a rank has in zigzag.
func (x merged) halves(d *divider) (first, second merged) {
	o1, o2 := d.halves(x.o, 2)
	l1, l2 := d.halves(x.lse, 2)
	return merged{o1, l1}, merged{o2, l2}
}

func (x queries) halves(d *divider) (first, second queries) {
	q1, q2 := d.halves(x.q, 2)
	o1, o2 := d.halves(x.o, 2)
	l1, l2 := d.halves(x.lse, 2)
	do1, do2 := d.halves(x.do, 2)
	return queries{q1, o1, l1, do1}, queries{q2, o2, l2, do2}
}

// either is x where a condition, a scalar, holds, and y where not.
func (d *divider) either(condition, x, y *ir.Value) *ir.Value {
	return d.Select(d.Fill(condition, x.Shape()), x, y)
}
