package cuda

import (
	"runtime"
	"unsafe"
)

// Pointer is an address in a GPU's memory.
type Pointer uint64

// Alloc reserves device memory.
func (c *Context) Alloc(bytes int64) (Pointer, error) {
	var p uint64
	err := c.do(func() result { return c.d.fn.MemAlloc(&p, uint64(bytes)) }, "allocating %d bytes on GPU %d", bytes, c.Device.Ordinal)
	return Pointer(p), err
}

// Free gives device memory back.
func (c *Context) Free(p Pointer) error {
	return c.do(func() result { return c.d.fn.MemFree(uint64(p)) }, "freeing memory on GPU %d", c.Device.Ordinal)
}

// Upload copies to the device and waits until that is done. It is ordered behind the null stream's work, but not behind that of others.
func (c *Context) Upload(to Pointer, from []byte) error { return c.NullStream().Upload(to, from) }

// Download copies from the device, after what the null stream has to do.
func (c *Context) Download(to []byte, from Pointer) error { return c.NullStream().Download(to, from) }

// Upload copies to the device, in order with the stream's other work, and waits until that is done. Waiting is not left to the driver: of
// memory that isn't pinned it copies by way of a buffer of its own, and returns while the last part is still on its way from there (driver
// API, "API synchronization behavior").
func (s *Stream) Upload(to Pointer, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return s.c.do(func() result {
		if code := s.c.d.fn.MemcpyHtoDAsync(uint64(to), unsafe.Pointer(&from[0]), uint64(len(from)), s.handle); code != 0 {
			return code
		}
		code := s.c.d.fn.StreamSynchronize(s.handle)
		runtime.KeepAlive(from)
		return code
	}, "copying %d bytes to GPU %d", len(from), s.c.Device.Ordinal)
}

// Download copies from the device, after what the stream has been given, and waits until that is done.
func (s *Stream) Download(to []byte, from Pointer) error {
	if len(to) == 0 {
		return nil
	}
	return s.c.do(func() result {
		if code := s.c.d.fn.MemcpyDtoHAsync(unsafe.Pointer(&to[0]), uint64(from), uint64(len(to)), s.handle); code != 0 {
			return code
		}
		code := s.c.d.fn.StreamSynchronize(s.handle)
		runtime.KeepAlive(to)
		return code
	}, "copying %d bytes from GPU %d", len(to), s.c.Device.Ordinal)
}

// Copy copies within the device, in order with the stream's other work.
func (s *Stream) Copy(to, from Pointer, bytes int64) error {
	return s.c.do(func() result { return s.c.d.fn.MemcpyDtoDAsync(uint64(to), uint64(from), uint64(bytes), s.handle) },
		"copying %d bytes on GPU %d", bytes, s.c.Device.Ordinal)
}

// Fill sets words of 32 bits, in order with the stream's other work.
func (s *Stream) Fill(p Pointer, value uint32, words int64) error {
	return s.c.do(func() result { return s.c.d.fn.MemsetD32Async(uint64(p), value, uint64(words), s.handle) },
		"filling %d words on GPU %d", words, s.c.Device.Ordinal)
}
