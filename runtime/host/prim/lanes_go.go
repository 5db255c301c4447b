package prim

import "math"

// What the generated portable loops call, one lane at a time. Each has the
// semantics of the vector instruction that it stands for.

func isNaN(x float32) bool { return x != x }

func choose[T float32 | uint32](m bool, x, y T) T {
	if m {
		return x
	}
	return y
}

// min32 and max32 return y if x or y is NaN, or if both are zero.
func min32(x, y float32) float32 { return choose(x < y, x, y) }
func max32(x, y float32) float32 { return choose(x > y, x, y) }

// toInt32 truncates; what int32 can't hold gives its lowest value.
func toInt32(x float64) uint32 {
	if x > -(1<<31)-1 && x < 1<<31 {
		return uint32(int32(x))
	}
	return 1 << 31
}

func maskBits(m bool) uint32 { return choose(m, ^uint32(0), 0) }

// scale32 is x * 2^n with one rounding, for |n| <= 250.
func scale32(x, n float32) float32 {
	i := int32(n)
	h := i >> 1
	return x * pow2(h) * pow2(i-h)
}

func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }
