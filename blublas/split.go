package blublas

import (
	"fmt"
	"math"
	"strings"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Split describes the kernel that writes float32 matrices as planes of 16-bit numbers, each the nearest to what the planes
// before left: both operands of a product in one launch.
//
// FP16x3 takes two float16 planes. Numbers that are multiplied with each other and added up in one stage of a product, 64 of
// a row of an operand (of a column, where that is what is contracted), share a scale: a power of four such that the largest
// magnitude lies in [2^13, 2^15). So rows may differ from each other as they like, and denormals keep their bits. Each thread of a
// product multiplies what a stage comes to by the scales of its row and its column, see ptx.AddScaled. BF16x6 takes three
// bf16 planes, which hold float32's range and need no scales.
type Split struct {
	Precision Precision
	Of        []Matrix
	Target    string
}

// Matrix is one that is split.
type Matrix struct {
	Name       string // of its parameters
	Rows, Cols int
	Pitch      int  // elements from row to row of the matrix
	PlanePitch int  // and of the planes; a multiple of 4
	MNMajor    bool // columns are contracted, not rows
	Unaligned  bool // it may start at an address that is no multiple of 16
}

// BlockEdge is how many numbers along the contraction share a scale: the depth of a stage.
const BlockEdge = 64

// extents is how many vectors are contracted with those of the other operand, and how long they are.
func (m Matrix) extents() (vectors, depth int) {
	if m.MNMajor {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// ScaleBytes is the size of its scales, a byte for each 64 numbers: [depth / 64][vectors / 64][64], the 64 in the order of scaleOffset.
func (m Matrix) ScaleBytes() int {
	vectors, depth := m.extents()
	return ceil(depth, BlockEdge) * ceil(vectors, BlockEdge) * BlockEdge
}

// PlaneBytes is the size of a plane.
func (m Matrix) PlaneBytes() int64 { return 2 * int64(m.Rows) * int64(m.PlanePitch) }

// A thread of a product has columns 8j + 2t, 8j + 2t + 1 of 64, t being its lane mod 4: their scales are next to each other.
func scaleOffset(b *ptx.Builder, vector *ir.Value) *ir.Value {
	pair := b.Binary(ptx.And, b.DivI(vector, 2), b.I32(3))
	return b.Add(b.Add(b.MulI(pair, 16), b.MulI(b.DivI(vector, 8), 2)), b.Binary(ptx.And, vector, b.I32(1)))
}

// A scale's byte is half the exponent field of the largest magnitude, rounded up to an even one and at least leastField: it is the
// highest byte of the power of four that is the scale. Numbers are multiplied by 2^(141 - field), products later by the
// operands' scales and 2^-28.
const (
	topField   = 141
	leastField = 14
	mostField  = 254
)

// mostMagnitude is the exponent field of the least magnitude that planes don't hold: 64 products of numbers scaled to 2^15, times a
// scale, are to be finite.
const mostMagnitude = 127 + 91

// Planes is how many there are.
func (s Split) Planes() int {
	_, planes := Gemm{Precision: s.Precision}.elem()
	return planes
}

func (m Matrix) tiles() int { return ceil(m.Rows, BlockEdge) * ceil(m.Cols, BlockEdge) }

// Flags is how many words say whether planes hold all numbers: one of each block of the grid, 0 where they do.
func (s Split) Flags(d Device) int {
	tiles := 0
	for _, m := range s.Of {
		tiles += m.tiles()
	}
	return min(tiles, splitBlocks*d.SMs)
}

// splitBlocks is how many blocks a multiprocessor works on at one time; they are persistent, so that there are few flags.
const splitBlocks = 4

const splitThreads = 256

// Build makes the kernel. Parameters: of each matrix itself, its planes from the largest part on and its scales (FP16x3), called as
// those of the product are; then (FP16x3) flags.
func (s Split) Build(at *ir.Builder, d Device) (*Kernel, error) {
	if s.Planes() < 2 {
		return nil, fmt.Errorf("split: %s has no planes", s.Precision)
	}
	scaled := s.Precision == FP16x3
	k := &Kernel{Grid: s.Flags(d), Threads: splitThreads, Cluster: 1, Shared: 2 * splitShared}
	name := []string{"split", string(s.Precision)}
	for _, m := range s.Of {
		if m.Pitch < m.Cols || m.PlanePitch < m.Cols || m.PlanePitch%4 != 0 || uint64(m.Rows)*uint64(max(m.Pitch, m.PlanePitch)) >= 1<<32 {
			return nil, fmt.Errorf("split %dx%d: rows %d and %d apart", m.Rows, m.Cols, m.Pitch, m.PlanePitch)
		}
		name = append(name, fmt.Sprintf("%dx%d_p%d_%d_%v_%v", m.Rows, m.Cols, m.Pitch, m.PlanePitch, m.MNMajor, m.Unaligned))
		k.Params = append(k.Params, Param{Name: m.Name})
		for p := range s.Planes() {
			k.Params = append(k.Params, Param{Name: fmt.Sprintf("%s.%d", m.Name, p)})
		}
		if scaled {
			k.Params = append(k.Params, Param{Name: m.Name + ".scales"})
		}
	}
	if scaled {
		k.Params = append(k.Params, Param{Name: "flags"})
	}
	k.Name = symbol(strings.Join(name, "_"))
	types := make([]ir.Type, len(k.Params))
	for i := range types {
		types[i] = at.Ctx.I64()
	}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: s.Target, Threads: k.Threads, BlocksPerSM: splitBlocks, Shared: k.Shared}, types...)
	k.Op = b.Kernel
	s.build(b, k.Op.Body().Args(), k.Grid)
	return k, nil
}

// build goes through the tiles of one matrix after the other's.
func (s Split) build(b *ptx.Builder, args []*ir.Value, grid int) {
	tid, block := b.Special("tid.x"), b.Special("ctaid.x")
	carried := []*ir.Value{b.I32(0), b.I32(0)} // whether planes don't hold a number; where shared memory is free
	before := 0
	for _, m := range s.Of {
		w := splitting{Split: s, m: m, b: b, tid: tid, args: args}
		args = args[1+s.Planes():]
		if s.Precision == FP16x3 {
			args = args[1:]
		}
		first := block
		if rest := before % grid; rest > 0 { // the next block after the one of the last tile takes the first
			first = b.Select(b.Compare("lo", block, b.I32(rest)), b.AddI(block, grid-rest), b.AddI(block, -rest))
		}
		carried = b.For(first, b.I32(m.tiles()), b.I32(grid), true, carried, func(tile *ir.Value, carried []*ir.Value) []*ir.Value {
			bad := w.tile(tile, carried[0], carried[1])
			return []*ir.Value{bad, b.Binary(ptx.Xor, carried[1], b.I32(splitShared))}
		})
		before += m.tiles()
	}
	if s.Precision == FP16x3 {
		bad := anyOf(b, tid, carried[0])
		b.Store(b.MulWide(block, 4, args[0]), bad, ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
	}
	b.Do(ptx.Return, nil)
}

// anyOf is whether a word is set in one of the block's threads.
func anyOf(b *ptx.Builder, tid, word *ir.Value) *ir.Value {
	word = butterfly(b, ptx.Or, word, 16)
	shared := b.SharedBase()
	b.Do(ptx.Sync, nil)
	b.Store(b.Add(shared, b.MulI(b.DivI(tid, 32), 4)), word, ptx.Access{Space: "shared", If: b.Compare("eq", b.Binary(ptx.And, tid, b.I32(31)), b.I32(0))})
	b.Do(ptx.Sync, nil)
	for i := range splitThreads / 32 {
		word = b.Binary(ptx.Or, word, b.Load(shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * i}))
	}
	return word
}

// butterfly combines a word of 2 * most lanes next to each other.
func butterfly(b *ptx.Builder, def *ir.OpDef, word *ir.Value, most int) *ir.Value {
	for d := most; d > 0; d /= 2 {
		word = b.Binary(def, word, b.Do(ptx.Shuffle, []*ir.Value{word, b.I32(d)}, "mode", "bfly").Result(0))
	}
	return word
}

// splitShared is the bytes in which the warps tell each other the largest magnitudes of a tile's columns.
const splitShared = 4 * splitThreads / 32 * BlockEdge

// splitting is the work on tiles of 64 x 64 of one matrix. 16 threads have a row, 4 numbers each, and each thread
// 4 rows 16 apart.
type splitting struct {
	Split
	m    Matrix
	b    *ptx.Builder
	tid  *ir.Value
	args []*ir.Value // the matrix, its planes, its scales
}

const splitRows = 4

// tile splits a tile.
func (w splitting) tile(tile, bad, buffer *ir.Value) *ir.Value {
	b := w.b
	across := ceil(w.m.Cols, BlockEdge)
	band := b.DivI(tile, across)
	stripe := b.Sub(tile, b.MulI(band, across))
	group, quad := b.DivI(w.tid, 16), b.Binary(ptx.And, w.tid, b.I32(15))
	row, col := b.Add(b.MulI(band, BlockEdge), group), b.Add(b.MulI(stripe, BlockEdge), b.MulI(quad, 4))
	var xs [splitRows][]*ir.Value
	var inside [splitRows]*ir.Value
	for i := range xs {
		r := b.AddI(row, 16*i)
		inside[i] = b.And(b.Compare("lo", r, b.I32(w.m.Rows)), b.Compare("lo", col, b.I32(w.m.Cols)))
		xs[i] = w.read(b.MulWide(b.Add(b.MulI(r, w.m.Pitch), col), 4, w.args[0]), col, inside[i])
	}
	if w.Precision == FP16x3 {
		bad = w.scale(&xs, band, stripe, group, quad, bad, buffer)
	}
	for i := range xs {
		at := b.Add(b.MulI(b.AddI(row, 16*i), w.m.PlanePitch), col)
		for p, words := range w.planes(xs[i]) {
			b.Store(b.MulWide(at, 2, w.args[1+p]), b.Vector(words...), ptx.Access{Space: "global", If: inside[i]})
		}
	}
	return bad
}

// read reads 4 numbers of a row; what is not in the matrix is 0.
func (w splitting) read(at, col, inside *ir.Value) []*ir.Value {
	b := w.b
	if w.m.Pitch%4 == 0 && w.m.Cols%4 == 0 && !w.m.Unaligned {
		return b.Scalars(b.Load(at, b.Ctx.F32(), 4, ptx.Access{Space: "global", If: inside, Cache: "nc"}))
	}
	xs := make([]*ir.Value, 4)
	for i := range xs {
		in := inside
		if i > 0 {
			in = b.And(inside, b.Compare("lo", b.AddI(col, i), b.I32(w.m.Cols)))
		}
		xs[i] = b.Load(at, b.Ctx.F32(), 1, ptx.Access{Space: "global", Offset: 4 * i, If: in, Cache: "nc"})
	}
	return xs
}

// scale scales a tile's numbers, and writes the scales of its rows or columns.
func (w splitting) scale(xs *[splitRows][]*ir.Value, band, stripe, group, quad, bad, buffer *ir.Value) *ir.Value {
	b := w.b
	greater := func(x, y *ir.Value) *ir.Value { return b.Binary(ptx.Max, x, y) }
	magnitude := func(x *ir.Value) *ir.Value { return b.Binary(ptx.And, b.Bitcast(x, b.Ctx.I32()), b.I32(0x7FFFFFFF)) }
	var largest []*ir.Value // of rows, or columns
	if w.m.MNMajor {
		for c := range 4 {
			m := magnitude(xs[0][c])
			for i := 1; i < splitRows; i++ {
				m = greater(m, magnitude(xs[i][c]))
			}
			largest = append(largest, greater(m, b.Do(ptx.Shuffle, []*ir.Value{m, b.I32(16)}, "mode", "bfly").Result(0)))
		}
		largest = w.columns(largest, quad, buffer)
	} else {
		for _, x := range xs {
			m := greater(greater(magnitude(x[0]), magnitude(x[1])), greater(magnitude(x[2]), magnitude(x[3])))
			largest = append(largest, butterfly(b, ptx.Max, m, 8))
		}
	}
	var fields, factors []*ir.Value
	for _, m := range largest {
		bad = b.Binary(ptx.Or, bad, b.Select(b.Compare("hs", m, b.I32(mostMagnitude<<23)), b.I32(1), b.I32(0)))
		field := b.Binary(ptx.And, b.AddI(b.Binary(ptx.Shr, m, b.I32(23)), 1), b.I32(0xFE))
		field = b.Min(b.Binary(ptx.Max, field, b.I32(leastField)), b.I32(mostField))
		fields = append(fields, field)
		factors = append(factors, b.Bitcast(b.Binary(ptx.Shl, b.Sub(b.I32(topField+127), field), b.I32(23)), b.Ctx.F32()))
	}
	for i := range xs {
		for c := range xs[i] {
			by := factors[i]
			if w.m.MNMajor {
				by = factors[c]
			}
			xs[i][c] = b.Binary(ptx.Mul, xs[i][c], by)
		}
	}
	w.writeScales(fields, band, stripe, group, quad)
	return bad
}

// columns is the largest magnitudes of columns among all warps.
func (w splitting) columns(largest []*ir.Value, quad, buffer *ir.Value) []*ir.Value {
	b := w.b
	mine := b.Add(b.Add(b.SharedBase(), buffer), b.MulI(quad, 16))
	first := b.Compare("eq", b.Binary(ptx.And, w.tid, b.I32(16)), b.I32(0))
	b.Store(b.Add(mine, b.MulI(b.DivI(w.tid, 32), 4*BlockEdge)), b.Vector(largest...), ptx.Access{Space: "shared", If: first})
	b.Do(ptx.Sync, nil) // the one before the next tile's, which has another buffer, keeps this one until it has been read
	for i := range splitThreads / 32 {
		of := b.Scalars(b.Load(mine, b.Ctx.I32(), 4, ptx.Access{Space: "shared", Offset: 4 * BlockEdge * i}))
		if i == 0 {
			largest = of
		} else {
			largest = pairs(b, ptx.Max, largest, of)
		}
	}
	return largest
}

// writeScales writes the bytes of a tile's rows or columns.
func (w splitting) writeScales(fields []*ir.Value, band, stripe, group, quad *ir.Value) {
	b := w.b
	vectors, _ := w.m.extents()
	depth, block, vector, writes := stripe, band, group, b.Compare("eq", quad, b.I32(0))
	if w.m.MNMajor {
		depth, block, vector, writes = band, stripe, b.MulI(quad, 4), b.Compare("eq", group, b.I32(0))
	}
	tile := b.MulI(b.Add(b.MulI(depth, ceil(vectors, BlockEdge)), block), BlockEdge)
	for i, field := range fields {
		v := b.AddI(vector, 16*i)
		if w.m.MNMajor {
			v = b.AddI(vector, i)
		}
		at := b.MulWide(b.Add(tile, scaleOffset(b, v)), 1, w.args[1+w.Planes()])
		b.StoreByte(at, b.Binary(ptx.Shr, field, b.I32(1)), 0, writes)
	}
}

// planes splits numbers: the nearest 16-bit ones, the nearest to what they left, and so on, two in a word; nothing is left
// of infinities, NaN and numbers that are rounded to infinity.
func (w splitting) planes(xs []*ir.Value) (planes [][]*ir.Value) {
	b, elem := w.b, ir.F16
	if w.Precision == BF16x6 {
		elem = ir.BF16
	}
	xs = append([]*ir.Value(nil), xs...)
	for range w.Planes() {
		var words []*ir.Value
		for i := 0; i < len(xs); i += 2 {
			word := b.Pack(b.Ctx.Float(elem).String(), xs[i], xs[i+1])
			words = append(words, word)
			low, high := b.Split(word, b.Ctx.Int(16))
			for k, half := range []*ir.Value{low, high} {
				back := widen(b, elem, half)
				finite := b.Compare("lt", b.Unary(ptx.Abs, back), b.F32(math.Inf(1)))
				xs[i+k] = b.Select(finite, b.Binary(ptx.Sub, xs[i+k], back), b.F32(0))
			}
		}
		planes = append(planes, words)
	}
	return planes
}

// Seconds predicts the time: each number is read once and its planes are written.
func (s Split) Seconds(d Device) float64 {
	t := launch
	for _, m := range s.Of {
		t += float64(m.Rows) * float64(m.Cols) * float64(4+2*s.Planes()) / (0.85 * d.Bandwidth)
	}
	return t
}
