package blublas

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// forwardHopper makes Forward's kernel for warpgroups. Parameters: tensor maps of q, k and v, or of their planes, o, lse; with
// planes their scales.
func (a Attention) forwardHopper(at *ir.Builder, d Device) *Kernel {
	k, w := a.startHopper(at, AttentionForward, d, "attention", "o", "lse")
	w.build(w.forwardTile)
	return k
}

// running is what is known of a thread's two rows so far, as softmax has it; greatest is in the unit of exponents.
type running struct {
	greatest, den [2]*ir.Value
	sum           *ir.Value // accumulator
}

func (r running) values() []*ir.Value {
	return []*ir.Value{r.greatest[0], r.greatest[1], r.den[0], r.den[1], r.sum}
}

func asRunning(v []*ir.Value) running {
	return running{[2]*ir.Value{v[0], v[1]}, [2]*ir.Value{v[2], v[3]}, v[4]}
}

// forwardTile computes this consumer's rows of a tile.
func (w *groups) forwardTile(ring, rows slot) slot {
	b := w.b
	w.wait(rowsFull, rows)
	queries := w.left(rows, 0)
	w.releaseHeld(rows)
	head := w.keyHead()
	scale := b.F32(w.scale())
	if w.planes > 1 {
		scale = b.Binary(ptx.Mul, w.scaleOf("q", w.head, w.myRow()), scale)
	}
	none := b.F32(math.Inf(-1))
	state := running{[2]*ir.Value{none, none}, [2]*ir.Value{b.F32(0), b.F32(0)}, b.Do(ptx.Fill, []*ir.Value{b.F32(0)}, "count", w.Features/2).Result(0)}
	step := func(masked bool) func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		return func(i *ir.Value, carried []*ir.Value) []*ir.Value {
			ring, state := slot{carried[0], carried[1]}, asRunning(carried[2:])
			column := b.MulI(i, w.Block.Columns)
			scale, values := scale, b.F32(1)
			if w.planes > 1 {
				scale = b.Binary(ptx.Mul, scale, w.scaleOf("k", head, column))
				values = w.scaleOf("v", head, column)
			}
			keys, sums := w.scores(ring, 0), w.sums(ring, 1)
			w.wait(full, ring)
			b.Do(ptx.WGMMAFence, nil)
			scores := w.quarters(w.complete(w.contract(queries, keys))[0])
			if masked {
				w.mask(scores, column, math.Inf(-1))
			}
			weights, shrink := w.update(&state, scores, scale)
			state.sum = w.gather(weights, sums, state.sum, shrink, values)
			w.release(empty, ring)
			return append(w.after(ring, w.Block.Stages).values(), state.values()...)
		}
	}
	_, all := w.columnBlocks(b.I32(0), w.rows.rows)
	unmasked, end := w.columnBlocks(b.MulI(w.mine, 64), 64)
	out := b.For(b.I32(0), unmasked, b.I32(1), true, append(ring.values(), state.values()...), step(false))
	out = b.For(unmasked, end, b.I32(1), true, out, step(true))
	w.releaseRows(rows)
	w.finishTile(asRunning(out[2:]))
	return w.skip(end, all, slot{out[0], out[1]})
}

// update takes the scores of more columns, to be multiplied by a scale, and returns their weights and by what earlier sums
// are to be multiplied.
func (w *groups) update(state *running, scores []*ir.Value, scale *ir.Value) (weights []*ir.Value, shrink [2]*ir.Value) {
	b := w.b
	weights = make([]*ir.Value, 4*len(scores))
	for row := range 2 {
		greatest := b.F32(math.Inf(-1))
		for _, x := range scores {
			greatest = b.Binary(ptx.Max, greatest, b.Binary(ptx.Max, b.Extract(x, 2*row), b.Extract(x, 2*row+1)))
		}
		greatest = b.Binary(ptx.Max, state.greatest[row], b.Binary(ptx.Mul, w.quads(greatest, ptx.Max), scale))
		// Where nothing is seen yet, exponents are relative to 0: exp(-inf) is 0, exp(-inf + inf) is none.
		top := b.Unary(ptx.Neg, b.Select(b.Compare("eq", greatest, b.F32(math.Inf(-1))), b.F32(0), greatest))
		shrink[row] = w.power(state.greatest[row], b.F32(1), top)
		den := b.Binary(ptx.Mul, state.den[row], shrink[row])
		for j, x := range scores {
			for e := range 2 {
				p := w.power(b.Extract(x, 2*row+e), scale, top)
				if w.planes > 1 {
					p = b.Binary(ptx.Mul, p, b.F32(weightScale))
				}
				den = b.Binary(ptx.Add, den, p)
				weights[4*j+2*row+e] = p
			}
		}
		state.greatest[row], state.den[row] = greatest, den
	}
	return weights, shrink
}

// gather is sum, each row times its factor, plus the weighted sum of a block's values, which planes have at a scale.
func (w *groups) gather(weights []*ir.Value, values factor, sum *ir.Value, shrink [2]*ir.Value, scale *ir.Value) *ir.Value {
	b, n := w.b, w.Features/2
	left := w.operands(weights)
	if w.planes == 1 {
		sum = b.Binary(ptx.Mul, sum, w.byRow(n, shrink))
		b.Do(ptx.WGMMAFence, nil)
		return w.complete(w.multiply(left, values, w.Block.Columns/16, sum, b.True(), true))[0]
	}
	b.Do(ptx.WGMMAFence, nil)
	acc := w.multiply(left, values, w.Block.Columns/16, b.Undef(n), b.False(), true)
	b.Do(ptx.WGMMACommit, nil)
	sum = b.Binary(ptx.Mul, sum, w.byRow(n, shrink))
	acc = b.Do(ptx.WGMMAWait, []*ir.Value{acc}, "pending", 0).Result(0)
	return b.FMA(acc, w.byRow(n, [2]*ir.Value{scale, scale}), sum)
}

// finishTile writes outputs and lse.
func (w *groups) finishTile(state running) {
	b := w.b
	if w.planes > 1 {
		for i := range state.den {
			state.den[i] = b.Binary(ptx.Mul, state.den[i], b.F32(1.0/weightScale))
		}
		down := b.F32(1.0 / weightScale)
		state.sum = b.Binary(ptx.Mul, state.sum, w.byRow(w.Features/2, [2]*ir.Value{down, down}))
	}
	w.finish(&softmax{w: w.attention, den: state.den[:], sum: w.quarters(state.sum)}, state.greatest[:])
}
