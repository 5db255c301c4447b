package blublas

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// multiplyPlanes contracts a tile of numbers in planes: for each stage the products of planes that count, smallest first,
// in an accumulator of its own that is then added, times the scales of its row and column where there are any, to the sums in
// float32. The sums so round to nearest and lose nothing to the tensor cores' truncation.
func (w *wgmma) multiplyPlanes(at place, row, stage, parity *ir.Value) (sums []*ir.Value, s, p *ir.Value) {
	b := w.b
	blocks := w.rowsPerConsumer() / 64
	carried := []*ir.Value{stage, parity}
	zero := b.F32(0)
	for range blocks {
		carried = append(carried, b.Do(ptx.Fill, []*ir.Value{zero}, "count", w.BN/2).Result(0))
	}
	var scales stageScales
	if w.scales != nil {
		scales = w.scalesOf(at, row)
	}
	out := b.For(b.I32(0), b.I32(w.steps), b.I32(1), true, carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		stage, parity, sums := carried[0], carried[1], carried[2:]
		descA, descB := w.descriptors(row, stage)
		w.await(stage, parity)
		b.Do(ptx.WGMMAFence, nil)
		acc := make([]*ir.Value, blocks)
		for m := range blocks {
			acc[m] = b.Undef(w.BN / 2)
		}
		add := b.False()
		for _, planes := range w.products() {
			for k := 0; k < w.BK; k += w.step() {
				for m := range blocks {
					acc[m] = w.product(descA(planes[0], m, k), descB(planes[1], k), acc[m], add)
				}
				add = b.True()
			}
		}
		b.Do(ptx.WGMMACommit, nil)
		var factors [][]*ir.Value
		if w.scales != nil { // read while the tensor cores are at work
			factors = scales.read(w, b.Min(b.Add(at.step, i), b.I32(ceil(w.K, 64)-1)))
		}
		acc = b.Do(ptx.WGMMAWait, acc, "pending", 0).Results()
		w.release(stage, b.True())
		for m := range blocks {
			if w.scales == nil {
				sums[m] = b.Binary(ptx.Add, sums[m], acc[m])
				continue
			}
			sums[m] = b.Do(ptx.AddScaled, append([]*ir.Value{sums[m], acc[m]}, factors[m]...)).Result(0)
		}
		stage, parity = w.next(stage, parity, 1)
		return append([]*ir.Value{stage, parity}, sums...)
	})
	return out[2:], out[0], out[1]
}

// stageScales is where the scales are, of the first 64 of K, that a thread needs: a byte for each of its two rows of each 64
// of A, 16 bytes for its columns of each 64 of B.
type stageScales struct{ rows, columns []*ir.Value }

// scalesOf finds them. Blocks of 64 past the edge take the last one's.
func (w *wgmma) scalesOf(at place, row *ir.Value) (s stageScales) {
	b := w.b
	block := func(base *ir.Value, extent int, first *ir.Value, i int, within *ir.Value) *ir.Value {
		n := b.Min(b.AddI(b.DivI(first, 64), i), b.I32(ceil(extent, 64)-1))
		return b.MulWide(b.Add(b.MulI(n, 64), within), 1, base)
	}
	mine := scaleOffset(b, b.Add(b.MulI(b.Binary(ptx.And, w.warp, b.I32(3)), 16), b.DivI(w.lane, 4)))
	for i := range w.rowsPerConsumer() / 64 {
		s.rows = append(s.rows, block(w.scales[0], w.M, b.Add(at.row, row), i, mine))
	}
	for i := range w.BN / 64 {
		s.columns = append(s.columns, block(w.scales[1], w.N, at.col, i, b.MulI(b.Binary(ptx.And, w.lane, b.I32(3)), 16)))
	}
	return s
}

// read gives what AddScaled needs for a stage's products, for each 64 rows.
func (s stageScales) read(w *wgmma, step *ir.Value) (factors [][]*ir.Value) {
	b := w.b
	var words []*ir.Value
	for _, at := range s.columns {
		at = b.MulWide(step, ceil(w.N, 64)*64, at)
		words = append(words, b.Scalars(b.Load(at, b.Ctx.I32(), 4, ptx.Access{Space: "global", Cache: "nc"}))...)
	}
	for _, at := range s.rows {
		at = b.MulWide(step, ceil(w.M, 64)*64, at)
		var rows []*ir.Value
		for half := range 2 { // rows 8 apart are 2 bytes apart
			field := b.Binary(ptx.Shl, b.LoadByte(at, 2*half, nil), b.I32(24))
			rows = append(rows, b.Binary(ptx.Mul, b.Bitcast(field, b.Ctx.F32()), b.F32(math.Ldexp(1, 2*(127-topField)))))
		}
		factors = append(factors, append(rows, words...))
	}
	return factors
}
