package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is one mapping of anonymous pages, outside the Go heap: pages are zero and take no room until touched.
type memory struct {
	bytes []byte
}

// allocate maps n bytes, aligned to a page.
func allocate(n int64, what string) (memory, error) {
	if n == 0 {
		return memory{}, nil
	}
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return memory{}, fmt.Errorf("out of memory: %d bytes for %s: %w", n, what, err)
	}
	// Large pages cost fewer misses; where the kernel has none to give, small ones serve.
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	return memory{b}, nil
}

func (m memory) free() error {
	if m.bytes == nil {
		return nil
	}
	return unix.Munmap(m.bytes)
}

// base is the address of the first byte; nil for an empty mapping.
func (m memory) base() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.bytes)) }
