package formats

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Tensor is a dense array in memory: row-major, little-endian, no padding.
type Tensor struct {
	DType DType
	Shape []int64
	Data  []byte
}

// MaxRank bounds the number of dimensions a reader accepts, so that a hostile shape stays small. NumPy's bound is 64.
const MaxRank = 64

// ByteSize is the number of bytes of a tensor of this type and shape, or an error when a dimension is negative, there
// are more than MaxRank of them, or the size overflows. The product of the dimensions that are not zero must fit too, so
// that strides never overflow.
func ByteSize(d DType, shape []int64) (int64, error) {
	if !d.Valid() {
		return 0, fmt.Errorf("%s has no size", d)
	}
	if len(shape) > MaxRank {
		return 0, fmt.Errorf("shape has %d dimensions, at most %d are supported", len(shape), MaxRank)
	}
	size, empty := uint64(d.Size()), false
	for i, n := range shape {
		if n < 0 {
			return 0, fmt.Errorf("dimension %d of shape %v is negative", i, shape)
		}
		if n == 0 {
			empty = true
			continue
		}
		hi, lo := bits.Mul64(size, uint64(n))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("shape %v of %s overflows 63 bits of bytes", shape, d)
		}
		size = lo
	}
	if empty {
		return 0, nil
	}
	return int64(size), nil
}

// Check says why t is not a well-formed tensor: a bad type or shape, or data of the wrong length.
func (t Tensor) Check() error {
	size, err := ByteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	if int64(len(t.Data)) != size {
		return fmt.Errorf("%s%v needs %d bytes, has %d", t.DType, t.Shape, size, len(t.Data))
	}
	return nil
}

// Len is the number of elements of a well-formed tensor.
func (t Tensor) Len() int { return len(t.Data) / t.DType.Size() }

// Float64s returns the elements as float64. Integers beyond 2^53 are rounded.
func (t Tensor) Float64s() []float64 {
	out, size := make([]float64, t.Len()), t.DType.Size()
	for i := range out {
		out[i] = element(t.DType, t.Data[i*size:])
	}
	return out
}

// Float32s returns the elements as float32, rounded once to nearest even.
func (t Tensor) Float32s() []float32 {
	out, size := make([]float32, t.Len()), t.DType.Size()
	for i := range out {
		out[i] = float32(element(t.DType, t.Data[i*size:]))
	}
	return out
}

func element(d DType, b []byte) float64 {
	le := binary.LittleEndian
	switch d {
	case Bool, U8:
		return float64(b[0])
	case I8:
		return float64(int8(b[0]))
	case I16:
		return float64(int16(le.Uint16(b)))
	case U16:
		return float64(le.Uint16(b))
	case I32:
		return float64(int32(le.Uint32(b)))
	case U32:
		return float64(le.Uint32(b))
	case I64:
		return float64(int64(le.Uint64(b)))
	case U64:
		return float64(le.Uint64(b))
	case F16:
		return float64(F16ToF32(le.Uint16(b)))
	case BF16:
		return float64(BF16ToF32(le.Uint16(b)))
	case F32:
		return float64(math.Float32frombits(le.Uint32(b)))
	}
	return math.Float64frombits(le.Uint64(b))
}

// FromFloat32s makes a float32 tensor of this shape.
func FromFloat32s(values []float32, shape ...int64) Tensor {
	data := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
	}
	return Tensor{F32, shape, data}
}

// FromFloat64s makes a float64 tensor of this shape.
func FromFloat64s(values []float64, shape ...int64) Tensor {
	data := make([]byte, 8*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
	}
	return Tensor{F64, shape, data}
}

// FromInt32s makes an int32 tensor of this shape.
func FromInt32s(values []int32, shape ...int64) Tensor {
	data := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(v))
	}
	return Tensor{I32, shape, data}
}

// BF16ToF32 widens a bfloat16, exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F16ToF32 widens an IEEE half, exactly.
func F16ToF32(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch {
	case exp == 31: // infinity and NaN keep their payload
		return math.Float32frombits(sign | 255<<23 | frac<<13)
	case exp == 0: // zero and subnormals: frac * 2^-24 is exact in float32
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
