package dtms

import (
	"fmt"
	"unsafe"

	"blutrain/formats"
)

// Stream is a device's queue of work, opaque here. Engines that move memory of the process take only 0.
type Stream uintptr

// Memory is a run of elements of one type, in the process or on a device.
type Memory struct {
	dtype  formats.DType
	count  int64
	host   []byte
	device uintptr
}

// Host is memory of this process: elements of type d in native byte order, aligned to their size. The bytes must stay
// where they are until the call they are given to is done.
func Host(d formats.DType, data []byte) Memory {
	if !d.Valid() {
		return Memory{dtype: d, host: data}
	}
	return Memory{dtype: d, count: int64(len(data) / d.Size()), host: data}
}

// Device is memory of a device: count elements of type d at this address.
func Device(d formats.DType, address uintptr, count int64) Memory {
	return Memory{dtype: d, count: count, device: address}
}

// Of is the memory of a slice.
func Of[T float32 | float64 | int32 | int64 | uint8](s []T) Memory {
	var d formats.DType
	switch any(s).(type) {
	case []float32:
		d = formats.F32
	case []float64:
		d = formats.F64
	case []int32:
		d = formats.I32
	case []int64:
		d = formats.I64
	case []uint8:
		d = formats.U8
	}
	return Host(d, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*d.Size()))
}

// DType is the type of the elements.
func (m Memory) DType() formats.DType { return m.dtype }

// Count is the number of elements.
func (m Memory) Count() int64 { return m.count }

// Bytes is the number of bytes.
func (m Memory) Bytes() int64 { return m.count * int64(m.dtype.Size()) }

// Data is the memory itself; nil on a device.
func (m Memory) Data() []byte { return m.host }

// OnDevice reports whether the memory is a device's.
func (m Memory) OnDevice() bool { return m.device != 0 }

// Address is where the memory begins.
func (m Memory) Address() uintptr {
	if m.device != 0 {
		return m.device
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.host)))
}

// Slice is elements lo to hi (exclusive).
func (m Memory) Slice(lo, hi int64) Memory {
	size := int64(m.dtype.Size())
	part := Memory{dtype: m.dtype, count: hi - lo}
	if m.device != 0 {
		part.device = m.device + uintptr(lo*size)
	} else {
		part.host = m.host[lo*size : hi*size]
	}
	return part
}

func (m Memory) check(what string) error {
	switch {
	case !m.dtype.Valid():
		return fmt.Errorf("%s has no element type", what)
	case m.count < 0:
		return fmt.Errorf("%s has %d elements", what, m.count)
	case m.device == 0 && len(m.host)%m.dtype.Size() != 0:
		return fmt.Errorf("%s has %d bytes, no whole number of %s", what, len(m.host), m.dtype)
	case m.count > 0 && m.Address()%uintptr(m.dtype.Size()) != 0:
		return fmt.Errorf("%s is not aligned to %s", what, m.dtype)
	}
	return nil
}

// overlaps reports whether two memories share bytes.
func (m Memory) overlaps(o Memory) bool {
	return m.count > 0 && o.count > 0 && m.OnDevice() == o.OnDevice() &&
		m.Address() < o.Address()+uintptr(o.Bytes()) && o.Address() < m.Address()+uintptr(m.Bytes())
}
