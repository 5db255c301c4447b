package blublas

import (
	"fmt"
	"math"
	"strings"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Split describes the kernel that writes float32 matrices as planes of 16-bit numbers, each the nearest to what the planes
// before left: all that a product needs and has not, in one launch. A matrix that is contracted along its rows by one product and
// along its columns by another, as a gradient is, is read once for both sets of planes.
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
	Name       string // of its parameter
	Rows, Cols int
	Pitch      int  // elements from row to row of the matrix
	PlanePitch int  // and of the planes; a multiple of 4
	Unaligned  bool // it may start at an address that is no multiple of 16
	Of         *Function
	Sets       []Set
}

// Function is what is multiplied instead of a float32 number that is read; nil: the number itself.
type Function struct {
	Name  string // equal functions have equal names
	Apply func(b *ptx.Builder, x *ir.Value) *ir.Value
}

// of is a function of numbers that were read if a condition was true, and 0 where it wasn't; nil: it was.
func (f *Function) of(b *ptx.Builder, xs []*ir.Value, when *ir.Value) []*ir.Value {
	if f == nil {
		return xs
	}
	ys := make([]*ir.Value, len(xs))
	for i, x := range xs {
		if ys[i] = f.Apply(b, x); when != nil {
			ys[i] = b.Select(when, ys[i], b.F32(0))
		}
	}
	return ys
}

// String is the function's name, "" that of the number itself.
func (f *Function) String() string {
	if f == nil {
		return ""
	}
	return f.Name
}

// Set is the planes of a matrix for products that contract it one way. Its parameters are Name.0, Name.1 and so on, the planes from
// the largest part on, and (FP16x3) Name.scales and Name.flags.
type Set struct {
	Name    string
	MNMajor bool // columns are contracted, not rows
}

// BlockEdge is how many numbers along the contraction share a scale: the depth of a stage.
const BlockEdge = 64

// extents is how many vectors are contracted with those of the other operand, and how long they are.
func (m Matrix) extents(s Set) (vectors, depth int) {
	if s.MNMajor {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// ScaleBytes is the size of a set's scales, a byte for each 64 numbers: [depth / 64][vectors / 64][64], the 64 in the order of scaleOffset.
func (m Matrix) ScaleBytes(s Set) int {
	vectors, depth := m.extents(s)
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

// Flags is how many words say whether a matrix's planes hold all its numbers: one of each block that works on it, 0 where they do.
func (m Matrix) Flags(d Device) int { return min(m.tiles(), splitBlocks*d.SMs) }

// grid is how many blocks there are.
func (s Split) grid(d Device) int {
	tiles := 0
	for _, m := range s.Of {
		tiles += m.tiles()
	}
	return min(tiles, splitBlocks*d.SMs)
}

// splitBlocks is how many blocks a multiprocessor works on at one time; they are persistent, so that there are few flags.
const splitBlocks = 4

const (
	splitThreads = 256
	splitWarps   = splitThreads / 32
)

// Build makes the kernel. Parameters: of each matrix itself, then its sets'.
func (s Split) Build(at *ir.Builder, d Device) (*Kernel, error) {
	if s.Planes() < 2 {
		return nil, fmt.Errorf("split: %s has no planes", s.Precision)
	}
	k := &Kernel{Grid: s.grid(d), Threads: splitThreads, Cluster: 1, Shared: 2*splitShared + 4*splitWarps*len(s.Of)}
	name := []string{"split", string(s.Precision)}
	for _, m := range s.Of {
		if m.Pitch < m.Cols || m.PlanePitch < m.Cols || m.PlanePitch%4 != 0 || uint64(m.Rows)*uint64(max(m.Pitch, m.PlanePitch)) >= 1<<32 {
			return nil, fmt.Errorf("split %dx%d: rows %d and %d apart", m.Rows, m.Cols, m.Pitch, m.PlanePitch)
		}
		name = append(name, fmt.Sprintf("%dx%d_p%d_%d_%v%s", m.Rows, m.Cols, m.Pitch, m.PlanePitch, m.Unaligned, m.Of))
		k.Params = append(k.Params, Param{Name: m.Name})
		for _, set := range m.Sets {
			name = append(name, map[bool]string{false: "k", true: "m"}[set.MNMajor])
			for _, param := range s.params(set) {
				k.Params = append(k.Params, Param{Name: param})
			}
		}
	}
	k.Name = symbol(strings.Join(name, "_"))
	types := make([]ir.Type, len(k.Params))
	for i := range types {
		types[i] = at.Ctx.I64()
	}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: s.Target, Threads: k.Threads, BlocksPerSM: splitBlocks, Shared: k.Shared}, types...)
	k.Op = b.Kernel
	s.build(b, k.Op.Body().Args(), d)
	return k, nil
}

// params names the parameters of a set.
func (s Split) params(set Set) (names []string) {
	for p := range s.Planes() {
		names = append(names, fmt.Sprintf("%s.%d", set.Name, p))
	}
	if s.Precision == FP16x3 {
		names = append(names, set.Name+".scales", set.Name+".flags")
	}
	return names
}

// build goes through the tiles of one matrix after the other's.
func (s Split) build(b *ptx.Builder, args []*ir.Value, d Device) {
	tid, block, grid := b.Special("tid.x"), b.Special("ctaid.x"), s.grid(d)
	free := b.I32(0) // where shared memory is
	before := 0
	for i, m := range s.Of {
		w := splitting{Split: s, m: m, b: b, tid: tid, from: args[0]}
		args = args[1:]
		for _, set := range m.Sets {
			n := len(s.params(set))
			w.sets, args = append(w.sets, args[:n]), args[n:]
		}
		first := block
		if rest := before % grid; rest > 0 { // the next block after the one of the last tile takes the first
			first = b.Select(b.Compare("lo", block, b.I32(rest)), b.AddI(block, grid-rest), b.AddI(block, -rest))
		}
		out := b.For(first, b.I32(m.tiles()), b.I32(grid), true, []*ir.Value{b.I32(0), free}, func(tile *ir.Value, carried []*ir.Value) []*ir.Value {
			bad := w.tile(tile, carried[0], carried[1])
			return []*ir.Value{bad, b.Binary(ptx.Xor, carried[1], b.I32(splitShared))}
		})
		free = out[1]
		if s.Precision == FP16x3 {
			w.flag(out[0], first, m.Flags(d), 2*splitShared+4*splitWarps*i)
		}
		before += m.tiles()
	}
	b.Do(ptx.Return, nil)
}

// flag writes whether planes don't hold a number of this block's, which is set in one of the threads: to each set's flags.
func (w splitting) flag(bad, number *ir.Value, flags, shared int) {
	b := w.b
	bad = butterfly(b, ptx.Or, bad, 16)
	at := b.AddI(b.SharedBase(), shared)
	b.Store(b.Add(at, b.MulI(b.DivI(w.tid, 32), 4)), bad, ptx.Access{Space: "shared", If: b.Compare("eq", b.Binary(ptx.And, w.tid, b.I32(31)), b.I32(0))})
	b.Do(ptx.Sync, nil)
	for i := range splitWarps {
		bad = b.Binary(ptx.Or, bad, b.Load(at, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * i}))
	}
	writes := b.And(b.Compare("eq", w.tid, b.I32(0)), b.Compare("lo", number, b.I32(flags)))
	for _, set := range w.sets {
		b.Store(b.MulWide(number, 4, set[len(set)-1]), bad, ptx.Access{Space: "global", If: writes})
	}
}

// butterfly combines a word of 2 * most lanes next to each other.
func butterfly(b *ptx.Builder, def *ir.OpDef, word *ir.Value, most int) *ir.Value {
	for d := most; d > 0; d /= 2 {
		word = b.Binary(def, word, b.Do(ptx.Shuffle, []*ir.Value{word, b.I32(d)}, "mode", "bfly").Result(0))
	}
	return word
}

// splitShared is the bytes in which the warps tell each other the largest magnitudes of a tile's columns.
const splitShared = 4 * splitWarps * BlockEdge

// splitting is the work on tiles of 64 x 64 of one matrix. 16 threads have a row, 4 numbers each, and each thread
// 4 rows 16 apart.
type splitting struct {
	Split
	m    Matrix
	b    *ptx.Builder
	tid  *ir.Value
	from *ir.Value     // the matrix
	sets [][]*ir.Value // planes, scales and flags of each set
}

const splitRows = 4

// spot is where a thread is in a tile: that of its band of 64 rows and stripe of 64 columns.
type spot struct {
	band, stripe *ir.Value
	group, quad  *ir.Value // the thread's first row, and its columns: a quarter of its first
	buffer       *ir.Value // of shared memory
}

// tile splits a tile.
func (w splitting) tile(tile, bad, buffer *ir.Value) *ir.Value {
	b := w.b
	across := ceil(w.m.Cols, BlockEdge)
	at := spot{band: b.DivI(tile, across), group: b.DivI(w.tid, 16), quad: b.Binary(ptx.And, w.tid, b.I32(15)), buffer: buffer}
	at.stripe = b.Sub(tile, b.MulI(at.band, across))
	row, col := b.Add(b.MulI(at.band, BlockEdge), at.group), b.Add(b.MulI(at.stripe, BlockEdge), b.MulI(at.quad, 4))
	var xs [splitRows][]*ir.Value
	var inside [splitRows]*ir.Value
	for i := range xs {
		r := b.AddI(row, 16*i)
		inside[i] = b.And(b.Compare("lo", r, b.I32(w.m.Rows)), b.Compare("lo", col, b.I32(w.m.Cols)))
		xs[i] = w.read(b.MulWide(b.Add(b.MulI(r, w.m.Pitch), col), 4, w.from), col, inside[i])
	}
	for n := range w.m.Sets {
		scaled := xs
		if w.Precision == FP16x3 {
			var unfit *ir.Value
			if scaled, unfit = w.scale(n, xs, at); n == 0 { // one set holds a number if the other does
				bad = b.Binary(ptx.Or, bad, unfit)
			}
		}
		for i, x := range scaled {
			to := b.Add(b.MulI(b.AddI(row, 16*i), w.m.PlanePitch), col)
			for p, words := range w.planes(x) {
				b.Store(b.MulWide(to, 2, w.sets[n][p]), b.Vector(words...), ptx.Access{Space: "global", If: inside[i]})
			}
		}
	}
	return bad
}

// read reads 4 numbers of a row; what is not in the matrix is 0.
func (w splitting) read(at, col, inside *ir.Value) []*ir.Value {
	b := w.b
	if w.m.Pitch%4 == 0 && w.m.Cols%4 == 0 && !w.m.Unaligned {
		return w.m.Of.of(b, b.Scalars(b.Load(at, b.Ctx.F32(), 4, ptx.Access{Space: "global", If: inside, Cache: "nc"})), inside)
	}
	xs := make([]*ir.Value, 4)
	for i := range xs {
		in := inside
		if i > 0 {
			in = b.And(inside, b.Compare("lo", b.AddI(col, i), b.I32(w.m.Cols)))
		}
		xs[i] = w.m.Of.of(b, []*ir.Value{b.Load(at, b.Ctx.F32(), 1, ptx.Access{Space: "global", Offset: 4 * i, If: in, Cache: "nc"})}, in)[0]
	}
	return xs
}

// scale scales a tile's numbers for a set, and writes the scales of its rows or columns. Unfit is 1 where planes don't hold one of the thread's.
func (w splitting) scale(n int, xs [splitRows][]*ir.Value, at spot) (scaled [splitRows][]*ir.Value, unfit *ir.Value) {
	b, mnMajor := w.b, w.m.Sets[n].MNMajor
	largest := w.rows(xs)
	if mnMajor {
		largest = w.columns(xs, at)
	}
	unfit = b.I32(0)
	var fields, factors []*ir.Value
	for _, m := range largest {
		unfit = b.Binary(ptx.Or, unfit, b.Select(b.Compare("hs", m, b.I32(mostMagnitude<<23)), b.I32(1), b.I32(0)))
		field := b.Binary(ptx.And, b.AddI(b.Binary(ptx.Shr, m, b.I32(23)), 1), b.I32(0xFE))
		field = b.Min(b.Binary(ptx.Max, field, b.I32(leastField)), b.I32(mostField))
		fields = append(fields, field)
		factors = append(factors, b.Bitcast(b.Binary(ptx.Shl, b.Sub(b.I32(topField+127), field), b.I32(23)), b.Ctx.F32()))
	}
	for i := range xs {
		for c, x := range xs[i] {
			by := factors[i]
			if mnMajor {
				by = factors[c]
			}
			scaled[i] = append(scaled[i], b.Binary(ptx.Mul, x, by))
		}
	}
	w.writeScales(n, fields, at)
	return scaled, unfit
}

func (w splitting) greater(x, y *ir.Value) *ir.Value { return w.b.Binary(ptx.Max, x, y) }

// magnitude is a number's bits without its sign: integers in the order of magnitudes.
func (w splitting) magnitude(x *ir.Value) *ir.Value {
	return w.b.Binary(ptx.And, w.b.Bitcast(x, w.b.Ctx.I32()), w.b.I32(0x7FFFFFFF))
}

// rows is the largest magnitudes of the thread's rows, among the 16 threads that have them.
func (w splitting) rows(xs [splitRows][]*ir.Value) (largest []*ir.Value) {
	for _, x := range xs {
		m := w.greater(w.greater(w.magnitude(x[0]), w.magnitude(x[1])), w.greater(w.magnitude(x[2]), w.magnitude(x[3])))
		largest = append(largest, butterfly(w.b, ptx.Max, m, 8))
	}
	return largest
}

// columns is the largest magnitudes of the thread's columns, among all warps.
func (w splitting) columns(xs [splitRows][]*ir.Value, at spot) (largest []*ir.Value) {
	b := w.b
	for c := range 4 {
		m := w.magnitude(xs[0][c])
		for i := 1; i < splitRows; i++ {
			m = w.greater(m, w.magnitude(xs[i][c]))
		}
		largest = append(largest, w.greater(m, b.Do(ptx.Shuffle, []*ir.Value{m, b.I32(16)}, "mode", "bfly").Result(0)))
	}
	mine := b.Add(b.Add(b.SharedBase(), at.buffer), b.MulI(at.quad, 16))
	first := b.Compare("eq", b.Binary(ptx.And, w.tid, b.I32(16)), b.I32(0))
	b.Store(b.Add(mine, b.MulI(b.DivI(w.tid, 32), 4*BlockEdge)), b.Vector(largest...), ptx.Access{Space: "shared", If: first})
	b.Do(ptx.Sync, nil) // the one before the next tile's, which has another buffer, keeps this one until it has been read
	for i := range splitWarps {
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
func (w splitting) writeScales(n int, fields []*ir.Value, at spot) {
	b, set := w.b, w.m.Sets[n]
	vectors, _ := w.m.extents(set)
	depth, block, vector, writes := at.stripe, at.band, at.group, b.Compare("eq", at.quad, b.I32(0))
	if set.MNMajor {
		depth, block, vector, writes = at.band, at.stripe, b.MulI(at.quad, 4), b.Compare("eq", at.group, b.I32(0))
	}
	tile := b.MulI(b.Add(b.MulI(depth, ceil(vectors, BlockEdge)), block), BlockEdge)
	for i, field := range fields {
		v := b.AddI(vector, 16*i)
		if set.MNMajor {
			v = b.AddI(vector, i)
		}
		to := b.MulWide(b.Add(tile, scaleOffset(b, v)), 1, w.sets[n][w.Planes()])
		b.StoreByte(to, b.Binary(ptx.Shr, field, b.I32(1)), 0, writes)
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

// Seconds predicts the time: each number is read once and the planes of each set are written.
func (s Split) Seconds(d Device) float64 {
	t := launch
	for _, m := range s.Of {
		t += float64(m.Rows) * float64(m.Cols) * float64(4+2*s.Planes()*len(m.Sets)) / (0.85 * d.Bandwidth)
	}
	return t
}
