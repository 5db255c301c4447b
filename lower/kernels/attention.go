package kernels

import (
	"fmt"
	"math"

	"blutrain/dialects/arith"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// attentionSizes is the sizes of an attention: batch, query heads, key heads, queries, keys, features of keys and of
// values; and the block of scores worked on.
type attentionSizes struct {
	b, h, hk, s, t, d, e int64
	queries, keys        int64
	causal               bool
	scale                float64
}

func (l *lowerer) attentionSizes(op *ir.Op) attentionSizes {
	q, k, v := op.Operand(0).Shape(), op.Operand(1).Shape(), op.Operand(2).Shape()
	return attentionSizes{
		b: q[0], h: q[1], hk: k[1], s: q[2], t: k[2], d: q[3], e: v[3],
		queries: min(q[2], l.target.Queries), keys: min(k[2], l.target.Keys),
		causal: op.Attrs().Bool("causal"), scale: op.Attrs().FloatOr("scale", 1),
	}
}

func (a attentionSizes) name() string {
	name := fmt.Sprintf("%dx%dx%dx%d", a.b, a.h, a.s, a.d)
	if a.hk != a.h {
		name = fmt.Sprintf("%dx%dof%dx%dx%d", a.b, a.h, a.hk, a.s, a.d)
	}
	if a.t != a.s {
		name += fmt.Sprintf("_keys%d", a.t)
	}
	if a.causal {
		return "causal_" + name
	}
	return name
}

// attentionSpec is attention by blocks of keys with an online softmax (Milakov and Gimelshein, arXiv 1805.02867; Dao et
// al., FlashAttention, arXiv 2205.14135): a grid point has a block of queries of one head and goes over the keys they see,
// with the greatest score so far, the sum of exponentials and the weighted sum of values relative to it.
func (l *lowerer) attentionSpec(s *spec, op *ir.Op) {
	a := l.attentionSizes(op)
	s.name = "attention_" + a.name()
	s.inputs, s.outputs = asIs(op.Operands()), asIs(op.Results())
	s.build = func() *ir.Op {
		w := &attentionWriter{l.start(s, []int64{a.b, a.h, a.s}, []int64{1, 1, a.queries}), a}
		w.forward()
		w.end()
		return w.kernel
	}
}

// attentionGradSpec is its gradient: a grid point has a head of keys and values and goes over its blocks; for each, over
// the queries of the group that see any of it, with the probabilities computed again from lse. The gradients of keys and
// values are carried, that of the queries is summed in scratch memory.
//
// With sums, those of the gradients' columns over some positions each are one more output.
func (l *lowerer) attentionGradSpec(s *spec, op *ir.Op, sums *gradSums) {
	a := l.attentionSizes(op)
	s.name = "attention_grad_" + a.name()
	s.inputs, s.outputs = asIs(op.Operands()), asIs(op.Results())
	if sums != nil {
		rows := a.b * ((a.s + l.target.AttentionSumRows - 1) / l.target.AttentionSumRows)
		s.name = "attention_grad_reduce_sum_" + a.name()
		s.outputs = append(s.outputs, port{value: sums.op.Result(0), shape: []int64{rows, sums.width()}, sum: sums.op})
	}
	s.build = func() *ir.Op {
		w := &attentionWriter{l.start(s, []int64{a.b, a.hk}, []int64{1, 1}), a}
		w.backward(sums, l.target.AttentionSumRows)
		w.end()
		if sums != nil {
			columns := sums.columns()
			w.kernel.SetAttr(share.SumsAttr, l.c.I64s(columns[:]...))
		}
		if l.target.AttentionSteps {
			w.kernel.SetAttr(share.ApartAttr, l.c.Unit())
		}
		return w.kernel
	}
}

type attentionWriter struct {
	*writer
	a attentionSizes
}

// rowsAt loads a block of rows of a [batch, heads, positions, features] tensor.
func (w *attentionWriter) rowsAt(ref, b, h, i *ir.Value, rows int64) *ir.Value {
	return w.wide(w.load(ref, []*ir.Value{b, h, i, w.number(0)}, 2, 3, rows, ref.Shape()[3]))
}

// wide is a block in the type that is computed with: float32 where elements are narrower.
func (w *attentionWriter) wide(x *ir.Value) *ir.Value { return w.cast(x, w.elem()) }

func (w *attentionWriter) elem() ir.Type {
	if e := w.ins[0].Elem(); !isNarrow(e) {
		return e
	}
	return w.c.F32()
}

// put stores a block of rows of a [batch, heads, positions, features] tensor.
func (w *attentionWriter) put(x, ref, b, h, i *ir.Value) {
	w.store(w.cast(x, ref.Elem()), ref, []*ir.Value{b, h, i, w.number(0)}, 2, 3)
}

// visible is which keys of a block from j on the queries of a block from i on see.
func (w *attentionWriter) visible(i, j *ir.Value) *ir.Value {
	a, c := w.a, w.c
	attr := func(axis int64) ir.NamedAttr { return ir.NamedAttr{Name: "axis", Value: c.Int64(axis)} }
	last := w.index(arith.Addi, i, w.number(a.t-a.s)) // the last key that the first query sees
	rows := w.typed(tile.Iota, []*ir.Value{last, w.clip(i, a.s, a.queries)}, tile.Block(c, a.queries, 1, c.I32()), attr(0))
	cols := w.typed(tile.Iota, []*ir.Value{j, w.clip(j, a.t, a.keys)}, tile.Block(c, 1, a.keys, c.I32()), attr(1))
	return w.compare("ge", rows, cols)
}

// finite is x with 0 in place of -inf.
func (w *attentionWriter) finite(x *ir.Value) *ir.Value {
	return w.named("select", w.compare("eq", x, w.constant(math.Inf(-1), x.Elem())), w.constant(0, x.Elem()), x)
}

func (w *attentionWriter) forward() {
	a := w.a
	b, h, i := w.axes[0], w.axes[1], w.axes[2]
	hk := w.index(arith.Divsi, h, w.number(a.h/a.hk))
	elem := w.elem()
	q := w.named("mul", w.rowsAt(w.ins[0], b, h, i, a.queries), w.constant(a.scale, elem))
	m, one := w.clip(i, a.s, a.queries), w.number(1)
	state := []*ir.Value{
		w.broadcast(w.constant(math.Inf(-1), elem), a.queries, 1, m, one),
		w.broadcast(w.constant(0, elem), a.queries, 1, m, one),
		w.broadcast(w.constant(0, elem), a.queries, a.e, m, w.number(a.e)),
	}
	step := func(masked bool) func(j *ir.Value, s []*ir.Value) []*ir.Value {
		return func(j *ir.Value, s []*ir.Value) []*ir.Value {
			k, v := w.rowsAt(w.ins[1], b, hk, j, a.keys), w.rowsAt(w.ins[2], b, hk, j, a.keys)
			scores := w.dot(q, k, nil, false, true)
			if masked {
				scores = w.named("select", w.visible(i, j), scores, w.constant(math.Inf(-1), elem))
			}
			top := w.named("max", s[0], w.reduce("max", 1, scores))
			shift := w.finite(top)
			p := w.named("exp", w.named("sub", scores, shift))
			factor := w.named("exp", w.named("sub", s[0], shift))
			sum := w.named("add", w.named("mul", s[1], factor), w.reduce("sum", 1, p))
			return []*ir.Value{top, sum, w.dot(p, v, w.named("mul", s[2], factor), false, false)}
		}
	}
	keys, zero := w.number(a.keys), w.number(0)
	if a.causal {
		// Blocks before `full` are seen whole by every query of the block, those up to `end` in part.
		first := w.index(arith.Addi, i, w.number(a.t-a.s+1)) // keys that the first query sees
		if a.s > a.t {
			first = w.index(arith.Maxsi, first, zero)
		}
		full := w.index(arith.Muli, w.index(arith.Divsi, first, keys), keys)
		end := w.index(arith.Minsi, w.index(arith.Addi, i, w.number(a.t-a.s+a.queries)), w.number(a.t))
		state = w.loop(zero, full, keys, state, step(false))
		state = w.loop(full, end, keys, state, step(true))
	} else {
		state = w.loop(zero, w.number(a.t), keys, state, step(false))
	}
	total := w.named("select", w.compare("eq", state[1], w.constant(0, elem)), w.constant(1, elem), state[1])
	w.put(w.named("div", state[2], total), w.outs[0], b, h, i)
	lse := w.named("add", w.finite(state[0]), w.named("log", state[1]))
	w.store(lse, w.outs[1], []*ir.Value{b, h, i}, 2, -1)
}

func (w *attentionWriter) backward(sums *gradSums, sumRows int64) {
	a := w.a
	b, hk := w.axes[0], w.axes[1]
	zero, one, group := w.number(0), w.number(1), w.number(a.h/a.hk)
	queries, keys := w.number(a.queries), w.number(a.keys)
	elem := w.elem()
	h0 := w.index(arith.Muli, hk, group)
	dq := w.typed(tile.Scratch, nil, w.c.MemRef([]int64{a.h / a.hk, a.s, a.d}, elem))
	delta := w.typed(tile.Scratch, nil, w.c.MemRef([]int64{a.h / a.hk, a.s, 1}, elem))
	var dk, dv *ir.Value // scratch that only sums need
	if sums != nil {
		dk, dv = w.typed(tile.Scratch, nil, w.c.MemRef([]int64{1, a.t, a.d}, elem)), w.typed(tile.Scratch, nil, w.c.MemRef([]int64{1, a.t, a.e}, elem))
	}
	each := func(body func(g, h, i *ir.Value)) { // for every block of queries of the group
		w.loop(zero, group, one, nil, func(g *ir.Value, _ []*ir.Value) []*ir.Value {
			w.loop(zero, w.number(a.s), queries, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
				body(g, w.index(arith.Addi, h0, g), i)
				return nil
			})
			return nil
		})
	}
	each(func(g, h, i *ir.Value) {
		do, o := w.rowsAt(w.ins[5], b, h, i, a.queries), w.rowsAt(w.ins[3], b, h, i, a.queries)
		w.store(w.reduce("sum", 1, w.named("mul", do, o)), delta, []*ir.Value{g, i, zero}, 1, 2)
		none := w.broadcast(w.constant(0, elem), a.queries, a.d, w.clip(i, a.s, a.queries), w.number(a.d))
		w.store(none, dq, []*ir.Value{g, i, zero}, 1, 2)
	})
	w.loop(zero, w.number(a.t), keys, nil, func(j *ir.Value, _ []*ir.Value) []*ir.Value {
		grads := w.keyBlock(b, hk, h0, j, dq, delta)
		if sums != nil {
			w.store(grads[0], dk, []*ir.Value{zero, j, zero}, 1, 2)
			w.store(grads[1], dv, []*ir.Value{zero, j, zero}, 1, 2)
		}
		return nil
	})
	each(func(g, h, i *ir.Value) {
		x := w.load(dq, []*ir.Value{g, i, zero}, 1, 2, a.queries, a.d)
		w.put(w.named("mul", x, w.constant(a.scale, elem)), w.outs[0], b, h, i)
	})
	if sums != nil {
		at := sums.columns()
		w.loop(zero, group, one, nil, func(g *ir.Value, _ []*ir.Value) []*ir.Value {
			w.sumColumns(dq, g, a.s, a.d, w.constant(a.scale, elem), b, w.index(arith.Addi, h0, g), at[0], sumRows)
			return nil
		})
		w.sumColumns(dk, zero, a.t, a.d, w.constant(1, elem), b, hk, at[1], sumRows)
		w.sumColumns(dv, zero, a.t, a.e, w.constant(1, elem), b, hk, at[2], sumRows)
	}
}

// sumColumns stores sums of every few positions of a head's gradient, which is in scratch memory, times a factor.
func (w *attentionWriter) sumColumns(from, g *ir.Value, positions, features int64, factor, b, head *ir.Value, column, rows int64) {
	zero, step := w.number(0), w.number(rows)
	w.loop(zero, w.number(positions), step, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
		x := w.load(from, []*ir.Value{g, i, zero}, 1, 2, min(rows, positions), features)
		sum := w.reduce("sum", 0, w.named("mul", x, factor))
		row := w.index(arith.Addi, w.index(arith.Muli, b, w.number((positions+rows-1)/rows)), w.index(arith.Divsi, i, step))
		at := w.index(arith.Addi, w.index(arith.Muli, head, w.number(features)), w.number(column))
		w.store(sum, w.outs[len(w.outs)-1], []*ir.Value{row, at}, 0, 1)
		return nil
	})
}

// keyBlock computes the gradients of the block of keys and values from j on, and adds what it gives those of the queries.
func (w *attentionWriter) keyBlock(b, hk, h0, j, dq, delta *ir.Value) (grads []*ir.Value) {
	a := w.a
	zero, queries := w.number(0), w.number(a.queries)
	elem := w.elem()
	k, v := w.rowsAt(w.ins[1], b, hk, j, a.keys), w.rowsAt(w.ins[2], b, hk, j, a.keys)
	n := w.clip(j, a.t, a.keys)
	grads = []*ir.Value{
		w.broadcast(w.constant(0, elem), a.keys, a.d, n, w.number(a.d)),
		w.broadcast(w.constant(0, elem), a.keys, a.e, n, w.number(a.e)),
	}
	grads = w.loop(zero, w.number(a.h/a.hk), w.number(1), grads, func(g *ir.Value, grads []*ir.Value) []*ir.Value {
		h := w.index(arith.Addi, h0, g)
		step := func(masked bool) func(i *ir.Value, s []*ir.Value) []*ir.Value {
			return func(i *ir.Value, s []*ir.Value) []*ir.Value {
				q := w.named("mul", w.rowsAt(w.ins[0], b, h, i, a.queries), w.constant(a.scale, elem))
				do := w.rowsAt(w.ins[5], b, h, i, a.queries)
				lse := w.cast(w.load(w.ins[4], []*ir.Value{b, h, i}, 2, -1, a.queries, 1), elem)
				p := w.named("exp", w.named("sub", w.dot(q, k, nil, false, true), lse))
				if masked {
					p = w.named("select", w.visible(i, j), p, w.constant(0, elem))
				}
				dv := w.dot(p, do, s[1], true, false)
				dp := w.dot(do, v, nil, false, true)
				row := []*ir.Value{g, i, zero}
				ds := w.named("mul", p, w.named("sub", dp, w.load(delta, row, 1, 2, a.queries, 1)))
				dk := w.dot(ds, q, s[0], true, false) // q holds the scale
				w.store(w.dot(ds, k, w.load(dq, row, 1, 2, a.queries, a.d), false, false), dq, row, 1, 2)
				return []*ir.Value{dk, dv}
			}
		}
		end := w.number(a.s)
		if !a.causal {
			return w.loop(zero, end, queries, grads, step(false))
		}
		// Queries before `first` see no key of the block, those from `full` on all of it.
		first := w.index(arith.Maxsi, w.index(arith.Subi, j, w.number(a.t-a.s)), zero)
		first = w.index(arith.Muli, w.index(arith.Divsi, first, queries), queries)
		full := w.index(arith.Maxsi, w.index(arith.Addi, j, w.number(a.keys-1-(a.t-a.s)+a.queries-1)), zero)
		full = w.index(arith.Muli, w.index(arith.Divsi, full, queries), queries)
		full = w.index(arith.Minsi, full, end)
		full = w.index(arith.Maxsi, full, first)
		grads = w.loop(first, full, queries, grads, step(true))
		return w.loop(full, end, queries, grads, step(false))
	})
	w.put(grads[0], w.outs[1], b, hk, j)
	w.put(grads[1], w.outs[2], b, hk, j)
	return grads
}
