package ptx

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// random draws each element by its number, as blu.random_uniform and blu.random_normal do: Philox4x32-10, the counter being
// the number and the stream, the key the seed (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011).
func (l *lowering) random(op *ir.Op) error {
	b := l.b
	y := l.blockFor(op.Result(0))
	y.rows, y.cols = l.extentOf(op.Operand(2), y.shape[0]), l.extentOf(op.Operand(3), y.shape[1])
	seedLow, seedHigh := b.Split(l.blocks[op.Operand(0)].regs[0], l.c.I32())
	stream, pitch := l.stream(op.Attrs().IntOr("stream", 0)), op.Attrs().IntOr("pitch", 0)
	start := b.Convert(l.index[op.Operand(1)], l.c.I64(), false)
	l.each(y, func(i, j, k int) {
		n := start
		if y.shape[0] > 1 {
			n = b.Create(ptx.MulWide, []*ir.Value{l.row(i), b.I32(int(pitch)), n}).Result(0)
		}
		if y.shape[1] > 1 {
			n = b.Create(ptx.MulWide, []*ir.Value{l.col(j), b.I32(1), n}).Result(0)
		}
		low, high := b.Split(n, l.c.I32())
		w := l.philox([4]*ir.Value{low, high, stream[0], stream[1]}, [2]*ir.Value{seedLow, seedHigh})
		if op.Is(tile.RandomUniform) {
			high24 := b.Create(ptx.Shr, []*ir.Value{w[0], b.I32(8)}).Result(0)
			y.regs[k] = l.cast(b.Mul(b.Convert(high24, l.c.F32(), false), b.F32(1.0/(1<<24))), y.elem)
			return
		}
		z := b.FMA(l.normal(w), l.f64(op.Attrs().FloatOr("std", 1)), l.f64(op.Attrs().FloatOr("mean", 0)))
		y.regs[k] = l.cast(z, y.elem)
	})
	l.blocks[op.Result(0)] = y
	return nil
}

// stream is a stream's number in two words: a parameter, so that kernels that differ in it alone share their code.
func (l *lowering) stream(n int64) [2]*ir.Value {
	p := l.streams[n]
	if p == nil {
		return [2]*ir.Value{l.b.I32(int(int32(n))), l.b.I32(int(n >> 32))}
	}
	low, high := l.b.Split(p, l.c.I32())
	return [2]*ir.Value{low, high}
}

// normal is a standard normal number of two words (Box and Muller).
func (l *lowering) normal(w [4]*ir.Value) *ir.Value {
	b := l.b
	f64 := l.c.F64()
	u := b.Mul(b.Add(b.Convert(w[0], f64, false), l.f64(1)), l.f64(1.0/(1<<32)))
	t := b.Mul(b.Convert(w[1], f64, false), l.f64(1.0/(1<<30))) // in quarters of a turn
	n, bits := l.nearest(t)
	r := b.Mul(b.Sub(t, n), l.f64(math.Pi/2))
	radius := b.Unary(ptx.Sqrt, b.Mul(l.log64(u), l.f64(-2)))
	return b.Mul(radius, l.quarter(r, bits))
}

func (l *lowering) philox(c [4]*ir.Value, k [2]*ir.Value) [4]*ir.Value {
	b := l.b
	word := func(n uint32) *ir.Value { return b.I32(int(int32(n))) }
	product := func(x *ir.Value, n uint32) (low, high *ir.Value) {
		return b.Split(b.Create(ptx.MulWide, []*ir.Value{x, word(n)}).Result(0), l.c.I32())
	}
	for round := range 10 {
		if round > 0 {
			k[0], k[1] = l.key(k[0], 0x9E3779B9, round), l.key(k[1], 0xBB67AE85, round)
		}
		low0, high0 := product(c[0], 0xD2511F53)
		low1, high1 := product(c[2], 0xCD9E8D57)
		c = [4]*ir.Value{b.Binary(ptx.Xor, b.Binary(ptx.Xor, high1, c[1]), k[0]), low1, b.Binary(ptx.Xor, b.Binary(ptx.Xor, high0, c[3]), k[1]), low0}
	}
	return c
}

// key is the next round's key.
func (l *lowering) key(k *ir.Value, weyl uint32, round int) *ir.Value {
	return l.remember(placeKey{"key", k, int(weyl), round}, func() *ir.Value { return l.b.Add(k, l.b.I32(int(int32(weyl)))) })
}
