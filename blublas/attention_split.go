package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// AttentionSplit describes the kernels that write the tensors of attention as planes of float16 for FP16x3 and FP16: each number
// times a power of two as the nearest float16 and, for FP16x3, the nearest to what is left. 64 rows of a head share the power, which brings the
// greatest magnitude to [2^14, 2^15). Planes are dense, [plane, batch, head, position, feature], scales [batch, head, 64
// positions]: what products of planes are multiplied by.
//
// Numbers are kept to 2^-39 of the greatest of their block. That is as good as float32, or tf32, unless a row or a column of a
// block has its greatest more than 2^14 below the block's, or numbers are infinite or none: such a block is flagged, and its head is
// left to kernels that need no planes (Guard).
type AttentionSplit struct {
	Attention
	Tensors []string // of q, k, v and do
}

// mostBelow is by how many powers of two the greatest of a row or column may lie below its block's.
const mostBelow = 14

// blocksOf is how many blocks a tensor has in all, how many heads, and how many blocks each has.
func (s AttentionSplit) blocksOf(name string) (all, heads, each int) {
	_, heads, positions := s.tensor(name)
	each = ceil(positions, BlockEdge)
	return s.Batch * heads * each, heads, each
}

// Flags is how many there are.
func (s AttentionSplit) Flags() (n int) {
	for _, t := range s.Tensors {
		all, _, _ := s.blocksOf(t)
		n += all
	}
	return n
}

// PlaneBytes and ScaleBytes are the sizes of what is written of a tensor, UnfitBytes that of the words for heads.
func (s AttentionSplit) PlaneBytes(name string) int64 {
	_, heads, positions := s.tensor(name)
	return 2 * int64(s.planeCount()) * int64(s.Batch) * int64(heads) * int64(positions) * int64(s.Features)
}

// ScaleBytes is the size of a tensor's scales.
func (s AttentionSplit) ScaleBytes(name string) int64 {
	all, _, _ := s.blocksOf(name)
	return 4 * int64(all)
}

// UnfitBytes is the size of the words that say of each key head whether one of its blocks, or of those of the heads that
// share it, is flagged.
func (s AttentionSplit) UnfitBytes() int64 { return 4 * int64(s.Batch) * int64(s.KeyHeads) }

const planeThreads = 256

// splitter is the kernel being built: a thread has four columns of some rows of a block.
type splitter struct {
	AttentionSplit
	b                 *ptx.Builder
	args              map[string]*ir.Value
	width             int // of a row, a power of two
	number, tid, lane *ir.Value
	warp, shared      *ir.Value
}

// Build makes the kernel. Parameters: for each tensor its own, then its planes and scales; flags, one for each block.
func (s AttentionSplit) Build(at *ir.Builder) (*Kernel, error) {
	if s.Features%16 != 0 || s.Features > 128 {
		return nil, fmt.Errorf("attention's planes of %d features; a multiple of 16, at most 128", s.Features)
	}
	w := &splitter{AttentionSplit: s, width: 16, args: map[string]*ir.Value{}}
	for w.width < s.Features {
		w.width *= 2
	}
	k := &Kernel{Name: s.name("attention_split_" + fmt.Sprint(len(s.Tensors))), Grid: s.Flags(), Threads: planeThreads, Cluster: 1, Shared: planeThreads/32*(w.width+1)*4 + 1024}
	for _, t := range s.Tensors {
		k.Params = append(k.Params, Param{Name: t}, Param{Name: t + ".planes"}, Param{Name: t + ".scales"})
	}
	k.Params = append(k.Params, Param{Name: "flags"})
	var types []ir.Type
	for range k.Params {
		types = append(types, at.Ctx.I64())
	}
	w.b = ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: s.Target, Threads: k.Threads, Shared: k.Shared}, types...)
	k.Op = w.b.Kernel
	for i, p := range k.Params {
		w.args[p.Name] = k.Op.Body().Arg(i)
	}
	b := w.b
	w.number, w.tid, w.shared = b.Special("ctaid.x"), b.Special("tid.x"), b.SharedBase()
	w.lane, w.warp = b.Binary(ptx.And, w.tid, b.I32(31)), b.DivI(w.tid, 32)
	w.build()
	return k, nil
}

// pick is what belongs to the tensor of this block: one value for each.
func (w *splitter) pick(values ...*ir.Value) *ir.Value {
	v, start := values[0], 0
	for i, t := range w.Tensors {
		if values[i] != v {
			v = w.b.Select(w.b.Compare("ge", w.number, w.b.I32(start)), values[i], v)
		}
		all, _, _ := w.blocksOf(t)
		start += all
	}
	return v
}

// of is a number that belongs to the tensor of this block.
func (w *splitter) of(f func(name string) int) *ir.Value {
	var values []*ir.Value
	for _, t := range w.Tensors {
		values = append(values, w.b.I32(f(t)))
	}
	return w.pick(values...)
}

func (w *splitter) arg(suffix string) *ir.Value {
	var values []*ir.Value
	for _, t := range w.Tensors {
		values = append(values, w.args[t+suffix])
	}
	return w.pick(values...)
}

func (w *splitter) build() {
	b := w.b
	start, starts := 0, map[string]int{}
	for _, t := range w.Tensors {
		starts[t] = start
		all, _, _ := w.blocksOf(t)
		start += all
	}
	local := b.Sub(w.number, w.of(func(t string) int { return starts[t] }))
	each := w.of(func(t string) int { _, _, n := w.blocksOf(t); return n })
	heads := w.of(func(t string) int { _, n, _ := w.blocksOf(t); return n })
	positions := w.of(func(t string) int { _, _, n := w.tensor(t); return n })
	stride := func(f func(Strides) int) *ir.Value {
		return w.of(func(t string) int { s, _, _ := w.tensor(t); return 4 * f(s) })
	}
	far := func(x, y, base *ir.Value) *ir.Value {
		return b.Do(ptx.MulWide, []*ir.Value{x, y, base}).Result(0)
	}
	headOfAll := b.Binary(ptx.Div, local, each)
	block := b.Sub(local, b.Mul(headOfAll, each))
	batch := b.Binary(ptx.Div, headOfAll, heads)
	head := b.Sub(headOfAll, b.Mul(batch, heads))
	source := far(head, stride(func(s Strides) int { return s.Head }), far(batch, stride(func(s Strides) int { return s.Batch }), w.arg("")))
	pitch := stride(func(s Strides) int { return s.Row })

	lanes := w.width / 4 // of a row
	column := b.MulI(b.RemI(w.tid, lanes), 4)
	first := b.Add(b.MulI(block, BlockEdge), b.DivI(w.tid, lanes))
	var rows, inside []*ir.Value
	var xs [][]*ir.Value
	for r := 0; r < BlockEdge; r += planeThreads / lanes {
		row := b.AddI(first, r)
		in := b.Compare("lo", row, positions)
		if w.width > w.Features {
			in = b.And(in, b.Compare("lo", column, b.I32(w.Features)))
		}
		at := b.MulWide(column, 4, far(b.Select(in, row, b.I32(0)), pitch, source))
		x := b.Load(at, b.Ctx.F32(), 4, ptx.Access{Space: "global", If: in, Cache: "nc"})
		rows, inside, xs = append(rows, row), append(inside, in), append(xs, b.Scalars(x))
	}
	field := w.judge(xs, lanes)
	up := b.Bitcast(b.Binary(ptx.Shl, b.Sub(b.I32(scaledExponent+127), field), b.I32(23)), b.Ctx.F32())
	down := b.Bitcast(b.Binary(ptx.Shl, b.AddI(field, 127-scaledExponent), b.I32(23)), b.Ctx.F32())
	b.Store(b.MulWide(local, 4, w.arg(".scales")), down, ptx.Access{Space: "global", If: b.Compare("eq", w.tid, b.I32(0))})
	before := b.Mul(headOfAll, positions)
	for i, x := range xs {
		access := ptx.Access{Space: "global", If: inside[i]}
		place := b.Add(before, rows[i])
		for p, words := range w.words(x, up) {
			plane := w.arg(".planes")
			if p > 0 {
				plane = b.MulWide(w.of(func(t string) int { _, h, n := w.tensor(t); return w.Batch * h * n }), 2*w.Features, plane)
			}
			b.Store(b.MulWide(column, 2, b.MulWide(place, 2*w.Features, plane)), words, access)
		}
	}
	b.Do(ptx.Return, nil)
}

// words is what planes have of four numbers, times a power of two.
func (w *splitter) words(x []*ir.Value, up *ir.Value) []*ir.Value {
	b := w.b
	planes := make([][]*ir.Value, w.planeCount())
	for e := 0; e < 4; e += 2 {
		y, z := b.Binary(ptx.Mul, x[e], up), b.Binary(ptx.Mul, x[e+1], up)
		for p := range planes {
			word := b.Pack("f16", y, z)
			planes[p] = append(planes[p], word)
			if p+1 < len(planes) {
				l, h := b.Split(word, b.Ctx.Int(16))
				y, z = b.Binary(ptx.Sub, y, widen(b, ir.F16, l)), b.Binary(ptx.Sub, z, widen(b, ir.F16, h))
			}
		}
	}
	var all []*ir.Value
	for _, words := range planes {
		all = append(all, b.Vector(words...))
	}
	return all
}

// judge is the exponent field of the block's greatest magnitude, within bounds; it writes the block's flag.
func (w *splitter) judge(xs [][]*ir.Value, lanes int) *ir.Value {
	b := w.b
	greater := func(x, y *ir.Value) *ir.Value { return b.Binary(ptx.Max, x, y) }
	across := func(x *ir.Value, from, to int, combine *ir.OpDef) *ir.Value { // of lanes whose numbers differ in these bits
		for d := from; d < to; d *= 2 {
			x = b.Binary(combine, x, b.Do(ptx.Shuffle, []*ir.Value{x, b.I32(d)}, "mode", "bfly").Result(0))
		}
		return x
	}
	ofRows, ofColumns := make([]*ir.Value, len(xs)), make([]*ir.Value, 4)
	for i, x := range xs {
		for c, v := range x {
			m := b.Binary(ptx.And, b.Bitcast(v, b.Ctx.I32()), b.I32(0x7FFFFFFF))
			if ofRows[i] == nil {
				ofRows[i] = m
			} else {
				ofRows[i] = greater(ofRows[i], m)
			}
			if ofColumns[c] == nil {
				ofColumns[c] = m
			} else {
				ofColumns[c] = greater(ofColumns[c], m)
			}
		}
		ofRows[i] = across(ofRows[i], 1, lanes, ptx.Max)
	}
	for c := range ofColumns {
		ofColumns[c] = across(ofColumns[c], lanes, 32, ptx.Max)
	}
	mine := b.Add(b.MulI(w.warp, 4*w.width), b.MulI(b.RemI(w.lane, lanes), 16))
	b.Store(b.Add(w.shared, mine), b.Vector(ofColumns...), ptx.Access{Space: "shared", If: b.Compare("lo", w.lane, b.I32(lanes))})
	b.Do(ptx.Sync, nil)
	// Every warp has all columns' greatest, and so the block's.
	judged := ofRows
	top := b.I32(0)
	for c := 0; c < w.width; c += 32 {
		m := b.I32(0)
		at := b.Add(w.shared, b.MulI(b.RemI(b.AddI(w.lane, c), w.width), 4))
		for warp := range planeThreads / 32 {
			m = greater(m, b.Load(at, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * w.width * warp}))
		}
		judged = append(judged, m)
		top = greater(top, m)
	}
	top = across(top, 1, 32, ptx.Max)
	exponent := b.Binary(ptx.Shr, top, b.I32(23))
	least := greater(b.AddI(exponent, -mostBelow), b.I32(leastExponent))
	bad := b.Compare("ge", top, b.I32(0x7F800000))
	for _, m := range judged {
		below := b.And(b.Compare("ne", m, b.I32(0)), b.Compare("lt", b.Binary(ptx.Shr, m, b.I32(23)), least))
		bad = b.Binary(ptx.Or, bad, below)
	}
	flag := across(b.Select(bad, b.I32(1), b.I32(0)), 1, 32, ptx.Or)
	words := planeThreads / 32 * w.width * 4
	b.Store(b.Add(w.shared, b.MulI(w.warp, 4)), flag, ptx.Access{Space: "shared", Offset: words, If: b.Compare("eq", w.lane, b.I32(0))})
	b.Do(ptx.Sync, nil)
	for warp := range planeThreads / 32 {
		flag = b.Binary(ptx.Or, flag, b.Load(w.shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: words + 4*warp}))
	}
	b.Store(b.MulWide(w.number, 4, w.args["flags"]), flag, ptx.Access{Space: "global", If: b.Compare("eq", w.tid, b.I32(0))})
	return b.Min(greater(exponent, b.I32(leastExponent)), b.I32(mostExponent))
}

// BuildUnfit makes the kernel that finds the key heads which planes don't fit. Parameters: flags, unfit.
func (s AttentionSplit) BuildUnfit(at *ir.Builder) *Kernel {
	k := &Kernel{Name: s.name("attention_unfit_" + fmt.Sprint(len(s.Tensors))), Grid: s.Batch * s.KeyHeads, Threads: 32, Cluster: 1, Params: []Param{{Name: "flags"}, {Name: "unfit"}}}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: s.Target, Threads: k.Threads}, at.Ctx.I64(), at.Ctx.I64())
	k.Op = b.Kernel
	args := k.Op.Body().Args()
	tid, head := b.Special("tid.x"), b.Special("ctaid.x")
	start, any := 0, b.I32(0)
	for _, t := range s.Tensors {
		all, heads, each := s.blocksOf(t)
		n := heads / s.KeyHeads * each
		from := b.AddI(b.MulI(head, n), start)
		any = b.For(tid, b.I32(n), b.I32(32), false, []*ir.Value{any}, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
			return []*ir.Value{b.Binary(ptx.Or, carried[0], b.Load(b.MulWide(b.Add(from, i), 4, args[0]), b.Ctx.I32(), 1, ptx.Access{Space: "global"}))}
		})[0]
		start += all
	}
	for d := 16; d > 0; d /= 2 {
		any = b.Binary(ptx.Or, any, b.Do(ptx.Shuffle, []*ir.Value{any, b.I32(d)}, "mode", "bfly").Result(0))
	}
	b.Store(b.MulWide(head, 4, args[1]), any, ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
	b.Do(ptx.Return, nil)
	return k
}
