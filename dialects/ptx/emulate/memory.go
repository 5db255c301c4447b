package emulate

import (
	"encoding/binary"
	"fmt"
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// place is bytes of memory, and the cells that remember who accessed them.
type place struct {
	data    []byte
	written []bool // by byte: it holds something
	cells   []cell
	granule int
	start   int // the first byte
	n       int
	where   space
}

// space is a kind of memory.
type space string

const (
	globalSpace space = "global"
	sharedSpace space = "shared"
)

// global finds n bytes of global memory.
func (w *warp) global(at uint64, n int) (place, error) {
	b, start, err := w.cluster.memory.find(at, n)
	if err != nil {
		return place{}, err
	}
	if at%uint64(n) != 0 && n <= 16 {
		return place{}, fmt.Errorf("accesses %d bytes at %#x, which is no multiple", n, at)
	}
	g := w.cluster.program.granule
	if b.cells == nil {
		b.cells = make([]cell, (len(b.Data)+g-1)/g)
	}
	return place{b.Data, b.written, b.cells, g, start, n, globalSpace}, nil
}

// shared finds n bytes of the block's own shared memory.
func (w *warp) shared(at uint32, n int) (place, error) {
	b, offset, err := w.owner(at, n)
	if err != nil {
		return place{}, err
	}
	if b != w.block {
		return place{}, fmt.Errorf("accesses shared memory of block %d with an instruction for the thread's own", b.rank)
	}
	if n <= 16 && int(at)%n != 0 {
		return place{}, fmt.Errorf("accesses %d bytes at %d of shared memory, which is no multiple", n, offset)
	}
	return b.at(offset, n), nil
}

// owner finds the block of the cluster that n bytes of shared memory are of, and where they are in it.
func (w *warp) owner(at uint32, n int) (*block, int, error) {
	rank, offset := int(at>>24), int(at&0xFFFFFF)-sharedBase
	if rank >= w.cluster.size() || offset < 0 || offset+n > w.cluster.program.shared {
		return nil, 0, fmt.Errorf("accesses %d bytes at %d of block %d's shared memory, which has %d", n, offset, rank, w.cluster.program.shared)
	}
	return w.cluster.blocks[rank], offset, nil
}

func (b *block) at(offset, n int) place {
	return place{b.shared, b.written, b.cells, b.cluster.program.sharedGranule, offset, n, sharedSpace}
}

func (p place) bytes() []byte { return p.data[p.start : p.start+p.n] }

// order notes that the bytes are read.
func (p place) order(a *actor) error {
	for i := p.start / p.granule; i <= (p.start+p.n-1)/p.granule; i++ {
		if err := p.cells[i].read(a, p.where); err != nil {
			return p.fault(i*p.granule, err)
		}
	}
	return nil
}

// read notes that the bytes are read, which must have been written.
func (p place) read(a *actor) error {
	if err := p.order(a); err != nil {
		return err
	}
	if i := slices.Index(p.written[p.start:p.start+p.n], false); i >= 0 {
		return p.fault(p.start+i, fmt.Errorf("reads memory that nobody wrote"))
	}
	return nil
}

// write notes that the bytes are written.
func (p place) write(a *actor) error {
	for i := p.start / p.granule; i <= (p.start+p.n-1)/p.granule; i++ {
		if err := p.cells[i].write(a, p.where); err != nil {
			return p.fault(i*p.granule, err)
		}
	}
	for i := p.start; i < p.start+p.n; i++ {
		p.written[i] = true
	}
	return nil
}

func (p place) fault(at int, err error) error {
	return fmt.Errorf("%w, at byte %d of %s memory (%d)", err, at, p.where, len(p.data))
}

// load is a register's worth of bytes: shared memory that nobody wrote gives a register that holds nothing.
func (p place) load(at, n int) uint64 {
	x := get(p.data[p.start+at:], n)
	if n < 8 && slices.Contains(p.written[p.start+at:p.start+at+n], false) {
		return x | undefined
	}
	return x
}

// store puts a register into memory; shared memory can hold what is nothing.
func (p place) store(at int, x uint64, n int) error {
	put(p.data[p.start+at:], x, n)
	switch {
	case n == 8 || x>>32 == 0:
		return nil
	case x&inFlight != 0 || p.where == globalSpace:
		return tagged(x)
	}
	clear(p.written[p.start+at : p.start+at+n])
	return nil
}

// actor is lane l at work.
func (w *warp) actor(l int) actor {
	return actor{access: access{int32(w.number), 1 << l, w.clock}, cluster: int32(w.cluster.number), warp: w, own: 1 << l, view: w.views[l]}
}

// background is something that lane l began and that goes on by itself, as an agent of the warp.
func (w *warp) background(l, kind int, clock uint32, by proxy) actor {
	a := w.actor(l)
	a.agent, a.clock, a.proxy = int32(kind*w.cluster.warpCount()+w.number), clock, by
	return a
}

// memoryOp is a load or store: what is moved and where.
type memoryOp struct {
	address, when int // registers; when is -1 where nothing guards
	offset        uint64
	data          []int
	size          int // bytes of a register
	shared        bool
	cached        bool // through the read-only cache
}

func (c *compiler) memoryOp(op *ir.Op, when int) memoryOp {
	return memoryOp{address: c.one(op.Operand(0)), when: c.optional(op, when), offset: uint64(op.Attrs().IntOr("offset", 0)),
		shared: op.Attrs().Str("space") == "shared", cached: op.Attrs().Str("cache") == "nc"}
}

// find is the memory that a lane accesses.
func (m *memoryOp) find(w *warp, l int) (place, error) {
	at := w.regs[m.address][l]
	if m.shared {
		if at>>32 != 0 {
			return place{}, tagged(at)
		}
		return w.shared(uint32(at)+uint32(m.offset), m.size*len(m.data))
	}
	return w.global(at+m.offset, m.size*len(m.data))
}

// on reports whether the predicate holds, where there is one.
func (m *memoryOp) on(w *warp, l int) (bool, error) { return w.holds(m.when, l) }

// holds reports whether a predicate, if there is one, holds in a lane.
func (w *warp) holds(when, l int) (bool, error) {
	if when < 0 {
		return true, nil
	}
	x := w.regs[when][l]
	if x>>32 != 0 {
		return false, tagged(x)
	}
	return x&1 == 1, nil
}

func (c *compiler) load(op *ir.Op) error {
	m := c.memoryOp(op, 1)
	y := op.Result(0)
	m.data, m.size = c.fresh(y), ptx.Width(ir.Elem(y.Type()))/8
	if op.Is(ptx.LoadByte) {
		m.size = 1
	}
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			if on, err := m.on(w, l); !on {
				for _, r := range m.data {
					w.regs[r][l] = 0
				}
				return err
			}
			p, err := m.find(w, l)
			if err != nil {
				return err
			}
			a := w.actor(l)
			note := place.read
			if m.shared && m.size < 8 {
				note = place.order
			}
			if err := note(p, &a); err != nil {
				return err
			}
			if m.cached && p.cells[p.start/p.granule].writer.clock != 0 {
				return fmt.Errorf("reads through the read-only cache what this kernel writes")
			}
			for i, r := range m.data {
				w.regs[r][l] = p.load(i*m.size, m.size)
			}
			return nil
		})
	})
	return nil
}

func (c *compiler) store(op *ir.Op) error {
	m := c.memoryOp(op, 2)
	x := op.Operand(1)
	m.data, m.size = c.of(x), ptx.Width(ir.Elem(x.Type()))/8
	if op.Is(ptx.StoreByte) {
		m.size = 1
	}
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			if on, err := m.on(w, l); !on {
				return err
			}
			p, err := m.find(w, l)
			if err != nil {
				return err
			}
			a := w.actor(l)
			if err := p.write(&a); err != nil {
				return err
			}
			for i, r := range m.data {
				if err := p.store(i*m.size, w.regs[r][l], m.size); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return nil
}

// prefetchBulk changes nothing: what it names must be memory all the same.
func (c *compiler) prefetchBulk(op *ir.Op) error {
	address, count, when := c.one(op.Operand(0)), c.one(op.Operand(1)), c.optional(op, 2)
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			if on, err := w.holds(when, l); !on {
				return err
			}
			at, n := w.regs[address][l], w.regs[count][l]
			if n>>32 != 0 {
				return tagged(n)
			}
			if at%16 != 0 || n%16 != 0 || n == 0 {
				return fmt.Errorf("fetches %d bytes from %#x on, which are no multiples of 16", n, at)
			}
			_, err := w.global(at, int(n))
			return err
		})
	})
	return nil
}

func (c *compiler) reduceMin(op *ir.Op) error {
	m := c.memoryOp(op, 2)
	m.data, m.size = c.of(op.Operand(1)), 8
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			if on, err := m.on(w, l); !on {
				return err
			}
			p, err := m.find(w, l)
			if err != nil {
				return err
			}
			if slices.Contains(p.written[p.start:p.start+8], false) {
				return fmt.Errorf("takes the smaller of a number and memory that nobody wrote")
			}
			a := w.actor(l)
			a.proxy = atomic
			if err := p.write(&a); err != nil {
				return err
			}
			put(p.bytes(), min(get(p.bytes(), 8), w.regs[m.data[0]][l]), 8)
			return nil
		})
	})
	return nil
}

func get(p []byte, n int) uint64 {
	switch n {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

func put(p []byte, x uint64, n int) {
	switch n {
	case 1:
		p[0] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(x))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(x))
	default:
		binary.LittleEndian.PutUint64(p, x)
	}
}
