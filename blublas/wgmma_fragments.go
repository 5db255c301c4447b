package blublas

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// fragments is how results go to memory from where the products left them: in a thread's registers pairs of columns of two rows of
// every 8 x 8 elements. Epilogues work on such pairs, so that float32 sums go through no shared memory, and warps wait for each other only to add
// up columns. Four lanes have 32 bytes of a row in float32, a sector of the cache: they store such results themselves. 16-bit results a warp puts
// together in boxes, 16 rows of 128 bytes under the swizzle, which the copy engine stores.
//
// What is 16 bits wide is read and written as matrices of 8 x 8, what is 32 bits wide as pairs.
type fragments struct {
	results []Read // that the copy engine stores
	columns int    // of a chunk, which a warp works on at once
	sets    int    // boxes for each result: the copy engine reads one while the next is written
	start   int    // where warps' boxes are
	sums    int    // where sums of columns are
	end     int    // behind them

	maps []*ir.Value
}

// stagedBox is 16 rows of a box.
const stagedBox = 16 * rowBytes

// planOwnLayout plans how results are stored from the accumulators' own layout, and the ring of what is read; nil where that can't be: a
// chunk is read before the slot of the one before it is released, so that there must be two of them. Half of what a tile reads in the ring is
// worth more than a second set of boxes.
func (g Gemm) planOwnLayout(start, others int) (*fragments, *fetching) {
	reads := g.read()
	for sets := 2; sets > 0; sets-- {
		f := g.planFragments(start, sets)
		if f == nil {
			break
		}
		ring := g.planFetching(reads, f.columns, f.end, others)
		if len(reads) == 0 {
			return f, ring
		}
		if ring != nil && ring.slots >= min(2, ring.steps) && (2*ring.slots >= ring.steps || sets == 1) {
			return f, ring
		}
	}
	return nil, nil
}

// planFragments lays out boxes and sums from a place in shared memory on; nil where the epilogue, or the kernel, isn't for it.
func (g Gemm) planFragments(start, sets int) *fragments {
	e := g.Epilogue
	_, planes := g.elem()
	switch {
	case planes > 1 || len(g.Batch) > 0:
		return nil
	case g.SplitK > 1:
		return g.partsInFragments(start)
	case e.Results == nil:
		return nil
	}
	results := e.Results(g.N, g.K)
	f := &fragments{columns: rowBytes / 4, sets: sets, start: start}
	for _, r := range results {
		if r.Col < 4 {
			f.results = append(f.results, r)
		}
	}
	if len(results) == 0 || g.ThreadStores && len(f.results) > 0 {
		return nil
	}
	vectors := false
	for _, r := range slices.Concat(f.results, g.read()) {
		if r.Col < 4 {
			f.columns = rowBytes / 2
		}
		vectors = vectors || r.vector()
	}
	if g.many() && (e.Sums || e.Reads > 1) || e.Sums && vectors && len(f.results) > 1 { // ptxas spills
		return nil
	}
	if len(f.results) > 1 || e.Sums || g.rowsPerConsumer()/64*(g.BN/f.columns)%sets != 0 {
		f.sets = 1 // room for more than one result, or for sums; or the next tile's first chunk would come to the same set as this one's last
	}
	f.sums = start + 4*g.Consumers*f.warp()
	f.end = f.sums
	if e.Sums {
		f.end += g.Consumers * g.rowsPerConsumer() / 64 * 4 * g.BN * 4
	}
	return f
}

// partsInFragments plans how parts of K are stored where what three consumers would stage takes the place of a stage.
func (g Gemm) partsInFragments(start int) *fragments {
	if g.Consumers < 3 || g.N%2 != 0 {
		return nil
	}
	return &fragments{columns: rowBytes / 4, sets: 1, start: start, sums: start, end: start}
}

// warp is the bytes of a warp's boxes.
func (f *fragments) warp() int { return f.sets * len(f.results) * stagedBox }

// read lists what the epilogue reads that the copy engine can bring.
func (g Gemm) read() []Read {
	if g.Epilogue.Sources == nil || g.SplitK > 1 {
		return nil
	}
	return g.Epilogue.Sources(g.N)
}

// many reports whether accumulators leave few registers for anything else: less than those of 128 x 128 results do where there are 240.
func (g Gemm) many() bool {
	return g.registersOfConsumer()-g.rowsPerConsumer()*g.BN/128 < 112
}

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

// chunk is what a warp works on at once: 16 rows of some columns.
type chunk struct {
	*part
	block int       // of 64 rows, in the consumer's share of the tile
	row   *ir.Value // the warp's first
	col   int       // the first, in the tile
	acc   *ir.Value
	pts   []*Point
}

// store hands a tile's results to the epilogue, a chunk at a time, and has the copy engine store what it puts together. What a chunk reads is
// brought to registers before the chunk before it is worked on; after it, where registers are few.
func (f *fragments) store(w *wgmma, at place, row *ir.Value, acc []*ir.Value, near *reader) {
	b := w.b
	inGroup := b.Binary(ptx.And, w.warp, b.I32(3))
	mine := b.Add(b.AddI(w.base, f.start), b.MulI(b.AddI(w.warp, -4), f.warp()))
	lanes, leader := w.lanes(), b.Compare("eq", w.lane, b.I32(0))
	chunks := f.chunks(w, at, b.Add(b.Add(at.row, row), b.MulI(inGroup, 16)), acc)
	sums := f.exchange(w, inGroup)
	fetch := func(i int) {
		if i == len(chunks) {
			return
		}
		if near != nil {
			chunks[i].near = near.inFragments(lanes, chunks[i].col)
		}
		w.stored().fetch(chunks[i].pts)
	}
	few := w.many() || w.Epilogue.Reads > 1
	fetch(0)
	for i, c := range chunks {
		if !few {
			fetch(i + 1)
		}
		boxes := b.AddI(mine, i%f.sets*len(f.results)*stagedBox)
		if len(f.results) > 0 {
			b.Do(ptx.TMAWait, nil, "pending", f.sets-1, "read", true)
			b.Do(ptx.WarpSync, nil) // what was in these boxes has been stored
		}
		f.apply(w, c, lanes, boxes)
		if few {
			fetch(i + 1)
		}
		if len(f.results) > 0 || near != nil && len(near.taken) > 0 {
			b.Do(ptx.Fence, nil, "kind", "async") // the copy engine reads what was written, and overwrites what was read
			b.Do(ptx.WarpSync, nil)
		}
		if near != nil {
			near.releaseAll(leader)
		}
		f.send(w, leader, boxes, b.AddI(at.col, c.col), c.row)
		sums.put(c)
	}
	sums.finish(at, b.Add(at.row, row), len(acc))
}

// chunks lists those of a tile, of which the warp's first row is given.
func (f *fragments) chunks(w *wgmma, at place, row *ir.Value, acc []*ir.Value) (chunks []chunk) {
	b := w.b
	for m, v := range acc {
		first := b.AddI(row, 64*m)
		p := newPart(b, b.Add(first, b.DivI(w.lane, 4)), b.Add(at.col, b.MulI(b.Binary(ptx.And, w.lane, b.I32(3)), 2)), w.M, w.N, 2, w.epilogue).in(at)
		for c := 0; c < w.BN; c += f.columns {
			chunks = append(chunks, chunk{p, m, first, c, v, f.points(w, p, c)})
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

// apply applies the epilogue to a chunk's points, of which four at a time have the elements of four matrices, and writes to the warp's boxes what
// they put there.
func (f *fragments) apply(w *wgmma, c chunk, lanes lanes, boxes *ir.Value) {
	b := w.b
	matrices := b.Add(boxes, lanes.matrices)
	words := make([][]*ir.Value, len(f.results))
	c.put = func(_ *Point, r Read, xs []*ir.Value) bool {
		n := slices.Index(f.results, r)
		if n >= 0 {
			words[n] = append(words[n], b.Join(xs[0], xs[1]))
		}
		return n >= 0
	}
	for i, pt := range c.pts {
		at := pt.dCol/2 + pt.dRow/4
		w.stored().Apply(pt, []*ir.Value{b.Extract(c.acc, at), b.Extract(c.acc, at+1)})
		if i%4 < 3 {
			continue
		}
		for n := range f.results {
			at := b.Binary(ptx.Xor, matrices, b.I32((c.pts[i-3].dCol-c.col)*2))
			b.Do(ptx.StoreMatrix, []*ir.Value{at, b.Vector(words[n]...)}, "offset", n*stagedBox)
			words[n] = nil
		}
	}
}

// send has boxes stored to the columns from `col` and the rows from `row` on. A box may lie beyond the last row, as a tile may.
func (f *fragments) send(w *wgmma, leader, boxes, col, row *ir.Value) {
	if len(f.results) == 0 {
		return
	}
	b := w.b
	b.If(leader, false, func() {
		for n := range f.results {
			b.Do(ptx.TMAStore, []*ir.Value{f.maps[n], b.AddI(boxes, n*stagedBox), col, row})
		}
	}, nil)
	b.Do(ptx.TMACommit, nil)
}

// drain waits until the copy engine has read all boxes: no block leaves before.
func (f *fragments) drain(w *wgmma) {
	if len(f.results) > 0 {
		w.b.Do(ptx.TMAWait, nil, "pending", 0, "read", true)
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

// releaseAll says that the warp has read its slots so far: its lanes have met since, after a fence.
func (r *reader) releaseAll(leader *ir.Value) {
	for _, at := range r.taken {
		r.b.Do(ptx.BarrierArrive, []*ir.Value{at, leader}, "offset", r.empty())
	}
	r.taken = nil
}
