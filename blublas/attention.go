package blublas

import (
	"fmt"
	"hash/fnv"
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// TF32x3 is float32 by three tf32 products of the large and small parts of both operands (Ootomo and Yokota, arXiv
// 2203.03341): for attention, whose operands are in registers.
const TF32x3 Precision = "tf32x3"

// FP16 is float32 rounded to one float16 plane of FP16x3: as many bits as tf32 has, at twice its rate. For attention.
const FP16 Precision = "fp16"

// Attention describes the kernels of softmax(scale * q k^T) v and its gradients, for tensor cores that a warp feeds
// (mma.sync, every target). Scores are never stored: a block has some rows of one head and goes over the columns they meet,
// as in FlashAttention-2 (Dao, arXiv 2307.08691). Nothing is added atomically: the gradients of queries and those of
// keys and values are two kernels, each computing the scores again, so that sums have one order.
type Attention struct {
	Batch, Heads, KeyHeads int // KeyHeads divides Heads
	Queries, Keys          int
	Features               int // of a query, a key and a value
	Causal                 bool
	Scale                  float64
	Precision              Precision // BF16: tensors of bf16. TF32, TF32x3: of f32
	Target                 string

	// How the tensors lie in memory. A gradient's tensor has its own.
	Q, K, V, O, DO, DQ, DK, DV Strides
	Sums                       ColumnSums // of the gradients
	LSE                        Strides    // of the logarithms of sums, a number a position: Row is 1. Without any they follow one another

	Block AttentionBlock // see Blocks
	Guard Guard          // which heads it computes: of those that AttentionSplit found unfit for planes
}

// AttentionKernel is one of the three.
type AttentionKernel int

// The kernels.
const (
	AttentionForward AttentionKernel = iota
	AttentionGradQueries
	AttentionGradKeys
)

// Blocks lists what is worth trying for a kernel, the likely best first: shapes that ptxas keeps in registers at 64 features.
// 32 rows a warp halve what it reads of shared memory for each product; 16 rows leave room for more blocks. Which is best
// is to be measured. Blocks of warpgroups come first where there are any.
func (a Attention) Blocks(kernel AttentionKernel) []AttentionBlock {
	if a.Target == ptx.SM90A && a.Features <= 128 && a.Features%16 == 0 {
		return append(a.groupBlocks(kernel), a.warpBlocks(kernel)...)
	}
	return a.warpBlocks(kernel)
}

// groupBlocks is blocks of warpgroups.
func (a Attention) groupBlocks(kernel AttentionKernel) []AttentionBlock {
	group := func(consumers, columns, stages int, held bool) AttentionBlock {
		return AttentionBlock{Tiles: 1, Columns: columns, Stages: stages, PerSM: 1, Consumers: consumers, Held: held}
	}
	ahead := func(consumers, columns, stages int, held bool) AttentionBlock {
		b := group(consumers, columns, stages, held)
		b.Ahead = true
		return b
	}
	turns := func(b AttentionBlock) AttentionBlock {
		b.Turns = true
		return b
	}
	staged := func(b AttentionBlock) AttentionBlock {
		b.Staged = true
		return b
	}
	wide := a.Features > 64
	switch {
	case a.Precision == FP16x3 && kernel == AttentionForward && wide:
		return []AttentionBlock{group(2, 64, 2, false)}
	case a.Precision == FP16x3 && kernel == AttentionForward:
		return a.longFirst(group(3, 64, 2, true), turns(ahead(2, 64, 4, true)), ahead(2, 64, 4, true), group(2, 64, 3, true))
	case a.Precision == FP16x3 && wide: // two tensors of rows, of columns, and their sums don't fit
		return nil
	case a.Precision == FP16x3 && kernel == AttentionGradQueries:
		return []AttentionBlock{group(2, 64, 4, true), turns(group(2, 64, 4, true)), group(2, 64, 3, false)}
	case a.Precision == FP16x3:
		part := group(2, 64, 3, false)
		part.HeldPart = true
		return []AttentionBlock{part, turns(part), group(2, 64, 4, true), group(2, 64, 3, false)}
	case a.Precision == FP16 && kernel == AttentionForward && wide:
		return []AttentionBlock{turns(ahead(2, 64, 4, true)), ahead(2, 64, 4, true), group(2, 64, 4, true)}
	case a.Precision == FP16 && kernel == AttentionGradKeys && wide: // two sums and an accumulator don't fit
		return nil
	case a.Precision == FP16 && kernel == AttentionForward:
		return a.longFirst(ahead(3, 64, 4, true), turns(ahead(2, 64, 4, true)), ahead(2, 64, 4, true), group(2, 64, 4, true))
	case a.Precision == FP16 && kernel == AttentionGradQueries:
		return []AttentionBlock{group(2, 64, 4, !wide), group(2, 64, 3, !wide), group(2, 64, 2, false)}
	case a.Precision == FP16:
		return []AttentionBlock{group(2, 64, 4, true), group(2, 64, 3, false)}
	case a.Precision != BF16:
		return nil
	case kernel == AttentionForward && wide:
		return []AttentionBlock{turns(ahead(2, 64, 4, true)), ahead(2, 64, 4, true), group(2, 128, 2, false)}
	case kernel == AttentionForward:
		return []AttentionBlock{staged(turns(ahead(2, 128, 4, true))), staged(ahead(2, 128, 4, true)), staged(ahead(3, 64, 4, true)), staged(ahead(2, 64, 4, true)), turns(ahead(2, 128, 4, true))}
	case kernel == AttentionGradQueries && wide:
		return []AttentionBlock{group(2, 64, 3, false), group(2, 64, 3, true), group(2, 64, 2, false)}
	case kernel == AttentionGradQueries:
		return []AttentionBlock{staged(turns(group(2, 64, 4, true))), staged(group(2, 64, 4, true)), staged(group(3, 64, 3, true)), group(2, 64, 4, true)}
	case wide:
		return []AttentionBlock{group(2, 64, 2, false), group(2, 32, 3, false)}
	}
	return []AttentionBlock{staged(turns(group(2, 64, 4, true))), staged(group(2, 64, 4, true)), staged(group(2, 64, 4, false)), group(2, 64, 4, true)}
}

// longQueries is from how many queries on a block of three warpgroups is the first for planes. A step takes 9% less for each of its rows (H200, FP16:
// 5.4 ns for 5.9; FP16x3 8%), but the last of tiles of 192 rows, with a causal mask the longest, has rows beyond the end: 27% more rows and steps
// than tiles of 128 at 1024, 9% at 2048, at most 8% from 4096 on. Measured: 11% less time at 8192 queries (FP16x3 9%), 4% more at 1024 (14%).
const longQueries = 4096

// longFirst puts a block before the others for long sequences, else after them.
func (a Attention) longFirst(long AttentionBlock, others ...AttentionBlock) []AttentionBlock {
	if a.Queries >= longQueries {
		return append([]AttentionBlock{long}, others...)
	}
	return append(others, long)
}

// warpBlocks is blocks of warps.
func (a Attention) warpBlocks(kernel AttentionKernel) []AttentionBlock {
	narrow := []AttentionBlock{{Warps: 4, Tiles: 1, Columns: 64, Stages: 2, PerSM: 2}, {Warps: 4, Tiles: 1, Columns: 32, Stages: 2, PerSM: 2},
		{Warps: 8, Tiles: 1, Columns: 32, Stages: 2, PerSM: 1}}
	switch {
	case a.scaled():
		return nil
	case a.Precision == TF32x3: // each product leaves a sum of its own
		return []AttentionBlock{{Warps: 4, Tiles: 1, Columns: 16, Stages: 2, PerSM: 2}, {Warps: 4, Tiles: 1, Columns: 16, Stages: 3, PerSM: 2},
			{Warps: 8, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}, {Warps: 4, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}}
	case a.Features > 64:
		narrow = []AttentionBlock{{Warps: 4, Tiles: 1, Columns: 32, Stages: 2, PerSM: 1}, {Warps: 4, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}}
	case a.Precision == BF16 && kernel == AttentionForward:
		return append([]AttentionBlock{{Warps: 4, Tiles: 2, Columns: 64, Stages: 2, PerSM: 2}}, narrow...)
	case a.Precision == BF16 || kernel != AttentionGradQueries:
		return append([]AttentionBlock{{Warps: 4, Tiles: 2, Columns: 32, Stages: 2, PerSM: 2}}, narrow...)
	}
	return narrow
}

// Best is the attention with the first of a kernel's blocks that fits a device.
func (a Attention) Best(kernel AttentionKernel, d Device) (Attention, error) {
	err := fmt.Errorf("attention %s: no kernel for %d features on %s", a.Precision, a.Features, a.Target)
	for _, b := range a.Blocks(kernel) {
		a.Block = b
		if err = a.check(kernel, d); err == nil {
			return a, nil
		}
	}
	return a, err
}

// Fitting is Best for each of a kernel's blocks that fits a device, in their order.
func (a Attention) Fitting(kernel AttentionKernel, d Device) []Attention {
	return a.fitting(a.Blocks(kernel), func(a Attention) error { return a.check(kernel, d) })
}

func (a Attention) fitting(blocks []AttentionBlock, check func(Attention) error) (all []Attention) {
	for _, a.Block = range blocks {
		if check(a) == nil {
			all = append(all, a)
		}
	}
	return all
}

// check is Check of one kernel.
func (a Attention) check(kernel AttentionKernel, d Device) error {
	if err := a.Check(d); err != nil || a.Block.Consumers == 0 {
		return err
	}
	return a.checkHopper(kernel, d)
}

// Strides is how a tensor [batch, heads, positions, features] lies in memory, in elements. Features are contiguous.
type Strides struct{ Batch, Head, Row int }

// statistics is the address of a head's numbers, one a query: the logarithms of sums (lse), or another parameter, dense.
func (a Attention) statistics(b *ptx.Builder, param string, batch, head, at *ir.Value) *ir.Value {
	if param == "lse" && a.LSE != (Strides{}) {
		return b.MulWide(b.Add(b.MulI(batch, a.LSE.Batch), b.MulI(head, a.LSE.Head)), 4, at)
	}
	return b.MulWide(b.MulI(b.Add(b.MulI(batch, a.Heads), head), a.Queries), 4, at)
}

// AttentionBlock is a block's share of the work.
type AttentionBlock struct {
	Warps   int // each has Tiles * 16 rows: queries, or keys in the kernel of their gradients
	Tiles   int
	Columns int // that a step takes: keys, or queries
	Stages  int // of the ring of columns in shared memory
	PerSM   int // blocks on a multiprocessor that registers must leave room for

	Consumers int  // warpgroups that multiply with wgmma, of 64 rows each, instead of warps; 0: mma
	Held      bool // warpgroups hold the block's rows in registers
	HeldPart  bool // only the larger of their planes
	Turns     bool // they take turns at beginning products, so that one's are done while another makes weights of its own
	Staged    bool // results of 16 bits go by way of shared memory, a box of a warp's at once
	Ahead     bool // they begin the scores of the next columns before they weight those of the last (forward)
}

// rows is the rows of a block.
func (k AttentionBlock) rows() int {
	if k.Consumers > 0 {
		return 64 * k.Consumers
	}
	return 16 * k.Warps * k.Tiles
}

// size is the bytes of an element of the tensors.
func (a Attention) size() int {
	if a.Precision == BF16 {
		return 2
	}
	return 4
}

// panel is how rows of features lie in shared memory.
func (a Attention) panel(rows int) panel {
	return panel{rows: rows, features: a.Features, size: a.size()}
}

// Check says why the kernels can't be built, or nil. stages of the ring hold two panels of columns each, beside two of rows.
func (a Attention) Check(d Device) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("attention %s %dx%dx%dx%d: "+format, append([]any{a.Precision, a.Batch, a.Heads, a.Queries, a.Features}, args...)...)
	}
	b, size := a.Block, a.size()
	switch {
	case min(a.Batch, a.Heads, a.KeyHeads, a.Queries, a.Keys) < 1:
		return fail("every extent must be at least 1")
	case a.Heads%a.KeyHeads != 0:
		return fail("%d heads can't share %d key heads", a.Heads, a.KeyHeads)
	case a.Precision != BF16 && a.Precision != TF32 && a.Precision != TF32x3 && (!a.scaled() || b.Consumers == 0):
		return fail("no such precision for attention")
	case !(a.Scale > 0) || math.IsInf(a.Scale, 1):
		return fail("scale %v; it must be positive", a.Scale)
	case a.Features*size%32 != 0 || a.Features*size > 512 || a.Features < 16:
		return fail("a row of %d bytes; it must be 16 features at least and a multiple of 32 bytes, at most 512", a.Features*size)
	case a.Target == ptx.SM90A && d.Target != ptx.SM90A:
		return fail("made for %s, which %s is not", a.Target, d.Name)
	case b.Consumers == 0 && (b.Warps < 1 || b.Warps > 8 || b.Tiles < 1 || b.Tiles > 2 || b.Columns < 16 || b.Columns%16 != 0 || b.Columns > 128 || b.Stages < 1 || b.Stages > 4):
		return fail("a block of %+v", b)
	}
	for _, s := range []Strides{a.Q, a.K, a.V, a.O, a.DO, a.DQ, a.DK, a.DV} {
		if s.Row*size%16 != 0 || s.Head*size%16 != 0 || s.Batch*size%16 != 0 {
			return fail("rows are %d, heads %d and batches %d bytes apart; copies of 16 bytes need multiples of that", s.Row*size, s.Head*size, s.Batch*size)
		}
		if s.Row*max(a.Queries, a.Keys)*size >= 1<<31 {
			return fail("a head's rows are %d bytes long; offsets within a head have 31 bits", s.Row*max(a.Queries, a.Keys)*size)
		}
	}
	if a.Batch*a.Heads*max(ceil(a.Queries, b.rows()), ceil(a.Keys, b.rows())) >= 1<<31 || a.Batch*a.Heads*a.Queries >= 1<<31 {
		return fail("too many rows: indices have 31 bits")
	}
	if sequences := ceil(max(a.Queries, a.Keys), AttentionSumRows); a.Batch*sequences*a.Sums.Pitch >= 1<<31 {
		return fail("%d sums a row; indices have 31 bits", a.Sums.Pitch)
	}
	if n, limit := a.sharedBytes(), min(int64(d.SharedPerBlock), ptx.SharedLimit(a.Target)); b.Consumers == 0 && int64(n) > limit {
		return fail("%d bytes of shared memory, a block has %d", n, limit)
	}
	return nil
}

// sharedBytes is the shared memory of the kernel that needs most: two panels of rows, and for each stage two of columns and
// two numbers a column.
func (a Attention) sharedBytes() int {
	return 2*a.panel(a.Block.rows()).bytes() + a.Block.Stages*a.stageBytes()
}

func (a Attention) stageBytes() int {
	return 2*a.panel(a.Block.Columns).bytes() + ceil(8*a.Block.Columns, rowBytes)*rowBytes
}

// name identifies a kernel among those of a program; strides, target and scale are in it as a checksum.
func (a Attention) name(what string) string {
	s := fmt.Sprintf("%s_%s_%dx%dof%dx%dx%dx%d_w%dt%dc%ds%d", what, a.Precision, a.Batch, a.Heads, a.KeyHeads, a.Queries, a.Keys, a.Features,
		a.Block.Warps, a.Block.Tiles, a.Block.Columns, a.Block.Stages)
	if a.Block.Consumers > 0 {
		s += fmt.Sprintf("g%d", a.Block.Consumers)
		if a.Block.Ahead {
			s += "a"
		}
	}
	if a.Causal {
		s += "_causal"
	}
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%+v", a)
	return symbol(fmt.Sprintf("%s_%016x", s, sum.Sum64()))
}

// attention is a kernel being built, from the point of view of one warp: it has Tiles * 16 rows of the block.
type attention struct {
	Attention
	b         *ptx.Builder
	tid, lane *ir.Value
	group     *ir.Value // lane / 4: the row of a fragment
	quad      *ir.Value // lane % 4: its pair of columns
	warpRow   *ir.Value // the warp's first row in the block
	shared    *ir.Value
	first     *ir.Value // the block's first row
	extent    *ir.Value // how many rows there are
	whole     bool      // all rows of all blocks are among them
	head      *ir.Value // of queries, or of keys in the kernel of their gradients
	batch     *ir.Value
	args      map[string]*ir.Value
	reads     *reads

	rowsAreKeys bool
	block       *ir.Value // the first block of rows of this block of threads
	blocks      int       // of rows
	apart       int       // of this block's
}

// start makes the kernel. Rows are `extent` long in each of `heads` heads; later rows come first with a causal mask on
// queries, since they have most to do.
func (a Attention) start(at *ir.Builder, d Device, what string, extent, heads int, params ...string) (*Kernel, *attention) {
	if a.Guard != Always {
		params = append(params, "unfit")
	}
	k := &Kernel{Name: a.name(what), Threads: 32 * a.Block.Warps, Cluster: 1, Shared: a.sharedBytes()}
	w := &attention{Attention: a, args: map[string]*ir.Value{}, rowsAreKeys: what == "attention_grad_keys", blocks: ceil(extent, a.Block.rows())}
	w.apart = w.blocks
	if a.Guard != Always { // most often nothing is to be done, which costs what it takes to start and end blocks
		w.apart = min(w.blocks, ceil(4*d.SMs, heads*a.Batch))
	}
	k.Grid = w.apart * heads * a.Batch
	w.b = a.enter(at, k, params, w.args)
	b := w.b
	w.tid, w.shared = b.Special("tid.x"), b.SharedBase()
	w.lane = b.Binary(ptx.And, w.tid, b.I32(31))
	w.group, w.quad = b.DivI(w.lane, 4), b.Binary(ptx.And, w.lane, b.I32(3))
	w.warpRow = b.MulI(b.DivI(w.tid, 32), 16*a.Block.Tiles)
	number := b.Special("ctaid.x")
	w.block = b.DivI(number, heads*a.Batch)
	within := b.Sub(number, b.MulI(w.block, heads*a.Batch))
	w.batch = b.DivI(within, heads)
	w.head = b.Sub(within, b.MulI(w.batch, heads))
	w.extent, w.whole = b.I32(extent), extent%a.Block.rows() == 0
	w.reads = newReads(w, a.panel(1))
	return k, w
}

// body writes what the kernel does with a block of rows, and ends the kernel. With a guard a block of threads goes through
// several blocks of a head that the guard lets it compute.
func (w *attention) body(do func()) {
	b := w.b
	at := func(block *ir.Value) {
		if w.Causal && !w.rowsAreKeys {
			block = b.Sub(b.I32(w.blocks-1), block)
		}
		w.first = b.MulI(block, w.Block.rows())
		do()
	}
	if w.Guard == Always {
		at(w.block)
	} else {
		b.If(w.runs(), true, func() {
			b.For(w.block, b.I32(w.blocks), b.I32(w.apart), true, nil, func(block *ir.Value, _ []*ir.Value) []*ir.Value {
				at(block)
				b.Do(ptx.CopyWait, nil, "pending", 0)
				b.Do(ptx.Sync, nil) // everyone is done with what the next block's copies write over
				return nil
			})
		}, nil)
	}
	b.Do(ptx.Return, nil)
}

// runs is whether the guard lets the kernel compute the tile's head.
func (w *attention) runs() *ir.Value {
	if w.Guard == WhenSet {
		return w.b.Unary(ptx.Not, w.fits())
	}
	return w.fits()
}

// fits is whether AttentionSplit's planes hold what float32 does, of the tile's key head and the heads that share it.
func (w *attention) fits() *ir.Value {
	b, head := w.b, w.head
	if !w.rowsAreKeys {
		head = w.keyHead()
	}
	word := b.Load(b.MulWide(b.Add(b.MulI(w.batch, w.KeyHeads), head), 4, w.args["unfit"]), b.Ctx.I32(), 1, ptx.Access{Space: "global"})
	return b.Compare("eq", word, b.I32(0))
}

// base is where a head's rows start.
func (w *attention) base(param string, s Strides, head *ir.Value) *ir.Value {
	b := w.b
	at := b.MulWide(w.batch, s.Batch*w.size(), w.args[param])
	return b.MulWide(head, s.Head*w.size(), at)
}

// keyHead is the head of keys that the block's head of queries reads.
func (w *attention) keyHead() *ir.Value { return divided(w.b, w.head, w.Heads/w.KeyHeads) }

// scale is what scores are multiplied by, in the unit of exponents: of e in TF32x3 and FP16x3, which round nothing more than
// float32 does; else of 2.
func (a Attention) scale() float64 { return a.Scale * a.unit() }

// unit is how many of the unit are in a natural exponent.
func (a Attention) unit() float64 {
	if a.Precision == TF32x3 || a.Precision == FP16x3 {
		return 1
	}
	return math.Log2E
}

// exponential is the exponential of scale * x + y, y in the unit of exponents. Less than 2^-126 is 0.
func (w *attention) exponential(x, y *ir.Value) *ir.Value {
	b := w.b
	z := b.FMA(x, b.F32(w.scale()), y)
	if w.unit() == 1 {
		z = b.Binary(ptx.Mul, z, b.F32(math.Log2E))
	}
	return b.Unary(ptx.Exp2Flushed, z)
}

// offset is how many keys more than queries there are: with a mask, query s sees the keys up to s + offset.
func (a Attention) offset() int { return a.Keys - a.Queries }

// bring starts copying rows [from, from+p.rows) of a head to a panel in shared memory; rows from `extent` on are zeros, and
// so are the features that only fill a row.
func (w *attention) bring(p panel, base *ir.Value, pitch int, from *ir.Value, extent int, to *ir.Value) {
	b, threads := w.b, 32*w.Block.Warps
	columns := p.width() / 16
	for done := 0; done < p.rows*columns; done += threads {
		index := b.AddI(w.tid, done)
		row, column := b.DivI(index, columns), b.RemI(index, columns)
		copy := func() {
			at := b.Add(from, row)
			inside := b.Compare("lo", at, b.I32(extent))
			if p.features*p.size < p.width() {
				inside = b.And(inside, b.Compare("lo", column, b.I32(p.features*p.size/16)))
			}
			count := b.Select(inside, b.I32(16), b.I32(0))
			index := b.Add(b.MulI(at, pitch*p.size), b.MulI(column, 16))
			source := b.MulWide(b.Select(inside, index, b.I32(0)), 1, base) // an address there is, even where nothing is read
			b.Do(ptx.CopyAsync, []*ir.Value{b.Add(to, p.place(b, row, column)), source, count}, "bytes", 16)
		}
		if done+threads <= p.rows*columns {
			copy()
		} else {
			b.If(b.Compare("lo", index, b.I32(p.rows*columns)), false, copy, nil)
		}
	}
}

// quads combines the numbers of the four lanes that share a row.
func (w *attention) quads(x *ir.Value, combine *ir.OpDef) *ir.Value {
	b := w.b
	for _, d := range []int{1, 2} {
		x = b.Binary(combine, x, b.Do(ptx.Shuffle, []*ir.Value{x, b.I32(d)}, "mode", "bfly").Result(0))
	}
	return x
}

// row is the position of row g (+8 where later) of a warp's tile.
func (w *attention) row(tile int, later bool) *ir.Value {
	d := 16 * tile
	if later {
		d += 8
	}
	return w.b.AddI(w.b.Add(w.b.Add(w.first, w.warpRow), w.group), d)
}

// inside is whether there is a row of a block.
func (w *attention) inside(row *ir.Value) *ir.Value {
	if w.whole {
		return w.b.True()
	}
	return w.b.Compare("lo", row, w.extent)
}

// columns is the ring of stages that a kernel goes through: blocks of columns, their number from 0 to `end`.
type columns struct {
	w     *attention
	end   *ir.Value
	bring func(block, stage *ir.Value) // starts the copies of a block
}

// fetch starts the copies of a block, if there is one, and makes them a group.
func (c columns) fetch(block, offset *ir.Value) {
	b := c.w.b
	b.If(b.Compare("lt", block, c.end), true, func() { c.bring(block, b.Add(c.w.ringStart(), offset)) }, nil)
	b.Do(ptx.CopyCommit, nil)
}

// prime starts the copies of the first blocks; it returns the offset of the first in the ring.
func (c columns) prime(from *ir.Value) *ir.Value {
	for s := range c.w.Block.Stages - 1 {
		c.fetch(c.w.b.AddI(from, s), c.w.b.I32(s*c.w.stageBytes()))
	}
	return c.w.b.I32(0)
}

// each goes over blocks from `from` to `to`, the first of which lies at an offset of the ring. The body gets the block's
// number, where its stage lies and what is carried. What follows may go on with the offset that is returned.
func (c columns) each(from, to, offset *ir.Value, carried []*ir.Value, body func(block, stage *ir.Value, carried []*ir.Value) []*ir.Value) (next *ir.Value, out []*ir.Value) {
	w, b := c.w, c.w.b
	all := b.For(from, to, b.I32(1), true, append([]*ir.Value{offset}, carried...), func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		at, ahead := carried[0], w.Block.Stages-1
		if ahead == 0 {
			b.Do(ptx.Sync, nil) // everyone is done with the only stage
			c.fetch(i, at)
		}
		b.Do(ptx.CopyWait, nil, "pending", max(ahead-1, 0))
		b.Do(ptx.Sync, nil) // the block is here for all, and everyone is done with the stage that is filled now
		if ahead > 0 {
			c.fetch(b.AddI(i, ahead), w.wrap(b.AddI(at, ahead*w.stageBytes())))
		}
		values := body(i, b.Add(w.ringStart(), at), carried[1:])
		return append([]*ir.Value{w.wrap(b.AddI(at, w.stageBytes()))}, values...)
	})
	return all[0], all[1:]
}

// wrap brings an offset in the ring back into it.
func (w *attention) wrap(offset *ir.Value) *ir.Value {
	b, n := w.b, w.Block.Stages*w.stageBytes()
	return b.Select(b.Compare("ge", offset, b.I32(n)), b.AddI(offset, -n), offset)
}

// rowsLanded waits for copies made before the ring's, by all.
func (w *attention) rowsLanded() {
	w.b.Do(ptx.CopyWait, nil, "pending", w.Block.Stages-1)
	w.b.Do(ptx.Sync, nil)
}

// ringStart is where the ring lies: after the two panels of rows.
func (w *attention) ringStart() *ir.Value {
	return w.b.AddI(w.shared, 2*w.panel(w.Block.rows()).bytes())
}

// zeros is accumulators of 16 x n numbers for each tile of the warp.
func (w *attention) zeros(n int) []*ir.Value {
	var acc []*ir.Value
	for range w.Block.Tiles * n / 8 {
		acc = append(acc, w.b.Do(ptx.Fill, []*ir.Value{w.b.F32(0)}, "count", 4).Result(0))
	}
	return acc
}

// rowFactor is what the numbers of a thread's row are multiplied by; nil is 1, which the assembler would multiply by.
type rowFactor func(tile int, later bool) *ir.Value

func (w *attention) times(x *ir.Value, f rowFactor, tile int, later bool) *ir.Value {
	if f == nil {
		return x
	}
	return w.b.Binary(ptx.Mul, x, f(tile, later))
}

// storeRows writes 16 x Features numbers of each tile, times the factors of their rows, as elements of the tensors.
func (w *attention) storeRows(base *ir.Value, pitch int, acc []*ir.Value, factor rowFactor) {
	b, size := w.b, w.size()
	perTile := w.Features / 8
	for t := range w.Block.Tiles {
		for _, later := range []bool{false, true} {
			row := w.row(t, later)
			inside := w.inside(row)
			index := b.Add(b.MulI(row, pitch*size), b.MulI(w.quad, 2*size))
			at := b.MulWide(b.Select(inside, index, b.I32(0)), 1, base)
			for j := range perTile {
				i := 0
				if later {
					i = 2
				}
				x, y := b.Extract(acc[t*perTile+j], i), b.Extract(acc[t*perTile+j], i+1)
				x, y = w.times(x, factor, t, later), w.times(y, factor, t, later)
				access := ptx.Access{Space: "global", Offset: 8 * j * size, If: inside}
				if size == 2 {
					b.Store(at, b.Pack("bf16", x, y), access)
				} else {
					b.Store(at, b.Vector(x, y), access)
				}
			}
		}
	}
}

// enter makes a kernel of pointers, and notes which argument is which.
func (a Attention) enter(at *ir.Builder, k *Kernel, params []string, args map[string]*ir.Value) *ptx.Builder {
	var types []ir.Type
	for _, p := range params {
		k.Params = append(k.Params, Param{Name: p})
		types = append(types, at.Ctx.I64())
	}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: a.Target, Threads: k.Threads, BlocksPerSM: a.Block.PerSM, Shared: k.Shared}, types...)
	k.Op = b.Kernel
	for i, p := range params {
		args[p] = k.Op.Body().Arg(i)
	}
	return b
}
