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
	staging    int // where consumers' warps stage their results
	barriers   int // full[Stages], empty[Stages], turn[2]

	mapsA, mapsB, scales, epilogue []*ir.Value
	base                           *ir.Value // shared memory
	warp, lane                     *ir.Value
	rank                           *ir.Value // in the cluster; nil without one
	first, stride                  *ir.Value // this cluster's first tile, and the distance to the next
}

// A warp stages 16 rows of 64 results. Their 16-byte columns are exclusive-ored with the row, see staged, so that the
// lanes that write and those that read at one time are in different banks.
const (
	chunk       = 64
	stagedPitch = chunk * 4
	warpStaging = 16 * stagedPitch
)

// staged is where the result at (row, col) is staged.
func staged(row, col int) int { return row*stagedPitch + (col/4^2*(row&3))*16 + col%4*4 }

func (g Gemm) rowsPerConsumer() int {
	if g.Pingpong {
		return g.BM
	}
	return g.BM / g.Consumers
}

// plan lays out shared memory and counts tiles.
func (g Gemm) planWGMMA() *wgmma {
	w := &wgmma{Gemm: g}
	w.size, w.planes = g.elem()
	w.a = tile{rows: g.BM, depth: g.BK, size: w.size, mnMajor: g.A.MNMajor}
	w.bt = tile{rows: g.BN, depth: g.BK, size: w.size, mnMajor: g.B.MNMajor}
	w.stageBytes = w.planes * (w.a.bytes() + w.bt.bytes())
	w.staging = g.Stages * w.stageBytes
	w.barriers = w.staging + 4*g.Consumers*warpStaging
	w.tilesM, w.tilesN = ceil(g.M, g.BM*g.Cluster), ceil(g.N, g.BN)
	w.tiles = w.tilesM * w.tilesN * g.SplitK
	w.steps = g.depth() / g.BK
	return w
}

func (w *wgmma) sharedBytes() int { return w.barriers + (2*w.Stages+2)*8 }

func (w *wgmma) full(stage int) int  { return w.barriers + 8*stage }
func (w *wgmma) empty(stage int) int { return w.barriers + 8*(w.Stages+stage) }
func (w *wgmma) turn(c int) int      { return w.barriers + 8*(2*w.Stages+c) }

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
	w.b.If(producer, true, w.produce, w.consume)
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
		k.Params = append(k.Params, Param{name, m})
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
		t      tile
		rows   int // in one box of a K-major tile
	}{{"a", w.A, w.M, w.a, w.BM}, {"b", w.B, w.N, w.bt, w.BN / w.Cluster}} {
		for p := range w.planes {
			m := &TensorMap{Element: w.format(), Dims: [2]int{w.K, side.extent}, Pitch: side.o.Pitch * w.size, Box: [2]int{w.BK, side.rows}}
			if side.o.MNMajor {
				m.Dims, m.Box = [2]int{side.extent, w.K}, [2]int{rowBytes / w.size, w.BK}
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
	if w.SplitK > 1 {
		add("partials", nil)
		return types
	}
	for _, name := range w.Epilogue.Params {
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
		for c := range 2 {
			b.Do(ptx.BarrierInit, []*ir.Value{w.base}, "offset", w.turn(c), "count", 4)
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
func (w *wgmma) releases() int {
	if w.Pingpong {
		return 4 * w.Cluster
	}
	return 4 * w.Consumers * w.Cluster
}

// registers is what each thread of a producer and of a consumer has, where three or four warpgroups share the file; 0, 0
// where they needn't.
func (w *wgmma) registers() (producer, consumer int) {
	switch w.Consumers {
	case 2:
		return 24, 240
	case 3:
		return 32, 160
	}
	return 0, 0
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
	b := w.b
	if n/w.Stages%2 == 1 {
		parity = b.Binary(ptx.Xor, parity, b.I32(1))
	}
	if n %= w.Stages; n == 0 {
		return stage, parity
	}
	moved := b.AddI(stage, n)
	wrapped := b.Compare("ge", moved, b.I32(w.Stages))
	return b.Select(wrapped, b.AddI(moved, -w.Stages), moved), b.Select(wrapped, b.Binary(ptx.Xor, parity, b.I32(1)), parity)
}

// produce is the producer warpgroup: one thread waits for stages to be free and has them filled.
func (w *wgmma) produce() {
	b := w.b
	if n, _ := w.registers(); n > 0 {
		b.Do(ptx.SetMaxRegisters, nil, "count", n)
	}
	elected := b.And(b.Compare("eq", w.warp, b.I32(0)), b.Compare("eq", w.lane, b.I32(0)))
	b.If(elected, false, func() {
		b.For(w.first, b.I32(w.tiles), w.stride, false, []*ir.Value{b.I32(0), b.I32(1)}, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
			at := w.locate(number)
			return b.For(b.I32(0), b.I32(w.steps), b.I32(1), false, ring, func(i *ir.Value, ring []*ir.Value) []*ir.Value {
				stage, parity := ring[0], ring[1]
				barrier := b.Add(w.base, b.MulI(stage, 8))
				w.wait(barrier, parity, w.empty(0))
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
		w.load(m, w.a, w.BM, b.AddI(stage, p*w.a.bytes()), full, at.row, k, nil)
	}
	share, col := w.BN/w.Cluster, at.col
	to := b.AddI(stage, w.planes*w.a.bytes())
	var mask *ir.Value
	if w.rank != nil {
		mask = b.Const(b.Ctx.Integer(1<<w.Cluster-1, b.Ctx.Int(16)))
		col = b.Add(col, b.MulI(w.rank, share))
		to = b.Add(to, b.MulI(w.rank, w.bt.offset(share, 0)))
	}
	for p, m := range w.mapsB {
		w.load(m, w.bt, share, b.AddI(to, p*w.bt.bytes()), full, col, k, mask)
	}
}

// load copies `rows` rows of a tile.
func (w *wgmma) load(m *ir.Value, t tile, rows int, to, full, row, k, mask *ir.Value) {
	b := w.b
	if !t.mnMajor {
		b.TMALoad(m, to, full, mask, k, row)
		return
	}
	per := rowBytes / t.size
	for r := 0; r < rows; r += per {
		b.TMALoad(m, b.AddI(to, t.offset(r, 0)), full, mask, b.AddI(row, r), k)
	}
}

// consume is a consumer warpgroup: it multiplies stages and stores tiles.
func (w *wgmma) consume() {
	b := w.b
	if _, n := w.registers(); n > 0 {
		b.Do(ptx.SetMaxRegisters, nil, "count", n, "inc", true)
	}
	consumer := b.AddI(b.DivI(w.warp, 4), -1)
	if !w.Pingpong {
		b.For(w.first, b.I32(w.tiles), w.stride, true, []*ir.Value{b.I32(0), b.I32(0)}, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
			at := w.locate(number)
			acc, stage, parity := w.multiply(at, b.MulI(consumer, w.rowsPerConsumer()), ring[0], ring[1])
			w.store(at, b.MulI(consumer, w.rowsPerConsumer()), consumer, acc)
			return []*ir.Value{stage, parity}
		})
		return
	}
	// Consumer 1 starts at the second tile, whose stages come after the first tile's.
	second := b.Compare("eq", consumer, b.I32(1))
	stage, parity := w.next(b.I32(0), b.I32(0), w.steps)
	ring := []*ir.Value{b.Select(second, stage, b.I32(0)), b.Select(second, parity, b.I32(0)), b.Binary(ptx.Xor, consumer, b.I32(1))}
	first := b.Add(w.first, b.Select(second, w.stride, b.I32(0)))
	b.For(first, b.I32(w.tiles), b.Add(w.stride, w.stride), true, ring, func(number *ir.Value, ring []*ir.Value) []*ir.Value {
		at := w.locate(number)
		mine, theirs := b.Add(w.base, b.MulI(consumer, 8)), b.Sub(b.AddI(w.base, 8), b.MulI(consumer, 8))
		b.Do(ptx.BarrierWait, []*ir.Value{mine, ring[2]}, "offset", w.turn(0))
		acc, stage, parity := w.multiply(at, b.I32(0), ring[0], ring[1])
		b.Do(ptx.BarrierArrive, []*ir.Value{theirs, b.Compare("eq", w.lane, b.I32(0))}, "offset", w.turn(0))
		w.store(at, b.I32(0), consumer, acc)
		stage, parity = w.next(stage, parity, w.steps)
		return []*ir.Value{stage, parity, b.Binary(ptx.Xor, ring[2], b.I32(1))}
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

// multiplyPlanes contracts a tile of numbers in planes: for each stage the products of planes that count, smallest first,
// in an accumulator of its own that is then added, times the blocks' scales where there are any, to the sums in float32.
// The sums so round to nearest and lose nothing to the tensor cores' truncation.
func (w *wgmma) multiplyPlanes(at place, row, stage, parity *ir.Value) (sums []*ir.Value, s, p *ir.Value) {
	b := w.b
	blocks := w.rowsPerConsumer() / 64
	carried := []*ir.Value{stage, parity}
	zero := b.F32(0)
	for range blocks {
		carried = append(carried, b.Do(ptx.Fill, []*ir.Value{zero}, "count", w.BN/2).Result(0))
	}
	var scaleA, scaleB []*ir.Value
	if w.scales != nil {
		scaleA, scaleB = w.scaleAddresses(at, row)
	}
	out := b.For(b.I32(0), b.I32(w.steps), b.I32(1), true, carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		stage, parity, sums := carried[0], carried[1], carried[2:]
		descA, descB := w.descriptors(row, stage)
		var factors [][]*ir.Value
		if w.scales != nil {
			factors = w.factors(at, scaleA, scaleB, i)
		}
		w.await(stage, parity)
		b.Do(ptx.WGMMAFence, nil)
		acc := make([]*ir.Value, blocks)
		for m := range blocks {
			acc[m] = b.Undef(w.BN / 2)
		}
		add := b.False()
		for _, planes := range w.products() {
			for k := 0; k < w.BK; k += w.step() {
				for m := range blocks {
					acc[m] = w.product(descA(planes[0], m, k), descB(planes[1], k), acc[m], add)
				}
				add = b.True()
			}
		}
		b.Do(ptx.WGMMACommit, nil)
		acc = b.Do(ptx.WGMMAWait, acc, "pending", 0).Results()
		w.release(stage, b.True())
		for m := range blocks {
			if w.scales == nil {
				sums[m] = b.Binary(ptx.Add, sums[m], acc[m])
				continue
			}
			sums[m] = b.Do(ptx.AddScaled, append([]*ir.Value{sums[m], acc[m]}, factors[m]...)).Result(0)
		}
		stage, parity = w.next(stage, parity, 1)
		return append([]*ir.Value{stage, parity}, sums...)
	})
	return out[2:], out[0], out[1]
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
	w.wait(w.b.Add(w.base, w.b.MulI(stage, 8)), parity, w.full(0))
}

// wait waits at a barrier that the whole cluster may arrive at.
func (w *wgmma) wait(barrier, parity *ir.Value, offset int) {
	attrs := []any{"offset", offset}
	if w.Cluster > 1 {
		attrs = append(attrs, "cluster", true)
	}
	w.b.Do(ptx.BarrierWait, []*ir.Value{barrier, parity}, attrs...)
}

// release says that this warp is done with a stage, to each block of the cluster.
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

// store takes the results from the accumulators' layout to whole rows through shared memory, a warp's 16 rows and 64
// columns at a time, and hands them to the epilogue.
func (w *wgmma) store(at place, row, consumer *ir.Value, acc []*ir.Value) {
	b := w.b
	inGroup := b.Binary(ptx.And, w.warp, b.I32(3))
	mine := b.Add(b.AddI(w.base, w.staging), b.MulI(b.AddI(w.warp, -4), warpStaging))
	width := w.pointWidth()
	perRow := min(chunk/width, 32)
	laneRow, laneCol := b.DivI(w.lane, perRow), b.MulI(b.Binary(ptx.And, w.lane, b.I32(perRow-1)), width)
	write, read := w.stagingWrites(mine), w.stagingReads(mine, laneRow, laneCol)
	e := w.Epilogue
	if w.SplitK > 1 {
		e = partials
	}
	for m, v := range acc {
		first := b.Add(b.Add(at.row, row), b.AddI(b.MulI(inGroup, 16), 64*m))
		p := newPart(b, b.Add(first, laneRow), b.Add(at.col, laneCol), w.M, w.N, width, w.epilogue)
		if w.SplitK > 1 {
			p.stored = b.Add(p.row, b.MulI(at.split, w.M))
		}
		for c := 0; c < w.BN; c += chunk {
			pts := w.points(p, c, perRow)
			ahead := w.ahead(e)
			e.prefetch(pts[:ahead])
			w.stage(write, v, c)
			for i, pt := range pts {
				if i > 0 && i%ahead == 0 {
					e.prefetch(pts[i:min(i+ahead, len(pts))])
				}
				x := b.Load(read(pt.dRow), b.Ctx.F32(), width, ptx.Access{Space: "shared", Offset: pt.dRow*stagedPitch + (pt.dCol-c)*4})
				e.Apply(pt, b.Scalars(x))
			}
		}
		if e.Sums {
			w.finishSums(p, consumer, inGroup, mine, b.DivI(b.AddI(b.Add(at.row, row), 64*m), 64), at.col)
		}
	}
}

// ahead is how many points' reads may be on their way at one time: what fits beside the accumulators and what else a
// thread has to remember.
func (w *wgmma) ahead(e Epilogue) int {
	const others = 56
	_, registers := w.registers()
	if registers == 0 {
		registers = 240
	}
	accumulators := w.rowsPerConsumer() * w.BN / 128
	return max(1, min(8, (registers-others-accumulators)/(4*max(1, len(e.Reads)))))
}

// pointWidth is how many elements of a row the epilogue gets at a time.
func (g Gemm) pointWidth() int {
	if g.N%4 == 0 {
		return 4
	}
	return 1
}

// stagingWrites gives where a lane stages the first two results of the accumulators' blocks of 8 columns, for each block
// mod 4; later blocks are 128 bytes further, later rows at a multiple of 4 too.
func (w *wgmma) stagingWrites(mine *ir.Value) [4]*ir.Value {
	b := w.b
	row, pair := b.DivI(w.lane, 4), b.Binary(ptx.And, w.lane, b.I32(3))
	start := b.Add(b.Add(mine, b.MulI(row, stagedPitch)), b.Add(b.MulI(b.DivI(pair, 2), 16), b.MulI(b.Binary(ptx.And, pair, b.I32(1)), 8)))
	var at [4]*ir.Value
	for j := range at {
		at[j] = b.Add(start, b.MulI(b.Binary(ptx.Xor, b.Binary(ptx.And, row, b.I32(3)), b.I32(j)), 32))
	}
	return at
}

// stagingReads gives where a lane reads its first point, for rows that are `dRow` further but for a multiple of 4.
func (w *wgmma) stagingReads(mine, laneRow, laneCol *ir.Value) func(dRow int) *ir.Value {
	b := w.b
	start := b.Add(b.Add(mine, b.MulI(laneRow, stagedPitch)), b.MulI(b.Binary(ptx.And, laneCol, b.I32(3)), 4))
	at := map[int]*ir.Value{}
	return func(dRow int) *ir.Value {
		if at[dRow&3] == nil {
			row := b.Binary(ptx.And, b.AddI(laneRow, dRow&3), b.I32(3))
			at[dRow&3] = b.Add(start, b.MulI(b.Binary(ptx.Xor, b.DivI(laneCol, 4), b.MulI(row, 2)), 16))
		}
		return at[dRow&3]
	}
}

// stage writes a warp's 16 x 64 results from column c on to its staging.
func (w *wgmma) stage(write [4]*ir.Value, acc *ir.Value, c int) {
	b := w.b
	b.Do(ptx.WarpSync, nil) // what was there has been read
	for j := range chunk / 8 {
		for half := range 2 {
			i := 4*(c/8+j) + 2*half
			pair := b.Vector(b.Extract(acc, i), b.Extract(acc, i+1))
			b.Store(write[j%4], pair, ptx.Access{Space: "shared", Offset: half*8*stagedPitch + j/4*128})
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
	if p.width == 1 {
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
func (w *wgmma) finishSums(p *part, consumer, inGroup, mine, block, col *ir.Value) {
	b := w.b
	id := b.AddI(consumer, 1)
	thread := b.Add(b.MulI(inGroup, 32), w.lane)
	first := b.Add(b.Sub(mine, b.MulI(inGroup, warpStaging)), b.MulI(thread, 4))
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
				total = b.Binary(ptx.Add, total, b.Load(first, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: 4*c + i*warpStaging}))
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
		for i, s := range sums {
			sums[i] = b.Binary(ptx.Add, s, b.Do(ptx.Shuffle, []*ir.Value{s, b.I32(16)}, "mode", "bfly").Result(0))
		}
		at := b.Add(mine, b.MulI(b.Binary(ptx.And, w.lane, b.I32(15)), 16))
		b.Store(at, b.Vector(sums...), ptx.Access{Space: "shared", Offset: 4 * c, If: b.Compare("lo", w.lane, b.I32(16))})
	}
	return any
}

// scaleAddresses gives where the scales of this consumer's blocks of A and of this tile's blocks of B are, for the first
// stage, and how far those of the next stage are. Blocks past the edge take the last one's.
func (w *wgmma) scaleAddresses(at place, row *ir.Value) (a, d []*ir.Value) {
	b := w.b
	side := func(base *ir.Value, o Operand, extent int, first *ir.Value, blocks int) []*ir.Value {
		var addresses []*ir.Value
		along := 1
		if !o.MNMajor {
			along = ceil(w.K, 64)
		}
		for i := range blocks {
			block := b.Min(b.AddI(b.DivI(first, 64), i), b.I32(ceil(extent, 64)-1))
			addresses = append(addresses, b.MulWide(b.MulI(block, along), 4, base))
		}
		return addresses
	}
	return side(w.scales[0], w.A, w.M, b.Add(at.row, row), w.rowsPerConsumer()/64), side(w.scales[1], w.B, w.N, at.col, w.BN/64)
}

// factors is what each block of 64 rows and each 64 columns of a stage's products are multiplied by.
func (w *wgmma) factors(at place, scaleA, scaleB []*ir.Value, i *ir.Value) [][]*ir.Value {
	b := w.b
	step := b.Min(b.Add(at.step, i), b.I32(ceil(w.K, 64)-1))
	load := func(addresses []*ir.Value, o Operand, extent int) []*ir.Value {
		pitch := 4
		if o.MNMajor {
			pitch = 4 * ceil(extent, 64)
		}
		return each(addresses, func(v *ir.Value) *ir.Value {
			return b.Load(b.MulWide(step, pitch, v), b.Ctx.F32(), 1, ptx.Access{Space: "global", Cache: "nc"})
		})
	}
	a, d := load(scaleA, w.A, w.M), load(scaleB, w.B, w.N)
	var factors [][]*ir.Value
	for _, x := range a {
		factors = append(factors, each(d, func(y *ir.Value) *ir.Value { return b.Binary(ptx.Mul, x, y) }))
	}
	return factors
}

// partials is the epilogue of one part of K: its product goes to [SplitK, M, N].
var partials = Epilogue{Key: "partial", Params: []string{"partials"}, Apply: func(p *Point, x []*ir.Value) { p.Store(0, ir.F32, x) }}
