package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Split describes the kernel that writes a float32 matrix as two float16 planes. Each block of 64 x 64 is scaled by a
// power of two so that its largest magnitude lies in [2^14, 2^15); the high plane is the scaled number rounded, the low
// plane what that left. Both contraction directions can use the same planes and scales.
type Split struct {
	Rows, Cols int
	Pitch      int // elements from row to row of the matrix
	PlanePitch int // and of the planes
	Target     string
}

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

// Build makes the kernel. Parameters: matrix, high plane, low plane, scales.
func (s Split) Build(at *ir.Builder) (*Kernel, error) {
	if s.Pitch < s.Cols || s.PlanePitch < s.Cols || uint64(s.Rows)*uint64(max(s.Pitch, s.PlanePitch)) >= 1<<32 {
		return nil, fmt.Errorf("split %dx%d: rows %d and %d apart", s.Rows, s.Cols, s.Pitch, s.PlanePitch)
	}
	across := ceil(s.Cols, BlockEdge)
	k := &Kernel{Name: symbol(fmt.Sprintf("split_f16_%dx%d_p%d_%d", s.Rows, s.Cols, s.Pitch, s.PlanePitch)), Grid: s.ScaleCount(), Threads: 256, Cluster: 1,
		Shared: 64, Params: []Param{{Name: "x"}, {Name: "high"}, {Name: "low"}, {Name: "scales"}}}
	i64 := at.Ctx.I64()
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: s.Target, Threads: k.Threads, Shared: k.Shared}, i64, i64, i64, i64)
	k.Op = b.Kernel
	args := k.Op.Body().Args()

	tid, block := b.Special("tid.x"), b.Special("ctaid.x")
	bandRow, bandCol := b.DivI(block, across), b.RemI(block, across)
	// A warp takes a row of 64 at a time: two columns a lane; 8 warps, 8 rows each.
	warp, lane := b.DivI(tid, 32), b.Binary(ptx.And, tid, b.I32(31))
	row := b.Add(b.MulI(bandRow, BlockEdge), warp)
	col := b.Add(b.MulI(bandCol, BlockEdge), lane)
	var xs, inside []*ir.Value
	largest := b.I32(0)
	for i := range 16 {
		r, c := b.AddI(row, i/2*8), b.AddI(col, i%2*32)
		in := b.And(b.Compare("lo", r, b.I32(s.Rows)), b.Compare("lo", c, b.I32(s.Cols)))
		address := b.MulWide(b.Add(b.MulI(r, s.Pitch), c), 4, args[0])
		x := b.Load(address, b.Ctx.F32(), 1, ptx.Access{Space: "global", If: in, Cache: "nc"})
		xs, inside = append(xs, x), append(inside, in)
		magnitude := b.Binary(ptx.And, b.Bitcast(x, b.Ctx.I32()), b.I32(0x7FFFFFFF))
		finite := b.Compare("lo", magnitude, b.I32(0x7F800000))
		largest = b.Binary(ptx.Max, largest, b.Select(finite, magnitude, b.I32(0)))
	}
	field := s.blockExponent(b, largest, warp, lane)
	up := b.Bitcast(b.Binary(ptx.Shl, b.Sub(b.I32(topExponent+127), field), b.I32(23)), b.Ctx.F32())
	for i, x := range xs {
		r, c := b.AddI(row, i/2*8), b.AddI(col, i%2*32)
		high, low := planes(b, b.Binary(ptx.Mul, x, up))
		index := b.Add(b.MulI(r, s.PlanePitch), c)
		b.Store(b.MulWide(index, 2, args[1]), high, ptx.Access{Space: "global", If: inside[i]})
		b.Store(b.MulWide(index, 2, args[2]), low, ptx.Access{Space: "global", If: inside[i]})
	}
	down := b.Bitcast(b.Binary(ptx.Shl, b.AddI(field, 127-topExponent), b.I32(23)), b.Ctx.F32())
	b.Store(b.MulWide(block, 4, args[3]), down, ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
	b.Do(ptx.Return, nil)
	return k, nil
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

// planes splits a number: the nearest float16, and the nearest to what it left; nothing is left of infinities and NaN.
func planes(b *ptx.Builder, x *ir.Value) (high, low *ir.Value) {
	f16, f32 := b.Ctx.Float(ir.F16), b.Ctx.F32()
	high = b.Convert(x, f16, false)
	rest := b.Binary(ptx.Sub, x, b.Convert(high, f32, false))
	finite := b.Compare("lt", b.Unary(ptx.Abs, x), b.F32(65536))
	low = b.Convert(b.Select(finite, rest, b.F32(0)), f16, false)
	return high, low
}
