package blublas

import (
	"fmt"
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Attention on the float32 units (FP32Strict) has kernels of its own: SIMTForward; SIMTDeltas, SIMTGrad and SIMTSumQueries. A warp
// has 16 rows of the block, of which a thread has every second, 8, and one of 16 columns in a row: products of rows by
// columns are 8 x Columns/16 numbers a thread, those by features 8 x 4 or 8 x 8. Weights and gradients of scores go through shared memory,
// where the threads of a warp find those of its rows.
//
// Every product is a loop over 16-byte columns: 8 reads of rows and one read for each of the thread's columns (4 numbers each) for 32
// multiply-adds per column.

// SIMTBlocks is Blocks for the kernels on float32 units; of the gradients' kernels only SIMTGrad has blocks.
func (a Attention) SIMTBlocks(kernel AttentionKernel) []AttentionBlock {
	block := func(warps, columns, perSM int) AttentionBlock {
		return AttentionBlock{Warps: warps, Tiles: 1, Columns: columns, Stages: 1, PerSM: perSM}
	}
	switch {
	case kernel == AttentionForward && a.Features > 64:
		return []AttentionBlock{block(4, 64, 2), block(4, 64, 1)}
	case kernel == AttentionForward:
		return []AttentionBlock{block(4, 128, 2), block(4, 64, 2), block(8, 128, 1)}
	case a.Features > 64:
		return []AttentionBlock{block(8, 64, 1), block(4, 64, 1)}
	}
	return []AttentionBlock{block(8, 128, 1), block(4, 64, 2), block(4, 64, 1)}
}

// SIMTBest is Best for the kernels on float32 units.
func (a Attention) SIMTBest(kernel AttentionKernel, d Device) (Attention, error) {
	var err error
	for _, b := range a.SIMTBlocks(kernel) {
		a.Block = b
		if err = a.checkSIMT(kernel, d); err == nil {
			return a, nil
		}
	}
	return a, err
}

// SIMTFitting is Fitting for the kernels on float32 units.
func (a Attention) SIMTFitting(kernel AttentionKernel, d Device) []Attention {
	return a.fitting(a.SIMTBlocks(kernel), func(a Attention) error { return a.checkSIMT(kernel, d) })
}

func (a Attention) checkSIMT(kernel AttentionKernel, d Device) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("attention %s %dx%dx%dx%d: "+format, append([]any{a.Precision, a.Batch, a.Heads, a.Queries, a.Features}, args...)...)
	}
	b := a.Block
	switch {
	case min(a.Batch, a.Heads, a.KeyHeads, a.Queries, a.Keys) < 1:
		return fail("every extent must be at least 1")
	case a.Heads%a.KeyHeads != 0:
		return fail("%d heads can't share %d key heads", a.Heads, a.KeyHeads)
	case a.Precision != FP32Strict:
		return fail("the float32 units multiply float32 only")
	case !(a.Scale > 0) || math.IsInf(a.Scale, 1):
		return fail("scale %v; it must be positive", a.Scale)
	case a.Features%4 != 0 || a.Features < 4 || a.Features > 128:
		return fail("%d features; a multiple of 4 up to 128", a.Features)
	case a.Target == ptx.SM90A && d.Target != ptx.SM90A:
		return fail("made for %s, which %s is not", a.Target, d.Name)
	case b.Warps != 4 && b.Warps != 8 || b.Tiles != 1 || b.Columns != 64 && b.Columns != 128 || b.Stages != 1 || b.PerSM < 1:
		return fail("a block of %+v", b)
	}
	for _, s := range []Strides{a.Q, a.K, a.V, a.O, a.DO, a.DQ, a.DK, a.DV} {
		if s.Row%4 != 0 || s.Head%4 != 0 || s.Batch%4 != 0 {
			return fail("rows are %d, heads %d and batches %d elements apart; accesses of 16 bytes need multiples of 4", s.Row, s.Head, s.Batch)
		}
		if 4*s.Row*max(a.Queries, a.Keys) >= 1<<31 {
			return fail("a head's rows are %d bytes long; offsets within a head have 31 bits", 4*s.Row*max(a.Queries, a.Keys))
		}
	}
	if MostParts*a.Batch*a.Heads*max(a.Queries, a.Keys) >= 1<<31 {
		return fail("too many rows: indices have 31 bits")
	}
	if n, limit := a.simtPlan(kernel).bytes, min(int64(d.SharedPerBlock), ptx.SharedLimit(a.Target)); int64(n) > limit {
		return fail("%d bytes of shared memory, a block has %d", n, limit)
	}
	return nil
}

// simtPlan is where a kernel's panels and its staging lie in shared memory, and its size.
type simtPlan struct {
	rows, columns [2]int // panels of the block's rows (the second: gradients' only) and of a step's columns
	staging       int    // the block's rows by a step's columns
	numbers       int    // lse and delta of a step's columns
	bytes         int
}

func (a Attention) simtPlan(kernel AttentionKernel) (p simtPlan) {
	take := func(n int) int {
		at := p.bytes
		p.bytes += n
		return at
	}
	rows, columns := a.Block.rows()*a.simtPitch(), a.Block.Columns*a.simtPitch()
	p.rows[0] = take(rows)
	if kernel != AttentionForward {
		p.rows[1] = take(rows)
	}
	p.columns = [2]int{take(columns), take(columns)}
	p.staging = take(4 * a.Block.rows() * a.Block.Columns)
	if kernel != AttentionForward {
		p.numbers = take(8 * a.Block.Columns)
	}
	return p
}

// simtPitch is the bytes of a row of features in shared memory: a power of two, all banks at least. Features beyond the last are zeros.
func (a Attention) simtPitch() int {
	pitch := rowBytes
	for pitch < 4*a.Features {
		pitch *= 2
	}
	return pitch
}

// simtAttention is a kernel being built.
type simtAttention struct {
	Attention
	b            *ptx.Builder
	plan         simtPlan
	args         map[string]*ir.Value
	shared, tid  *ir.Value
	warp         *ir.Value
	half, lane   *ir.Value // of a warp, and a thread's number in it
	split        int       // threads that share features, each with the products of its part of what is contracted
	share        *ir.Value // which of them
	chunk        *ir.Value // first 16-byte column of a thread's features
	batch, head  *ir.Value
	first        *ir.Value // the block's first row
	rowOfThread  *ir.Value // a thread's first row in the block
	perThread    int       // columns of a thread
	featureParts int       // fours of features of a thread
}

// simtRows is the rows of a thread: every second of a warp's 16.
const simtRows = 8

// simtStart makes a kernel; split is among how many threads products by features are divided, for rows of up to 128 and 256 bytes.
func (a Attention) simtStart(at *ir.Builder, what string, kernel AttentionKernel, grid int, split [2]int, params ...string) (*Kernel, *simtAttention) {
	k := &Kernel{Name: a.name(what), Threads: 32 * a.Block.Warps, Cluster: 1, Grid: grid}
	w := &simtAttention{Attention: a, plan: a.simtPlan(kernel), args: map[string]*ir.Value{}, split: 1, perThread: a.Block.Columns / 16}
	k.Shared = w.plan.bytes
	w.b = a.enter(at, k, params, w.args)
	b := w.b
	w.tid, w.shared = b.Special("tid.x"), b.SharedBase()
	w.warp, w.half, w.lane = b.DivI(w.tid, 32), b.RemI(b.DivI(w.tid, 16), 2), b.RemI(w.tid, 16)
	if n := a.simtPitch() / rowBytes; n <= 2 {
		w.split = split[n-1]
	}
	w.chunk, w.share = b.RemI(w.lane, 16/w.split), b.DivI(w.lane, 16/w.split)
	w.featureParts = a.simtPitch() * w.split / 256
	w.rowOfThread = b.Add(b.MulI(w.warp, 16), w.half)
	return k, w
}

// simtPanel is rows of features in shared memory; 16-byte columns are exclusive-ored with the row's last bits: as many as keep apart
// what is read at one time. Rows of a block: one, the two rows of a warp's halves. Columns of a step, whose 16 rows the lanes of
// a half read: three. Rows that are read along only: none.
type simtPanel struct {
	at      *ir.Value
	rows    int
	swizzle int
}

func (w *simtAttention) panel(offset, rows, swizzle int) simtPanel {
	return simtPanel{w.b.AddI(w.shared, offset), rows, swizzle}
}

// base is where a head's rows start.
func (w *simtAttention) base(param string, s Strides, head *ir.Value) *ir.Value {
	b := w.b
	return b.MulWide(head, 4*s.Head, b.MulWide(w.batch, 4*s.Batch, w.args[param]))
}

// statistics is where the numbers of a head's queries start in a tensor [batch, heads, queries].
func (w *simtAttention) statistics(param string, head *ir.Value) *ir.Value {
	return w.Attention.statistics(w.b, param, w.batch, head, w.args[param])
}

// bring starts copying rows [from, from+rows) of a head to a panel; rows from `extent` on, and features that only fill a row, are
// zeros.
func (w *simtAttention) bring(p simtPanel, base *ir.Value, pitch int, from *ir.Value, extent int) {
	b, threads, width := w.b, 32*w.Block.Warps, w.simtPitch()
	columns := width / 16
	whole := extent%p.rows == 0 && 4*w.Features == width
	row, column := b.DivI(w.tid, columns), b.RemI(w.tid, columns)
	step := threads / columns // rows from one copy of a thread to the next
	source := b.MulWide(b.Add(b.MulI(b.Add(from, row), 4*pitch), b.MulI(column, 16)), 1, base)
	at := map[int]*ir.Value{}
	for done := 0; done < p.rows; done += step {
		turn := done & p.swizzle // of rows `done` after the first; steps are powers of two
		if at[turn] == nil {
			place := b.Binary(ptx.Xor, column, b.Binary(ptx.And, b.AddI(row, turn), b.I32(p.swizzle)))
			at[turn] = b.Add(p.at, b.Add(b.MulI(row, width), b.MulI(place, 16)))
		}
		if whole {
			b.Do(ptx.CopyAsync, []*ir.Value{at[turn], source}, "bytes", 16, "offset", done*width, "from_offset", 4*done*pitch)
			continue
		}
		inside := b.And(b.Compare("lo", b.AddI(b.Add(from, row), done), b.I32(extent)), b.Compare("lo", column, b.I32(w.Features/4)))
		index := b.Add(b.MulI(b.AddI(b.Add(from, row), done), 4*pitch), b.MulI(column, 16))
		there := b.MulWide(b.Select(inside, index, b.I32(0)), 1, base) // an address there is, even where nothing is read
		b.Do(ptx.CopyAsync, []*ir.Value{at[turn], there, b.Select(inside, b.I32(16), b.I32(0))}, "bytes", 16, "offset", done*width)
	}
}

// read4 reads four numbers of shared memory.
func (w *simtAttention) read4(at *ir.Value, offset int) []*ir.Value {
	return w.b.Scalars(w.b.Load(at, w.b.Ctx.F32(), 4, ptx.Access{Space: "shared", Offset: offset}))
}

// zeros is n accumulators of `rows` numbers.
func (w *simtAttention) zeros(n, rows int) []*ir.Value {
	acc := make([]*ir.Value, n)
	for i := range acc {
		acc[i] = w.b.Do(ptx.Fill, []*ir.Value{w.b.F32(0)}, "count", rows).Result(0)
	}
	return acc
}

// outer adds the products of x[i][k] and the numbers y to an accumulator.
func (w *simtAttention) outer(x [][]*ir.Value, k int, y []*ir.Value, acc *ir.Value) *ir.Value {
	col := make([]*ir.Value, len(x))
	for i := range x {
		col[i] = x[i][k]
	}
	return w.b.Do(ptx.OuterFMA, []*ir.Value{w.b.Vector(col...), w.b.Vector(y...), acc}).Result(0)
}

// scores is a product of rows by columns of a thread: by columns, then rows.
type scores [][]*ir.Value

// sums is products of a thread's rows by features: for every four features an accumulator, by rows, then features.
type sums []*ir.Value

// at is feature 4 f + k of row i.
func (w *simtAttention) at(s sums, i, f, k int) *ir.Value { return w.b.Extract(s[f], 4*i+k) }

// unroll is how many 16-byte columns an iteration of a product's loop takes: enough to read ahead of multiplying, and few enough
// that the loops of a kernel stay in the instruction caches.
const unroll = 4

// product contracts the features of the block's rows with those of a step's columns. Column j of a thread is row 16 j + lane of
// the panel.
func (w *simtAttention) product(rows, columns simtPanel) scores {
	b, pitch := w.b, w.simtPitch()
	var left [unroll]*ir.Value
	for u := range left {
		left[u] = b.Add(b.Add(rows.at, b.MulI(w.rowOfThread, pitch)), b.MulI(b.Binary(ptx.Xor, w.half, b.I32(u)), 16))
	}
	right := b.Add(b.Add(columns.at, b.MulI(w.lane, pitch)), b.MulI(b.Binary(ptx.And, w.lane, b.I32(columns.swizzle)), 16))
	end := ceil(w.Features/4, unroll) * unroll * 16
	pairs := b.For(b.I32(0), b.I32(end), b.I32(16*unroll), true, w.zeros(w.perThread/2, 2*simtRows), func(at *ir.Value, acc []*ir.Value) []*ir.Value {
		for u := range unroll {
			x, from := make([][]*ir.Value, simtRows), b.Add(left[u], at)
			for i := range x {
				x[i] = w.read4(from, 2*i*pitch)
			}
			from = b.Binary(ptx.Xor, right, b.AddI(at, 16*u))
			for j := range acc {
				y, z := w.read4(from, 32*j*pitch), w.read4(from, (32*j+16)*pitch)
				for k := range y {
					acc[j] = w.outer(x, k, []*ir.Value{y[k], z[k]}, acc[j])
				}
			}
		}
		return acc
	})
	x := make(scores, w.perThread)
	for j := range x {
		for i := range simtRows {
			x[j] = append(x[j], b.Extract(pairs[j/2], 2*i+j%2))
		}
	}
	return x
}

// staged is where the 16-byte column of a thread's first row lies in the staging: that of its lane in the columns 4 g to 4 g + 3
// of all lanes, for every g.
func (w *simtAttention) staged() *ir.Value {
	b := w.b
	return b.Add(b.Add(b.AddI(w.shared, w.plan.staging), b.MulI(w.rowOfThread, 4*w.Block.Columns)), b.MulI(b.Binary(ptx.Xor, w.lane, w.half), 16))
}

// stagedOffset is that of row i and column 4 g of a thread.
func (w *simtAttention) stagedOffset(i, g int) int { return 8*i*w.Block.Columns + 256*g }

// stage writes a product's numbers, for gather.
func (w *simtAttention) stage(x scores) {
	b, at := w.b, w.staged()
	for i := range simtRows {
		for g := range w.perThread / 4 {
			var four []*ir.Value
			for e := range 4 {
				four = append(four, x[4*g+e][i])
			}
			b.Store(at, b.Vector(four...), ptx.Access{Space: "shared", Offset: w.stagedOffset(i, g)})
		}
	}
}

// gather adds to the features of the block's rows: staged numbers times the rows of a step's panel. Column t of lanes, four rows
// of the panel 16 apart, after column; a thread of part p takes its share of them.
func (w *simtAttention) gather(panel simtPanel, acc sums) sums {
	b, pitch := w.b, w.simtPitch()
	share := 16 / w.split // of the lanes' columns
	unroll := unroll
	if w.featureParts > 1 { // twice as much for each
		unroll /= 2
	}
	left := make([]*ir.Value, unroll)
	for u := range left {
		at := b.Add(b.AddI(w.shared, w.plan.staging), b.MulI(w.rowOfThread, 4*w.Block.Columns))
		left[u] = b.Add(at, b.Add(b.MulI(b.Binary(ptx.Xor, w.half, b.I32(u)), 16), b.MulI(w.share, 16*share)))
	}
	right := b.Add(panel.at, b.MulI(w.chunk, 16))
	row := b.MulI(w.share, share*pitch)
	return b.For(b.I32(0), b.I32(share), b.I32(unroll), true, acc, func(t *ir.Value, acc []*ir.Value) []*ir.Value {
		for u := range unroll {
			here := b.AddI(t, u)
			turned := b.Binary(ptx.Xor, right, b.MulI(b.Binary(ptx.And, here, b.I32(panel.swizzle)), 16))
			from := b.Add(turned, b.Add(row, b.MulI(here, pitch)))
			fromLeft := b.Add(left[u], b.MulI(t, 16))
			for g := range w.perThread / 4 {
				x := make([][]*ir.Value, simtRows)
				for i := range x {
					x[i] = w.read4(fromLeft, w.stagedOffset(i, g))
				}
				for e := range 4 {
					for f := range w.featureParts {
						acc[f] = w.outer(x, e, w.read4(from, 16*(4*g+e)*pitch+16*share*f), acc[f])
					}
				}
			}
		}
		return acc
	})
}

// combine adds up what the threads that share features have.
func (w *simtAttention) combine(acc sums) sums {
	if w.split == 1 {
		return acc
	}
	b := w.b
	return each(acc, func(v *ir.Value) *ir.Value {
		return b.Vector(each(b.Scalars(v), func(x *ir.Value) *ir.Value { return w.across(x, 8, ptx.Add) })...)
	})
}

// across combines a number with that of the thread whose lane differs in a bit.
func (w *simtAttention) across(x *ir.Value, bit int, combine *ir.OpDef) *ir.Value {
	return w.b.Binary(combine, x, w.b.Do(ptx.Shuffle, []*ir.Value{x, w.b.I32(bit)}, "mode", "bfly").Result(0))
}

// lanes combines the numbers of the 16 threads that share a row.
func (w *simtAttention) lanes(x *ir.Value, combine *ir.OpDef) *ir.Value {
	for bit := 1; bit < 16; bit *= 2 {
		x = w.across(x, bit, combine)
	}
	return x
}

// hasFeatures says whether four features of a thread exist; nil: always.
func (w *simtAttention) hasFeatures(f int) *ir.Value {
	if 4*w.Features == w.simtPitch() {
		return nil
	}
	return w.b.Compare("lo", w.b.AddI(w.chunk, 16/w.split*f), w.b.I32(w.Features/4))
}

// storeRows writes features of the block's rows, times a factor for each row. Of threads that share features each writes some rows.
func (w *simtAttention) storeRows(base *ir.Value, pitch, extent int, acc sums, factor func(i int) *ir.Value) {
	b := w.b
	for i := range simtRows {
		row := b.AddI(b.Add(w.first, w.rowOfThread), 2*i)
		inside := b.Compare("lo", row, b.I32(extent))
		if w.split > 1 {
			inside = b.And(inside, b.Compare("eq", w.share, b.I32(i%w.split)))
		}
		at := b.MulWide(b.Select(inside, b.Add(b.MulI(row, 4*pitch), b.MulI(w.chunk, 16)), b.I32(0)), 1, base)
		for f := range w.featureParts {
			var four []*ir.Value
			for k := range 4 {
				four = append(four, b.Binary(ptx.Mul, w.at(acc, i, f, k), factor(i)))
			}
			b.Store(at, b.Vector(four...), ptx.Access{Space: "global", Offset: 256 / w.split * f, If: both(b, inside, w.hasFeatures(f))})
		}
	}
}

// exponential is exp(scale * x + y): the argument is rounded as float32's would be before it is made one of 2.
func (w *simtAttention) exponential(x, y *ir.Value) *ir.Value {
	b := w.b
	return b.Unary(ptx.Exp2Flushed, b.Binary(ptx.Mul, b.FMA(x, b.F32(w.Scale), y), b.F32(math.Log2E)))
}
