package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// wgmma is a Hopper kernel being built: a producer warpgroup has the copy engine fill a ring of stages, consumer
// warpgroups multiply what is in them and store their tiles. Blocks are persistent: each works through every so many
// tiles, and the producer runs ahead across tiles.
type wgmma struct {
	Gemm
	b          *ptx.Builder
	size       int // bytes of an operand's element
	planes     int
	a, bt      tile // of one plane
	tilesM     int  // in clusters
	tilesN     int
	tiles      int // of all parts of K
	steps      int // stages' worth of K in a tile
	stageBytes int
	staging    int        // where consumers' warps stage their results
	barriers   int        // full[Stages], empty[Stages], turn[2]
	fetching   *fetching  // what the epilogue reads; nil where it reads nothing, or for itself
	fragments  *fragments // how results are stored; nil: by rows

	mapsA, mapsB, scales, epilogue []*ir.Value
	base                           *ir.Value // shared memory
	warp, lane                     *ir.Value
	consumer                       *ir.Value // this one's number
	rank                           *ir.Value // in the cluster; nil without one
	first, stride                  *ir.Value // this cluster's first tile, and the distance to the next
	end                            *ir.Value // the number of tiles, or 0
	refuge                         *refuge   // nil: none
}

func (g Gemm) rowsPerConsumer() int { return g.BM / g.sharing() }

// plan lays out shared memory and counts tiles.
func (g Gemm) planWGMMA() *wgmma {
	w := &wgmma{Gemm: g}
	w.size, w.planes = g.elem()
	w.a = tile{rows: g.BM, depth: g.BK, size: w.size, mnMajor: g.A.MNMajor}
	w.bt = tile{rows: g.BN, depth: g.BK, size: w.size, mnMajor: g.B.MNMajor}
	w.stageBytes = w.planes * (w.a.bytes() + w.bt.bytes())
	w.planEpilogue(g.Stages*w.stageBytes, 8*(2*g.Stages+3))
	w.tilesM, w.tilesN = ceil(g.M, g.BM*g.Cluster), ceil(g.N, g.BN)
	w.tiles = w.tilesM * w.tilesN * g.SplitK * g.matrices()
	w.steps = g.depth() / g.BK
	return w
}

// planEpilogue lays out what follows the stages: what the epilogue reads and writes, and barriers.
func (w *wgmma) planEpilogue(stages, barriers int) {
	if w.fragments, w.fetching = w.planOwnLayout(stages, barriers); w.fragments != nil {
		w.barriers = w.fragments.end
	} else {
		staging := 4 * w.Consumers * w.staged().bytes()
		w.staging = stages
		if w.fetching = w.planFetching(w.sources(), w.staged().columns, stages, staging+barriers); w.fetching != nil {
			w.staging = w.fetching.end
		}
		w.barriers = w.staging + staging
	}
	if f := w.fetching; f != nil {
		w.barriers = max(w.barriers, f.end)
		f.barriers = w.barriers + barriers
	}
}

func (w *wgmma) sharedBytes() int {
	switch f := w.fetching; {
	case f == nil:
		return w.verdict() + 8
	case w.Pingpong:
		return f.turn(2)
	default:
		return f.turn(0)
	}
}

func (w *wgmma) full(stage int) int  { return w.barriers + 8*stage }
func (w *wgmma) empty(stage int) int { return w.barriers + 8*(w.Stages+stage) }
func (w *wgmma) turn(c int) int      { return w.barriers + 8*(2*w.Stages+c) }
func (w *wgmma) verdict() int        { return w.barriers + 8*(2*w.Stages+2) } // whether a flag is set

func (g Gemm) buildWGMMA(at *ir.Builder, d Device) *Kernel {
	w := g.planWGMMA()
	k := &Kernel{Name: g.Name(), Threads: 128 * (g.Consumers + 1), Cluster: g.Cluster, Shared: w.sharedBytes()}
	k.Grid = min(w.tiles, d.SMs/g.Cluster) * g.Cluster
	types := w.parameters(k, at.Ctx)
	w.b = ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: g.Target, Threads: k.Threads, BlocksPerSM: 1, Cluster: g.Cluster, Shared: k.Shared}, types...)
	k.Op = w.b.Kernel
	w.takeParameters(w.b.Kernel.Body().Args())
	w.prologue(k.Grid)
	producer := w.b.Compare("lo", w.warp, w.b.I32(4))
	w.b.If(producer, true, w.produce, func() {
		w.consume()
		if w.fragments != nil {
			w.fragments.drain(w)
		}
		if w.refuge != nil {
			w.refuge.work(w, w.first, k.Grid)
		}
	})
	if g.Cluster > 1 { // no block leaves while another still signals its barriers
		w.b.Do(ptx.ClusterArrive, nil)
		w.b.Do(ptx.ClusterWait, nil)
	}
	w.b.Do(ptx.Return, nil)
	return k
}

// parameters lists the kernel's parameters.
func (w *wgmma) parameters(k *Kernel, c *ir.Context) []ir.Type {
	var types []ir.Type
	add := func(name string, m *TensorMap) {
		k.Params = append(k.Params, Param{Name: name, Map: m})
		if m != nil {
			types = append(types, ptx.TensorMap(c))
		} else {
			types = append(types, c.I64())
		}
	}
	for _, side := range []struct {
		name   string
		o      Operand
		extent int
		rows   int // in one box of a K-major tile
		depth  int // of one box of an MN-major tile
		stride func(Batch) int
	}{{"a", w.A, w.M, w.a.rows, w.a.depth, strideA}, {"b", w.B, w.N, w.share().rows, w.share().depth, strideB}} {
		for p := range w.planes {
			m := &TensorMap{Element: w.format(), Dims: [2]int{w.K, side.extent}, Pitch: side.o.Pitch * w.size, Box: [2]int{w.BK, side.rows}}
			if side.o.MNMajor {
				m.Dims, m.Box = [2]int{side.extent, w.K}, [2]int{rowBytes / w.size, side.depth}
			}
			for _, d := range w.Batch {
				if s := side.stride(d); s != 0 {
					m.Outer = append(m.Outer, Outer{d.Size, s * w.size})
				}
			}
			name := side.name
			if w.planes > 1 {
				name = fmt.Sprintf("%s.%d", name, p)
			}
			add(name, m)
		}
	}
	if w.Precision == FP16x3 {
		add("a.scales", nil)
		add("b.scales", nil)
	}
	if f := w.fetching; f != nil {
		for _, r := range f.reads {
			add(w.Epilogue.Params[r.Param], r.tensorMap(w.M, w.N, 64))
			k.Params[len(k.Params)-1].Offset = r.Offset
		}
	}
	if f := w.fragments; f != nil {
		for _, r := range f.results {
			add(w.Epilogue.Params[r.Param], r.tensorMap(w.M, w.N, 16))
			k.Params[len(k.Params)-1].Offset = r.Offset
		}
	}
	for _, name := range w.params(w.stored()) {
		add(name, nil)
	}
	return types
}

func (w *wgmma) takeParameters(args []*ir.Value) {
	take := func(n int) []*ir.Value {
		vs := args[:n]
		args = args[n:]
		return vs
	}
	w.mapsA, w.mapsB = take(w.planes), take(w.planes)
	if w.Precision == FP16x3 {
		w.scales = take(2)
	}
	if f := w.fetching; f != nil {
		f.maps = take(len(f.reads))
	}
	if f := w.fragments; f != nil {
		f.maps = take(len(f.results))
	}
	w.end = w.b.I32(w.tiles)
	if w.Refuge != nil {
		operands := take(2)
		n := len(args) - 2
		w.openRefuge(operands, args[n:])
		args = args[:n]
	}
	w.epilogue = args
}

// prologue finds out who this thread is and makes the barriers.
func (w *wgmma) prologue(grid int) {
	b := w.b
	tid := b.Special("tid.x")
	w.lane = b.Binary(ptx.And, tid, b.I32(31))
	// The warp's index is the same in all lanes, which the assembler knows when it is read from lane 0.
	w.warp = b.Do(ptx.Shuffle, []*ir.Value{b.DivI(tid, 32), b.I32(0)}, "mode", "idx").Result(0)
	w.base = b.SharedBase()
	block := b.Special("ctaid.x")
	w.first, w.stride = block, b.I32(grid/w.Cluster)
	if w.Cluster > 1 {
		w.rank = b.Special("cluster_ctarank")
		w.first = b.DivI(block, w.Cluster)
	}
	b.If(b.Compare("eq", tid, b.I32(0)), false, func() {
		for s := range w.Stages {
			b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", w.full(s), "count", 1)
			b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", w.empty(s), "count", w.releases())
		}
		if w.Pingpong {
			w.initializeTurns()
		}
		if w.fetching != nil {
			w.fetching.initialize(w)
		}
		b.Do(ptx.Fence, nil, "kind", "mbarrier_init")
		for _, m := range append(w.mapsA, w.mapsB...) {
			b.Do(ptx.TMAPrefetch, []*ir.Value{m})
		}
	}, nil)
	if w.Cluster > 1 {
		b.Do(ptx.ClusterArrive, nil)
		b.Do(ptx.ClusterWait, nil)
	} else {
		b.Do(ptx.Sync, nil)
	}
}

// releases is how many warps must be done with a stage before it is filled again: those of this block, and of all blocks
// of the cluster, since each block writes a part of B for all.
func (w *wgmma) releases() int { return 4 * w.sharing() * w.Cluster }

// registers is what each thread of a producer and of a consumer has, where three or four warpgroups share the file; 0, 0
// where they needn't. Together they have what they had when they started: a block gets no more.
func (g Gemm) registers() (producer, consumer int) {
	switch g.Consumers {
	case 2:
		return 24, 240
	case 3:
		return 32, 160
	}
	return 0, 0
}

// registersOfConsumer is what a consumer's thread has, with some to spare where nothing is moved.
func (g Gemm) registersOfConsumer() int {
	if _, n := g.registers(); n > 0 {
		return n
	}
	return 240
}

// locate is where this block's share of a cluster's tile lies.
func (w *wgmma) locate(number *ir.Value) place {
	at := grid{w.Gemm, w.tilesM, w.tilesN, w.steps}.locate(w.b, number)
	if w.rank != nil {
		at.row = w.b.Add(at.row, w.b.MulI(w.rank, w.BM))
	}
	return at
}

// next advances a stage's index and the parity of its phase by n stages.
func (w *wgmma) next(stage, parity *ir.Value, n int) (*ir.Value, *ir.Value) {
	return advance(w.b, stage, parity, n, w.Stages)
}

// advance goes n places on in a ring of `size`, whose phases have changing parities.
func advance(b *ptx.Builder, at, parity *ir.Value, n, size int) (*ir.Value, *ir.Value) {
	if n/size%2 == 1 {
		parity = b.Binary(ptx.Xor, parity, b.I32(1))
	}
	if n %= size; n == 0 {
		return at, parity
	}
	moved := b.AddI(at, n)
	wrapped := b.Compare("ge", moved, b.I32(size))
	return b.Select(wrapped, b.AddI(moved, -size), moved), b.Select(wrapped, b.Binary(ptx.Xor, parity, b.I32(1)), parity)
}

// produce is the producer warpgroup: one thread waits for stages to be free and has them filled.
func (w *wgmma) produce() {
	b := w.b
	if n, _ := w.registers(); n > 0 {
		b.Do(ptx.SetMaxRegisters, nil, "count", n)
	}
	leader := b.Compare("eq", w.lane, b.I32(0))
	if w.fetching != nil {
		b.If(b.And(b.Compare("eq", w.warp, b.I32(1)), leader), false, func() { w.fetching.produce(w) }, nil)
	}
	b.If(b.And(b.Compare("eq", w.warp, b.I32(0)), leader), false, func() {
		b.For(w.first, w.end, w.stride, false, []*ir.Value{b.I32(0), b.I32(1)}, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
			at := w.locate(number)
			return b.For(b.I32(0), b.I32(w.steps), b.I32(1), false, ring, func(i *ir.Value, ring []*ir.Value) []*ir.Value {
				stage, parity := ring[0], ring[1]
				barrier := b.Add(w.base, b.MulI(stage, 8))
				b.Do(ptx.BarrierWait, []*ir.Value{barrier, parity}, "offset", w.empty(0))
				b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "offset", w.full(0), "bytes", w.stageBytes)
				w.fill(at, b.MulI(b.Add(at.step, i), w.BK), b.Add(w.base, b.MulI(stage, w.stageBytes)), b.AddI(barrier, w.full(0)))
				stage, parity = w.next(stage, parity, 1)
				return []*ir.Value{stage, parity}
			})
		})
	}, nil)
}

// fill has the copy engine load one stage: this block's rows of A, and its share of B for all blocks of the cluster.
func (w *wgmma) fill(at place, k, stage, full *ir.Value) {
	b := w.b
	for p, m := range w.mapsA {
		w.load(m, w.a, w.a, b.AddI(stage, p*w.a.bytes()), full, at.row, k, nil, w.outer(at, strideA))
	}
	share, col := w.share(), at.col
	to := b.AddI(stage, w.planes*w.a.bytes())
	var mask *ir.Value
	if w.rank != nil {
		mask = b.Const(b.Ctx.Integer(1<<w.Cluster-1, b.Ctx.Int(16)))
		row, depth := share.rows%w.bt.rows, share.depth%w.bt.depth // 0 where it is all of it
		col, k = b.Add(col, b.MulI(w.rank, row)), b.Add(k, b.MulI(w.rank, depth))
		to = b.Add(to, b.MulI(w.rank, w.bt.offset(row, depth)))
	}
	for p, m := range w.mapsB {
		w.load(m, w.bt, share, b.AddI(to, p*w.bt.bytes()), full, col, k, mask, w.outer(at, strideB))
	}
}

// share is the part of B's tile that each block of a cluster loads for all: some rows, or some of k where rows can't be divided
// between boxes of 64.
func (w *wgmma) share() tile {
	s := w.bt
	if per := rowBytes / s.size; s.mnMajor && s.rows/per%w.Cluster != 0 {
		s.depth /= w.Cluster
	} else {
		s.rows /= w.Cluster
	}
	return s
}

// outer is the coordinates of an operand's matrix in its tensor map.
func (w *wgmma) outer(at place, stride func(Batch) int) (coordinates []*ir.Value) {
	for i, d := range w.Batch {
		if stride(d) != 0 {
			coordinates = append(coordinates, at.batch[i])
		}
	}
	return coordinates
}

// load copies a part of a tile.
func (w *wgmma) load(m *ir.Value, t, part tile, to, full, row, k, mask *ir.Value, outer []*ir.Value) {
	b := w.b
	if !t.mnMajor {
		b.TMALoad(m, to, full, mask, append([]*ir.Value{k, row}, outer...)...)
		return
	}
	per := rowBytes / t.size
	for r := 0; r < part.rows; r += per {
		b.TMALoad(m, b.AddI(to, t.offset(r, 0)), full, mask, append([]*ir.Value{b.AddI(row, r), k}, outer...)...)
	}
}

// consume is a consumer warpgroup: it multiplies stages and stores tiles.
func (w *wgmma) consume() {
	b := w.b
	if _, n := w.registers(); n > 0 {
		b.Do(ptx.SetMaxRegisters, nil, "count", n, "inc", true)
	}
	w.consumer = b.AddI(b.DivI(w.warp, 4), -1)
	if w.Pingpong {
		w.takeTurns()
		return
	}
	row := b.MulI(w.consumer, w.rowsPerConsumer())
	ring := []*ir.Value{b.I32(0), b.I32(0)}
	if w.fetching != nil {
		ring = append(ring, b.I32(0), b.I32(0))
	}
	b.For(w.first, w.end, w.stride, true, ring, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
		at := w.locate(number)
		acc, stage, parity := w.multiply(at, row, ring[0], ring[1])
		if w.fetching == nil {
			w.storeTile(at, row, acc, nil)
			return []*ir.Value{stage, parity}
		}
		near := w.fetching.reader(w, ring[2], ring[3])
		w.storeTile(at, row, acc, near)
		return []*ir.Value{stage, parity, near.slot, near.parity}
	})
}

// multiply contracts a tile: one accumulator for each 64 rows of this consumer.
func (w *wgmma) multiply(at place, row, stage, parity *ir.Value) (acc []*ir.Value, s, p *ir.Value) {
	if w.planes > 1 {
		return w.multiplyPlanes(at, row, stage, parity)
	}
	b := w.b
	blocks := w.rowsPerConsumer() / 64
	carried := []*ir.Value{stage, parity, stage}
	for range blocks {
		carried = append(carried, b.Undef(w.BN/2))
	}
	out := b.For(b.I32(0), b.I32(w.steps), b.I32(1), true, carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		stage, parity, before, acc := carried[0], carried[1], carried[2], carried[3:]
		started := b.Compare("ne", i, b.I32(0))
		descA, descB := w.descriptors(row, stage)
		w.await(stage, parity)
		b.Do(ptx.WGMMAFence, nil)
		for k := 0; k < w.BK; k += w.step() {
			add := b.True()
			if k == 0 {
				add = started
			}
			for m := range blocks {
				acc[m] = w.product(descA(0, m, k), descB(0, k), acc[m], add)
			}
		}
		b.Do(ptx.WGMMACommit, nil)
		acc = b.Do(ptx.WGMMAWait, acc, "pending", 1).Results()
		w.release(before, started) // the products before these are complete
		after, parity := w.next(stage, parity, 1)
		return append([]*ir.Value{after, parity, stage}, acc...)
	})
	acc = b.Do(ptx.WGMMAWait, out[3:], "pending", 0).Results()
	w.release(out[2], b.True())
	return acc, out[0], out[1]
}

// step is the depth of one instruction.
func (w *wgmma) step() int { return int(ptx.Depth(w.format())) }

// product begins one matrix product.
func (w *wgmma) product(a, d, acc, add *ir.Value) *ir.Value {
	attrs := []any{"format", w.format()}
	if w.A.MNMajor {
		attrs = append(attrs, "ta", true)
	}
	if w.B.MNMajor {
		attrs = append(attrs, "tb", true)
	}
	return w.b.Do(ptx.WGMMA, []*ir.Value{a, d, acc, add}, attrs...).Result(0)
}

// descriptors gives those of a stage's tiles, by plane, block of 64 rows (of A) and k. They are all made before the
// products begin.
func (w *wgmma) descriptors(row, stage *ir.Value) (a func(plane, block, k int) *ir.Value, d func(plane, k int) *ir.Value) {
	b := w.b
	// In a cluster the address has the block's rank above the bits that a descriptor holds.
	start := b.DivI(b.Binary(ptx.And, b.Add(w.base, b.MulI(stage, w.stageBytes)), b.I32(0x3FFFF)), 16)
	// Rows of consumers are multiples of 64, at equal distances in either layout.
	rowA := b.Add(start, b.MulI(b.DivI(row, 64), w.a.offset(64, 0)/16))
	make := func(t tile, base *ir.Value, plane, offset, row, k int) *ir.Value {
		bits := t.descriptor(row, k).Bits()
		low := b.AddI(base, int(uint32(bits))+(offset+plane*t.bytes())/16)
		return b.Join(low, b.I32(int(int32(bits>>32))))
	}
	table := map[[4]int]*ir.Value{}
	for p := range w.planes {
		for k := 0; k < w.BK; k += w.step() {
			for m := range w.rowsPerConsumer() / 64 {
				table[[4]int{0, p, m, k}] = make(w.a, rowA, p, 0, 64*m, k)
			}
			table[[4]int{1, p, 0, k}] = make(w.bt, start, p, w.planes*w.a.bytes(), 0, k)
		}
	}
	return func(p, m, k int) *ir.Value { return table[[4]int{0, p, m, k}] }, func(p, k int) *ir.Value { return table[[4]int{1, p, 0, k}] }
}

// await waits until a stage is full.
func (w *wgmma) await(stage, parity *ir.Value) {
	w.b.Do(ptx.BarrierWait, []*ir.Value{w.b.Add(w.base, w.b.MulI(stage, 8)), parity}, "offset", w.full(0))
}

// release says that this warp is done with a stage, to each block of the cluster. Barriers are arrived at and waited for with the order of
// a block, other blocks' too: what they order is reads of matrix products, which are complete since ptx.wgmma_wait, before what the copy
// engine writes next, and threads read nothing that another block's wrote. Order of the cluster's scope made the assembler put a fence
// of the whole device before each arrival and an invalidation of L1 after each wait (bench/NOTES.md).
func (w *wgmma) release(stage, when *ir.Value) {
	b := w.b
	barrier := b.Add(w.base, b.MulI(stage, 8))
	if w.Cluster == 1 {
		b.Do(ptx.BarrierArrive, []*ir.Value{barrier, b.And(when, b.Compare("eq", w.lane, b.I32(0)))}, "offset", w.empty(0))
		return
	}
	remote := b.Do(ptx.MapShared, []*ir.Value{b.AddI(barrier, w.empty(0)), w.lane}).Result(0)
	b.Do(ptx.BarrierArrive, []*ir.Value{remote, b.And(when, b.Compare("lo", w.lane, b.I32(w.Cluster)))}, "cluster", true)
}
