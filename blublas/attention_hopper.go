package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// groups is one of attention's kernels for warpgroups being built: the copy engine fills a ring of stages with blocks of
// columns, and consumer warpgroups, each with 64 rows of the block, multiply what is in them (wgmma). Blocks are persistent:
// the producer runs ahead across tiles, so that nobody waits for the first columns of the next one.
//
// FP16x3 has operands of two float16 planes that AttentionSplit wrote, FP16 of one, with one scale for every 64 rows of a head. Each block
// of columns leaves its products in accumulators of its own, which are then added as float32 adds: what tensor cores add to,
// they round toward zero.
type groups struct {
	*attention
	kind    AttentionKernel
	planes  int
	rows    operand // of the block
	columns operand // of a step
	lefts   []string
	rights  []string
	results []string
	buffers int                  // of rows
	maps    map[string]*ir.Value // tensor maps
	warp    *ir.Value
	start   *ir.Value // of shared memory, as descriptors have it
	mine    *ir.Value // number of this consumer
	tiles   tiles
}

// operand is rows of features in shared memory: planes of columns of 64 features, 128 bytes a row under the copy engine's
// swizzle.
type operand struct{ rows, features, planes int }

func (o operand) column() int { return o.rows * rowBytes }
func (o operand) plane() int  { return ceil(o.features, 64) * o.column() }
func (o operand) bytes() int  { return o.planes * o.plane() }

// along is the descriptor of a step of 16 features of all rows, which are rows or columns of the product.
func (o operand) along(plane, step int) (offset int, d Descriptor) {
	k := 16 * step
	return plane*o.plane() + k/64*o.column(), tile{rows: o.rows, depth: 64, size: 2}.descriptor(0, k%64)
}

// across is the descriptor of a step of 16 rows, which are contracted: features are columns of the product.
func (o operand) across(plane, step int) (offset int, d Descriptor) {
	return plane * o.plane(), tile{rows: o.features, depth: o.rows, size: 2, mnMajor: true}.descriptor(0, 16*step)
}

// planeCount is how many planes the operands of products have.
func (a Attention) planeCount() int {
	if a.Precision == FP16x3 {
		return 2
	}
	return 1
}

// scaled is whether operands are planes of float16 with scales, not the tensors themselves.
func (a Attention) scaled() bool { return a.Precision == FP16x3 || a.Precision == FP16 }

// format is how products call the elements of their operands.
func (a Attention) format() string {
	if a.scaled() {
		return "f16"
	}
	return "bf16"
}

// sides is the tensors of a kernel's rows and of its columns.
func (kernel AttentionKernel) sides() (lefts, rights []string) {
	switch kernel {
	case AttentionForward:
		return []string{"q"}, []string{"k", "v"}
	case AttentionGradQueries:
		return []string{"q", "do"}, []string{"k", "v"}
	}
	return []string{"k", "v"}, []string{"q", "do"}
}

// planHopper lays out shared memory: buffers of rows, two where they fit, the ring, its numbers, barriers.
func (a Attention) planHopper(kernel AttentionKernel, limit int) *groups {
	w := &groups{attention: &attention{Attention: a, rowsAreKeys: kernel == AttentionGradKeys}, kind: kernel, planes: a.planeCount(), buffers: 2}
	w.lefts, w.rights = kernel.sides()
	w.results = kernel.results()
	if w.readsOutputs() {
		w.lefts = append(w.lefts, "o")
	}
	w.rows, w.columns = operand{a.Block.rows(), a.Features, w.planes}, operand{a.Block.Columns, a.Features, w.planes}
	if w.sharedBytes() > limit {
		w.buffers = 1
	}
	return w
}

func (w *groups) bufferBytes() int { return len(w.lefts) * w.rows.bytes() }
func (w *groups) stageBytes() int  { return 2 * w.columns.bytes() }
func (w *groups) ring() int        { return w.buffers * w.bufferBytes() }
func (w *groups) boxes() int       { return w.ring() + w.Block.Stages*w.stageBytes() }
func (w *groups) numbers() int     { return w.boxes() + w.boxesBytes() }
func (w *groups) barriers() int {
	n := w.numbers()
	switch w.kind {
	case AttentionGradKeys:
		n += w.Block.Stages * w.numberBytes()
	case AttentionGradQueries:
		n += w.buffers * 4 * w.rows.rows
	}
	return n
}
func (w *groups) sharedBytes() int { return w.barriers() + 8*2*(w.Block.Stages+w.buffers) }

// barrier is a kind of barrier: of stages or of rows' buffers.
type barrier int

const (
	full barrier = iota
	empty
	rowsFull
	rowsEmpty
)

func (w *groups) at(k barrier) int {
	n := w.Block.Stages
	return w.barriers() + 8*[]int{0, n, 2 * n, 2*n + w.buffers}[k]
}

// checkHopper says why a kernel for warpgroups can't be built, or nil.
func (a Attention) checkHopper(kernel AttentionKernel, d Device) error {
	b := a.Block
	fail := func(format string, args ...any) error {
		return fmt.Errorf("attention %s %dx%dx%dx%d for warpgroups: "+format, append([]any{a.Precision, a.Batch, a.Heads, a.Queries, a.Features}, args...)...)
	}
	switch {
	case a.Target != ptx.SM90A:
		return fail("needs sm_90a, not %s", a.Target)
	case a.Precision != BF16 && !a.scaled():
		return fail("there are bf16, fp16 and fp16x3")
	case a.scaled() && b.Columns != BlockEdge:
		return fail("%d columns; scales are those of %d", b.Columns, BlockEdge)
	case b.Columns < 16 || b.Columns%16 != 0 || b.Columns > 128:
		return fail("%d columns; a multiple of 16, at most 128", b.Columns)
	case a.Features%16 != 0 || a.Features > 128:
		return fail("%d features; a multiple of 16, at most 128", a.Features)
	case b.Consumers > 3 || b.Tiles != 1 || b.Stages < 2:
		return fail("a block of %+v", b)
	case b.Staged && a.Precision != BF16:
		return fail("results of 16 bits are staged, %s has others", a.Precision)
	case b.Staged && a.Features%64 != 0:
		return fail("boxes of results are 64 features wide")
	}
	limit := min(d.SharedPerBlock, int(ptx.SharedLimit(a.Target)))
	if n := a.planHopper(kernel, limit).sharedBytes(); n > limit {
		return fail("%d bytes of shared memory, a block has %d", n, limit)
	}
	return nil
}

// startHopper makes the kernel, of pointers beside its tensor maps.
func (a Attention) startHopper(at *ir.Builder, kernel AttentionKernel, d Device, what string, pointers ...string) (*Kernel, *groups) {
	w := a.planHopper(kernel, min(d.SharedPerBlock, int(ptx.SharedLimit(a.Target))))
	extent, heads := a.Queries, a.Heads
	if kernel == AttentionGradKeys {
		extent, heads = a.Keys, a.KeyHeads
	}
	w.tiles = a.tiling(extent, heads, w.rows.rows, d, kernel == AttentionGradKeys)
	w.whole = extent%w.rows.rows == 0 && !w.tiles.beyond() && a.Guard == Always
	k := &Kernel{Name: a.name(what), Threads: 128 * (a.Block.Consumers + 1), Cluster: 1, Shared: w.sharedBytes(), Grid: min(w.tiles.items, d.SMs)}
	k.Params, pointers = w.parameters(pointers)
	var types []ir.Type
	for _, p := range k.Params {
		if p.Map != nil {
			types = append(types, ptx.TensorMap(at.Ctx))
		} else {
			types = append(types, at.Ctx.I64())
		}
	}
	w.b = ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: a.Target, Threads: k.Threads, BlocksPerSM: 1, Shared: k.Shared}, types...)
	k.Op = w.b.Kernel
	w.args, w.maps = map[string]*ir.Value{}, map[string]*ir.Value{}
	for i, p := range k.Params {
		if p.Map != nil {
			w.maps[p.Name] = k.Op.Body().Arg(i)
		} else {
			w.args[p.Name] = k.Op.Body().Arg(i)
		}
	}
	w.prologue(k.Grid)
	return k, w
}

// parameters lists the tensor maps, then pointers: those given, results that aren't staged, the scales of planes, the guard's words.
func (w *groups) parameters(pointers []string) (params []Param, names []string) {
	if !w.Block.Staged {
		pointers = append(pointers, w.results...)
	}
	for i, side := range [][]string{w.lefts, w.rights} {
		rows := w.rows.rows
		if i == 1 {
			rows = w.columns.rows
		}
		for _, name := range side {
			params = append(params, w.tensorMap(name, rows))
			if w.scaled() {
				pointers = append(pointers, name+".scales")
			}
		}
	}
	if w.Block.Staged {
		for _, name := range w.results {
			params = append(params, w.tensorMap(name, boxRows))
		}
	}
	if w.Guard != Always {
		pointers = append(pointers, "unfit")
	}
	for _, p := range pointers {
		params = append(params, Param{Name: p})
	}
	return params, pointers
}

// tensor is how one of a kernel's operands lies in memory.
func (a Attention) tensor(name string) (s Strides, heads, positions int) {
	switch name {
	case "q":
		return a.Q, a.Heads, a.Queries
	case "o":
		return a.O, a.Heads, a.Queries
	case "do":
		return a.DO, a.Heads, a.Queries
	case "dq":
		return a.DQ, a.Heads, a.Queries
	case "k":
		return a.K, a.KeyHeads, a.Keys
	case "dk":
		return a.DK, a.KeyHeads, a.Keys
	case "dv":
		return a.DV, a.KeyHeads, a.Keys
	}
	return a.V, a.KeyHeads, a.Keys
}

// tensorMap is how the copy engine sees a tensor, or its planes: features, positions, then heads and batches, or heads of all
// batches and planes.
func (w *groups) tensorMap(name string, rows int) Param {
	s, heads, positions := w.tensor(name)
	m := &TensorMap{Element: "bf16", Dims: [2]int{w.Features, positions}, Pitch: 2 * s.Row, Box: [2]int{64, rows}}
	if !w.scaled() {
		m.Outer = []Outer{{heads, 2 * s.Head}, {w.Batch, 2 * s.Batch}}
		return Param{Name: name, Map: m}
	}
	m.Element, m.Pitch = "f16", 2*w.Features
	m.Outer = []Outer{{heads * w.Batch, 2 * positions * w.Features}, {w.planes, 2 * positions * w.Features * heads * w.Batch}}
	return Param{Name: name + ".planes", Map: m}
}

// prologue finds out who this thread is and makes the barriers.
func (w *groups) prologue(grid int) {
	b := w.b
	w.tid, w.shared = b.Special("tid.x"), b.SharedBase()
	w.lane = b.Binary(ptx.And, w.tid, b.I32(31))
	// The warp's index is the same in all lanes, which the assembler knows when it is read from lane 0.
	w.warp = b.Do(ptx.Shuffle, []*ir.Value{b.DivI(w.tid, 32), b.I32(0)}, "mode", "idx").Result(0)
	w.group, w.quad = b.DivI(w.lane, 4), b.Binary(ptx.And, w.lane, b.I32(3))
	w.start = b.DivI(b.Binary(ptx.And, w.shared, b.I32(0x3FFFF)), 16)
	w.tiles.block, w.tiles.grid = b.Special("ctaid.x"), grid
	fills, rowFills := 1, 1
	switch w.kind { // numbers come from a warp
	case AttentionGradKeys:
		fills += 32
	case AttentionGradQueries:
		rowFills += 32
	}
	b.If(b.Compare("eq", w.tid, b.I32(0)), false, func() {
		make := func(k barrier, n, count int) {
			for i := range n {
				b.Do(ptx.BarrierInit, []*ir.Value{w.shared}, "offset", w.at(k)+8*i, "count", count)
			}
		}
		make(full, w.Block.Stages, fills)
		make(empty, w.Block.Stages, 4*w.Block.Consumers)
		make(rowsFull, w.buffers, rowFills)
		make(rowsEmpty, w.buffers, 4*w.Block.Consumers)
		b.Do(ptx.Fence, nil, "kind", "mbarrier_init")
	}, nil)
	b.Do(ptx.Sync, nil)
}

// slot is a place in a ring: its index and the parity of its phase.
type slot struct{ index, parity *ir.Value }

func (s slot) values() []*ir.Value { return []*ir.Value{s.index, s.parity} }

func (w *groups) firstSlot(parity int) slot { return slot{w.b.I32(0), w.b.I32(parity)} }

// after is the next slot of a ring of n.
func (w *groups) after(s slot, n int) slot {
	b := w.b
	flipped := b.Binary(ptx.Xor, s.parity, b.I32(1))
	if n == 1 {
		return slot{s.index, flipped}
	}
	moved := b.AddI(s.index, 1)
	wrapped := b.Compare("ge", moved, b.I32(n))
	return slot{b.Select(wrapped, b.I32(0), moved), b.Select(wrapped, flipped, s.parity)}
}

func (w *groups) wait(k barrier, s slot) {
	w.b.Do(ptx.BarrierWait, []*ir.Value{w.b.Add(w.shared, w.b.MulI(s.index, 8)), s.parity}, "offset", w.at(k))
}

// release says that this warp is done with a slot.
func (w *groups) release(k barrier, s slot) {
	b := w.b
	b.Do(ptx.BarrierArrive, []*ir.Value{b.Add(w.shared, b.MulI(s.index, 8)), b.Compare("eq", w.lane, b.I32(0))}, "offset", w.at(k))
}

// readAll puts a warp's reads of rows before the copy engine's next writes to them.
func (w *groups) readAll() {
	w.b.Do(ptx.Fence, nil, "kind", "async")
	w.b.Do(ptx.WarpSync, nil)
}

// releaseHeld gives back rows that are in registers now, if the next ones have no other buffer. With two that can wait for the end of the
// tile: readAll waits for everything that a warp has under way, at the start of a tile for what it stored of the last one.
func (w *groups) releaseHeld(rows slot) {
	if w.releasesEarly() {
		w.readAll()
		w.release(rowsEmpty, rows)
	}
}

func (w *groups) releasesEarly() bool { return w.Block.Held && w.buffers == 1 }

// releaseRows gives back all other rows, before the tile's results are stored.
func (w *groups) releaseRows(rows slot) {
	if w.releasesEarly() || w.Block.Staged { // results' fence is one for rows, too
		return
	}
	if w.Block.Held || w.Block.HeldPart || w.kind == AttentionGradQueries {
		w.readAll()
	}
	w.release(rowsEmpty, rows)
}

// idle is whether the tile has no rows that count.
func (w *groups) idle() *ir.Value { return w.b.Compare("eq", w.extent, w.b.I32(0)) }

// columnBlocks is the blocks of keys that a tile of queries meets: [0, end) that the first n rows from a row of the tile on
// see, whole up to unmasked.
func (w *groups) columnBlocks(row *ir.Value, n int) (unmasked, end *ir.Value) {
	b, c := w.b, w.Block.Columns
	unmasked, end = b.I32(w.Keys/c), b.I32(ceil(w.Keys, c))
	if w.Causal {
		from := b.Add(w.first, row)
		least := b.Binary(ptx.Max, b.AddI(from, w.offset()+1), b.I32(0))
		most := b.Binary(ptx.Max, b.AddI(from, n+w.offset()), b.I32(0))
		unmasked, end = b.Min(b.DivI(least, c), unmasked), b.Min(b.DivI(b.AddI(most, c-1), c), end)
	}
	end = b.Select(w.idle(), b.I32(0), end)
	if w.Block.Ahead { // the first is begun before the others
		end = b.Binary(ptx.Max, end, b.I32(1))
	}
	return b.Min(unmasked, end), end
}

// queryBlocks is the blocks of queries of one head from the first that sees one of n keys from a row of the tile on; from
// unmasked on they see all of them. A tile that is idle has none.
func (w *groups) queryBlocks(row *ir.Value, n int) (from, unmasked, end *ir.Value) {
	b, c := w.b, w.Block.Columns
	from, unmasked, end = b.I32(0), b.I32(0), b.I32(ceil(w.Queries, c))
	if w.Causal {
		first := b.Add(w.first, row)
		least := b.Binary(ptx.Max, b.AddI(first, -w.offset()), b.I32(0))
		whole := b.Binary(ptx.Max, b.AddI(first, n-1-w.offset()), b.I32(0))
		from, unmasked = b.Min(b.DivI(least, c), end), b.Min(b.DivI(b.AddI(whole, c-1), c), end)
	}
	idle := w.idle()
	return b.Select(idle, end, from), b.Select(idle, end, unmasked), end
}

// registers is what each thread of the producer and of a consumer has.
func (w *groups) registers() (producer, consumer int) {
	return (&wgmma{Gemm: Gemm{Consumers: w.Block.Consumers}}).registers()
}

func (w *groups) mapOf(name string) *ir.Value {
	if w.scaled() {
		name += ".planes"
	}
	return w.maps[name]
}

// load has the copy engine bring rows of a head.
func (w *groups) load(name string, o operand, to, barrier, head, row *ir.Value) {
	b := w.b
	_, heads, _ := w.tensor(name)
	for p := range o.planes {
		for c := range ceil(o.features, 64) {
			at := []*ir.Value{b.I32(64 * c), row, head, w.batch}
			if w.scaled() {
				at[2], at[3] = b.Add(b.MulI(w.batch, heads), head), b.I32(p)
			}
			b.TMALoad(w.mapOf(name), b.AddI(to, p*o.plane()+c*o.column()), barrier, nil, at...)
		}
	}
}

// steps goes over the blocks of columns of a tile, as all of its rows together need them: of which head, from which column.
func (w *groups) steps(s slot, body func(head, column *ir.Value, s slot)) slot {
	b := w.b
	over := func(from, end *ir.Value, s []*ir.Value, head *ir.Value) []*ir.Value {
		return b.For(from, end, b.I32(1), true, s, func(i *ir.Value, s []*ir.Value) []*ir.Value {
			body(head, b.MulI(i, w.Block.Columns), slot{s[0], s[1]})
			return w.after(slot{s[0], s[1]}, w.Block.Stages).values()
		})
	}
	if w.kind != AttentionGradKeys {
		_, end := w.columnBlocks(b.I32(0), w.rows.rows)
		out := over(b.I32(0), end, s.values(), w.keyHead())
		return slot{out[0], out[1]}
	}
	from, _, end := w.queryBlocks(b.I32(0), w.rows.rows)
	out := w.eachHead(s.values(), func(head *ir.Value, s []*ir.Value) []*ir.Value { return over(from, end, s, head) })
	return slot{out[0], out[1]}
}

// eachHead goes over the heads that share the tile's keys.
func (w *groups) eachHead(carried []*ir.Value, body func(head *ir.Value, carried []*ir.Value) []*ir.Value) []*ir.Value {
	b, group := w.b, w.Heads/w.KeyHeads
	if group == 1 {
		return body(w.head, carried)
	}
	first := b.MulI(w.head, group)
	return b.For(b.I32(0), b.I32(group), b.I32(1), true, carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		return body(b.Add(first, i), carried)
	})
}

// consume is a consumer warpgroup.
func (w *groups) consume(tile func(ring, rows slot) slot) func() {
	return func() {
		b := w.b
		if _, n := w.registers(); n > 0 {
			b.Do(ptx.SetMaxRegisters, nil, "count", n, "inc", true)
		}
		w.mine, w.warpRow = b.AddI(b.DivI(w.warp, 4), -1), b.MulI(b.AddI(w.warp, -4), 16)
		w.firstTurn()
		w.each(append(w.firstSlot(0).values(), w.firstSlot(0).values()...), func(carried []*ir.Value) []*ir.Value {
			rows := slot{carried[2], carried[3]}
			ring := tile(slot{carried[0], carried[1]}, rows)
			return append(ring.values(), w.after(rows, w.buffers).values()...)
		})
		w.lastTurn()
		w.drain()
	}
}

// build writes both roles and ends the kernel.
func (w *groups) build(tile func(ring, rows slot) slot) {
	b := w.b
	b.If(b.Compare("lo", w.warp, b.I32(4)), true, w.produce, w.consume(tile))
	b.Do(ptx.Return, nil)
}

// turn waits until it is this consumer's turn to begin products, and pass gives it to the next. All consumers have as many in
// a tile: one for each block of columns and one more. Each waits at a named barrier of its own, which the one before it arrives at.
func (w *groups) turn() {
	if w.takesTurns() {
		w.b.Do(ptx.Sync, []*ir.Value{w.mine}, "id", 1, "threads", 256)
	}
}

func (w *groups) pass() {
	if !w.takesTurns() {
		return
	}
	b := w.b
	next := b.AddI(w.mine, 1)
	next = b.Select(b.Compare("eq", next, b.I32(w.Block.Consumers)), b.I32(0), next)
	b.Do(ptx.Arrive, []*ir.Value{next}, "id", 1, "threads", 256)
}

func (w *groups) takesTurns() bool { return w.Block.Turns && w.Block.Consumers > 1 }

// firstTurn is the first consumer's, which the last passes to it, and lastTurn takes the one that is left at the end.
func (w *groups) firstTurn() {
	if w.takesTurns() {
		w.b.If(w.b.Compare("eq", w.mine, w.b.I32(w.Block.Consumers-1)), true, w.pass, nil)
	}
}

func (w *groups) lastTurn() {
	if w.takesTurns() {
		w.b.If(w.b.Compare("eq", w.mine, w.b.I32(0)), true, w.turn, nil)
	}
}

// skip waits for blocks of columns that this consumer has nothing to do with, and gives them back.
func (w *groups) skip(from, end *ir.Value, ring slot) slot {
	b := w.b
	out := b.For(from, end, b.I32(1), true, ring.values(), func(_ *ir.Value, s []*ir.Value) []*ir.Value {
		ring := slot{s[0], s[1]}
		w.wait(full, ring)
		w.release(empty, ring)
		w.pass()
		w.turn()
		return w.after(ring, w.Block.Stages).values()
	})
	return slot{out[0], out[1]}
}
