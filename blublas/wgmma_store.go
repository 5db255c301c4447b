package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// staging is where a warp has 16 rows of results at a time, in whole rows: 64 columns, or 32. Their 16-byte columns are exclusive-ored
// with the row so that the lanes that write and those that read at one time are in different banks.
type staging struct{ columns int }

func (s staging) pitch() int { return 4 * s.columns }
func (s staging) bytes() int { return 16 * s.pitch() }

// at is where the result at (row, col) is.
func (s staging) at(row, col int) int { return row*s.pitch() + (col/4^2*(row&3))*16 + col%4*4 }

// staged is how a kernel stages its results: so many columns as a box of float32 has where all that the copy engine brings for them is
// that.
func (g Gemm) staged() staging {
	matrix, narrow := false, false
	for _, r := range g.sources() {
		matrix, narrow = matrix || !r.vector(), narrow || r.Col < 4
	}
	if matrix && !narrow {
		return staging{32}
	}
	return staging{64}
}

// storeTile hands a tile's results to the epilogue.
func (w *wgmma) storeTile(at place, row *ir.Value, acc []*ir.Value, near *reader) {
	if w.fragments != nil {
		w.fragments.store(w, at, row, acc, near)
		return
	}
	w.store(at, row, acc, near)
}

// store takes the results from the accumulators' layout to whole rows through shared memory, a warp's 16 rows and some
// columns at a time, and hands them to the epilogue, which reads its sources through `near` where that isn't nil.
func (w *wgmma) store(at place, row *ir.Value, acc []*ir.Value, near *reader) {
	b := w.b
	inGroup := b.Binary(ptx.And, w.warp, b.I32(3))
	mine := b.Add(b.AddI(w.base, w.staging), b.MulI(b.AddI(w.warp, -4), w.staged().bytes()))
	laneRow, laneCol := w.lanePoint()
	write, read := w.stagingWrites(mine), w.stagingReads(mine, laneRow, laneCol)
	for m, v := range acc {
		first := b.Add(b.Add(at.row, row), b.AddI(b.MulI(inGroup, 16), 64*m))
		p := newPart(b, b.Add(first, laneRow), b.Add(at.col, laneCol), w.M, w.N, w.pointWidth(), w.epilogue).in(at)
		for c := 0; c < w.BN; c += w.staged().columns {
			w.storeChunk(p, near, c, func() { w.stage(write, v, c) }, read)
		}
		if w.Epilogue.Sums && w.SplitK == 1 {
			w.finishSums(p, inGroup, mine, b.DivI(b.AddI(b.Add(at.row, row), 64*m), 64), at.col)
		}
	}
}

// perRow is how many lanes read a row of what is staged.
func (g Gemm) perRow() int { return min(g.staged().columns/g.pointWidth(), 32) }

// lanePoint is where a lane's first point is in what is staged.
func (w *wgmma) lanePoint() (row, col *ir.Value) {
	b := w.b
	return b.DivI(w.lane, w.perRow()), b.MulI(b.Binary(ptx.And, w.lane, b.I32(w.perRow()-1)), w.pointWidth())
}

// storeChunk hands what a warp stages at once, from column c on, to the epilogue.
func (w *wgmma) storeChunk(p *part, near *reader, c int, stage func(), read func(dRow int) *ir.Value) {
	b := w.b
	e := w.stored()
	pts := w.points(p, c, w.perRow())
	ahead := w.ahead(e)
	fetch := func(from int) {
		to := min(from+ahead, len(pts))
		e.fetch(pts[from:to])
		if near != nil && to == len(pts) {
			near.release(w.lane)
		}
	}
	if near != nil {
		p.near = near.inRows(c)
	} else {
		fetch(0)
	}
	stage()
	for i, pt := range pts {
		if i%ahead == 0 && (i > 0 || near != nil) {
			fetch(i)
		}
		x := b.Load(read(pt.dRow), b.Ctx.F32(), p.width, ptx.Access{Space: "shared", Offset: pt.dRow*w.staged().pitch() + (pt.dCol-c)*4})
		e.Apply(pt, b.Scalars(x))
	}
}

// ahead is how many points' reads may be on their way at one time: what fits beside the accumulators and what else a
// thread has to remember.
func (w *wgmma) ahead(e Epilogue) int {
	const others = 56
	accumulators := w.rowsPerConsumer() * w.BN / 128
	return max(1, min(8, (w.registersOfConsumer()-others-accumulators)/(4*max(1, e.Reads))))
}

// pointWidth is how many elements of a row the epilogue gets at a time.
func (g Gemm) pointWidth() int {
	if g.N%4 == 0 || g.Epilogue.Ragged && g.SplitK == 1 {
		return 4
	}
	return 1
}

// stagingWrites gives where a lane stages the first two results of the accumulators' blocks of 8 columns, for each block
// mod 4; later blocks are 128 bytes further, later rows at a multiple of 4 too.
func (w *wgmma) stagingWrites(mine *ir.Value) [4]*ir.Value {
	b := w.b
	row, pair := b.DivI(w.lane, 4), b.Binary(ptx.And, w.lane, b.I32(3))
	start := b.Add(b.Add(mine, b.MulI(row, w.staged().pitch())), b.Add(b.MulI(b.DivI(pair, 2), 16), b.MulI(b.Binary(ptx.And, pair, b.I32(1)), 8)))
	var at [4]*ir.Value
	for j := range at {
		at[j] = b.Add(start, b.MulI(b.Binary(ptx.Xor, b.Binary(ptx.And, row, b.I32(3)), b.I32(j)), 32))
	}
	return at
}

// stagingReads gives where a lane reads its first point, for rows that are `dRow` further but for a multiple of 4.
func (w *wgmma) stagingReads(mine, laneRow, laneCol *ir.Value) func(dRow int) *ir.Value {
	b := w.b
	start := b.Add(b.Add(mine, b.MulI(laneRow, w.staged().pitch())), b.MulI(b.Binary(ptx.And, laneCol, b.I32(3)), 4))
	at := map[int]*ir.Value{}
	return func(dRow int) *ir.Value {
		if at[dRow&3] == nil {
			row := b.Binary(ptx.And, b.AddI(laneRow, dRow&3), b.I32(3))
			at[dRow&3] = b.Add(start, b.MulI(b.Binary(ptx.Xor, b.DivI(laneCol, 4), b.MulI(row, 2)), 16))
		}
		return at[dRow&3]
	}
}

// stage writes a warp's 16 rows of results from column c on to its staging.
func (w *wgmma) stage(write [4]*ir.Value, acc *ir.Value, c int) {
	b := w.b
	b.Do(ptx.WarpSync, nil) // what was there has been read
	for j := range w.staged().columns / 8 {
		for half := range 2 {
			i := 4*(c/8+j) + 2*half
			pair := b.Vector(b.Extract(acc, i), b.Extract(acc, i+1))
			b.Store(write[j%4], pair, ptx.Access{Space: "shared", Offset: half*8*w.staged().pitch() + j/4*128})
		}
	}
	b.Do(ptx.WarpSync, nil)
}

// points lists a lane's points in a staged chunk.
func (w *wgmma) points(p *part, c, perRow int) []*Point {
	b := w.b
	var pts []*Point
	rows := 32 / perRow // that a warp covers at once
	var inColumns []*ir.Value
	cols := []int{c}
	if p.width == 1 && w.staged().columns > 32 {
		cols = []int{c, c + 32}
	}
	edgeM, edgeN := w.M%(w.BM*w.Cluster) != 0, w.N%w.BN != 0
	for _, col := range cols {
		var in *ir.Value
		if edgeN {
			in = b.Compare("lo", b.AddI(p.col, col), b.I32(w.N))
		}
		inColumns = append(inColumns, in)
	}
	for r := 0; r < 16; r += rows {
		var inRow *ir.Value
		if edgeM {
			inRow = b.Compare("lo", b.AddI(p.row, r), b.I32(w.M))
		}
		for i, col := range cols {
			pts = append(pts, p.point(r, col, both(b, inRow, inColumns[i])))
		}
	}
	return pts
}

func both(b *ptx.Builder, p, q *ir.Value) *ir.Value {
	switch {
	case p == nil:
		return q
	case q == nil:
		return p
	}
	return b.And(p, q)
}

// SumRows is how many rows of the result each row of SumColumns adds up.
func (g Gemm) SumRows() int { return 64 }

// finishSums adds up the columns of a consumer's 64 rows in a fixed order and stores them: each warp stages its sums, then
// each thread adds up some columns.
func (w *wgmma) finishSums(p *part, inGroup, mine, block, col *ir.Value) {
	b := w.b
	id := b.AddI(w.consumer, 1)
	thread := b.Add(b.MulI(inGroup, 32), w.lane)
	first := b.Add(b.Sub(mine, b.MulI(inGroup, w.staged().bytes())), b.MulI(thread, 4))
	inRows := b.Compare("lo", b.MulI(block, 64), b.I32(w.M))
	for param := range w.epilogue {
		if !w.sumWarp(p, param, mine) {
			continue
		}
		b.Do(ptx.Sync, []*ir.Value{id}, "threads", 128)
		to := b.MulWide(b.Add(b.Add(b.MulI(block, w.N), col), thread), 4, w.epilogue[param])
		for c := 0; c < w.BN; c += 128 {
			in := b.And(inRows, b.Compare("lo", b.Add(b.AddI(col, c), thread), b.I32(w.N)))
			if c+128 > w.BN {
				in = b.And(in, b.Compare("lo", thread, b.I32(w.BN-c)))
			}
			total := b.Load(first, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: 4 * c})
			for i := 1; i < 4; i++ {
				total = b.Binary(ptx.Add, total, b.Load(first, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: 4*c + i*w.staged().bytes()}))
			}
			b.Store(to, total, ptx.Access{Space: "global", Offset: 4 * c, If: in})
		}
		b.Do(ptx.Sync, []*ir.Value{id}, "threads", 128)
	}
}

// sumWarp adds the sums of the lanes that have the same columns and writes a warp's sums to its staging; false where the
// epilogue sums nothing for that parameter.
func (w *wgmma) sumWarp(p *part, param int, mine *ir.Value) bool {
	b := w.b
	any := false
	for c := range w.BN {
		key := columnLoad{param, c}
		sums := p.sums[key]
		if sums == nil {
			continue
		}
		delete(p.sums, key)
		if !any {
			b.Do(ptx.WarpSync, nil)
		}
		any = true
		if p.width == 1 {
			b.Store(b.Add(mine, b.MulI(w.lane, 4)), sums[0], ptx.Access{Space: "shared", Offset: 4 * c})
			continue
		}
		for i := range sums {
			for d := w.perRow(); d < 32; d *= 2 {
				sums[i] = b.Binary(ptx.Add, sums[i], b.Do(ptx.Shuffle, []*ir.Value{sums[i], b.I32(d)}, "mode", "bfly").Result(0))
			}
		}
		at := b.Add(mine, b.MulI(b.Binary(ptx.And, w.lane, b.I32(w.perRow()-1)), 16))
		b.Store(at, b.Vector(sums...), ptx.Access{Space: "shared", Offset: 4 * c, If: b.Compare("lo", w.lane, b.I32(w.perRow()))})
	}
	return any
}

// stored is the epilogue of what this kernel stores.
func (g Gemm) stored() Epilogue {
	if g.SplitK > 1 {
		return partials
	}
	return g.Epilogue
}

// partials is the epilogue of one part of K: its product goes to [SplitK, M, N].
var partials = Epilogue{Key: "partial", Params: []string{"partials"}, Apply: func(p *Point, x []*ir.Value) { p.Store(0, ir.F32, x) }}
