package emulate

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// approximations are the instructions whose results are only within a bound of the exact ones. The bounds are those of the
// PTX ISA; the emulator's results are off by a part of them that depends on the operand, so that what relies on more than
// is promised shows.
var approximations = map[*ir.OpDef]func(x float32) float32{
	// Maximum error 1 unit in the last place.
	ptx.Rcp: func(x float32) float32 { return off(1/float64(x), ulp(1/float64(x)), x) },
	// 2 units in the last place.
	ptx.Exp2: func(x float32) float32 { y := math.Exp2(float64(x)); return off(y, 2*ulp(y), x) },
	ptx.RcpFlushed: func(x float32) float32 {
		x = flushed(x)
		return flushed(off(1/float64(x), ulp(1/float64(x)), x))
	},
	ptx.Exp2Flushed: func(x float32) float32 {
		x = flushed(x)
		y := math.Exp2(float64(x))
		return flushed(off(y, 2*ulp(y), x))
	},
	// 2^-22 absolute between 1/2 and 2, else relative.
	ptx.Log2: func(x float32) float32 {
		y := math.Log2(float64(x))
		bound := 0x1p-22
		if x <= 0.5 || x >= 2 {
			bound *= math.Abs(y)
		}
		return off(y, bound, x)
	},
	// 2^-22.9 relative.
	ptx.Rsqrt: func(x float32) float32 {
		y := 1 / math.Sqrt(float64(x))
		return off(y, math.Abs(y)*math.Exp2(-22.9), x)
	},
	// 2^-11 relative.
	ptx.Tanh: func(x float32) float32 { y := math.Tanh(float64(x)); return off(y, math.Abs(y)*0x1p-11, x) },
	// 2^-20.9 absolute between -pi and pi, and not promised beyond.
	ptx.Sin: func(x float32) float32 { return off(math.Sin(float64(x)), math.Exp2(-20.9), x) },
	ptx.Cos: func(x float32) float32 { return off(math.Cos(float64(x)), math.Exp2(-20.9), x) },
}

// flushed is x, or 0 of its sign where it is subnormal.
func flushed(x float32) float32 {
	if math.Abs(float64(x)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// ulp is a unit in the last place of float32 at a number.
func ulp(y float64) float64 {
	if y == 0 || math.IsInf(y, 0) || math.IsNaN(y) {
		return 0
	}
	return math.Ldexp(1, max(math.Ilogb(y), -126)-23)
}

// off is y off by up to the bound less what rounding may add, by an amount that x decides. Results that float32 holds
// exactly, infinities and NaN among them, stay exact.
func off(y, bound float64, x float32) float32 {
	exact := float32(y)
	if y == 0 || math.IsInf(y, 0) || math.IsNaN(y) || float64(exact) == y {
		return exact
	}
	room := bound - ulp(y)/2
	if room <= 0 {
		return exact
	}
	h := math.Float32bits(x) * 0x9E3779B1
	h ^= h >> 15
	return float32(y + room*(float64(h%2001)/1000-1))
}
