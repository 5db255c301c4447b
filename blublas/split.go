package blublas

import (
	"fmt"
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Split describes the kernel that writes a float32 matrix as planes of 16-bit numbers, each the nearest to what the planes
// before left.
//
// FP16x3 takes two float16 planes. Each block of 64 x 64 is scaled by a power of two so that its largest magnitude lies in
// [2^14, 2^15); both contraction directions can use the same planes and scales. Rows or columns whose magnitudes are less
// than about 2^-14 of others' in their block lose precision. BF16x6 takes three bf16 planes, which hold float32's range and
// need no scales.
type Split struct {
	Precision  Precision
	Rows, Cols int
	Pitch      int // elements from row to row of the matrix
	PlanePitch int // and of the planes
	Guard      Vectors
	Target     string
}

// Vectors says along what the numbers lie that one result of a product is made of: their magnitudes may differ as they
// like, those of different results may not.
type Vectors int

const (
	Unguarded Vectors = iota
	InRows            // each row goes into a result of its own
	InColumns
)

// BlockEdge is how many rows and columns share a scale.
const BlockEdge = 64

// ScaleCount is how many scales the matrix has: row-major, one for each block.
func (s Split) ScaleCount() int { return ceil(s.Rows, BlockEdge) * ceil(s.Cols, BlockEdge) }

// The scale's exponent field e is that of the block's largest magnitude, within bounds that keep it and its inverse
// normal: numbers are multiplied by 2^(141-e), products later by 2^(e-141).
const (
	topExponent = 141
	leastField  = 15
	mostField   = 254
)

// Planes is how many there are.
func (s Split) Planes() int {
	_, planes := Gemm{Precision: s.Precision}.elem()
	return planes
}

// Maxima is how many largest magnitudes a guarded split writes: along K one for each 64 numbers of every row, or column.
func (s Split) Maxima() (vectors, blocks int) {
	if s.Guard == InColumns {
		return s.Cols, ceil(s.Rows, BlockEdge)
	}
	return s.Rows, ceil(s.Cols, BlockEdge)
}

// Build makes the kernel. Parameters: matrix, planes from the largest part on, scales (FP16x3), and where it is guarded the
// largest magnitudes.
func (s Split) Build(at *ir.Builder) (*Kernel, error) {
	if s.Planes() < 2 {
		return nil, fmt.Errorf("split %dx%d: %s has no planes", s.Rows, s.Cols, s.Precision)
	}
	if s.Pitch < s.Cols || s.PlanePitch < s.Cols || uint64(s.Rows)*uint64(max(s.Pitch, s.PlanePitch)) >= 1<<32 {
		return nil, fmt.Errorf("split %dx%d: rows %d and %d apart", s.Rows, s.Cols, s.Pitch, s.PlanePitch)
	}
	k := &Kernel{Name: symbol(fmt.Sprintf("split_%s_%dx%d_p%d_%d_g%d", s.Precision, s.Rows, s.Cols, s.Pitch, s.PlanePitch, s.Guard)), Grid: s.ScaleCount(), Threads: 256,
		Cluster: 1, Shared: 64, Params: []Param{{Name: "x"}}}
	types := []ir.Type{at.Ctx.I64()}
	add := func(name string) {
		k.Params = append(k.Params, Param{Name: name})
		types = append(types, at.Ctx.I64())
	}
	for p := range s.Planes() {
		add(fmt.Sprintf("plane.%d", p))
	}
	if s.Precision == FP16x3 {
		add("scales")
		if s.Guard != Unguarded {
			add("maxima")
			k.Shared = columnWords + 4*8*BlockEdge
		}
	}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: s.Target, Threads: k.Threads, Shared: k.Shared}, types...)
	k.Op = b.Kernel
	s.build(b, k.Op.Body().Args())
	return k, nil
}

func (s Split) build(b *ptx.Builder, args []*ir.Value) {
	tid, block := b.Special("tid.x"), b.Special("ctaid.x")
	across := ceil(s.Cols, BlockEdge)
	bandRow, bandCol := b.DivI(block, across), b.RemI(block, across)
	// A warp takes a row of 64 at a time: two columns a lane; 8 warps, 8 rows each.
	warp, lane := b.DivI(tid, 32), b.Binary(ptx.And, tid, b.I32(31))
	row := b.Add(b.MulI(bandRow, BlockEdge), warp)
	col := b.Add(b.MulI(bandCol, BlockEdge), lane)
	var xs, inside, magnitudes []*ir.Value
	largest := b.I32(0)
	for i := range 16 {
		r, c := b.AddI(row, i/2*8), b.AddI(col, i%2*32)
		in := b.And(b.Compare("lo", r, b.I32(s.Rows)), b.Compare("lo", c, b.I32(s.Cols)))
		address := b.MulWide(b.Add(b.MulI(r, s.Pitch), c), 4, args[0])
		x := b.Load(address, b.Ctx.F32(), 1, ptx.Access{Space: "global", If: in, Cache: "nc"})
		xs, inside = append(xs, x), append(inside, in)
		magnitude := b.Binary(ptx.And, b.Bitcast(x, b.Ctx.I32()), b.I32(0x7FFFFFFF))
		magnitudes = append(magnitudes, magnitude)
		finite := b.Compare("lo", magnitude, b.I32(0x7F800000))
		largest = b.Binary(ptx.Max, largest, b.Select(finite, magnitude, b.I32(0)))
	}
	if s.Precision == FP16x3 {
		field := s.blockExponent(b, largest, warp, lane)
		if s.Guard != Unguarded {
			s.maxima(b, magnitudes, warp, lane, tid, bandRow, bandCol, row, args[4])
		}
		up := b.Bitcast(b.Binary(ptx.Shl, b.Sub(b.I32(topExponent+127), field), b.I32(23)), b.Ctx.F32())
		xs = each(xs, func(x *ir.Value) *ir.Value { return b.Binary(ptx.Mul, x, up) })
		down := b.Bitcast(b.Binary(ptx.Shl, b.AddI(field, 127-topExponent), b.I32(23)), b.Ctx.F32())
		b.Store(b.MulWide(block, 4, args[3]), down, ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
	}
	for i, x := range xs {
		r, c := b.AddI(row, i/2*8), b.AddI(col, i%2*32)
		index := b.Add(b.MulI(r, s.PlanePitch), c)
		for p, v := range s.planes(b, x) {
			b.Store(b.MulWide(index, 2, args[1+p]), v, ptx.Access{Space: "global", If: inside[i]})
		}
	}
	b.Do(ptx.Return, nil)
}

// blockExponent is the exponent field of the block's largest magnitude, within bounds.
func (s Split) blockExponent(b *ptx.Builder, largest, warp, lane *ir.Value) *ir.Value {
	for d := 16; d > 0; d /= 2 {
		largest = b.Binary(ptx.Max, largest, b.Do(ptx.Shuffle, []*ir.Value{largest, b.I32(d)}, "mode", "bfly").Result(0))
	}
	shared := b.SharedBase()
	b.Store(b.Add(shared, b.MulI(warp, 4)), largest, ptx.Access{Space: "shared", If: b.Compare("eq", lane, b.I32(0))})
	b.Do(ptx.Sync, nil)
	for i := range 8 {
		largest = b.Binary(ptx.Max, largest, b.Load(shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * i}))
	}
	field := b.Binary(ptx.Shr, largest, b.I32(23))
	return b.Min(b.Binary(ptx.Max, field, b.I32(leastField)), b.I32(mostField))
}

// columnWords is where a split has its warps' largest magnitudes of columns in shared memory, behind a word for each warp.
const columnWords = 64

// maxima writes the largest magnitude of each row, or column, of a block: all of those along K follow each other.
func (s Split) maxima(b *ptx.Builder, magnitudes []*ir.Value, warp, lane, tid, bandRow, bandCol, row, to *ir.Value) {
	greater := func(x, y *ir.Value) *ir.Value { return b.Binary(ptx.Max, x, y) }
	if s.Guard == InRows {
		for i := 0; i < len(magnitudes); i += 2 {
			m := greater(magnitudes[i], magnitudes[i+1])
			for d := 16; d > 0; d /= 2 {
				m = greater(m, b.Do(ptx.Shuffle, []*ir.Value{m, b.I32(d)}, "mode", "bfly").Result(0))
			}
			r := b.AddI(row, i/2*8)
			in := b.And(b.Compare("lo", r, b.I32(s.Rows)), b.Compare("eq", lane, b.I32(0)))
			b.Store(b.MulWide(b.Add(b.MulI(bandCol, s.Rows), r), 4, to), m, ptx.Access{Space: "global", If: in})
		}
		return
	}
	shared := b.SharedBase()
	for half := range 2 {
		m := magnitudes[half]
		for i := half + 2; i < len(magnitudes); i += 2 {
			m = greater(m, magnitudes[i])
		}
		b.Store(b.Add(shared, b.MulI(b.Add(b.MulI(warp, BlockEdge), lane), 4)), m, ptx.Access{Space: "shared", Offset: columnWords + 4*32*half})
	}
	b.Do(ptx.Sync, nil)
	column := b.Binary(ptx.And, tid, b.I32(BlockEdge-1))
	m := b.I32(0)
	for w := range 8 {
		m = greater(m, b.Load(b.Add(shared, b.MulI(column, 4)), b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: columnWords + 4*BlockEdge*w}))
	}
	c := b.Add(b.MulI(bandCol, BlockEdge), column)
	in := b.And(b.Compare("lo", c, b.I32(s.Cols)), b.Compare("lo", tid, b.I32(BlockEdge)))
	b.Store(b.MulWide(b.Add(b.MulI(bandRow, s.Cols), c), 4, to), m, ptx.Access{Space: "global", If: in})
}

// Seconds predicts the time: each number is read once and its planes are written.
func (s Split) Seconds(d Device) float64 {
	return launch + float64(s.Rows)*float64(s.Cols)*float64(4+2*s.Planes())/(0.85*d.Bandwidth)
}

// planes splits a number: the nearest 16-bit one, the nearest to what it left, and so on; nothing is left of infinities,
// NaN and numbers that are rounded to infinity.
func (s Split) planes(b *ptx.Builder, x *ir.Value) []*ir.Value {
	elem := ir.F16
	if s.Precision == BF16x6 {
		elem = ir.BF16
	}
	var parts []*ir.Value
	for range s.Planes() {
		part := b.Convert(x, b.Ctx.Float(elem), false)
		parts = append(parts, part)
		back := widen(b, elem, b.Bitcast(part, b.Ctx.Int(16)))
		finite := b.Compare("lt", b.Unary(ptx.Abs, back), b.F32(math.Inf(1)))
		x = b.Select(finite, b.Binary(ptx.Sub, x, back), b.F32(0))
	}
	return parts
}
