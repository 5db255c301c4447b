package ir

import "math"

// BF16Bits rounds v to bfloat16 (nearest even; NaN stays NaN).
func BF16Bits(v float64) uint16 { return uint16(roundBits(v, 8, 7)) }

// F16Bits rounds v to IEEE half precision (nearest even).
func F16Bits(v float64) uint16 { return uint16(roundBits(v, 5, 10)) }

// F16Value is the value of IEEE half-precision bits.
func F16Value(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exp, frac := int(h>>10&31), float64(h&1023)
	switch exp {
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// roundBits rounds v once, from float64, to a format with the given exponent and fraction widths, subnormals and
// overflow to infinity included.
func roundBits(v float64, expBits, fracBits int) uint64 {
	var sign uint64
	if math.Signbit(v) {
		sign = 1 << (expBits + fracBits)
	}
	inf := (uint64(1)<<expBits - 1) << fracBits
	if math.IsNaN(v) {
		return sign | inf | 1<<(fracBits-1)
	}
	v = math.Abs(v)
	bias := 1<<(expBits-1) - 1
	if math.IsInf(v, 0) || v == 0 {
		if v == 0 {
			return sign
		}
		return sign | inf
	}
	exp := math.Ilogb(v)
	exp = max(exp, 1-bias) // subnormals share the smallest exponent
	n := uint64(math.RoundToEven(math.Ldexp(v, fracBits-exp)))
	// n counts units in the last place at this exponent; a carry moves into the exponent by itself.
	bits := n
	if n >= 1<<fracBits {
		bits = uint64(exp+bias)<<fracBits + (n - 1<<fracBits)
	}
	return sign | min(bits, inf)
}
