package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// fetching brings what an epilogue reads to shared memory while its tile is multiplied. A warp of the producer has the copy engine
// fill a ring of slots in the order in which consumers store: a slot holds what they stage at once, of 64 rows of each consumer that shares a tile.
// What consumers loaded themselves would arrive after all the stages that are on their way.
//
// In a slot a matrix is boxes of 64 rows of 128 bytes, a vector rows of 128 bytes, both under the swizzle. Vectors' slots lie
// apart, for those of matrices are multiples of 1024 bytes.
type fetching struct {
	reads    []Read
	columns  int   // that a slot has
	offsets  []int // of each in its slot
	sharers  int   // consumers that share a slot
	slots    int
	steps    int    // how many slots a tile goes through
	share    int    // bytes of a slot that matrices take for each of them
	matrices int    // for all
	vectors  int    // bytes that vectors take
	start    [2]int // where slots of matrices and of vectors are
	end      int    // behind them
	barriers int    // full[slots], empty[slots], turn[2]

	maps []*ir.Value
}

// boxBytes is 64 rows of a box.
const boxBytes = 64 * rowBytes

// vector reports whether all rows share what is read.
func (r Read) vector() bool { return r.Row == 0 }

// sources lists what the copy engine brings where there is room for it.
func (g Gemm) sources() []Read {
	e := g.Epilogue
	if e.Sources == nil || g.SplitK > 1 || len(g.Batch) > 0 || g.pointWidth() != 4 {
		return nil
	}
	// Beside more accumulators than those of 128 x 128 results there are no registers for addresses and much else.
	if rows := g.rowsPerConsumer(); rows*g.BN > 128*128 && (e.Reads > 1 || e.Sums || e.Reads > 0 && (rows > 128 || g.M%g.BM != 0)) {
		return nil
	}
	return e.Sources(g.N)
}

// planFetching lays out slots from a place in shared memory on, as many as fit beside other bytes or as a tile reads; nil where
// nothing is read, or it can't be brought.
func (g Gemm) planFetching(reads []Read, columns, start, others int) *fetching {
	f := &fetching{reads: reads, columns: columns, sharers: g.sharing(), steps: g.rowsPerConsumer() / 64 * (g.BN / columns)}
	for _, r := range f.reads {
		if r.vector() {
			f.offsets = append(f.offsets, f.vectors)
			f.vectors += f.boxes(r) * rowBytes
			continue
		}
		f.offsets = append(f.offsets, f.share)
		f.share += f.boxes(r) * boxBytes
	}
	f.matrices = f.sharers * f.share
	const barrier = 8
	room := int(ptx.SharedLimit(ptx.SM90A)) - start - others - 2*barrier
	if len(f.reads) > 0 {
		f.slots = min(f.steps, room/(f.matrices+f.vectors+2*barrier))
	}
	if f.slots < 1 {
		return nil
	}
	f.start = [2]int{start, start + f.slots*f.matrices}
	f.end = f.start[1] + f.slots*f.vectors
	return f
}

// boxes is how many boxes hold a slot's columns.
func (f *fetching) boxes(r Read) int { return f.columns * r.Col / rowBytes }

func (f *fetching) full() int      { return f.barriers }
func (f *fetching) empty() int     { return f.barriers + 8*f.slots }
func (f *fetching) turn(c int) int { return f.barriers + 8*(2*f.slots+c) }

// next is the slot, and the parity of its phase, n slots later.
func (f *fetching) next(b *ptx.Builder, slot, parity *ir.Value, n int) (*ir.Value, *ir.Value) {
	return advance(b, slot, parity, n, f.slots)
}

// tensorMap describes what an epilogue reads or writes: some rows of 128 bytes are moved at once, one of a vector.
func (r Read) tensorMap(m, n, rows int) *TensorMap {
	t := &TensorMap{Element: map[int]string{2: "bf16", 4: "f32"}[r.Col], Dims: [2]int{n, m}, Pitch: r.Row, Box: [2]int{rowBytes / r.Col, rows}}
	if r.vector() {
		t.Dims[1], t.Pitch, t.Box[1] = 1, ceil(n*r.Col, 16)*16, 1
	}
	return t
}

// initialize makes the barriers.
func (f *fetching) initialize(w *wgmma) {
	b := w.b
	for s := range f.slots {
		b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", f.full()+8*s, "count", 1)
		b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", f.empty()+8*s, "count", 4*f.sharers)
	}
	for _, m := range f.maps {
		b.Do(ptx.TMAPrefetch, []*ir.Value{m})
	}
}

// produce is the thread that has slots filled.
func (f *fetching) produce(w *wgmma) {
	b := w.b
	b.For(w.first, w.end, w.stride, false, []*ir.Value{b.I32(0), b.I32(1)}, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
		at := w.locate(number)
		return b.For(b.I32(0), b.I32(f.steps), b.I32(1), false, ring, func(i *ir.Value, ring []*ir.Value) []*ir.Value {
			slot, parity := ring[0], ring[1]
			barrier := b.Add(w.base, b.MulI(slot, 8))
			b.Do(ptx.BarrierWait, []*ir.Value{barrier, parity}, "offset", f.empty())
			b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "offset", f.full(), "bytes", f.matrices+f.vectors)
			f.fill(w, at, i, slot, b.AddI(barrier, f.full()))
			slot, parity = f.next(b, slot, parity, 1)
			return []*ir.Value{slot, parity}
		})
	})
}

// fill has a slot filled with what step i of a tile reads.
func (f *fetching) fill(w *wgmma, at place, i, slot, full *ir.Value) {
	b := w.b
	across := w.BN / f.columns
	block := b.DivI(i, across)
	row := b.Add(at.row, b.MulI(block, 64))
	col := b.Add(at.col, b.MulI(b.Sub(i, b.MulI(block, across)), f.columns))
	matrices := b.AddI(b.Add(w.base, b.MulI(slot, f.matrices)), f.start[0])
	vectors := b.AddI(b.Add(w.base, b.MulI(slot, f.vectors)), f.start[1])
	for n, r := range f.reads {
		for box := range f.boxes(r) {
			col := b.AddI(col, box*rowBytes/r.Col)
			if r.vector() {
				b.TMALoad(f.maps[n], b.AddI(vectors, f.offsets[n]+box*rowBytes), full, nil, col, b.I32(0))
				continue
			}
			for c := range f.sharers {
				to := b.AddI(matrices, c*f.share+f.offsets[n]+box*boxBytes)
				b.TMALoad(f.maps[n], to, full, nil, col, b.AddI(row, c*w.rowsPerConsumer()))
			}
		}
	}
}

// reader is a warp that reads slots: where it is in the ring, and what is the same for all slots.
type reader struct {
	*fetching
	b                *ptx.Builder
	base             *ir.Value // shared memory
	slot, parity     *ir.Value
	left             int               // how many slots the tile still goes through
	filled           func()            // is done when the last of them has been filled
	mine             *ir.Value         // where this warp's rows of matrices are in the first slot
	laneRow, laneCol *ir.Value         // of the lane's first point
	lanes            map[int]*ir.Value // where it reads matrices, by the size of elements
	taken            []*ir.Value       // barriers of slots that have been read and not released
}

// lanePlace tells apart where a lane reads matrices in a slot: by their elements' size, and by how many rows modulo 8 a point is
// after the first.
type lanePlace struct{ size, row int }

// reader is made for a consumer at its place in the ring.
func (f *fetching) reader(w *wgmma, slot, parity *ir.Value) *reader {
	b := w.b
	inGroup := b.Binary(ptx.And, w.warp, b.I32(3))
	mine := b.Add(b.AddI(w.base, f.start[0]), b.MulI(inGroup, 16*rowBytes))
	if f.sharers > 1 {
		mine = b.Add(mine, b.MulI(w.consumer, f.share))
	}
	r := &reader{fetching: f, b: b, base: w.base, slot: slot, parity: parity, left: f.steps, filled: func() {}, mine: mine, lanes: map[int]*ir.Value{}}
	r.laneRow, r.laneCol = w.lanePoint()
	return r
}

// await waits for the next slot, and gives where its matrices, from this warp's rows on, and its vectors are.
func (r *reader) await() (matrices, vectors *ir.Value) {
	b := r.b
	b.Do(ptx.BarrierWait, []*ir.Value{b.Add(r.base, b.MulI(r.slot, 8)), r.parity}, "offset", r.full())
	if r.left--; r.left == 0 {
		r.filled()
	}
	return b.Add(r.mine, b.MulI(r.slot, r.matrices)), b.AddI(b.Add(r.base, b.MulI(r.slot, r.vectors)), r.start[1])
}

// inRows waits for the slot of the columns from `col` on after a part's first one, of whose rows points are parts.
func (r *reader) inRows(col int) *nearby {
	b := r.b
	matrices, vectors := r.await()
	made := map[lanePlace]*ir.Value{}
	place := func(p *Point, n int) (*ir.Value, int) {
		s := r.reads[n]
		if s.vector() {
			return swizzled(b, b.Add(b.AddI(vectors, r.offsets[n]), b.MulI(b.AddI(r.laneCol, p.dCol-col), s.Col))), 0
		}
		key := lanePlace{s.Col, p.dRow % 8}
		if made[key] == nil {
			made[key] = b.Add(matrices, b.Binary(ptx.Xor, r.lane(s.Col), b.I32(16*key.row)))
		}
		return made[key], r.offsets[n] + p.dRow*rowBytes
	}
	return &nearby{r.reads, func(p *Point, n int, elem ir.Type) []*ir.Value {
		at, offset := place(p, n)
		return b.Scalars(b.Load(at, elem, p.Width(), ptx.Access{Space: "shared", Offset: offset}))
	}}
}

// swizzled is where a byte lies that is at an address before the swizzle.
func swizzled(b *ptx.Builder, at *ir.Value) *ir.Value {
	return b.Binary(ptx.Xor, at, b.Binary(ptx.And, b.Binary(ptx.Shr, at, b.I32(3)), b.I32(0x70)))
}

// lane is where the lane's part of its first row is, from the start of the warp's rows on, which are 16 of a box. Points are as many
// rows apart as lanes cover at once, a power of two, so the 16-byte column of one is that of the first, exclusive-ored with the distance.
func (r *reader) lane(size int) *ir.Value {
	b := r.b
	if r.lanes[size] == nil {
		per := 16 / size
		column := b.Binary(ptx.Xor, b.Binary(ptx.And, b.DivI(r.laneCol, per), b.I32(7)), r.laneRow)
		in := b.MulI(b.Binary(ptx.And, r.laneCol, b.I32(per-1)), size)
		box := b.MulI(b.DivI(r.laneCol, rowBytes/size), boxBytes)
		r.lanes[size] = b.Add(b.Add(box, b.MulI(r.laneRow, rowBytes)), b.Add(b.MulI(column, 16), in))
	}
	return r.lanes[size]
}

// release says that the warp has read its slot, and goes on to the next.
func (r *reader) release(lane *ir.Value) {
	b := r.b
	b.Do(ptx.Fence, nil, "kind", "async") // the copy engine's next writes come after these reads: without it an H200 gave wrong elements
	b.Do(ptx.WarpSync, nil)
	b.Do(ptx.BarrierArrive, []*ir.Value{b.Add(r.base, b.MulI(r.slot, 8)), b.Compare("eq", lane, b.I32(0))}, "offset", r.empty())
	r.slot, r.parity = r.next(b, r.slot, r.parity, 1)
}
