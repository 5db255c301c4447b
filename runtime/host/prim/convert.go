package prim

import (
	"math"
	"unsafe"
)

// ToBF16 rounds to bfloat16, to nearest even. NaN stays NaN, made quiet.
func (k *Kernels) ToBF16(dst []uint16, x []float32) { narrow(dst, x, k.red.toBF16, toBF16Go) }

// ToF16 rounds to float16, to nearest even: denormals included, Inf beyond 65504. NaN
// stays NaN, made quiet.
func (k *Kernels) ToF16(dst []uint16, x []float32) { narrow(dst, x, k.red.toF16, toF16Go) }

// FromBF16 widens bfloat16; exact.
func (k *Kernels) FromBF16(dst []float32, x []uint16) { widen(dst, x, k.red.fromBF16, fromBF16Go) }

// FromF16 widens float16; exact.
func (k *Kernels) FromF16(dst []float32, x []uint16) { widen(dst, x, k.red.fromF16, fromF16Go) }

// RoundBF16 rounds to bfloat16, to nearest even, and back; see Unary.
func (k *Kernels) RoundBF16(dst, x []float32) { k.Unary(RoundBF16, dst, x) }

// ToI32 converts towards zero; NaN and what int32 can't hold give -2^31.
func (k *Kernels) ToI32(dst []int32, x []float32) {
	if n := len(dst); n > 0 {
		x = x[:n]
		k.ops.toI32(&bitsOfInts(dst)[0], &x[0], n)
	}
}

// FromI32 converts to the nearest float32.
func (k *Kernels) FromI32(dst []float32, x []int32) {
	if n := len(dst); n > 0 {
		x = x[:n]
		k.ops.fromI32(&dst[0], &bitsOfInts(x)[0], n)
	}
}

// narrow converts 16 elements at a time with vector and what is left with scalar.
func narrow(dst []uint16, x []float32, vector, scalar func(*uint16, *float32, int)) {
	x = x[:len(dst)]
	n := len(dst) &^ 15
	if n > 0 {
		vector(&dst[0], &x[0], n)
	}
	if n < len(dst) {
		scalar(&dst[n], &x[n], len(dst)-n)
	}
}

func widen(dst []float32, x []uint16, vector, scalar func(*float32, *uint16, int)) {
	x = x[:len(dst)]
	n := len(dst) &^ 15
	if n > 0 {
		vector(&dst[0], &x[0], n)
	}
	if n < len(dst) {
		scalar(&dst[n], &x[n], len(dst)-n)
	}
}

func toBF16Go(dst *uint16, x *float32, n int) {
	d := unsafe.Slice(dst, n)
	for i, v := range view(x, n) {
		b := math.Float32bits(v)
		if isNaN(v) {
			d[i] = uint16(b>>16) | 0x40
		} else {
			d[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
		}
	}
}

func fromBF16Go(dst *float32, x *uint16, n int) {
	d := view(dst, n)
	for i, v := range unsafe.Slice(x, n) {
		d[i] = math.Float32frombits(uint32(v) << 16)
	}
}

func toF16Go(dst *uint16, x *float32, n int) {
	d := unsafe.Slice(dst, n)
	for i, v := range view(x, n) {
		d[i] = f16(v)
	}
}

func f16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, mag := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case mag > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(mag>>13)&0x3ff
	case mag >= 0x477ff000: // rounds to 65520 or more
		return sign | 0x7c00
	case mag >= 0x38800000: // normal: rebias, round to even
		return sign | uint16((mag-0x38000000+0xfff+mag>>13&1)>>13)
	default: // denormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
		return sign | uint16(math.Float32bits(math.Float32frombits(mag)+0.5)-0x3f000000)
	}
}

func fromF16Go(dst *float32, x *uint16, n int) {
	d := view(dst, n)
	for i, v := range unsafe.Slice(x, n) {
		d[i] = fromF16(v)
	}
}

func fromF16(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0:
		return math.Float32frombits(math.Float32bits(float32(frac)*0x1p-24) | sign)
	case 0x1f:
		if frac != 0 {
			frac |= 0x200
		}
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	default:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
}
