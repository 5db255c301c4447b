package emulate

import (
	"encoding/binary"
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// products is a warp's matrix products in the background.
type products struct {
	closed, finished uint32 // groups
	open             bool   // there are some that no group has
	fenced           bool   // a fence came after the registers may have been touched
	count            int
	read             []reading
}

// reading is registers that a product reads as its operand, and what they held when it began.
type reading struct {
	group uint32
	slots []int
	held  []lanes
}

// together is a product that the warps of a warpgroup have to begin alike.
type together struct {
	op    *ir.Op
	a, b  uint64
	warps int
}

// descriptor says where a matrix lies in shared memory, in bytes.
type descriptor struct {
	start, leading, stride int
	swizzle                Swizzle
}

func decode(x uint64) (descriptor, error) {
	field := func(shift int) int { return int(x>>shift&0x3FFF) << 4 }
	if x>>49&7 != 0 {
		return descriptor{}, fmt.Errorf("has a descriptor with base offset %d: not emulated", x>>49&7)
	}
	return descriptor{field(0), field(16), field(32), [4]Swizzle{0, 128, 64, 32}[x>>62]}, nil
}

// rowChunk is where 16 bytes of k lie of a row of a K-major matrix.
func (d descriptor) rowChunk(row, chunk int) int {
	if d.swizzle == 0 {
		return d.start + row/8*d.stride + row%8*16 + chunk*d.leading
	}
	return swizzled(d.start+row/8*d.stride+row%8*int(d.swizzle)+chunk*16, d.swizzle)
}

// columnChunk is where 16 bytes along M or N lie of one k of an MN-major matrix.
func (d descriptor) columnChunk(k, chunk int) int {
	if d.swizzle == 0 {
		return d.start + k/8*d.leading + k%8*16 + chunk*d.stride
	}
	per := int(d.swizzle) / 16
	return swizzled(d.start+k/8*d.stride+k%8*int(d.swizzle)+chunk/per*d.leading+chunk%per*16, d.swizzle)
}

// chunk reads 16 bytes.
func (w *warp) chunk(at int, a *actor) ([]byte, error) {
	if at -= sharedBase; at < 0 || at+16 > len(w.block.shared) {
		return nil, fmt.Errorf("multiplies 16 bytes at %d of shared memory, which has %d", at, len(w.block.shared))
	}
	p := w.block.at(at, 16)
	return p.bytes(), p.read(a)
}

// gather reads rows of a matrix, from one on, as numbers: [rows][depth].
func (w *warp) gather(d descriptor, format string, mnMajor bool, first int, to [][16]float64, a *actor) error {
	if format == "tf32" || !mnMajor {
		for i := range to {
			for c := range 2 {
				raw, err := w.chunk(d.rowChunk(first+i, c), a)
				if err != nil {
					return err
				}
				if format == "tf32" {
					for j := range 4 {
						to[i][c*4+j] = operand32(binary.LittleEndian.Uint32(raw[4*j:]))
					}
					continue
				}
				for j := range 8 {
					to[i][c*8+j] = operand16(format, binary.LittleEndian.Uint16(raw[2*j:]))
				}
			}
		}
		return nil
	}
	for k := range 16 {
		for i := 0; i < len(to); i += 8 {
			raw, err := w.chunk(d.columnChunk(k, (first+i)/8), a)
			if err != nil {
				return err
			}
			for j := range 8 {
				to[i+j][k] = operand16(format, binary.LittleEndian.Uint16(raw[2*j:]))
			}
		}
	}
	return nil
}

func (c *compiler) wgmma(op *ir.Op) error {
	da, db, add := c.of(op.Operand(0)), c.one(op.Operand(1)), c.one(op.Operand(3))
	format, ta, tb := op.Attrs().Str("format"), op.Attrs().Bool("ta"), op.Attrs().Bool("tb")
	depth := int(ptx.Depth(format))
	d := c.inPlace(op.Result(0), op, 2)
	if c.p.threads%128 != 0 {
		return op.Errorf("ptx.wgmma: %d threads, which are no whole warpgroups", c.p.threads)
	}
	c.emit(op, func(w *warp) error {
		a, b, adds, err := w.begin(op, da, db, add)
		if err != nil {
			return err
		}
		if adds {
			for _, r := range d {
				if w.regs[r][0]&undefined != 0 {
					return tagged(w.regs[r][0])
				}
			}
		}
		group := w.product.closed + 1
		who := w.background(0, asProducts, group, async)
		who.own = ^uint32(0)
		for l := range 32 {
			who.view = w.views[l].join(who.view)
		}
		x, y := make([][16]float64, 16), make([][16]float64, 2*len(d))
		if len(da) > 1 {
			err = w.takeRegisters(format, da, group, x)
		} else {
			err = w.gather(a, format, ta, w.index%4*16, x, &who)
		}
		if err != nil {
			return err
		}
		if err := w.gather(b, format, tb, 0, y, &who); err != nil {
			return err
		}
		for i, r := range d {
			for l := range 32 {
				p, q := &x[l/4+i/2%2*8], &y[i/4*8+l%4*2+i%2]
				sum := 0.0
				if adds {
					sum = float64(f32(w.regs[r][l]))
				}
				for k := range depth {
					sum += p[k] * q[k]
				}
				w.regs[r][l] = bits32(accumulated(sum)) | inFlight | uint64(group)<<32
			}
		}
		return nil
	})
	return nil
}

// takeRegisters reads the warp's 16 rows of a matrix from registers, which the product reads until it is complete.
func (w *warp) takeRegisters(format string, slots []int, group uint32, to [][16]float64) error {
	r := reading{group: group, slots: slots}
	for i, s := range slots {
		for l, v := range w.regs[s] {
			if v>>32 != 0 {
				return threadError{l, tagged(v)}
			}
			unpack(format, uint32(v), to[l/4+i%2*8][:], l%4, i/2)
		}
		r.held = append(r.held, w.regs[s])
	}
	w.product.read = append(w.product.read, r)
	return nil
}

// kept checks that the operands of products that are complete were left alone.
func (w *warp) kept() error {
	var rest []reading
	for _, r := range w.product.read {
		if r.group > w.product.finished {
			rest = append(rest, r)
			continue
		}
		for i, s := range r.slots {
			if w.regs[s] != r.held[i] {
				return fmt.Errorf("waits for a product whose operand in registers was written over before it was complete")
			}
		}
	}
	w.product.read = rest
	return nil
}

// begin checks what has to hold when a product begins. a is a descriptor where it is in shared memory.
func (w *warp) begin(op *ir.Op, da []int, db, add int) (a, b descriptor, adds bool, err error) {
	if err = w.complete(); err != nil {
		return
	}
	if !w.product.fenced {
		return a, b, false, fmt.Errorf("begins a product with no wgmma_fence since the last wait, or since the start")
	}
	w.product.open = true
	var x, y, p uint64
	if len(da) == 1 {
		if x, err = w.uniform(da[0], "descriptor"); err != nil {
			return
		}
	}
	if y, err = w.uniform(db, "descriptor"); err != nil {
		return
	}
	if p, err = w.uniform(add, "predicate"); err != nil {
		return
	}
	if err = w.alike(op, x, y); err != nil {
		return
	}
	if a, err = decode(x); err != nil { // 0 where a is in registers
		return
	}
	b, err = decode(y)
	return a, b, p&1 == 1, err
}

// alike checks that the warps of a warpgroup begin the same products.
func (w *warp) alike(op *ir.Op, a, b uint64) error {
	key := [2]int{w.index / 4, w.product.count}
	w.product.count++
	t := w.block.products[key]
	if t == nil {
		w.block.products[key] = &together{op, a, b, 1}
		return nil
	}
	if t.op != op || t.a != a || t.b != b {
		return fmt.Errorf("begins another product than other warps of its warpgroup: descriptors %#x and %#x, not %#x and %#x", a, b, t.a, t.b)
	}
	if t.warps++; t.warps == 4 {
		delete(w.block.products, key)
	}
	return nil
}

func (c *compiler) wgmmaFence(op *ir.Op) error {
	c.emit(op, func(w *warp) error {
		w.product.fenced = true
		return w.complete()
	})
	return nil
}

func (c *compiler) wgmmaCommit(op *ir.Op) error {
	c.emit(op, func(w *warp) error {
		w.product.closed++
		w.product.open = false
		return w.complete()
	})
	return nil
}

// wgmmaWait completes groups: registers that they write, if the operation names them, hold numbers again.
func (c *compiler) wgmmaWait(op *ir.Op) error {
	pending := uint32(op.Attrs().IntOr("pending", 0))
	var slots []int
	for i, v := range op.Results() {
		slots = append(slots, c.inPlace(v, op, i)...)
	}
	c.emit(op, func(w *warp) error {
		if err := w.complete(); err != nil {
			return err
		}
		w.product.fenced = false
		if w.product.closed > pending {
			w.product.finished = max(w.product.finished, w.product.closed-pending)
		}
		if err := w.kept(); err != nil {
			return err
		}
		for _, s := range slots {
			x := &w.regs[s]
			if x[0]&inFlight == 0 || uint32(x[0]&^inFlight>>32) > w.product.finished {
				continue
			}
			for l := range x {
				x[l] &= 1<<32 - 1
			}
		}
		return nil
	})
	return nil
}
