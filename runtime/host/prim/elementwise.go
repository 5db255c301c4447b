package prim

import (
	"math"
	"unsafe"
)

// Bits is the block x seen as its bits, Floats a block of bits seen as float32, Ints as int32.
func Bits(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// Floats is the block x seen as float32.
func Floats[T int32 | uint32](x []T) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func intsOfBits(x []uint32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func bitsOfInts(x []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// Unary computes dst[i] = op(x[i]).
func (k *Kernels) Unary(op UnaryOp, dst, x []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	if (op == Sin || op == Cos) && anyBeyond(x, trigLimit) {
		trigAny(op, dst, x)
		return
	}
	k.ops.unary[op](&dst[0], &x[0], n)
}

// Binary computes dst[i] = op(x[i], y[i]).
func (k *Kernels) Binary(op BinaryOp, dst, x, y []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x, y = x[:n], y[:n]
	if op == Pow {
		for i := range dst {
			dst[i] = pow(x[i], y[i])
		}
		return
	}
	k.ops.binaryVV[op](&dst[0], &x[0], &y[0], n)
}

// BinaryVS computes dst[i] = op(x[i], s).
func (k *Kernels) BinaryVS(op BinaryOp, dst, x []float32, s float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	if op == Pow {
		k.powVS(dst, x, s)
		return
	}
	k.ops.binaryVS[op](&dst[0], &x[0], s, n)
}

// BinarySV computes dst[i] = op(s, y[i]).
func (k *Kernels) BinarySV(op BinaryOp, dst []float32, s float32, y []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	y = y[:n]
	if op == Pow {
		for i := range dst {
			dst[i] = pow(s, y[i])
		}
		return
	}
	k.ops.binarySV[op](&dst[0], s, &y[0], n)
}

func pow(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) }

// powVS computes small integral exponents by products in float64, squares and
// reciprocals in vectors.
func (k *Kernels) powVS(dst, x []float32, s float32) {
	switch n := int(max(-9, min(s, 9))); {
	case s == 2:
		k.Unary(Square, dst, x)
	case s == -1:
		k.Unary(Recip, dst, x)
	case float32(n) == s && n > -9 && n < 9:
		for i, v := range x {
			dst[i] = float32(powInt(float64(v), n))
		}
	default:
		for i, v := range x {
			dst[i] = pow(v, s)
		}
	}
}

func powInt(x float64, n int) float64 {
	p := 1.0
	for range max(n, -n) {
		p *= x
	}
	if n < 0 {
		return 1 / p
	}
	return p
}

// FMA computes dst[i] = x[i]*y[i] + z[i] with one rounding.
func (k *Kernels) FMA(dst, x, y, z []float32) {
	if n := len(dst); n > 0 {
		x, y, z = x[:n], y[:n], z[:n]
		k.ops.fmaVVV(&dst[0], &x[0], &y[0], &z[0], n)
	}
}

// FMAVSV computes dst[i] = x[i]*s + z[i] with one rounding.
func (k *Kernels) FMAVSV(dst, x []float32, s float32, z []float32) {
	if n := len(dst); n > 0 {
		x, z = x[:n], z[:n]
		k.ops.fmaVSV(&dst[0], &x[0], s, &z[0], n)
	}
}

// FMAVVS computes dst[i] = x[i]*y[i] + t with one rounding.
func (k *Kernels) FMAVVS(dst, x, y []float32, t float32) {
	if n := len(dst); n > 0 {
		x, y = x[:n], y[:n]
		k.ops.fmaVVS(&dst[0], &x[0], &y[0], t, n)
	}
}

// FMAVSS computes dst[i] = x[i]*s + t with one rounding.
func (k *Kernels) FMAVSS(dst, x []float32, s, t float32) {
	if n := len(dst); n > 0 {
		x = x[:n]
		k.ops.fmaVSS(&dst[0], &x[0], s, t, n)
	}
}

// Compare sets mask[i] to ones where op(x[i], y[i]) holds and to zero elsewhere.
func (k *Kernels) Compare(op CompareOp, mask []uint32, x, y []float32) {
	if n := len(mask); n > 0 {
		x, y = x[:n], y[:n]
		k.ops.compareVV[op](&mask[0], &x[0], &y[0], n)
	}
}

// CompareVS sets mask[i] to ones where op(x[i], s) holds and to zero elsewhere.
func (k *Kernels) CompareVS(op CompareOp, mask []uint32, x []float32, s float32) {
	if n := len(mask); n > 0 {
		x = x[:n]
		k.ops.compareVS[op](&mask[0], &x[0], s, n)
	}
}

// Select computes dst[i] = x[i] where mask[i] is ones, y[i] where it is zero.
func (k *Kernels) Select(dst []float32, mask []uint32, x, y []float32) {
	if n := len(dst); n > 0 {
		mask, x, y = mask[:n], x[:n], y[:n]
		k.ops.selectVV(&dst[0], &mask[0], &x[0], &y[0], n)
	}
}

// SelectVS computes dst[i] = x[i] where mask[i] is ones, s where it is zero.
func (k *Kernels) SelectVS(dst []float32, mask []uint32, x []float32, s float32) {
	if n := len(dst); n > 0 {
		mask, x = mask[:n], x[:n]
		k.ops.selectVS(&dst[0], &mask[0], &x[0], s, n)
	}
}

// SelectSV computes dst[i] = s where mask[i] is ones, y[i] where it is zero.
func (k *Kernels) SelectSV(dst []float32, mask []uint32, s float32, y []float32) {
	if n := len(dst); n > 0 {
		mask, y = mask[:n], y[:n]
		k.ops.selectSV(&dst[0], &mask[0], s, &y[0], n)
	}
}

// SelectSS computes dst[i] = s where mask[i] is ones, t where it is zero.
func (k *Kernels) SelectSS(dst []float32, mask []uint32, s, t float32) {
	if n := len(dst); n > 0 {
		mask = mask[:n]
		k.ops.selectSS(&dst[0], &mask[0], s, t, n)
	}
}

// Fill sets every element of dst to s.
func (k *Kernels) Fill(dst []float32, s float32) {
	if n := len(dst); n > 0 {
		k.ops.fill(&Bits(dst)[0], math.Float32bits(s), n)
	}
}

// FillI32 sets every element of dst to s.
func (k *Kernels) FillI32(dst []int32, s int32) {
	if n := len(dst); n > 0 {
		k.ops.fill(&bitsOfInts(dst)[0], uint32(s), n)
	}
}

// BinaryI32 computes dst[i] = op(x[i], y[i]).
func (k *Kernels) BinaryI32(op IntOp, dst, x, y []int32) {
	if n := len(dst); n > 0 {
		x, y = x[:n], y[:n]
		k.ops.intVV[op](&bitsOfInts(dst)[0], &bitsOfInts(x)[0], &bitsOfInts(y)[0], n)
	}
}

// BinaryI32VS computes dst[i] = op(x[i], s).
func (k *Kernels) BinaryI32VS(op IntOp, dst, x []int32, s int32) {
	if n := len(dst); n > 0 {
		x = x[:n]
		k.ops.intVS[op](&bitsOfInts(dst)[0], &bitsOfInts(x)[0], uint32(s), n)
	}
}

// BinaryI32SV computes dst[i] = op(s, y[i]).
func (k *Kernels) BinaryI32SV(op IntOp, dst []int32, s int32, y []int32) {
	if op != SubI {
		k.BinaryI32VS(op, dst, y, s) // all others commute
		return
	}
	k.BinaryI32VS(XorI, dst, y, -1) // s - y = ^y + (s + 1)
	k.BinaryI32VS(AddI, dst, dst, s+1)
}

// CompareI32 is Compare for integers.
func (k *Kernels) CompareI32(op CompareOp, mask []uint32, x, y []int32) {
	if n := len(mask); n > 0 {
		x, y = x[:n], y[:n]
		k.ops.compareIntVV[op](&mask[0], &bitsOfInts(x)[0], &bitsOfInts(y)[0], n)
	}
}

// CompareI32VS is CompareVS for integers.
func (k *Kernels) CompareI32VS(op CompareOp, mask []uint32, x []int32, s int32) {
	if n := len(mask); n > 0 {
		x = x[:n]
		k.ops.compareIntVS[op](&mask[0], &bitsOfInts(x)[0], uint32(s), n)
	}
}

// MaskToFloat computes dst[i] = 1 where mask[i] is ones, 0 where it is zero.
func (k *Kernels) MaskToFloat(dst []float32, mask []uint32) {
	if n := len(dst); n > 0 {
		mask = mask[:n]
		k.ops.maskToFloat(&dst[0], &mask[0], n)
	}
}

// MaskFromBytes sets mask[i] to ones where b[i] is not zero.
func (k *Kernels) MaskFromBytes(mask []uint32, b []byte) {
	b = b[:len(mask)]
	for i, x := range b {
		mask[i] = maskBits(x != 0)
	}
}

// MaskToBytes sets b[i] to 1 where mask[i] is ones, to 0 where it is zero.
func (k *Kernels) MaskToBytes(b []byte, mask []uint32) {
	mask = mask[:len(b)]
	for i, m := range mask {
		b[i] = byte(m & 1)
	}
}

// IotaI32 computes dst[i] = start + i*step.
func (k *Kernels) IotaI32(dst []int32, start, step int32) {
	for i := range dst {
		dst[i] = start + int32(i)*step
	}
}

// Iota computes dst[i] = start + i*step, with one rounding.
func (k *Kernels) Iota(dst []float32, start, step float32) {
	for i := range dst {
		dst[i] = fma32(float32(i), step, start)
	}
}
