package blublas

import (
	"math"
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// forwardHopper makes Forward's kernel for warpgroups. Parameters: tensor maps of q, k and v, or of their planes, lse, o; with
// planes their scales. Staged, o has a tensor map.
func (a Attention) forwardHopper(at *ir.Builder, d Device) *Kernel {
	k, w := a.startHopper(at, AttentionForward, d, "attention", "lse")
	w.build(w.forwardTile)
	return k
}

// running is what is known of a thread's two rows so far, as softmax has it; greatest is that of scores, of planes times their scales and powerBelow.
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
	f := &forwarding{groups: w, queries: w.left(rows, 0), head: w.keyHead()}
	w.releaseHeld(rows)
	if w.scaled() {
		f.scale = b.Binary(ptx.Mul, w.scaleOf("q", w.head, w.myRow()), b.F32(w.powerBelow()))
	}
	_, all := w.columnBlocks(b.I32(0), w.rows.rows)
	unmasked, end := w.columnBlocks(b.MulI(w.mine, 64), 64)
	lowest := b.F32(w.lowest())
	state := running{[2]*ir.Value{lowest, lowest}, [2]*ir.Value{b.F32(0), b.F32(0)}, b.Do(ptx.Fill, []*ir.Value{b.F32(0)}, "count", w.Features/2).Result(0)}
	w.turn()
	if w.Block.Ahead {
		ring, state = f.ahead(ring, state, unmasked, end)
	} else {
		out := b.For(b.I32(0), unmasked, b.I32(1), true, append(ring.values(), state.values()...), f.step(false))
		out = b.For(unmasked, end, b.I32(1), true, out, f.step(true))
		ring, state = slot{out[0], out[1]}, asRunning(out[2:])
	}
	w.releaseRows(rows)
	ring = w.skip(end, all, ring)
	w.pass()
	w.finishTile(rows, state)
	return ring
}

// forwarding is a tile of forward: what its steps have in common.
type forwarding struct {
	*groups
	queries factor
	head    *ir.Value // of keys
	scale   *ir.Value // of planes of queries, times powerBelow
}

// scales is what planes' scores of a block of columns are multiplied by, a power of two, and the sums of its values.
func (f *forwarding) scales(column *ir.Value) (scores, values *ir.Value) {
	if !f.scaled() {
		return f.b.F32(1), f.b.F32(1)
	}
	return f.b.Binary(ptx.Mul, f.scale, f.scaleOf("k", f.head, column)), f.scaleOf("v", f.head, column)
}

// step takes a block of columns after the other.
func (f *forwarding) step(masked bool) func(i *ir.Value, carried []*ir.Value) []*ir.Value {
	b := f.b
	return func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		ring, state := slot{carried[0], carried[1]}, asRunning(carried[2:])
		column := b.MulI(i, f.Block.Columns)
		scale, ofValues := f.scales(column)
		f.wait(full, ring)
		keys, values := f.scores(ring, 0), f.sums(ring, 1)
		b.Do(ptx.WGMMAFence, nil)
		acc := f.commit(f.contract(f.queries, keys))
		f.pass()
		scores := f.quarters(b.Do(ptx.WGMMAWait, []*ir.Value{acc}, "pending", 0).Result(0))
		if masked {
			f.mask(scores, column, math.Inf(-1))
		}
		weights, shrink := f.update(&state, scores, scale)
		if !f.scaled() {
			state.sum = b.Binary(ptx.Mul, state.sum, f.byRow(f.Features/2, shrink))
		}
		f.turn()
		acc = f.beginSum(f.operands(weights), values, state.sum, true)
		b.Do(ptx.WGMMACommit, nil)
		if f.scaled() {
			state.sum = b.Binary(ptx.Mul, state.sum, f.byRow(f.Features/2, shrink))
		}
		state.sum = f.endSum(acc, state.sum, ofValues)
		f.release(empty, ring)
		return append(f.after(ring, f.Block.Stages).values(), state.values()...)
	}
}

// beginSum begins the weighted sum of a block's values: in sum, or in an accumulator of its own that planes have.
func (f *forwarding) beginSum(weights, values factor, sum *ir.Value, fence bool) *ir.Value {
	b, steps := f.b, f.Block.Columns/16
	if fence {
		b.Do(ptx.WGMMAFence, nil)
	}
	if !f.scaled() {
		return f.multiply(weights, values, steps, sum, b.True(), true)
	}
	return f.multiply(weights, values, steps, b.Undef(f.Features/2), b.False(), true)
}

// endSum waits for it; scale is that of planes of values.
func (f *forwarding) endSum(acc, sum, scale *ir.Value) *ir.Value {
	b := f.b
	acc = b.Do(ptx.WGMMAWait, []*ir.Value{acc}, "pending", 0).Result(0)
	if !f.scaled() {
		return acc
	}
	return b.FMA(acc, f.byRow(f.Features/2, [2]*ir.Value{scale, scale}), sum)
}

// ahead takes blocks of columns so that the tensor cores weight the values of one while the scores of the next become
// weights (FlashAttention-3, arXiv 2407.08608): scores are begun first, then the sum of the block before.
func (f *forwarding) ahead(ring slot, state running, unmasked, end *ir.Value) (slot, running) {
	b := f.b
	first := b.I32(0)
	scale, ofValues := f.scales(first)
	keys := f.scores(ring, 0)
	f.wait(full, ring)
	b.Do(ptx.WGMMAFence, nil)
	acc := f.commit(f.contract(f.queries, keys))
	f.pass()
	scores := f.quarters(b.Do(ptx.WGMMAWait, []*ir.Value{acc}, "pending", 0).Result(0))
	scores = b.For(unmasked, b.I32(1), b.I32(1), true, scores, func(_ *ir.Value, scores []*ir.Value) []*ir.Value { // once, or not at all
		scores = slices.Clone(scores)
		f.mask(scores, first, math.Inf(-1))
		return scores
	})
	weights, _ := f.update(&state, scores, scale) // nothing came before
	n := len(state.values())
	carry := func(before, ring slot, ofValues *ir.Value, state running, weights factor) []*ir.Value {
		all := append(before.values(), ring.values()...)
		all = append(append(all, ofValues), state.values()...)
		return append(all, f.registersOf(weights)...)
	}
	step := func(masked bool) func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		return func(i *ir.Value, carried []*ir.Value) []*ir.Value {
			before, ring, ofValues := slot{carried[0], carried[1]}, slot{carried[2], carried[3]}, carried[4]
			state, weights := asRunning(carried[5:5+n]), f.ofRegisters(carried[5+n:])
			column := b.MulI(i, f.Block.Columns)
			scale, next := f.scales(column)
			f.wait(full, ring)
			keys, values := f.scores(ring, 0), f.sums(before, 1)
			f.turn()
			b.Do(ptx.WGMMAFence, nil)
			acc := f.commit(f.contract(f.queries, keys))
			sum := f.commit(f.beginSum(weights, values, state.sum, false))
			f.pass()
			scores := f.quarters(b.Do(ptx.WGMMAWait, []*ir.Value{acc}, "pending", 1).Result(0))
			if masked {
				f.mask(scores, column, math.Inf(-1))
			}
			x, shrink := f.update(&state, scores, scale)
			// The stage has been here for long: its loop keeps the assembler from moving the wait for the sum up before the weights.
			f.wait(full, ring)
			state.sum = b.Binary(ptx.Mul, f.endSum(sum, state.sum, ofValues), f.byRow(f.Features/2, shrink))
			f.release(empty, before)
			return carry(ring, f.after(ring, f.Block.Stages), next, state, f.operands(x))
		}
	}
	out := carry(ring, f.after(ring, f.Block.Stages), ofValues, state, f.operands(weights))
	out = b.For(b.I32(1), unmasked, b.I32(1), true, out, step(false))
	out = b.For(b.Binary(ptx.Max, unmasked, b.I32(1)), end, b.I32(1), true, out, step(true))
	before, state := slot{out[0], out[1]}, asRunning(out[5:5+n])
	values := f.sums(before, 1)
	f.turn()
	state.sum = f.endSum(f.commit(f.beginSum(f.ofRegisters(out[5+n:]), values, state.sum, true)), state.sum, out[4])
	f.release(empty, before)
	return slot{out[2], out[3]}, state
}

func (f *forwarding) commit(acc *ir.Value) *ir.Value {
	f.b.Do(ptx.WGMMACommit, nil)
	return acc
}

// registersOf is the registers of weights as operands, to be carried around a loop.
func (f *forwarding) registersOf(weights factor) (all []*ir.Value) {
	for p := range f.planes {
		for s := range f.Block.Columns / 16 {
			all = append(all, weights(p, s))
		}
	}
	return all
}

// ofRegisters is the inverse of registersOf.
func (f *forwarding) ofRegisters(all []*ir.Value) factor {
	return func(plane, step int) *ir.Value { return all[plane*f.Block.Columns/16+step] }
}

// update takes the scores of more columns, those of planes to be multiplied by a scale, and returns their weights and by what earlier sums
// are to be multiplied.
func (w *groups) update(state *running, scores []*ir.Value, scale *ir.Value) (weights []*ir.Value, shrink [2]*ir.Value) {
	b := w.b
	weights = make([]*ir.Value, 4*len(scores))
	for row := range 2 {
		greatest := b.F32(math.Inf(-1))
		for _, x := range scores {
			greatest = b.Binary(ptx.Max, greatest, b.Binary(ptx.Max, b.Extract(x, 2*row), b.Extract(x, 2*row+1)))
		}
		greatest = w.quads(greatest, ptx.Max)
		if w.scaled() {
			greatest = b.Binary(ptx.Mul, greatest, scale)
		}
		greatest = b.Binary(ptx.Max, state.greatest[row], greatest)
		var weight func(score *ir.Value) *ir.Value
		if w.scaled() {
			weight, shrink[row] = w.scaledWeights(greatest, state.greatest[row], scale)
		} else {
			x := w.exponents(greatest)
			weight, shrink[row] = x.weight, x.shrink(state.greatest[row])
		}
		den := b.Binary(ptx.Mul, state.den[row], shrink[row])
		for j, x := range scores {
			for e := range 2 {
				p := weight(b.Extract(x, 2*row+e))
				den = b.Binary(ptx.Add, den, p)
				weights[4*j+2*row+e] = p
			}
		}
		state.greatest[row], state.den[row] = greatest, den
	}
	return weights, shrink
}

// powerBelow is the greatest power of two that isn't more than the scale of softmax, for planes, whose scores it is in together with
// their scales: without it they could be too small for float32, which multiplied by it they aren't.
func (w *groups) powerBelow() float64 {
	if !w.scaled() {
		return 1
	}
	return math.Exp2(math.Floor(math.Log2(w.Scale)))
}

// scaledWeights makes weights, times weightScale, of a row's scores of planes, and by what sums relative to the greatest before are to
// be multiplied. The greatest's is weightScale itself: a score, times a power of two, less the greatest is exact near it.
func (w *groups) scaledWeights(greatest, before, scale *ir.Value) (weight func(score *ir.Value) *ir.Value, shrink *ir.Value) {
	b := w.b
	factor := b.F32(w.Scale / w.powerBelow() * math.Log2E)
	below := b.Unary(ptx.Neg, greatest)
	shrink = b.Unary(ptx.Exp2Flushed, b.Binary(ptx.Mul, b.Binary(ptx.Add, before, below), factor))
	return func(score *ir.Value) *ir.Value {
		x := b.FMA(score, scale, below)
		if w.Precision == FP16 {
			return b.Unary(ptx.Exp2Flushed, b.FMA(x, factor, b.F32(math.Log2(weightScale))))
		}
		return b.Binary(ptx.Mul, b.Unary(ptx.Exp2Flushed, b.Binary(ptx.Mul, x, factor)), b.F32(weightScale))
	}, shrink
}

// finishTile writes outputs and lse.
func (w *groups) finishTile(rows slot, state running) {
	b := w.b
	if w.scaled() {
		for i := range state.den {
			state.den[i] = b.Binary(ptx.Mul, state.den[i], b.F32(1.0/weightScale))
		}
		down := b.F32(1.0 / weightScale)
		state.sum = b.Binary(ptx.Mul, state.sum, w.byRow(w.Features/2, [2]*ir.Value{down, down}))
	}
	factor := w.finish(state.den[:], each(state.greatest[:], func(x *ir.Value) *ir.Value { return b.Binary(ptx.Mul, x, b.F32(w.scale()/w.powerBelow())) }))
	w.storeResults(rows, result{"o", w.O, w.quarters(state.sum), factor})
}
