package prim

import "math"

// trigLimit bounds the angles whose reduction to a quarter turn the vector loops do.
const trigLimit = 0x1p17

// anyBeyond reports whether some |x[i]| > limit.
func anyBeyond(x []float32, limit float32) bool {
	top := math.Float32bits(limit)
	beyond := uint32(0)
	for _, b := range Bits(x) {
		beyond |= (top - b&0x7fffffff) & (b&0x7fffffff - 0x7f800001) // not NaN
	}
	return beyond>>31 != 0
}

// trigAny computes the sine or cosine of a block with an angle beyond the limit,
// which math reduces in float64 (above 2^29 with Payne and Hanek's method). Angles
// within it get the bits that the vector loops give.
func trigAny(op UnaryOp, dst, x []float32) {
	small, large := sinGo, math.Sin
	if op == Cos {
		small, large = cosGo, math.Cos
	}
	for i, v := range x {
		if a := math.Abs(float64(v)); a > trigLimit {
			dst[i] = float32(large(float64(v)))
		} else {
			small(&dst[i], &x[i], 1)
		}
	}
}
