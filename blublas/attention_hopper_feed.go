package blublas

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// feeder is a warp of the producer warpgroup: it has the copy engine fill buffers of rows and stages of the ring, brings the numbers that
// belong to them, or does both.
type feeder struct {
	*groups
	copies, numbers bool
}

// produce is the producer warpgroup. Consumers with tiles of their own have a warp each; for consumers that share tiles one
// thread sees to copies, and another warp to numbers, whose loads it waits for.
func (w *groups) produce() {
	b := w.b
	if n, _ := w.registers(); n > 0 {
		b.Do(ptx.SetMaxRegisters, nil, "count", n)
	}
	numbered, copying := w.kind != AttentionForward, w.warpIs(0)
	if n := w.Block.streams(); n > 1 {
		copying = b.Compare("lo", w.warp, b.I32(n))
	}
	alone := w.Block.Apart && numbered
	if !alone {
		copying = b.And(copying, w.leads())
	}
	b.If(copying, alone, func() {
		for _, m := range append(slices.Clone(w.lefts), w.rights...) {
			b.Do(ptx.TMAPrefetch, []*ir.Value{w.mapOf(m)})
		}
		feeder{w, true, alone}.feed()
	}, nil)
	if numbered && !alone {
		b.If(w.warpIs(1), true, feeder{w, false, true}.feed, nil)
	}
}

func (w *groups) warpIs(n int) *ir.Value { return w.b.Compare("eq", w.warp, w.b.I32(n)) }
func (w *groups) leads() *ir.Value       { return w.b.Compare("eq", w.lane, w.b.I32(0)) }

// feed goes over all tiles.
func (f feeder) feed() {
	f.each(append(f.firstSlot(1).values(), f.firstSlot(1).values()...), func(carried []*ir.Value) []*ir.Value {
		ring, rows := slot{carried[0], carried[1]}, slot{carried[2], carried[3]}
		if f.copies || f.kind == AttentionGradQueries {
			f.feedRows(rows)
		}
		if f.copies || f.kind == AttentionGradKeys {
			ring = f.steps(ring, f.feedStage)
		}
		return append(ring.values(), f.after(rows, f.buffers).values()...)
	})
}

// feedRows brings a tile's rows, and with queries of the gradients -lse.
func (f feeder) feedRows(rows slot) {
	b, w := f.b, f.groups
	var lse []*ir.Value
	numbers := f.numbers && w.kind == AttentionGradQueries
	if numbers {
		lse = w.numbersOf("lse", w.head, w.first, w.rows.rows, w.extent)
	}
	w.wait(rowsEmpty, rows)
	f.copy(func() {
		barrier := b.AddI(b.Add(w.shared, b.MulI(rows.index, 8)), w.at(rowsFull))
		b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "bytes", w.bufferBytes())
		to := b.Add(w.shared, b.MulI(rows.index, w.bufferBytes()))
		for i, name := range w.lefts {
			w.load(name, w.rows, b.AddI(to, i*w.rows.bytes()), barrier, w.head, w.first)
		}
	})
	if numbers {
		w.storeNumbers(b.Add(w.rowNumbersAt(rows), b.MulI(w.lane, 4)), each(lse, w.inExponents), w.rows.rows)
		b.Do(ptx.BarrierArrive, []*ir.Value{b.Add(w.shared, b.MulI(rows.index, 8))}, "offset", w.at(rowsFull))
	}
}

// feedStage brings a block of columns, and with queries -lse and delta. Of a query that sees no key, and of those beyond the
// last, both are 0: their rows are zeros or masked.
func (f feeder) feedStage(head, column *ir.Value, s slot) {
	b, w, n := f.b, f.groups, f.Block.Columns
	var lse, deltas []*ir.Value
	numbers := f.numbers && w.kind == AttentionGradKeys
	if numbers {
		lse, deltas = w.numbersOf("lse", head, column, n, b.I32(w.Queries)), w.numbersOf("delta", head, column, n, b.I32(w.Queries))
	}
	w.wait(empty, s)
	f.copy(func() {
		barrier := b.AddI(b.Add(w.shared, b.MulI(s.index, 8)), w.at(full))
		b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "bytes", w.stageBytes())
		to := b.Add(b.AddI(w.shared, w.ring()), b.MulI(s.index, w.stageBytes()))
		for i, name := range w.rights {
			w.load(name, w.columns, b.AddI(to, i*w.columns.bytes()), barrier, head, column)
		}
	})
	if numbers {
		to := b.Add(b.AddI(w.shared, w.numbers()), b.Add(b.MulI(s.index, 8*n), b.MulI(w.lane, 4)))
		w.storeNumbers(to, each(lse, w.inExponents), n)
		w.storeNumbers(b.AddI(to, 4*n), deltas, n)
		b.Do(ptx.BarrierArrive, []*ir.Value{b.Add(w.shared, b.MulI(s.index, 8))}, "offset", w.at(full))
	}
}

// copy is for the thread that has the copy engine work, if this warp does that.
func (f feeder) copy(body func()) {
	switch {
	case f.copies && f.numbers: // all lanes are here
		f.b.If(f.leads(), false, body, nil)
	case f.copies:
		body()
	}
}

// numbersOf reads n numbers of a head's queries from one on, those before the end: a lane has every 32nd. Others are 0.
func (w *groups) numbersOf(param string, head, from *ir.Value, n int, end *ir.Value) (all []*ir.Value) {
	b := w.b
	at := w.statistics(param, head)
	for i := 0; i < n; i += 32 {
		query := b.AddI(b.Add(from, w.lane), i)
		inside := b.Compare("lo", query, end)
		if n%32 != 0 {
			inside = b.And(inside, b.Compare("lo", b.AddI(w.lane, i), b.I32(n)))
		}
		all = append(all, b.Load(b.MulWide(b.Select(inside, query, b.I32(0)), 4, at), b.Ctx.F32(), 1, ptx.Access{Space: "global", If: inside}))
	}
	return all
}

// storeNumbers writes n numbers of which a lane has every 32nd.
func (w *groups) storeNumbers(to *ir.Value, numbers []*ir.Value, n int) {
	b := w.b
	for i, x := range numbers {
		access := ptx.Access{Space: "shared", Offset: 128 * i}
		if n%32 != 0 {
			access.If = b.Compare("lo", b.AddI(w.lane, 32*i), b.I32(n))
		}
		b.Store(to, x, access)
	}
}
