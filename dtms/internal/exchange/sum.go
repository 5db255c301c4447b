package exchange

import (
	"math"
	"unsafe"

	"blutrain/formats"
)

// chunk is how many elements are summed at a time: a few KiB that stay in the nearest cache.
const chunk = 1024

// addInOrder sets dst to ((terms[0] + terms[1]) + terms[2]) + ... element by element. dst may be one of the terms.
func addInOrder(d formats.DType, dst []byte, terms [][]byte) {
	switch d {
	case formats.F32:
		addNative[float32](dst, terms)
	case formats.F64:
		addNative[float64](dst, terms)
	case formats.I32:
		addNative[int32](dst, terms)
	case formats.I64:
		addNative[int64](dst, terms)
	case formats.BF16:
		addHalf(dst, terms, formats.BF16ToF32, toBF16)
	case formats.F16:
		addHalf(dst, terms, formats.F16ToF32, toF16)
	}
}

// view is memory as elements. Communicator has checked the alignment.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

func addNative[T float32 | float64 | int32 | int64](dst []byte, terms [][]byte) {
	out := view[T](dst)
	var buffer [chunk]T
	for lo := 0; lo < len(out); lo += chunk {
		hi := min(lo+chunk, len(out))
		sum := buffer[:hi-lo]
		copy(sum, view[T](terms[0])[lo:hi])
		for _, term := range terms[1:] {
			for i, v := range view[T](term)[lo:hi] {
				sum[i] += v
			}
		}
		copy(out[lo:hi], sum)
	}
}

// addHalf adds in float32 and rounds once.
func addHalf(dst []byte, terms [][]byte, widen func(uint16) float32, narrow func(float32) uint16) {
	out := view[uint16](dst)
	if len(terms) == 1 {
		copy(out, view[uint16](terms[0]))
		return
	}
	var buffer [chunk]float32
	for lo := 0; lo < len(out); lo += chunk {
		hi := min(lo+chunk, len(out))
		sum := buffer[:hi-lo]
		for i, v := range view[uint16](terms[0])[lo:hi] {
			sum[i] = widen(v)
		}
		for _, term := range terms[1:] {
			for i, v := range view[uint16](term)[lo:hi] {
				sum[i] += widen(v)
			}
		}
		for i, v := range sum {
			out[lo+i] = narrow(v)
		}
	}
}

// toBF16 rounds to nearest, ties to even; NaN stays NaN.
func toBF16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// toF16 rounds to nearest, ties to even; NaN stays NaN, what is too large becomes infinite.
func toF16(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits>>16) & 0x8000
	magnitude := bits & 0x7fffffff
	switch {
	case magnitude > 0x7f800000:
		return sign | 0x7e00
	case magnitude >= 0x477ff000: // 65520, half way from the largest to what would follow
		return sign | 0x7c00
	case magnitude < 0x38800000: // below 2^-14: adding 1/2 aligns the last bit kept, 2^-24, and rounds
		shifted := math.Float32frombits(magnitude) + 0.5
		return sign | uint16(math.Float32bits(shifted)-math.Float32bits(0.5))
	}
	magnitude += 0xfff + magnitude>>13&1 // round at bit 13
	return sign | uint16((magnitude-(112<<23))>>13)
}
