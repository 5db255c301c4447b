package prim

import "unsafe"

func goReduce() reduceTable {
	return reduceTable{sum: sumGo, max: maxOfGo, min: minOfGo, dot: dotGo, expSum: expSumGo,
		sumSquares: sumSquaresGo, colSum: colSumGo, colDot: colDotGo, lanes: 1,
		toBF16: toBF16Go, toF16: toF16Go, fromBF16: fromBF16Go, fromF16: fromF16Go}
}

// sumSquaresGo adds as the vector code does: 16 partial sums, combined by halves.
// A square is exact in float64, so that it does not matter whether it is fused.
func sumSquaresGo(x *float32, n int) float64 {
	var acc [16]float64
	for i, v := range view(x, n) {
		acc[i%16] += float64(v) * float64(v)
	}
	for w := 8; w > 0; w /= 2 {
		for i := range w {
			acc[i] += acc[i+w]
		}
	}
	return acc[0]
}

func colSumGo(acc *float64, x *float32, stride, rows, cols int) {
	a, v := unsafe.Slice(acc, cols), view(x, span(rows, stride, cols, 1))
	for c := range a {
		var s float32
		for r := range rows {
			s += v[r*stride+c]
		}
		a[c] += float64(s)
	}
}

func colDotGo(acc *float64, x *float32, stride int, y *float32, strideY, rows, cols int) {
	a, v, w := unsafe.Slice(acc, cols), view(x, span(rows, stride, cols, 1)), view(y, span(rows, strideY, cols, 1))
	for c := range a {
		var s float32
		for r := range rows {
			s = fma32(v[r*stride+c], w[r*strideY+c], s)
		}
		a[c] += float64(s)
	}
}
