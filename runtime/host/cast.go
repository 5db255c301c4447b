package host

import (
	"math"

	"blutrain/ir"
)

// casts are the conversions there are, row by row.
var casts = map[[2]kind]instrOn{
	{kindF32, kindF32}:  copyCast,
	{kindI32, kindI32}:  copyCast,
	{kindF32, kindBF16}: rows(func(f *frame, d []uint16, x []float32) { f.k.ToBF16(d, x) }),
	{kindBF16, kindF32}: rows(func(f *frame, d []float32, x []uint16) { f.k.FromBF16(d, x) }),
	{kindF32, kindF16}:  rows(func(f *frame, d []uint16, x []float32) { f.k.ToF16(d, x) }),
	{kindF16, kindF32}:  rows(func(f *frame, d []float32, x []uint16) { f.k.FromF16(d, x) }),
	{kindI32, kindF32}:  rows(func(f *frame, d []float32, x []int32) { f.k.FromI32(d, x) }),
	{kindMask, kindF32}: rows(func(f *frame, d []float32, x []uint32) { f.k.MaskToFloat(d, x) }),
	{kindF32, kindI32}:  each(toInt32),
	{kindI64, kindI32}:  each(func(x int64) int32 { return int32(x) }),
	{kindI32, kindI64}:  each(func(x int32) int64 { return int64(x) }),
	{kindF32, kindI64}:  each(toInt64),
	{kindI64, kindF32}:  each(func(x int64) float32 { return float32(x) }),
	{kindMask, kindI32}: each(func(m uint32) int32 { return int32(m & 1) }),
	{kindF32, kindMask}: each(func(x float32) uint32 { return mask(x != 0) }),
	{kindI32, kindMask}: each(func(x int32) uint32 { return mask(x != 0) }),
}

// instrOn executes an instruction on the blocks in registers r.
type instrOn func(f *frame, r []int)

func cast(op *ir.Op, r []int) (instr, error) {
	ks := kinds(op)
	fn := casts[[2]kind{ks[0], ks[1]}]
	if fn == nil {
		return nil, unsupported(op)
	}
	return func(f *frame) { fn(f, r) }, nil
}

func copyCast(f *frame, r []int) {
	x, d := &f.blocks[r[0]], &f.blocks[r[1]]
	if same(f, d, x) {
		f.copyLanes(x, d)
	}
}

// rows converts row by row, or all at once where both blocks lie without gaps.
func rows[T, U any](convert func(f *frame, d []U, x []T)) instrOn {
	return func(f *frame, r []int) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		switch {
		case !same(f, d, x):
		case x.cols != d.cols:
			f.fail("a cast of %v into %v", x, d)
		case x.rowStride == x.cols && d.rowStride == d.cols && x.rows == d.rows:
			convert(f, elements[U](d), elements[T](x))
		default:
			for i := range d.rows {
				convert(f, row[U](d, i), row[T](x, min(i, x.rows-1)))
			}
		}
	}
}

// each converts element by element.
func each[T, U any](convert func(T) U) instrOn {
	return func(f *frame, r []int) { mapElements(f, r, convert) }
}

// toInt32 truncates towards zero; NaN is 0, and what is out of range the nearest.
func toInt32(x float32) int32 {
	switch {
	case x != x:
		return 0
	case x >= math.MaxInt32:
		return math.MaxInt32
	case x <= math.MinInt32:
		return math.MinInt32
	}
	return int32(x)
}

// toInt64 is the same for integers of 64 bits.
func toInt64(x float32) int64 {
	switch {
	case x != x:
		return 0
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}
