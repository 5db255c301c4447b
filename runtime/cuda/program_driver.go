package cuda

import (
	"fmt"
	"unsafe"
)

// pinned is host memory that the GPU copies to and from by itself.
type pinned struct {
	c     *Context
	p     unsafe.Pointer
	bytes []byte
}

func (c *Context) newPinned(n int64) (*pinned, error) {
	m := &pinned{c: c}
	if err := c.do(func() result { return c.d.fn.MemAllocHost(&m.p, uint64(max(n, 1))) }, "pinning %d bytes of host memory", n); err != nil {
		return nil, err
	}
	m.bytes = unsafe.Slice((*byte)(m.p), n)
	return m, nil
}

func (m *pinned) free() error {
	return m.c.do(func() result { return m.c.d.fn.MemFreeHost(m.p) }, "freeing host memory")
}

// upload copies from pinned memory, in order with the stream's other work.
func (s *Stream) upload(to Pointer, from *pinned) error {
	if len(from.bytes) == 0 {
		return nil
	}
	return s.c.do(func() result { return s.c.d.fn.MemcpyHtoDAsync(uint64(to), from.p, uint64(len(from.bytes)), s.handle) },
		"copying %d bytes to GPU %d", len(from.bytes), s.c.Device.Ordinal)
}

// download copies to pinned memory.
func (s *Stream) download(to *pinned, from Pointer) error { return s.downloadTo(to.bytes, from) }

// downloadTo copies to a part of pinned memory.
func (s *Stream) downloadTo(to []byte, from Pointer) error {
	if len(to) == 0 {
		return nil
	}
	return s.c.do(func() result {
		return s.c.d.fn.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(to)), uint64(from), uint64(len(to)), s.handle)
	},
		"copying %d bytes from GPU %d", len(to), s.c.Device.Ordinal)
}

// graph is recorded work that is started as one.
type graph struct {
	c           *Context
	graph, exec uintptr
}

// captureRelaxed lets other threads work with the driver meanwhile.
const captureRelaxed = 2

// capture records what f does on the stream, instead of doing it.
func (s *Stream) capture(f func() error) (*graph, error) {
	c := s.c
	g := &graph{c: c}
	if err := c.do(func() result { return c.d.fn.BeginCapture(s.handle, captureRelaxed) }, "recording a graph"); err != nil {
		return nil, err
	}
	failed := f()
	if err := c.do(func() result { return c.d.fn.EndCapture(s.handle, &g.graph) }, "recording a graph"); failed == nil {
		failed = err
	}
	if failed == nil {
		failed = c.do(func() result { return c.d.fn.GraphInstantiate(&g.exec, g.graph, 0) }, "making a graph")
	}
	if failed != nil {
		_ = g.close()
		return nil, failed
	}
	return g, nil
}

func (s *Stream) launch(g *graph) error {
	return s.c.do(func() result { return s.c.d.fn.GraphLaunch(g.exec, s.handle) }, "starting a graph")
}

func (g *graph) close() error {
	return g.c.do(func() result {
		if g.exec != 0 {
			if code := g.c.d.fn.GraphExecDestroy(g.exec); code != 0 {
				return code
			}
		}
		if g.graph == 0 {
			return 0
		}
		return g.c.d.fn.GraphDestroy(g.graph)
	}, "destroying a graph")
}

// allocation is CUmemAllocationProp: device memory that stays where it is.
type allocation struct {
	kind, handles int32 // 1: pinned
	where         memoryPlace
	security      uintptr
	flags         [8]byte
}

// memoryPlace is CUmemLocation.
type memoryPlace struct{ kind, id int32 } // 1: a device

// accessTo is CUmemAccessDesc.
type accessTo struct {
	where memoryPlace
	flags int32
}

const (
	onDevice  = 1
	isPinned  = 1
	readWrite = 3
)

// backing maps device memory behind a range of addresses: an alloc.Backing.
type backing struct {
	c           *Context
	start       uint64
	reserved    int64
	granularity int64
	handles     []uint64
	mapped      []int64 // bytes of each handle
}

func (c *Context) properties() *allocation {
	return &allocation{kind: isPinned, where: memoryPlace{onDevice, c.Device.id}}
}

func newBacking(c *Context) (*backing, error) {
	b := &backing{c: c}
	var n uint64
	err := c.do(func() result { return c.d.fn.MemGranularity(&n, c.properties(), 1) }, "asking GPU %d how it maps memory", c.Device.Ordinal)
	b.granularity = int64(n)
	return b, err
}

// Granularity implements alloc.Backing.
func (b *backing) Granularity() int64 { return b.granularity }

// Reserve implements alloc.Backing.
func (b *backing) Reserve(bytes int64) (uint64, error) {
	b.reserved = bytes
	err := b.c.do(func() result { return b.c.d.fn.AddressReserve(&b.start, uint64(bytes), 0, 0, 0) }, "reserving %d bytes of addresses", bytes)
	return b.start, err
}

// Map implements alloc.Backing.
func (b *backing) Map(offset, bytes int64) error {
	c := b.c
	var handle uint64
	if err := c.do(func() result { return c.d.fn.MemCreate(&handle, uint64(bytes), c.properties(), 0) }, "allocating %d bytes on GPU %d", bytes, c.Device.Ordinal); err != nil {
		return err
	}
	at := b.start + uint64(offset)
	if err := c.do(func() result { return c.d.fn.MemMap(at, uint64(bytes), 0, handle, 0) }, "mapping %d bytes on GPU %d", bytes, c.Device.Ordinal); err != nil {
		_ = c.do(func() result { return c.d.fn.MemRelease(handle) }, "releasing memory")
		return err
	}
	b.handles, b.mapped = append(b.handles, handle), append(b.mapped, bytes)
	access := &accessTo{memoryPlace{onDevice, c.Device.id}, readWrite}
	return c.do(func() result { return c.d.fn.MemSetAccess(at, uint64(bytes), access, 1) }, "opening %d bytes on GPU %d", bytes, c.Device.Ordinal)
}

// Release implements alloc.Backing.
func (b *backing) Release() error {
	at := b.start
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i, handle := range b.handles {
		n := uint64(b.mapped[i])
		keep(b.c.do(func() result { return b.c.d.fn.MemUnmap(at, n) }, "unmapping %d bytes", n))
		keep(b.c.do(func() result { return b.c.d.fn.MemRelease(handle) }, "releasing %d bytes", n))
		at += n
	}
	b.handles, b.mapped = nil, nil
	if b.start != 0 {
		keep(b.c.do(func() result { return b.c.d.fn.AddressFree(b.start, uint64(b.reserved)) }, "giving up %d bytes of addresses", b.reserved))
		b.start = 0
	}
	if first != nil {
		return fmt.Errorf("giving memory back: %w", first)
	}
	return nil
}
