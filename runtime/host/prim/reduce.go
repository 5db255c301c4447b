package prim

import "math"

// A reduceTable holds the reductions and conversions of one instruction set. All
// instruction sets add in the same order.
type reduceTable struct {
	sum, max, min func(x *float32, n int) float32
	dot           func(x, y *float32, n int) float32
	expSum        func(dst, x *float32, scale, shift float32, n int) float32
	sumSquares    func(x *float32, n int) float64 // n a multiple of 16

	// These do columns in multiples of lanes.
	colSum func(acc *float64, x *float32, stride, rows, cols int)
	colDot func(acc *float64, x *float32, stride int, y *float32, strideY, rows, cols int)
	lanes  int

	// n is a multiple of 16.
	toBF16, toF16     func(dst *uint16, x *float32, n int)
	fromBF16, fromF16 func(dst *float32, x *uint16, n int)
}

// sumBlock is how many elements are added in float32, in 32 partial sums; what
// blocks sum to is added in float64. columnBlock is the same for the rows of a
// column sum, of which each column is one partial sum.
const (
	sumBlock    = 1024
	columnBlock = 32
)

// Sum is the sum of x.
func (k *Kernels) Sum(x []float32) float64 {
	var s float64
	for len(x) > 0 {
		n := min(len(x), sumBlock)
		s += float64(k.red.sum(&x[0], n))
		x = x[n:]
	}
	return s
}

// Dot is the sum of x[i]*y[i].
func (k *Kernels) Dot(x, y []float32) float64 {
	y = y[:len(x)]
	var s float64
	for len(x) > 0 {
		n := min(len(x), sumBlock)
		s += float64(k.red.dot(&x[0], &y[0], n))
		x, y = x[n:], y[n:]
	}
	return s
}

// SumSquares is the sum of x[i]^2, in float64 throughout.
func (k *Kernels) SumSquares(x []float32) float64 {
	var s float64
	n := len(x) &^ 15
	if n > 0 {
		s = k.red.sumSquares(&x[0], n)
	}
	for _, v := range x[n:] {
		s += float64(v) * float64(v)
	}
	return s
}

// Max is the largest of x: NaN if one is, -Inf if there is none.
func (k *Kernels) Max(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(-1))
	}
	return k.red.max(&x[0], len(x))
}

// Min is the smallest of x: NaN if one is, +Inf if there is none.
func (k *Kernels) Min(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(1))
	}
	return k.red.min(&x[0], len(x))
}

// ArgMax is the index of the first of the largest of x, or of the first NaN; -1 if x is empty.
func (k *Kernels) ArgMax(x []float32) int {
	m := k.Max(x)
	for i, v := range x {
		if v == m || v != v {
			return i
		}
	}
	return -1
}

// ExpSum computes dst[i] = exp(x[i]*scale + shift) and returns the sum of dst. With
// shift = -scale*max(x) it is what a softmax needs.
func (k *Kernels) ExpSum(dst, x []float32, scale, shift float32) float64 {
	x = x[:len(dst)]
	var s float64
	for len(dst) > 0 {
		n := min(len(dst), sumBlock)
		s += float64(k.red.expSum(&dst[0], &x[0], scale, shift, n))
		dst, x = dst[n:], x[n:]
	}
	return s
}

// RowSum computes dst[r] = the sum of x[r*stride : r*stride+cols].
func (k *Kernels) RowSum(dst, x []float32, rows, cols, stride int) {
	for r := range dst[:rows] {
		dst[r] = float32(k.Sum(x[r*stride:][:cols]))
	}
}

// RowMax computes dst[r] = the largest of x[r*stride : r*stride+cols].
func (k *Kernels) RowMax(dst, x []float32, rows, cols, stride int) {
	for r := range dst[:rows] {
		dst[r] = k.Max(x[r*stride:][:cols])
	}
}

// RowMin computes dst[r] = the smallest of x[r*stride : r*stride+cols].
func (k *Kernels) RowMin(dst, x []float32, rows, cols, stride int) {
	for r := range dst[:rows] {
		dst[r] = k.Min(x[r*stride:][:cols])
	}
}

// RowDot computes dst[r] = the sum over c < cols of x[r*xs+c]*y[r*ys+c].
func (k *Kernels) RowDot(dst, x, y []float32, rows, cols, xs, ys int) {
	for r := range dst[:rows] {
		dst[r] = float32(k.Dot(x[r*xs:][:cols], y[r*ys:][:cols]))
	}
}

// ColMax computes dst[c] = the largest of x[r*stride+c] over r < rows, which is not 0.
func (k *Kernels) ColMax(dst, x []float32, rows, cols, stride int) {
	k.colFold(Max, dst, x, rows, cols, stride)
}

// ColMin computes dst[c] = the smallest of x[r*stride+c] over r < rows, which is not 0.
func (k *Kernels) ColMin(dst, x []float32, rows, cols, stride int) {
	k.colFold(Min, dst, x, rows, cols, stride)
}

func (k *Kernels) colFold(op BinaryOp, dst, x []float32, rows, cols, stride int) {
	copy(dst[:cols], x[:cols])
	for r := 1; r < rows; r++ {
		k.Binary(op, dst[:cols], dst[:cols], x[r*stride:][:cols])
	}
}

// ColSum adds to acc[c] the sum over r < rows of x[r*stride+c]. Every 32 rows, counted
// from the first of the call, the float32 sums go to float64: blocks of the same
// rows give the same bits.
func (k *Kernels) ColSum(acc []float64, x []float32, rows, cols, stride int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	x, acc = x[:span(rows, stride, cols, 1)], acc[:cols]
	n := cols / k.red.lanes * k.red.lanes
	for r := 0; r < rows; r += columnBlock {
		h, at := min(columnBlock, rows-r), r*stride
		if n > 0 {
			k.red.colSum(&acc[0], &x[at], stride, h, n)
		}
		if n < cols {
			colSumGo(&acc[n], &x[at+n], stride, h, cols-n)
		}
	}
}

// ColDot adds to acc[c] the sum over r < rows of x[r*xs+c]*y[r*ys+c]; see ColSum.
func (k *Kernels) ColDot(acc []float64, x, y []float32, rows, cols, xs, ys int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	x, y, acc = x[:span(rows, xs, cols, 1)], y[:span(rows, ys, cols, 1)], acc[:cols]
	n := cols / k.red.lanes * k.red.lanes
	for r := 0; r < rows; r += columnBlock {
		h, ax, ay := min(columnBlock, rows-r), r*xs, r*ys
		if n > 0 {
			k.red.colDot(&acc[0], &x[ax], xs, &y[ay], ys, h, n)
		}
		if n < cols {
			colDotGo(&acc[n], &x[ax+n], xs, &y[ay+n], ys, h, cols-n)
		}
	}
}
