package blublas

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// produce is the producer warpgroup: a thread has the copy engine fill buffers of rows and stages of the ring. The gradients also need
// numbers of queries, which are rows or columns; another warp brings those, whose loads it waits for.
func (w *groups) produce() {
	b := w.b
	if n, _ := w.registers(); n > 0 {
		b.Do(ptx.SetMaxRegisters, nil, "count", n)
	}
	b.If(b.And(w.warpIs(0), b.Compare("eq", w.lane, b.I32(0))), false, func() {
		for _, m := range append(slices.Clone(w.lefts), w.rights...) {
			b.Do(ptx.TMAPrefetch, []*ir.Value{w.mapOf(m)})
		}
		w.feed(w.copyRows, w.copyColumns)
	}, nil)
	switch w.kind {
	case AttentionGradQueries:
		b.If(w.warpIs(1), true, func() { w.feed(w.numberRows, nil) }, nil)
	case AttentionGradKeys:
		b.If(w.warpIs(1), true, func() { w.feed(nil, w.numberColumns) }, nil)
	}
}

func (w *groups) warpIs(n int) *ir.Value { return w.b.Compare("eq", w.warp, w.b.I32(n)) }

// feed goes over all tiles, their rows and blocks of columns; what is nil has no slots of its own to fill.
func (w *groups) feed(rows func(s slot), columns func(head, column *ir.Value, s slot)) {
	w.each(append(w.firstSlot(1).values(), w.firstSlot(1).values()...), func(carried []*ir.Value) []*ir.Value {
		ring, buffer := slot{carried[0], carried[1]}, slot{carried[2], carried[3]}
		if rows != nil {
			rows(buffer)
		}
		if columns != nil {
			ring = w.steps(ring, columns)
		}
		return append(ring.values(), w.after(buffer, w.buffers).values()...)
	})
}

// copyRows brings a tile's rows.
func (w *groups) copyRows(rows slot) {
	b := w.b
	w.wait(rowsEmpty, rows)
	barrier := b.AddI(b.Add(w.shared, b.MulI(rows.index, 8)), w.at(rowsFull))
	b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "bytes", w.bufferBytes())
	to := b.Add(w.shared, b.MulI(rows.index, w.bufferBytes()))
	for i, name := range w.lefts {
		w.load(name, w.rows, b.AddI(to, i*w.rows.bytes()), barrier, w.head, w.first)
	}
}

// copyColumns brings a block of columns.
func (w *groups) copyColumns(head, column *ir.Value, s slot) {
	b := w.b
	w.wait(empty, s)
	barrier := b.AddI(b.Add(w.shared, b.MulI(s.index, 8)), w.at(full))
	b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "bytes", w.stageBytes())
	to := b.Add(b.AddI(w.shared, w.ring()), b.MulI(s.index, w.stageBytes()))
	for i, name := range w.rights {
		w.load(name, w.columns, b.AddI(to, i*w.columns.bytes()), barrier, head, column)
	}
}

// numberRows brings -lse of a tile's rows.
func (w *groups) numberRows(rows slot) {
	b := w.b
	lse := w.numbersOf("lse", w.head, w.first, w.rows.rows, w.extent)
	w.wait(rowsEmpty, rows)
	w.storeNumbers(b.Add(w.rowNumbersAt(rows), b.MulI(w.lane, 4)), each(lse, w.inExponents), w.rows.rows)
	b.Do(ptx.BarrierArrive, []*ir.Value{b.Add(w.shared, b.MulI(rows.index, 8))}, "offset", w.at(rowsFull))
}

// numberColumns brings -lse and delta of a block of queries. Of a query that sees no key, and of those beyond the last, both are 0: their
// rows are zeros or masked.
func (w *groups) numberColumns(head, column *ir.Value, s slot) {
	b, n := w.b, w.Block.Columns
	lse, deltas := w.numbersOf("lse", head, column, n, b.I32(w.Queries)), w.numbersOf("delta", head, column, n, b.I32(w.Queries))
	w.wait(empty, s)
	stage := b.Add(b.AddI(w.shared, w.numbers()), b.MulI(s.index, w.numberBytes()))
	to := b.Add(stage, b.MulI(w.lane, 4))
	w.storeNumbers(to, each(lse, w.inExponents), n)
	if w.startsWithDeltas() {
		w.storeDeltas(b.AddI(stage, 4*n), deltas)
	} else {
		w.storeNumbers(b.AddI(to, 4*n), deltas, n)
	}
	b.Do(ptx.BarrierArrive, []*ir.Value{b.Add(w.shared, b.MulI(s.index, 8))}, "offset", w.at(full))
}

// startsWithDeltas is whether products of values and gradients of outputs start with -delta: of planes they have a scale.
func (w *groups) startsWithDeltas() bool { return w.kind == AttentionGradKeys && !w.scaled() }

// numberBytes is the bytes of a stage's numbers of queries: -lse, and delta or what products start with.
func (w *groups) numberBytes() int {
	if w.startsWithDeltas() {
		return 12 * w.Block.Columns
	}
	return 8 * w.Block.Columns
}

// storeDeltas writes what products start with as accumulators have it: -delta of two queries, for each of two keys.
func (w *groups) storeDeltas(to *ir.Value, deltas []*ir.Value) {
	b, n := w.b, w.Block.Columns
	to = b.Add(to, b.Add(b.MulI(b.DivI(w.lane, 2), 16), b.MulI(b.Binary(ptx.And, w.lane, b.I32(1)), 4)))
	for i, x := range deltas {
		for key := range 2 {
			access := ptx.Access{Space: "shared", Offset: 256*i + 8*key}
			if n%32 != 0 {
				access.If = b.Compare("lo", b.AddI(w.lane, 32*i), b.I32(n))
			}
			b.Store(to, b.Unary(ptx.Neg, x), access)
		}
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
