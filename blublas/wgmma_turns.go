package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Consumers are one team, which shares every tile, or two that take turns: at products, so that one's epilogue runs beside the other's products, and
// at storing where they share what that needs.

// team is how many consumers share a tile: all, or half of them where two teams take turns.
func (g Gemm) team() int {
	if g.Pingpong {
		return g.Consumers / 2
	}
	return g.Consumers
}

// storesInTurn reports whether teams store in turn, and share what results are staged in. Consumers that are a team by themselves don't: their
// epilogue may take longer than the other's products, and has to run beside the other's then.
func (g Gemm) storesInTurn() bool { return g.Pingpong && g.team() > 1 }

// stagers is how many consumers have a place of their own to stage results in.
func (g Gemm) stagers() int {
	if g.storesInTurn() {
		return g.team()
	}
	return g.Consumers
}

// turnsAtStoring reports whether teams have turns at storing too: where they share what is staged, and where they read slots of one ring.
func (w *wgmma) turnsAtStoring() bool { return w.storesInTurn() || w.Pingpong && w.fetching != nil }

// storing is where a team's turn at storing is.
func (w *wgmma) storing(team int) int {
	if f := w.fetching; f != nil {
		return f.behind() + 8*team
	}
	return w.verdict() + 8*(1+team)
}

// initializeTurns makes the barriers of teams that take turns: the other's warps arrive.
func (w *wgmma) initializeTurns() {
	b := w.b
	for c := range 2 {
		b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", w.turn(c), "count", 4*w.team())
		if w.turnsAtStoring() {
			b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", w.storing(c), "count", 4*w.team())
		}
	}
}

// takeTurns is a consumer of one of two teams. Team 1 starts at the second tile, whose stages come after the first tile's.
func (w *wgmma) takeTurns() {
	b := w.b
	team, row := w.consumer, b.I32(0)
	if n := w.team(); n > 1 {
		team = b.DivI(w.consumer, n)
		w.member = b.Sub(w.consumer, b.MulI(team, n))
		row = b.MulI(w.member, w.rowsPerConsumer())
	}
	second := b.Compare("eq", team, b.I32(1))
	stage, parity := w.next(b.I32(0), b.I32(0), w.steps)
	ring := []*ir.Value{b.Select(second, stage, b.I32(0)), b.Select(second, parity, b.I32(0)), b.Binary(ptx.Xor, team, b.I32(1))}
	if f := w.fetching; f != nil {
		slot, parity := f.next(b, b.I32(0), b.I32(0), f.steps)
		ring = append(ring, b.Select(second, slot, b.I32(0)), b.Select(second, parity, b.I32(0)))
	}
	first := b.Add(w.first, b.Select(second, w.stride, b.I32(0)))
	mine, theirs := b.Add(w.base, b.MulI(team, 8)), b.Sub(b.AddI(w.base, 8), b.MulI(team, 8))
	b.For(first, w.end, b.Add(w.stride, w.stride), true, ring, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
		at := w.locate(number)
		b.Do(ptx.BarrierWait, []*ir.Value{mine, ring[2]}, "offset", w.turn(0))
		leader := b.Compare("eq", w.lane, b.I32(0))
		pass := func(turn int) func() {
			return func() { b.Do(ptx.BarrierArrive, []*ir.Value{theirs, leader}, "offset", turn) }
		}
		acc, stage, parity := w.multiply(at, row, ring[0], ring[1], pass(w.turn(0)))
		stored := pass(w.storing(0))
		if w.turnsAtStoring() {
			b.Do(ptx.BarrierWait, []*ir.Value{mine, ring[2]}, "offset", w.storing(0))
		}
		var near *reader
		if f := w.fetching; f != nil {
			near = f.reader(w, ring[3], ring[4])
			if !w.storesInTurn() { // the others may store when all slots of this tile have been found filled: else phases would be mistaken
				near.filled = stored
			}
		}
		w.storeTile(at, row, acc, near)
		if w.storesInTurn() {
			w.leaveStaging()
			stored()
		}
		stage, parity = w.next(stage, parity, w.steps)
		ring = []*ir.Value{stage, parity, b.Binary(ptx.Xor, ring[2], b.I32(1))}
		if near != nil {
			slot, parity := near.next(b, near.slot, near.parity, near.steps)
			ring = append(ring, slot, parity)
		}
		return ring
	})
}

// leaveStaging waits until what this warp staged has been read.
func (w *wgmma) leaveStaging() {
	if w.fragments != nil {
		w.fragments.drain(w)
		return
	}
	w.b.Do(ptx.WarpSync, nil)
}

// stager is the number of this consumer among those that have places of their own to stage results in.
func (w *wgmma) stager() *ir.Value {
	if w.storesInTurn() {
		return w.member
	}
	return w.consumer
}

// stagingWarp is the number of this warp among those that have such places.
func (w *wgmma) stagingWarp() *ir.Value {
	b := w.b
	if w.storesInTurn() {
		return b.RemI(b.AddI(w.warp, -4), 4*w.team())
	}
	return b.AddI(w.warp, -4)
}
