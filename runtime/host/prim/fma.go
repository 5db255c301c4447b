//go:build !arm64 && !ppc64le && !riscv64 && !s390x

package prim

import "math"

// fma32 is x*y + z with one rounding to float32. The product of two float32 is
// exact in float64, so only the sum rounds before the result does. Rounding the
// sum to odd instead of to nearest makes the second rounding right (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008); it matters
// only where the float64 sum lies on a midpoint of two float32, or where the
// result is denormal.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	w := float64(z)
	s := p + w
	const midpoint = 1 << 28 // of the 29 bits that float32 drops
	b := math.Float64bits(s)
	if b&(1<<29-1) != midpoint && b>>52&0x7ff >= 1023-126 {
		return float32(s)
	}
	return float32(toOdd(s, p, w))
}

// toOdd makes s = p + w, rounded to nearest, into p + w rounded to odd: when the
// sum was inexact and the last bit of s is even, it steps towards the error.
func toOdd(s, p, w float64) float64 {
	b := math.Float64bits(s)
	if b&1 == 1 || math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	t := s - p
	e := (p - (s - t)) + (w - t) // exact: s + e = p + w (Knuth's two-sum)
	switch {
	case e == 0:
		return s
	case (e > 0) == (s > 0):
		return math.Float64frombits(b + 1)
	default:
		return math.Float64frombits(b - 1)
	}
}
