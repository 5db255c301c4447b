package host

import (
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is a piece of one mapping of anonymous pages, outside the Go heap: pages are zero and take no room until touched.
type memory struct {
	bytes   []byte
	mapping []byte
}

// allocate maps n bytes, aligned to a page. With guard they end, to four bytes, where a page begins that may not be
// touched, and there is another before them.
func allocate(n int64, guard bool, what string) (memory, error) {
	if n == 0 {
		return memory{}, nil
	}
	if n < 0 || n > math.MaxInt-1<<20 {
		return memory{}, fmt.Errorf("%d bytes for %s: there is no such amount", n, what)
	}
	size, first := int(n), 0
	if guard {
		page := unix.Getpagesize()
		first = page + roundUp(size, page) - roundUp(size, 4)
		size = roundUp(size, page) + 2*page
	}
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return memory{}, fmt.Errorf("out of memory: %d bytes for %s: %w", n, what, err)
	}
	if guard {
		return memory{m[first : first+int(n)], m}, protectEnds(m)
	}
	// Large pages cost fewer misses; where the kernel has none to give, small ones serve.
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	return memory{m, m}, nil
}

func protectEnds(m []byte) error {
	page := unix.Getpagesize()
	if err := unix.Mprotect(m[:page], unix.PROT_NONE); err != nil {
		return err
	}
	return unix.Mprotect(m[len(m)-page:], unix.PROT_NONE)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

func (m memory) free() error {
	if m.mapping == nil {
		return nil
	}
	return unix.Munmap(m.mapping)
}

// base is the address of the first byte; nil for an empty piece.
func (m memory) base() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.bytes)) }
