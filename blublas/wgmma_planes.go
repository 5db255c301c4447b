package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// multiplyPlanes contracts a tile of numbers in planes: for each stage the products of planes that count, smallest first,
// in an accumulator of its own that is then added, times the blocks' scales where there are any, to the sums in float32.
// The sums so round to nearest and lose nothing to the tensor cores' truncation.
func (w *wgmma) multiplyPlanes(at place, row, stage, parity *ir.Value) (sums []*ir.Value, s, p *ir.Value) {
	b := w.b
	blocks := w.rowsPerConsumer() / 64
	carried := []*ir.Value{stage, parity}
	zero := b.F32(0)
	for range blocks {
		carried = append(carried, b.Do(ptx.Fill, []*ir.Value{zero}, "count", w.BN/2).Result(0))
	}
	var scaleA, scaleB []*ir.Value
	if w.scales != nil {
		scaleA, scaleB = w.scaleAddresses(at, row)
	}
	out := b.For(b.I32(0), b.I32(w.steps), b.I32(1), true, carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		stage, parity, sums := carried[0], carried[1], carried[2:]
		descA, descB := w.descriptors(row, stage)
		var factors [][]*ir.Value
		if w.scales != nil {
			factors = w.factors(at, scaleA, scaleB, i)
		}
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

// scaleAddresses gives where the scales of this consumer's blocks of A and of this tile's blocks of B are, for the first
// stage, and how far those of the next stage are. Blocks past the edge take the last one's.
func (w *wgmma) scaleAddresses(at place, row *ir.Value) (a, d []*ir.Value) {
	b := w.b
	side := func(base *ir.Value, o Operand, extent int, first *ir.Value, blocks int) []*ir.Value {
		var addresses []*ir.Value
		along := 1
		if !o.MNMajor {
			along = ceil(w.K, 64)
		}
		for i := range blocks {
			block := b.Min(b.AddI(b.DivI(first, 64), i), b.I32(ceil(extent, 64)-1))
			addresses = append(addresses, b.MulWide(b.MulI(block, along), 4, base))
		}
		return addresses
	}
	return side(w.scales[0], w.A, w.M, b.Add(at.row, row), w.rowsPerConsumer()/64), side(w.scales[1], w.B, w.N, at.col, w.BN/64)
}

// factors is what each block of 64 rows and each 64 columns of a stage's products are multiplied by.
func (w *wgmma) factors(at place, scaleA, scaleB []*ir.Value, i *ir.Value) [][]*ir.Value {
	b := w.b
	step := b.Min(b.Add(at.step, i), b.I32(ceil(w.K, 64)-1))
	load := func(addresses []*ir.Value, o Operand, extent int) []*ir.Value {
		pitch := 4
		if o.MNMajor {
			pitch = 4 * ceil(extent, 64)
		}
		return each(addresses, func(v *ir.Value) *ir.Value {
			return b.Load(b.MulWide(step, pitch, v), b.Ctx.F32(), 1, ptx.Access{Space: "global", Cache: "nc"})
		})
	}
	a, d := load(scaleA, w.A, w.M), load(scaleB, w.B, w.N)
	var factors [][]*ir.Value
	for _, x := range a {
		factors = append(factors, each(d, func(y *ir.Value) *ir.Value { return b.Binary(ptx.Mul, x, y) }))
	}
	return factors
}
