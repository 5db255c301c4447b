package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Consumers share every tile, or two take turns: at the products of whole tiles, so that one's epilogue runs beside the other's products, and at
// finding the slots of one ring filled, where their epilogues read those.

// sharing is how many consumers share a tile.
func (g Gemm) sharing() int {
	if g.Pingpong {
		return 1
	}
	return g.Consumers
}

// initializeTurns makes the barriers of consumers that take turns: the other's warps arrive.
func (w *wgmma) initializeTurns() {
	b := w.b
	for c := range 2 {
		b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", w.turn(c), "count", 4)
		if f := w.fetching; f != nil {
			b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", f.turn(c), "count", 4)
		}
	}
}

// takeTurns is a consumer that shares no tiles. Consumer 1 starts at the second tile, whose stages come after the first tile's.
func (w *wgmma) takeTurns() {
	b := w.b
	second := b.Compare("eq", w.consumer, b.I32(1))
	stage, parity := w.next(b.I32(0), b.I32(0), w.steps)
	ring := []*ir.Value{b.Select(second, stage, b.I32(0)), b.Select(second, parity, b.I32(0)), b.Binary(ptx.Xor, w.consumer, b.I32(1))}
	if f := w.fetching; f != nil {
		slot, parity := f.next(b, b.I32(0), b.I32(0), f.steps)
		ring = append(ring, b.Select(second, slot, b.I32(0)), b.Select(second, parity, b.I32(0)))
	}
	first := b.Add(w.first, b.Select(second, w.stride, b.I32(0)))
	mine, theirs := b.Add(w.base, b.MulI(w.consumer, 8)), b.Sub(b.AddI(w.base, 8), b.MulI(w.consumer, 8))
	b.For(first, w.end, b.Add(w.stride, w.stride), true, ring, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
		at := w.locate(number)
		b.Do(ptx.BarrierWait, []*ir.Value{mine, ring[2]}, "offset", w.turn(0))
		leader := b.Compare("eq", w.lane, b.I32(0))
		acc, stage, parity := w.multiply(at, b.I32(0), ring[0], ring[1])
		b.Do(ptx.BarrierArrive, []*ir.Value{theirs, leader}, "offset", w.turn(0))
		var near *reader
		if f := w.fetching; f != nil { // the other has found all of its slots filled: else phases would be mistaken
			b.Do(ptx.BarrierWait, []*ir.Value{mine, ring[2]}, "offset", f.turn(0))
			near = f.reader(w, ring[3], ring[4])
			near.filled = func() { b.Do(ptx.BarrierArrive, []*ir.Value{theirs, leader}, "offset", f.turn(0)) }
		}
		w.storeTile(at, b.I32(0), acc, near)
		stage, parity = w.next(stage, parity, w.steps)
		ring = []*ir.Value{stage, parity, b.Binary(ptx.Xor, ring[2], b.I32(1))}
		if near != nil {
			slot, parity := near.next(b, near.slot, near.parity, near.steps)
			ring = append(ring, slot, parity)
		}
		return ring
	})
}
