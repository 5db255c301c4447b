package emulate

import (
	"encoding/binary"
	"fmt"
	"slices"

	"blutrain/ir"
)

func (c *compiler) copyAsync(op *ir.Op) error {
	to, from, count := c.one(op.Operand(0)), c.one(op.Operand(1)), c.optional(op, 2)
	n := int(op.Attrs().IntOr("bytes", 0))
	offset, fromOffset := uint32(op.Attrs().IntOr("offset", 0)), uint64(op.Attrs().IntOr("from_offset", 0))
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			take := n
			if count >= 0 {
				if take = int(uint32(w.regs[count][l])); take > n {
					return fmt.Errorf("copies %d bytes of %d", take, n)
				}
			}
			dst, err := w.shared(uint32(w.regs[to][l])+offset, n)
			if err != nil {
				return err
			}
			a := w.background(l, asCopies, w.copies.closed[l]+1, ordinary)
			w.copies.open |= 1 << l
			if err := dst.write(&a); err != nil {
				return err
			}
			clear(dst.bytes())
			if take == 0 {
				return nil
			}
			at := w.regs[from][l] + fromOffset
			if at%uint64(n) != 0 {
				return fmt.Errorf("copies %d bytes from %#x, which is no multiple", n, at)
			}
			src, err := w.stretch(at, take)
			if err != nil {
				return err
			}
			if err := src.read(&a); err != nil {
				return err
			}
			copy(dst.bytes(), src.bytes())
			return nil
		})
	})
	return nil
}

func (c *compiler) copyCommit(op *ir.Op) error {
	c.emit(op, func(w *warp) error {
		closeGroup(w.mask, &w.copies)
		return nil
	})
	return nil
}

func closeGroup(mask uint32, b *groups) {
	for l := range 32 {
		if mask>>l&1 == 1 {
			b.closed[l]++
		}
	}
	b.open &^= mask
}

// finishGroups has at most `pending` groups unfinished.
func finishGroups(mask uint32, closed, finished *[32]uint32, pending uint32) {
	for l := range 32 {
		if mask>>l&1 == 1 && closed[l] > pending {
			finished[l] = max(finished[l], closed[l]-pending)
		}
	}
}

func (c *compiler) copyWait(op *ir.Op) error {
	pending := uint32(op.Attrs().IntOr("pending", 0))
	c.emit(op, func(w *warp) error {
		finishGroups(w.mask, &w.copies.closed, &w.copies.finished, pending)
		return nil
	})
	return nil
}

// box is a box of a tensor at coordinates: rows of its contiguous dimension.
type box struct {
	t    *TensorMap
	at   [5]int
	row  int // bytes
	rows int
}

func (w *warp) box(mapSlot int, at []int, l int) (box, error) {
	t := w.cluster.maps[w.regs[mapSlot][l]]
	if len(at) != len(t.Dims) {
		return box{}, fmt.Errorf("names a box by %d coordinates, its tensor has %d", len(at), len(t.Dims))
	}
	b := box{t: t, row: t.Box[0] * t.size(), rows: 1}
	if t.Swizzle != 0 && b.row != int(t.Swizzle) {
		return box{}, fmt.Errorf("moves rows of %d bytes under a swizzle of %d: not emulated", b.row, t.Swizzle)
	}
	for i, slot := range at {
		b.at[i] = int(int32(w.regs[slot][l]))
		if i > 0 {
			b.rows *= t.Box[i]
		}
	}
	// An H200 calls it an illegal instruction.
	if n := b.at[0] * t.size(); n%16 != 0 {
		return box{}, fmt.Errorf("names a box that starts %d bytes into its rows, no multiple of 16", n)
	}
	return b, nil
}

// source is where row r lies in the tensor: the address of the bytes from `low` to `high` of the row that are inside.
func (b *box) source(r int) (address uint64, low, high int) {
	t, size := b.t, b.t.size()
	address = t.Base
	for i := 1; i < len(t.Dims); i++ {
		at := b.at[i] + r%t.Box[i]
		r /= t.Box[i]
		if at < 0 || at >= t.Dims[i] {
			return 0, 0, 0
		}
		address += uint64(at * t.Strides[i-1])
	}
	low, high = max(0, -b.at[0])*size, min(t.Box[0], t.Dims[0]-b.at[0])*size
	if low >= high {
		return 0, 0, 0
	}
	return uint64(int64(address) + int64(b.at[0]*size+low)), low, high
}

// swizzled is where a byte lies that is at an address before 16-byte columns are exchanged.
func swizzled(address int, s Swizzle) int {
	switch s {
	case 128:
		return address ^ address>>3&0x70
	case 64:
		return address ^ address>>3&0x30
	case 32:
		return address ^ address>>3&0x10
	}
	return address
}

func (c *compiler) slotsOf(vs []*ir.Value) []int {
	var slots []int
	for _, v := range vs {
		slots = append(slots, c.one(v))
	}
	return slots
}

func (c *compiler) tmaLoad(op *ir.Op) error {
	tensor, to, barrier := c.one(op.OperandGroup(0)[0]), c.one(op.OperandGroup(1)[0]), c.one(op.OperandGroup(2)[0])
	at, masks := c.slotsOf(op.OperandGroup(3)), c.slotsOf(op.OperandGroup(4))
	offset, barrierOffset := uint32(op.Attrs().IntOr("offset", 0)), uint32(op.Attrs().IntOr("barrier_offset", 0))
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			b, err := w.box(tensor, at, l)
			if err != nil {
				return err
			}
			address, signal := uint32(w.regs[to][l])+offset, uint32(w.regs[barrier][l])+barrierOffset
			if int(address>>24) != w.block.rank || int(signal>>24) != w.block.rank {
				return fmt.Errorf("copies to another block of the cluster, or has another's barrier told")
			}
			if len(masks) == 0 {
				return w.loadBox(op, &b, address, signal, l)
			}
			mask := w.regs[masks[0]][l] & 0xFFFF
			for rank := range 16 {
				if mask>>rank&1 == 0 {
					continue
				}
				if err := w.loadBox(op, &b, address&0xFFFFFF|uint32(rank)<<24, signal&0xFFFFFF|uint32(rank)<<24, l); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return nil
}

// loadBox copies a box to one block of the cluster.
func (w *warp) loadBox(op *ir.Op, b *box, to, signal uint32, l int) error {
	m, err := w.barrierAt(signal, l, true)
	if err != nil {
		return err
	}
	if to%128 != 0 {
		return fmt.Errorf("copies a box to %d, no multiple of 128", to&0xFFFFFF)
	}
	a := w.background(l, asWarp, m.phase+1, async)
	a.agent = int32(m.agent)
	row := make([]byte, b.row)
	for r := range b.rows {
		if err := w.boxRow(b, r, row, &a); err != nil {
			return err
		}
		owner, offset, err := w.owner(to+uint32(r*b.row), b.row)
		if err != nil {
			return err
		}
		if err := owner.at(offset, b.row).write(&a); err != nil {
			return err
		}
		for i := 0; i < b.row; i += 16 {
			copy(owner.shared[swizzled(offset+i, b.t.Swizzle):], row[i:i+16])
		}
	}
	w.cluster.blocks[to>>24].reached(&a, op)
	m.bytes -= b.row * b.rows
	m.settle()
	return nil
}

// boxRow reads a row of a box from the tensor; what is outside is zero.
func (w *warp) boxRow(b *box, r int, row []byte, a *actor) error {
	clear(row)
	address, low, high := b.source(r)
	if low == high {
		return nil
	}
	src, err := w.stretch(address, high-low)
	if err != nil {
		return err
	}
	if err := src.read(a); err != nil {
		return err
	}
	copy(row[low:], src.bytes())
	if b.t.Element == "tf32" {
		for i := 0; i < len(row); i += 4 {
			binary.LittleEndian.PutUint32(row[i:], tf32Even(binary.LittleEndian.Uint32(row[i:])))
		}
	}
	return nil
}

// stretch is any number of bytes of global memory at any address.
func (w *warp) stretch(address uint64, n int) (place, error) {
	b, start, err := w.cluster.memory.find(address, n)
	if err != nil {
		return place{}, err
	}
	p, err := w.global(b.Base, 1)
	p.start, p.n = start, n
	return p, err
}

func (c *compiler) tmaStore(op *ir.Op) error {
	tensor, from, at := c.one(op.Operand(0)), c.one(op.Operand(1)), c.slotsOf(op.Operands()[2:])
	offset := uint32(op.Attrs().IntOr("offset", 0))
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			b, err := w.box(tensor, at, l)
			if err != nil {
				return err
			}
			if slices.Min(b.at[:len(at)]) < 0 { // An H200 calls it an illegal instruction.
				return fmt.Errorf("stores a box from before a tensor's start: %v", b.at[:len(at)])
			}
			return w.storeBox(&b, uint32(w.regs[from][l])+offset, l)
		})
	})
	return nil
}

func (w *warp) storeBox(b *box, from uint32, l int) error {
	if from%128 != 0 {
		return fmt.Errorf("copies a box from %d, no multiple of 128", from&0xFFFFFF)
	}
	group := w.stores.closed[l] + 1
	w.stores.open |= 1 << l
	reads, writes := w.background(l, asReads, group, async), w.background(l, asStores, group, async)
	row := make([]byte, b.row)
	for r := range b.rows {
		owner, offset, err := w.owner(from+uint32(r*b.row), b.row)
		if err != nil {
			return err
		}
		if err := owner.at(offset, b.row).read(&reads); err != nil {
			return err
		}
		for i := 0; i < b.row; i += 16 {
			copy(row[i:i+16], owner.shared[swizzled(offset+i, b.t.Swizzle):])
		}
		address, low, high := b.source(r)
		if low == high {
			continue
		}
		dst, err := w.stretch(address, high-low)
		if err != nil {
			return err
		}
		if err := dst.write(&writes); err != nil {
			return err
		}
		copy(dst.bytes(), row[low:high])
	}
	return nil
}

func (c *compiler) tmaCommit(op *ir.Op) error {
	c.emit(op, func(w *warp) error {
		closeGroup(w.mask, &w.stores)
		return nil
	})
	return nil
}

func (c *compiler) tmaWait(op *ir.Op) error {
	pending, read := uint32(op.Attrs().IntOr("pending", 0)), op.Attrs().Bool("read")
	c.emit(op, func(w *warp) error {
		finishGroups(w.mask, &w.stores.closed, &w.read, pending)
		if !read {
			finishGroups(w.mask, &w.stores.closed, &w.stores.finished, pending)
		}
		return nil
	})
	return nil
}
