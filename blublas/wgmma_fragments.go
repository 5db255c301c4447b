package blublas

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// fragments is how results go to memory from where the products left them: in a thread's registers pairs of columns of two rows of
// every 8 x 8 elements. Epilogues work on such pairs; a warp puts 16 rows of some columns together in boxes of 128 bytes a row under the
// swizzle, which the copy engine stores. Float32 sums go through no shared memory, and warps wait for each other only to add up columns.
//
// What is 16 bits wide is read and written as matrices of 8 x 8, what is 32 bits wide as pairs.
type fragments struct {
	results []Read
	columns int   // that a warp stages at once
	first   []int // box of each result among those of these columns
	boxes   int   // of these columns
	sets    int   // how many times them a warp has room for: the copy engine reads one set while the next is written
	start   int   // where warps' boxes are
	sums    int   // where sums of columns are
	end     int   // behind them

	maps []*ir.Value
}

// stagedBox is 16 rows of a box.
const stagedBox = 16 * rowBytes

// planOwnLayout plans how results are stored from the accumulators' own layout, and the ring of what is read; nil where that can't be. Half of
// what a tile reads in the ring is worth more than a second set of boxes.
func (g Gemm) planOwnLayout(start, others int) (*fragments, *fetching) {
	reads := g.read()
	for sets := 2; sets > 0; sets-- {
		f := g.planFragments(start, sets)
		if f == nil {
			break
		}
		ring := g.planFetching(reads, f.columns, f.end, others)
		if len(reads) == 0 || ring != nil && (2*ring.slots >= ring.steps || sets == 1) {
			return f, ring
		}
	}
	return nil, nil
}

// planFragments lays out boxes, as many sets as that or fewer, and sums from a place in shared memory on; nil where the epilogue, or the kernel,
// isn't for it.
func (g Gemm) planFragments(start, sets int) *fragments {
	e := g.Epilogue
	if _, planes := g.elem(); planes > 1 || e.Results == nil || g.SplitK > 1 || len(g.Batch) > 0 || e.Sums && g.many() {
		return nil
	}
	f := &fragments{results: e.Results(g.N), columns: rowBytes / 4, start: start}
	if len(f.results) == 0 {
		return nil
	}
	for _, r := range slices.Concat(f.results, g.read()) {
		if r.Col < 4 {
			f.columns = rowBytes / 2
		}
	}
	for _, r := range f.results {
		f.first = append(f.first, f.boxes)
		f.boxes += f.columns * r.Col / rowBytes
	}
	if f.sets = max(1, sets/f.boxes); e.Sums {
		f.sets = 1 // room for sums
	}
	f.sums = start + 4*g.Consumers*f.warp()
	f.end = f.sums
	if e.Sums {
		f.end += g.Consumers * f.consumerSums(g)
	}
	return f
}

// many reports whether accumulators leave few registers for anything else: those of more than 128 x 128 results.
func (g Gemm) many() bool { return g.rowsPerConsumer()*g.BN > 128*128 }

// read lists what the epilogue reads that the copy engine can bring.
func (g Gemm) read() []Read {
	if g.Epilogue.Sources == nil {
		return nil
	}
	return g.Epilogue.Sources(g.N)
}

// warp is the bytes of a warp's boxes.
func (f *fragments) warp() int { return f.sets * f.boxes * stagedBox }

// consumerSums is the bytes that a consumer's warps take to exchange sums: a row of each for every 64 rows of a tile.
func (f *fragments) consumerSums(g Gemm) int { return g.rowsPerConsumer() / 64 * 4 * g.BN * 4 }

// lanes is where a lane's elements are, from the start of a warp's rows in a box on, of columns 0 to 7, or 0 to 15 for matrices. Those of later
// columns are there exclusive-ored with the columns' distance in bytes, for only their 16-byte columns differ.
type lanes struct{ matrices, pairs, vectors *ir.Value }

func (w *wgmma) lanes() lanes {
	b := w.b
	xor := func(x, y *ir.Value) *ir.Value { return b.Binary(ptx.Xor, x, y) }
	and := func(x *ir.Value, n int) *ir.Value { return b.Binary(ptx.And, x, b.I32(n)) }
	row, pair := b.DivI(w.lane, 4), and(w.lane, 3)
	// Lanes name rows of matrices: 0 to 15 those of 8 columns, 16 to 31 those of the next 8.
	named := b.Add(b.MulI(and(w.lane, 15), rowBytes), b.MulI(xor(b.DivI(w.lane, 16), and(w.lane, 7)), 16))
	held := b.Add(b.Add(b.MulI(row, rowBytes), b.MulI(xor(b.DivI(pair, 2), row), 16)), b.MulI(and(pair, 1), 8))
	return lanes{named, held, b.MulI(pair, 2)}
}

// chunk is what a warp stages at once: 16 rows of some columns.
type chunk struct {
	*part
	row *ir.Value // the warp's first
	col int       // the first, in the tile
	acc *ir.Value
	pts []*Point
}

// store hands a tile's results to the epilogue, a chunk at a time, and has the copy engine store what comes of them. What a chunk reads is brought
// to registers before the chunk before it is worked on; after it, where registers are few.
func (f *fragments) store(w *wgmma, at place, row, consumer *ir.Value, acc []*ir.Value, near *reader) {
	b := w.b
	inGroup := b.Binary(ptx.And, w.warp, b.I32(3))
	mine := b.Add(b.AddI(w.base, f.start), b.MulI(b.AddI(w.warp, -4), f.warp()))
	lanes := w.lanes()
	leader := b.Compare("eq", w.lane, b.I32(0))
	chunks := f.chunks(w, at, b.Add(b.Add(at.row, row), b.MulI(inGroup, 16)), acc)
	fetch := func(i int) {
		if i < len(chunks) && near != nil {
			chunks[i].near = near.inFragments(lanes, chunks[i].col)
		}
		if i < len(chunks) {
			w.Epilogue.fetch(chunks[i].pts)
		}
	}
	var sums []map[int][]*ir.Value // of every 64 rows, by parameter
	few := w.many()
	fetch(0)
	for i, c := range chunks {
		if !few {
			fetch(i + 1)
		}
		boxes := b.AddI(mine, i%f.sets*f.boxes*stagedBox)
		b.Do(ptx.TMAWait, nil, "pending", f.sets-1, "read", true)
		b.Do(ptx.WarpSync, nil) // what was in these boxes has been stored
		f.stage(w, c, lanes, boxes)
		if few {
			fetch(i + 1)
		}
		b.Do(ptx.Fence, nil, "kind", "async") // the copy engine reads what was written, and overwrites what was read
		b.Do(ptx.WarpSync, nil)
		if near != nil {
			near.releaseAll(leader)
		}
		b.If(leader, false, func() { f.send(w, boxes, b.AddI(at.col, c.col), c.row) }, nil)
		b.Do(ptx.TMACommit, nil)
		if c.col+f.columns == w.BN && w.Epilogue.Sums {
			sums = append(sums, w.sumFragments(c.part))
		}
	}
	if w.Epilogue.Sums {
		f.finishSums(w, at, row, consumer, inGroup, sums)
	}
}

// chunks lists those of a tile, of which the warp's first row is given.
func (f *fragments) chunks(w *wgmma, at place, row *ir.Value, acc []*ir.Value) (chunks []chunk) {
	b := w.b
	for m, v := range acc {
		first := b.AddI(row, 64*m)
		p := newPart(b, b.Add(first, b.DivI(w.lane, 4)), b.Add(at.col, b.MulI(b.Binary(ptx.And, w.lane, b.I32(3)), 2)), w.M, w.N, 2, w.epilogue).in(at)
		for c := 0; c < w.BN; c += f.columns {
			chunks = append(chunks, chunk{p, first, c, v, f.points(w, p, c)})
		}
	}
	return chunks
}

// points lists a lane's points of some columns: of each 8 columns its first row's and its second's.
func (f *fragments) points(w *wgmma, p *part, c int) (pts []*Point) {
	b := w.b
	edgeM, edgeN := w.M%(w.BM*w.Cluster) != 0, w.N%w.BN != 0
	for col := c; col < c+f.columns; col += 8 {
		for row := 0; row < 16; row += 8 {
			pt := p.point(row, col, nil)
			if edgeM {
				pt.inside = pt.Once("row inside", true, false, func() []*ir.Value { return []*ir.Value{b.Compare("lo", b.AddI(p.row, row), b.I32(w.M))} })[0]
			}
			if edgeN {
				in := pt.Once("column inside", false, true, func() []*ir.Value { return []*ir.Value{b.Compare("lo", b.AddI(p.col, col), b.I32(w.N))} })[0]
				pt.inside = both(b, pt.inside, in)
			}
			pts = append(pts, pt)
		}
	}
	return pts
}

// stage applies the epilogue to a chunk's points, of which four at a time have the elements of four matrices, and writes what they put to the
// warp's boxes.
func (f *fragments) stage(w *wgmma, c chunk, lanes lanes, boxes *ir.Value) {
	b := w.b
	matrices, pairs := b.Add(boxes, lanes.matrices), b.Add(boxes, lanes.pairs)
	words := make([][]*ir.Value, len(f.results))
	c.put = func(pt *Point, r Read, xs []*ir.Value) bool {
		n := slices.Index(f.results, r)
		if n < 0 {
			return false
		}
		if r.Col < 4 {
			words[n] = append(words[n], b.Join(xs[0], xs[1]))
			return true
		}
		bytes := (pt.dCol - c.col) * 4
		at := b.Binary(ptx.Xor, pairs, b.I32(bytes%rowBytes))
		b.Store(at, b.Vector(xs...), ptx.Access{Space: "shared", Offset: (f.first[n]+bytes/rowBytes)*stagedBox + pt.dRow*rowBytes})
		return true
	}
	for i, pt := range c.pts {
		at := pt.dCol/2 + pt.dRow/4
		w.Epilogue.Apply(pt, []*ir.Value{b.Extract(c.acc, at), b.Extract(c.acc, at+1)})
		for n, r := range f.results {
			if i%4 == 3 && r.Col < 4 {
				at := b.Binary(ptx.Xor, matrices, b.I32((c.pts[i-3].dCol-c.col)*2))
				b.Do(ptx.StoreMatrix, []*ir.Value{at, b.Vector(words[n]...)}, "offset", f.first[n]*stagedBox)
				words[n] = nil
			}
		}
	}
}

// send has boxes stored to the columns from `col` and the rows from `row` on. A box may lie beyond the last row, as a tile may.
func (f *fragments) send(w *wgmma, boxes, col, row *ir.Value) {
	b := w.b
	for n, r := range f.results {
		for box := range f.columns * r.Col / rowBytes {
			b.Do(ptx.TMAStore, []*ir.Value{f.maps[n], b.AddI(boxes, (f.first[n]+box)*stagedBox), b.AddI(col, box*rowBytes/r.Col), row})
		}
	}
}

// inFragments waits for the slot of the columns from `col` on, and reads it in the accumulators' layout: matrices of 16 bits two times two at once.
func (r *reader) inFragments(lanes lanes, col int) *nearby {
	b := r.b
	matrices, vectors := r.await()
	r.taken = append(r.taken, b.Add(r.base, b.MulI(r.slot, 8)))
	r.slot, r.parity = r.next(b, r.slot, r.parity, 1)
	words := map[[2]int][]*ir.Value{}
	return &nearby{r.reads, func(p *Point, n int, elem ir.Type) []*ir.Value {
		s := r.reads[n]
		bytes := (p.dCol - col) * s.Col
		switch {
		case s.vector():
			line := b.AddI(vectors, r.offsets[n]+bytes/rowBytes*rowBytes)
			at := b.Binary(ptx.Xor, swizzled(b, b.Add(line, b.MulI(lanes.vectors, s.Col))), b.I32(bytes%rowBytes))
			return b.Scalars(b.Load(at, elem, 2, ptx.Access{Space: "shared"}))
		case s.Col == 4:
			at := b.Binary(ptx.Xor, b.Add(matrices, lanes.pairs), b.I32(bytes%rowBytes))
			return b.Scalars(b.Load(at, elem, 2, ptx.Access{Space: "shared", Offset: r.offsets[n] + bytes/rowBytes*boxBytes + p.dRow*rowBytes}))
		}
		key := [2]int{n, bytes / 32}
		if words[key] == nil {
			at := b.Binary(ptx.Xor, b.Add(matrices, lanes.matrices), b.I32(bytes/32*32))
			words[key] = b.Scalars(b.LoadMatrix(at, 4, r.offsets[n], false))
		}
		low, high := b.Split(words[key][bytes/16%2*2+p.dRow/8], elem)
		return []*ir.Value{low, high}
	}}
}

// sumFragments adds up, for each parameter, the sums of the lanes that have the same columns. Lanes exchange halves of what they have, so that
// each ends with BN/32 columns: pairs of BN/64 times 8 columns.
func (w *wgmma) sumFragments(p *part) map[int][]*ir.Value {
	b := w.b
	all := map[int][]*ir.Value{}
	for param := range w.epilogue {
		if p.sums[columnLoad{param, 0}] == nil {
			continue
		}
		var sums []*ir.Value
		for c := 0; c < w.BN; c += 8 {
			sums = append(sums, p.sums[columnLoad{param, c}]...)
		}
		for d := 16; d >= 4; d /= 2 {
			upper := b.Compare("ne", b.Binary(ptx.And, w.lane, b.I32(d)), b.I32(0))
			half := len(sums) / 2
			for i := range half {
				mine, theirs := b.Select(upper, sums[i+half], sums[i]), b.Select(upper, sums[i], sums[i+half])
				sums[i] = b.Binary(ptx.Add, mine, b.Do(ptx.Shuffle, []*ir.Value{theirs, b.I32(d)}, "mode", "bfly").Result(0))
			}
			sums = sums[:half]
		}
		all[param] = sums
	}
	return all
}

// finishSums adds up the columns of each 64 rows over a consumer's four warps, in their order, and stores them.
func (f *fragments) finishSums(w *wgmma, at place, row, consumer, inGroup *ir.Value, sums []map[int][]*ir.Value) {
	b := w.b
	id := b.AddI(consumer, 1)
	thread := b.Add(b.MulI(inGroup, 32), w.lane)
	start := b.Add(b.AddI(w.base, f.sums), b.MulI(consumer, f.consumerSums(w.Gemm)))
	line := 4 * w.BN // of one warp
	lane := b.Add(b.MulI(b.DivI(w.lane, 4), line/8), b.MulI(b.Binary(ptx.And, w.lane, b.I32(3)), 8))
	put, take := b.Add(start, b.Add(b.MulI(inGroup, line), lane)), b.Add(start, b.MulI(thread, 4))
	for param := range w.epilogue {
		if sums[0][param] == nil {
			continue
		}
		for m := range sums {
			for i, s := 0, sums[m][param]; i < len(s); i += 2 {
				b.Store(put, b.Vector(s[i], s[i+1]), ptx.Access{Space: "shared", Offset: 4*m*line + 16*i})
			}
		}
		b.Do(ptx.Sync, []*ir.Value{id}, "threads", 128)
		for m := range sums {
			block := b.DivI(b.Add(at.row, b.AddI(row, 64*m)), 64)
			to := b.MulWide(b.Add(b.Add(b.MulI(block, w.N), at.col), thread), 4, w.epilogue[param])
			for c := 0; c < w.BN; c += 128 {
				var mine *ir.Value
				if c+128 > w.BN {
					mine = b.Compare("lo", thread, b.I32(w.BN-c))
				}
				warp := func(i int) *ir.Value {
					return b.Load(take, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: (4*m+i)*line + 4*c, If: mine})
				}
				total := warp(0)
				for i := 1; i < 4; i++ {
					total = b.Binary(ptx.Add, total, warp(i))
				}
				b.Store(to, total, ptx.Access{Space: "global", Offset: 4 * c, If: both(b, mine, w.sumInside(at, thread, block, c))})
			}
		}
		b.Do(ptx.Sync, []*ir.Value{id}, "threads", 128)
	}
}

// sumInside says whether a thread has a column of the result from column c of a tile on, and a block of rows is one; nil where both are sure.
func (w *wgmma) sumInside(at place, thread, block *ir.Value, c int) (in *ir.Value) {
	b := w.b
	if w.M%(w.BM*w.Cluster) != 0 {
		in = b.Compare("lo", b.MulI(block, 64), b.I32(w.M))
	}
	if w.N%w.BN != 0 {
		in = both(b, in, b.Compare("lo", b.Add(b.AddI(at.col, c), thread), b.I32(w.N)))
	}
	return in
}
