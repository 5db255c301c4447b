// Package emulate is the reference evaluation of the ptx dialect: it runs kernels on the CPU, clusters of thread blocks in
// warps whose lanes part and meet again, with shared memory, barriers of every kind, copies and matrix products in the
// background. It computes what the instructions are documented to compute; where their results are approximate, they are
// off by as much as is documented.
//
// It also finds what a GPU hides. These are errors, with the operation and its place: accesses outside memory or at
// addresses that are no multiple of their size; reads of memory that nobody wrote; accesses of two threads, or of a thread
// and a copy or product in the background, that nothing orders, one of them a write; what threads wrote that the copy engine or a product
// reads, or read or wrote that the copy engine writes over, without a fence of both proxies; registers that are used while a product writes them; warp-wide instructions that not all lanes
// reach; threads that wait for each other for ever. What comes before what is decided by barriers of every kind alone: fences
// of blocks and of the device order nothing here, so that a kernel whose threads pass flags through memory is reported.
// Shared memory that nobody wrote may be read and computed with, as the padding of tiles is, but must not be stored to
// global memory, decide a branch or be part of an address.
//
// Not there: registers of clocks and multiprocessors, descriptors with a base offset, boxes whose rows are shorter than
// their swizzle. A product needs a wgmma_fence after every wgmma_wait, also where no register was touched in between.
//
// The room knows nothing of where kernels come from.
package emulate

import (
	"fmt"
	"sort"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Memory is the global memory of a device.
type Memory struct {
	buffers []*Buffer
	next    uint64
}

// Buffer is a piece of it.
type Buffer struct {
	Base uint64
	Data []byte // as kernels have written it; Write is how the host does

	written []bool // by byte
	cells   []cell // of this launch
}

// Global memory starts at firstAddress; between buffers is room that no access beyond one's end crosses.
const (
	firstAddress = 1 << 20
	gap          = 1 << 28
)

// Alloc makes a buffer of n bytes at a multiple of 256 with a gap after it. Nobody has written it.
func (m *Memory) Alloc(n int) *Buffer {
	if m.next == 0 {
		m.next = firstAddress
	}
	b := &Buffer{Base: m.next, Data: make([]byte, n), written: make([]bool, n)}
	for i := range b.Data {
		b.Data[i] = 0xff
	}
	m.next += uint64(n+255)/256*256 + gap
	m.buffers = append(m.buffers, b)
	return b
}

// Write puts bytes at a place in the buffer.
func (b *Buffer) Write(at int, data []byte) {
	copy(b.Data[at:], data)
	for i := range data {
		b.written[at+i] = true
	}
}

// Written reports whether a byte has been written.
func (b *Buffer) Written(at int) bool { return b.written[at] }

func (m *Memory) find(at uint64, n int) (*Buffer, int, error) {
	i := sort.Search(len(m.buffers), func(i int) bool { return m.buffers[i].Base > at }) - 1
	if i >= 0 {
		if b := m.buffers[i]; at+uint64(n) <= b.Base+uint64(len(b.Data)) {
			return b, int(at - b.Base), nil
		}
	}
	return nil, 0, fmt.Errorf("accesses %d bytes at %#x, where no memory is", n, at)
}

// Swizzle is how the 16-byte columns of a box are exchanged in shared memory, by the bytes of its rows: 0, 32, 64 or 128.
type Swizzle int

// TensorMap is a parameter that describes boxes of a tensor to the copy engine. The contiguous dimension comes first.
type TensorMap struct {
	Element string // bf16, f16, f32, or tf32: float32 in memory, rounded to tf32 on the way to shared memory
	Base    uint64
	Dims    []int
	Strides []int // bytes, from the second dimension on
	Box     []int
	Swizzle Swizzle
}

func (t *TensorMap) size() int {
	return map[string]int{"bf16": 2, "f16": 2, "f32": 4, "tf32": 4}[t.Element]
}

// check says what the driver would refuse.
func (t *TensorMap) check() error {
	size, rank := t.size(), len(t.Dims)
	switch {
	case size == 0:
		return fmt.Errorf("tensor map: no element %q", t.Element)
	case rank < 1 || rank > 5 || len(t.Strides) != rank-1 || len(t.Box) != rank:
		return fmt.Errorf("tensor map: %d dimensions, %d strides, %d extents of the box", rank, len(t.Strides), len(t.Box))
	case t.Base%16 != 0:
		return fmt.Errorf("tensor map: the tensor is at %#x, no multiple of 16", t.Base)
	case t.Box[0]*size%16 != 0:
		return fmt.Errorf("tensor map: rows of a box have %d bytes, no multiple of 16", t.Box[0]*size)
	case t.Swizzle != 0 && t.Box[0]*size > int(t.Swizzle):
		return fmt.Errorf("tensor map: rows of a box have %d bytes, the swizzle %d", t.Box[0]*size, t.Swizzle)
	case t.Swizzle != 0 && t.Swizzle != 32 && t.Swizzle != 64 && t.Swizzle != 128:
		return fmt.Errorf("tensor map: no swizzle of %d bytes", t.Swizzle)
	}
	for i, n := range t.Box {
		if n < 1 || n > 256 || t.Dims[i] < 1 {
			return fmt.Errorf("tensor map: boxes %v of a tensor %v; a box has extents 1 to 256", t.Box, t.Dims)
		}
	}
	for _, s := range t.Strides {
		if s%16 != 0 || s < 1 {
			return fmt.Errorf("tensor map: a stride of %d bytes, no multiple of 16", s)
		}
	}
	return nil
}

// Program is a kernel made ready.
type Program struct {
	// Seed other than 0 has the warps of a cluster run at random, a few instructions at a time; 0 each until it waits.
	Seed uint64

	kernel        *ir.Op
	code          []instruction
	slots         int
	consts        []constant
	params        []int // the slot of each parameter
	threads       int
	clusterSize   int
	shared        int // bytes
	granule       int // bytes of global memory that have a cell, the least that an access has
	sharedGranule int
	registers     int // a thread has when the kernel starts
}

// Launch runs a kernel on a grid of blocks along x. Parameters are uint64 (a parameter's bits) or *TensorMap.
func Launch(m *Memory, kernel *ir.Op, blocks int, params ...any) error {
	p, err := Compile(kernel)
	if err != nil {
		return err
	}
	return p.Launch(m, blocks, params...)
}

// Launch runs the kernel on a grid of blocks along x: one cluster after the other, the warps of a cluster in turns.
func (p *Program) Launch(m *Memory, blocks int, params ...any) error {
	if len(params) != len(p.params) {
		return fmt.Errorf("%s: %d parameters given, it has %d", ir.SymName(p.kernel), len(params), len(p.params))
	}
	if blocks < 1 || blocks%p.clusterSize != 0 {
		return fmt.Errorf("%s: %d blocks in clusters of %d", ir.SymName(p.kernel), blocks, p.clusterSize)
	}
	var maps []*TensorMap
	values := make([]uint64, len(params))
	for i, v := range params {
		isMap := ptx.IsTensorMap(p.kernel.Body().Arg(i).Type())
		switch v := v.(type) {
		case uint64:
			values[i] = v
			if isMap {
				return fmt.Errorf("%s: parameter %d is a tensor map", ir.SymName(p.kernel), i)
			}
		case *TensorMap:
			if !isMap {
				return fmt.Errorf("%s: parameter %d is no tensor map", ir.SymName(p.kernel), i)
			}
			if err := v.check(); err != nil {
				return err
			}
			values[i] = uint64(len(maps))
			maps = append(maps, v)
		default:
			return fmt.Errorf("%s: parameter %d is a %T", ir.SymName(p.kernel), i, v)
		}
	}
	for _, b := range m.buffers {
		b.cells = nil // accesses of different launches don't conflict
	}
	for number := range blocks / p.clusterSize {
		c := newCluster(p, m, number, blocks, values, maps)
		if err := c.run(); err != nil {
			return err
		}
	}
	return nil
}
