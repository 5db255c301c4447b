package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// simt is a kernel on the float32 units being built: each thread has BM*BN/threads results. Tiles lie in shared memory
// as rows of k, in two buffers: while one is multiplied, the next tile is on its way through registers to the other.
type simt struct {
	Gemm
	b          *ptx.Builder
	threads    int
	first      int // of the block's threads that it is worked on by
	steps      int // stages' worth of K in a block
	bufferSize int // bytes
	tid        *ir.Value
	shared     *ir.Value
	at         place
	sides      [2]side
}

// side is one operand: how this thread brings its part of a tile from global to shared memory.
type side struct {
	o       Operand
	of      *Function
	extent  int       // M or N
	width   int       // of the tile, along M or N
	offset  int       // of the tile in a buffer
	first   *ir.Value // this thread's first element along M or N
	k       *ir.Value // and along K, within the tile
	address *ir.Value // of that element at the first stage
	to      *ir.Value // where it goes in the first buffer
	aligned bool      // every matrix of a batch starts at a multiple of 16 bytes
}

const (
	warpsM = 2 // the block's warps: 2 along M, those of a warpgroup 2 along N
	warpsN = 4 // of two warpgroups
	lanesM = 8 // a warp's lanes: 8 along M, 4 along N
	lanesN = 4
)

func (g Gemm) checkSIMT(d Device, fail func(string, ...any) error) error {
	switch {
	case g.Precision != FP32Strict:
		return fail("the float32 units multiply float32 only")
	case g.BM != 128 || g.Consumers == 2 && g.BN != 128 && g.BN != 256 || g.Consumers == 1 && g.BN != 128 || g.Consumers < 1 || g.Consumers > 2:
		return fail("a tile of %dx%d by %d warpgroups; there are 128x128 by 1 or 2, 128x256 by 2", g.BM, g.BN, g.Consumers)
	case g.BK != 8 && g.BK != 16:
		return fail("BK = %d; there are 8 and 16", g.BK)
	}
	return nil
}

func (g Gemm) buildSIMT(at *ir.Builder, d Device) *Kernel {
	s := &simt{Gemm: g, threads: 128 * g.Consumers, steps: g.depth() / g.BK, bufferSize: 4 * g.BK * (g.BM + g.BN)}
	k := &Kernel{Name: g.Name(), Threads: s.threads, Cluster: 1, Shared: 2 * s.bufferSize, Params: []Param{{Name: "a"}, {Name: "b"}}}
	k.Grid = g.tiles()
	names := g.Epilogue.Params
	if g.SplitK > 1 {
		names = partials.Params
	}
	types := []ir.Type{at.Ctx.I64(), at.Ctx.I64()}
	for _, name := range names {
		k.Params = append(k.Params, Param{Name: name})
		types = append(types, at.Ctx.I64())
	}
	s.b = ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: g.Target, Threads: s.threads, BlocksPerSM: g.simtPerSM(), Shared: k.Shared}, types...)
	k.Op = s.b.Kernel
	args := k.Op.Body().Args()
	s.prologue(args, s.b.Special("ctaid.x"))
	s.store(s.multiply(), args[2:])
	s.b.Do(ptx.Return, nil)
	return k
}

// tiles is how many tiles there are, of all parts of K and all matrices.
func (g Gemm) tiles() int { return ceil(g.M, g.BM) * ceil(g.N, g.BN) * g.SplitK * g.matrices() }

// sync waits for all threads that work on a tile.
func (s *simt) sync() {
	if s.first == 0 {
		s.b.Do(ptx.Sync, nil)
		return
	}
	s.b.Do(ptx.Sync, []*ir.Value{s.b.I32(refugeBarrier)}, "threads", s.threads)
}

// simtPerSM is how many blocks share a multiprocessor: one multiplies where another waits or stores its results. 256 threads
// with deeper stages need more than half of the registers.
func (g Gemm) simtPerSM() int {
	if g.Consumers == 1 || g.BN == 128 && g.BK == 8 {
		return 2
	}
	return 1
}

func (s *simt) prologue(args []*ir.Value, number *ir.Value) {
	b := s.b
	s.tid, s.shared = b.AddI(b.Special("tid.x"), -s.first), b.SharedBase()
	s.at = grid{s.Gemm, ceil(s.M, s.BM), ceil(s.N, s.BN), s.steps}.locate(b, number)
	s.sides[0] = s.newSide(s.A, s.M, s.BM, 0, s.at.row, s.matrixOf(b, s.at, args[0], 4, strideA))
	s.sides[1] = s.newSide(s.B, s.N, s.BN, 4*s.BK*s.BM, s.at.col, s.matrixOf(b, s.at, args[1], 4, strideB))
	s.sides[0].of, s.sides[1].of = s.Of[0], s.Of[1]
}

// newSide shares out a tile's elements. K-major: lanes next to each other read what is next to each other in a row of the
// stage, 4 elements each, and put them, transposed, where the swizzle keeps them apart. MN-major: a warp takes 128
// elements of one k, 4 a lane.
func (s *simt) newSide(o Operand, extent, width, offset int, start, base *ir.Value) side {
	b := s.b
	d := side{o: o, extent: extent, width: width, offset: offset, aligned: !s.Unaligned[0] && !s.Unaligned[1]}
	for _, m := range s.Batch {
		d.aligned = d.aligned && m.A%4 == 0 && m.B%4 == 0
	}
	step := b.MulI(s.at.step, s.BK)
	if o.MNMajor {
		d.first, d.k = b.MulI(b.Binary(ptx.And, s.tid, b.I32(31)), 4), b.DivI(s.tid, 32)
		d.to = b.Add(s.shared, b.MulI(b.Add(b.MulI(d.k, width), d.first), 4))
		d.first = b.Add(start, d.first)
		d.address = b.MulWide(b.Add(b.MulI(b.Add(step, d.k), o.Pitch), d.first), 4, base)
		return d
	}
	perRow := s.BK / 4
	quarter := b.RemI(s.tid, perRow)
	d.first, d.k = b.DivI(s.tid, perRow), b.MulI(quarter, 4)
	placed := b.Binary(ptx.Xor, d.first, b.MulI(quarter, s.swizzle(d, 4)))
	d.to = b.Add(s.shared, b.MulI(b.Add(b.MulI(d.k, width), placed), 4))
	d.first = b.Add(start, d.first)
	d.address = b.MulWide(b.Add(b.MulI(d.first, o.Pitch), b.Add(step, d.k)), 4, base)
	return d
}

// swizzle is what the index along M or N is exclusive-ored with at depth k of a K-major operand: the lanes that write at
// one time, a few rows at each of BK/4 depths, so reach all banks.
func (s *simt) swizzle(d side, k int) int {
	if d.o.MNMajor {
		return 0
	}
	return k / 4 * (32 / (s.BK / 4))
}

// quad is four elements that a thread brings at a time: how far they are from its first, in elements.
type quad struct{ along, k int }

// quads lists a thread's share of a tile.
func (s *simt) quads(d side) []quad {
	var qs []quad
	if !d.o.MNMajor {
		for along := 0; along < d.width; along += s.threads / (s.BK / 4) {
			qs = append(qs, quad{along, 0})
		}
		return qs
	}
	for along := 0; along < d.width; along += 128 {
		for k := 0; k < s.BK; k += s.threads / 32 {
			qs = append(qs, quad{along, k})
		}
	}
	return qs
}

// fetch reads a thread's share of the tile of stage i; `when` says whether there is one.
func (s *simt) fetch(d side, i, when *ir.Value) []*ir.Value {
	b := s.b
	stride := 4 * s.BK
	if d.o.MNMajor {
		stride *= d.o.Pitch
	}
	address := b.MulWide(i, stride, d.address)
	k := b.Add(b.MulI(b.Add(s.at.step, i), s.BK), d.k)
	edgeK, edge := s.depth()*s.SplitK != s.K, d.extent%d.width != 0
	vector := d.aligned && d.o.Pitch%4 == 0 && (d.o.MNMajor && d.extent%4 == 0 || !d.o.MNMajor && s.K%4 == 0)
	var xs []*ir.Value
	for _, q := range s.quads(d) {
		offset := func(along, dk int) int {
			if d.o.MNMajor {
				return 4 * (dk*d.o.Pitch + along)
			}
			return 4 * (along*d.o.Pitch + dk)
		}
		inside := func(along, dk int) *ir.Value {
			in := when
			if edgeK {
				in = both(b, in, b.Compare("lo", b.AddI(k, dk), b.I32(s.K)))
			}
			if edge {
				in = both(b, in, b.Compare("lo", b.AddI(d.first, along), b.I32(d.extent)))
			}
			return in
		}
		if vector {
			in := inside(q.along, q.k)
			v := b.Load(address, b.Ctx.F32(), 4, ptx.Access{Space: "global", Offset: offset(q.along, q.k), If: in, Cache: "nc"})
			xs = append(xs, d.of.of(b, b.Scalars(v), in)...)
			continue
		}
		for e := range 4 {
			along, dk := q.along, q.k+e
			if d.o.MNMajor {
				along, dk = q.along+e, q.k
			}
			in := inside(along, dk)
			x := b.Load(address, b.Ctx.F32(), 1, ptx.Access{Space: "global", Offset: offset(along, dk), If: in, Cache: "nc"})
			xs = append(xs, d.of.of(b, []*ir.Value{x}, in)...)
		}
	}
	return xs
}

// put writes a thread's share of a tile to a buffer, which starts `buffer` bytes after the first.
func (s *simt) put(d side, xs []*ir.Value, buffer *ir.Value) {
	b := s.b
	to := b.Add(d.to, buffer)
	for i, q := range s.quads(d) {
		x := xs[4*i : 4*i+4]
		if d.o.MNMajor {
			b.Store(to, b.Vector(x...), ptx.Access{Space: "shared", Offset: d.offset + 4*(q.k*d.width+q.along)})
			continue
		}
		for e, v := range x {
			b.Store(to, v, ptx.Access{Space: "shared", Offset: d.offset + 4*((q.k+e)*d.width+q.along)})
		}
	}
}

// multiply contracts the block's tile and gives this thread's results: rows in its fragments' order, columns fastest. The
// elements that an outer product needs are read before the one that goes before it, those of a stage's first product too:
// the stage is complete, and the barrier passed, before the last product of the stage that goes before it.
func (s *simt) multiply() *ir.Value {
	b := s.b
	for _, d := range s.sides {
		s.put(d, s.fetch(d, b.I32(0), b.True()), b.I32(0))
	}
	s.sync()
	acc := b.Do(ptx.Fill, []*ir.Value{b.F32(0)}, "count", s.BM*s.BN/s.threads).Result(0)
	row, col := s.corner()
	fromA, fromB := s.reader(s.sides[0], row, lanesM), s.reader(s.sides[1], col, lanesN)
	fragments := func(k int, buffer *ir.Value) (x, y *ir.Value) {
		return s.fragment(s.sides[0], fromA, lanesM, s.BM/warpsM, k, buffer), s.fragment(s.sides[1], fromB, lanesN, s.BN/s.warpsN(), k, buffer)
	}
	x, y := fragments(0, b.I32(0))
	out := b.For(b.I32(0), b.I32(s.steps), b.I32(1), true, []*ir.Value{acc, b.I32(0), x, y}, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		acc, buffer, x, y := carried[0], carried[1], carried[2], carried[3]
		next := b.AddI(i, 1)
		more := b.Compare("lt", next, b.I32(s.steps))
		var coming [2][]*ir.Value
		for j, d := range s.sides {
			coming[j] = s.fetch(d, next, more)
		}
		other := b.Sub(b.I32(s.bufferSize), buffer)
		for k := range s.BK {
			if k == s.BK-2 { // a product before the barrier, that stores have time
				for j, d := range s.sides {
					s.put(d, coming[j], other)
				}
			}
			var nextX, nextY *ir.Value
			if k < s.BK-1 {
				nextX, nextY = fragments(k+1, buffer)
			} else {
				s.sync()
				nextX, nextY = fragments(0, other)
			}
			acc = b.Do(ptx.OuterFMA, []*ir.Value{x, y, acc}).Result(0)
			x, y = nextX, nextY
		}
		return []*ir.Value{acc, other, x, y}
	})
	return out[0]
}

// warpsN is how many warps lie side by side along N.
func (s *simt) warpsN() int { return s.threads / 32 / warpsM }

// corner is this thread's first result in the tile: its warp's and its lane's place.
func (s *simt) corner() (row, col *ir.Value) {
	b := s.b
	warp, lane := b.DivI(s.tid, 32), b.Binary(ptx.And, s.tid, b.I32(31))
	row = b.Add(b.MulI(b.DivI(warp, s.warpsN()), s.BM/warpsM), b.MulI(b.DivI(lane, lanesN), 4))
	col = b.Add(b.MulI(b.RemI(warp, s.warpsN()), s.BN/s.warpsN()), b.MulI(b.RemI(lane, lanesN), 4))
	return row, col
}

// reader gives where this thread finds its first element of a side, exclusive-ored with a multiple of 4 below 4*lanes.
func (s *simt) reader(d side, first *ir.Value, lanes int) func(swizzle int) *ir.Value {
	b := s.b
	at := map[int]*ir.Value{}
	for k := 0; k < s.BK; k++ { // all before the loop
		x := s.swizzle(d, k) & (4*lanes - 1)
		if at[x] == nil {
			at[x] = b.Add(s.shared, b.MulI(b.Binary(ptx.Xor, first, b.I32(x)), 4))
		}
	}
	return func(swizzle int) *ir.Value { return at[swizzle] }
}

// fragment reads this thread's elements of a side at depth k: groups of 4, one for each time the warp's lanes go into its
// part of the tile.
func (s *simt) fragment(d side, from func(int) *ir.Value, lanes, part, k int, buffer *ir.Value) *ir.Value {
	b := s.b
	low := 4*lanes - 1
	swizzle := s.swizzle(d, k)
	at := b.Add(from(swizzle&low), buffer)
	var xs []*ir.Value
	for group := 0; group < part; group += 4 * lanes {
		offset := d.offset + 4*(k*d.width+(group^swizzle&^low))
		xs = append(xs, b.Scalars(b.Load(at, b.Ctx.F32(), 4, ptx.Access{Space: "shared", Offset: offset}))...)
	}
	return b.Vector(xs...)
}

// store hands the results to the epilogue, by columns of points; what it reads for the next column is on its way while one is
// stored, since loads don't pass stores; 8 x 8 results a thread in two blocks of 256 leave no registers for that, and no block has them for
// more than one number an element.
func (s *simt) store(acc *ir.Value, params []*ir.Value) {
	b := s.b
	row, col := s.corner()
	width := s.pointWidth()
	p := newPart(b, b.Add(s.at.row, row), b.Add(s.at.col, col), s.M, s.N, width, params).in(s.at)
	e := s.Epilogue
	if s.SplitK > 1 {
		e = partials
	}
	rows, cols := s.BM/warpsM/lanesM, s.BN/s.warpsN()/lanesN
	dCol := func(j int) int { return j/4*4*lanesN + j%4 }
	fetch := func(j int) (pts []*Point) {
		if j >= cols {
			return nil
		}
		for i := range rows {
			dRow := i/4*4*lanesM + i%4
			var inside *ir.Value
			if s.M%s.BM != 0 {
				inside = b.Compare("lo", b.AddI(p.row, dRow), b.I32(s.M))
			}
			if s.N%s.BN != 0 {
				inside = both(b, inside, b.Compare("lo", b.AddI(p.col, dCol(j)), b.I32(s.N)))
			}
			pts = append(pts, p.point(dRow, dCol(j), inside))
		}
		e.fetch(pts)
		return pts
	}
	ahead := (s.Consumers == 1 || s.simtPerSM() == 1) && e.Reads <= 1
	pts := fetch(0)
	for j := 0; j < cols; j += width {
		var next []*Point
		if ahead {
			next = fetch(j + width)
		}
		for i, pt := range pts {
			var x []*ir.Value
			for e := range width {
				x = append(x, b.Extract(acc, i*cols+j+e))
			}
			e.Apply(pt, x)
		}
		sumWarpColumns(p, b.Binary(ptx.And, s.tid, b.I32(31)), b.DivI(b.Add(s.at.row, row), 64), dCol(j), lanesN)
		if pts = next; !ahead {
			pts = fetch(j + width)
		}
	}
}
