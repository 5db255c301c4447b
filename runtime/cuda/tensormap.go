package cuda

import (
	"fmt"
	"unsafe"
)

// TensorMap describes a tensor in device memory to the copy engine. It is passed to kernels by value.
type TensorMap struct {
	raw [128 + 64]byte // the driver wants 128 bytes at a multiple of 64
}

func (m *TensorMap) data() *[128]byte {
	start := -int(uintptr(unsafe.Pointer(&m.raw[0]))) & 63
	return (*[128]byte)(unsafe.Pointer(&m.raw[start]))
}

// Element is what a tensor map's elements are, in the driver's numbers.
type Element int32

const (
	Float16  Element = 6
	Float32  Element = 7
	BFloat16 Element = 9
	TFloat32 Element = 11 // float32 in memory, rounded to tf32 on the way to shared memory
)

func (e Element) size() int {
	if e == Float16 || e == BFloat16 {
		return 2
	}
	return 4
}

// Swizzle is how rows of a box are arranged in shared memory, in the driver's numbers.
type Swizzle int32

const (
	NoSwizzle  Swizzle = 0
	Swizzle32  Swizzle = 1
	Swizzle64  Swizzle = 2
	Swizzle128 Swizzle = 3
)

const promote256 = 3 // fetch 256 bytes into L2 at a time

// Tiled describes boxes of a tensor. The contiguous dimension comes first; strides are bytes, from the second dimension on.
func (c *Context) Tiled(e Element, address Pointer, dims []int, strides []int, box []int, swizzle Swizzle) (*TensorMap, error) {
	if len(strides) != len(dims)-1 || len(box) != len(dims) {
		return nil, fmt.Errorf("tensor map: %d dimensions, %d strides, %d extents of the box", len(dims), len(strides), len(box))
	}
	size, pitch := widen(dims), widen(strides)
	boxes, steps := make([]uint32, len(box)), make([]uint32, len(box))
	for i, n := range box {
		boxes[i], steps[i] = uint32(n), 1
	}
	pitches := &[]uint64{0}[0] // of one dimension there is none, but the driver wants a place
	if len(pitch) > 0 {
		pitches = &pitch[0]
	}
	m := &TensorMap{}
	return m, c.do(func() result {
		return c.d.fn.TensorMapEncode(m.data(), int32(e), uint32(len(dims)), uint64(address), &size[0], pitches, &boxes[0], &steps[0], 0, int32(swizzle), promote256, 0)
	}, "describing a tensor of extents %v, strides %v, at %#x, in boxes of %v elements of %d bytes", dims, strides, uint64(address), box, e.size())
}

func widen(ns []int) []uint64 {
	ws := make([]uint64, len(ns))
	for i, n := range ns {
		ws[i] = uint64(n)
	}
	return ws
}
