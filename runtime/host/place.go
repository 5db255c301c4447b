package host

import (
	"slices"
	"unsafe"

	"blutrain/dialects/host"
	"blutrain/ir"
)

// scratch decodes a block in scratch memory.
func (d *decoder) scratch(op *ir.Op) (instr, error) {
	rows, cols := d.regs[op.Operand(0)], d.regs[op.Operand(1)]
	maxRows, maxCols := int(op.Result(0).Shape()[0]), int(op.Result(0).Shape()[1])
	off := op.Attrs().IntOr("offset", 0)
	dst := d.newBlock(op.Result(0))
	return func(f *frame) {
		r, c := int(f.index[rows]), int(f.index[cols])
		if r < 0 || c < 0 || r > maxRows || c > maxCols {
			f.fail("a scratch block of %dx%d, at most %dx%d", r, c, maxRows, maxCols)
			return
		}
		f.blocks[dst] = block{unsafe.Add(f.scratch, off), r, c, maxCols, 1}
	}, nil
}

// memory decodes a reference to scratch memory.
func (d *decoder) memory(op *ir.Op) (instr, error) {
	off := op.Attrs().IntOr("offset", 0)
	t := op.Result(0).Type().(*ir.MemRefType)
	if err := checkReference(t, 0, host.BytesOf(op)); err != nil {
		return nil, op.Errorf("host.memory: %v", err)
	}
	dst := d.newRef(op.Result(0), t)
	return func(f *frame) { f.refs[dst] = unsafe.Add(f.scratch, off) }, nil
}

// window decodes a window of a reference. Every element is checked to lie within the reference.
func (d *decoder) window(op *ir.Op) (instr, error) {
	ref := d.regs[op.Operand(0)]
	t := d.k.refs[ref]
	rows, cols := d.regs[op.Operand(1)], d.regs[op.Operand(2)]
	shape := op.Result(0).Shape()
	maxRows, maxCols := shape[0], shape[1]
	offsets := make([]int, op.NumOperands()-3)
	for i := range offsets {
		offsets[i] = d.regs[op.Operand(i+3)]
	}
	rowDim, colDim := int(op.Attrs().IntOr("row", -1)), int(op.Attrs().IntOr("col", -1))
	rowStride, colStride := 0, 1
	if rowDim >= 0 {
		rowStride = int(t.strides[rowDim])
	}
	if colDim >= 0 {
		colStride = int(t.strides[colDim])
	}
	read, written := d.roles(op)
	dst := d.newBlock(op.Result(0))
	return func(f *frame) {
		r, c := f.index[rows], f.index[cols]
		ok := r >= 0 && c >= 0 && r <= maxRows && c <= maxCols && (rowDim >= 0 || r == 1) && (colDim >= 0 || c == 1)
		at := int64(0)
		for i, o := range offsets {
			extent := int64(1)
			switch i {
			case rowDim:
				extent = r
			case colDim:
				extent = c
			}
			v := f.index[o]
			ok = ok && v >= 0 && v <= t.shape[i]-extent
			at += v * t.strides[i]
		}
		if !ok {
			f.fail("a window of %dx%d, at most %dx%d, beyond a reference of %v", r, c, maxRows, maxCols, t.shape)
			return
		}
		b := block{unsafe.Add(f.refs[ref], at*t.elemBytes), int(r), int(c), rowStride, colStride}
		f.blocks[dst] = b
		if f.traffic != nil {
			f.count(b.distinct()*t.elemBytes, read, written)
		}
	}, nil
}

// count adds so many bytes to the traffic.
func (f *frame) count(bytes int64, read, written bool) {
	if read {
		f.traffic.Read += bytes
	}
	if written {
		f.traffic.Written += bytes
	}
}

// roles says whether a window's elements come from memory, because something reads them before anything writes them, and
// whether they go there. What an epilogue reads and writes of its product is in the cache.
func (d *decoder) roles(window *ir.Op) (read, written bool) {
	if d.gemm != nil && window.Operand(0) == d.gemm.Operand(2).Op().Operand(0) {
		return false, false
	}
	var uses []use
	for u := range window.Result(0).Uses() {
		uses = append(uses, useOf(u))
		written = written || uses[len(uses)-1].writes
	}
	for _, u := range uses {
		if u.reads && !u.after(uses) {
			return true, written
		}
	}
	return false, written
}

// use is what an instruction does with a block it is given.
type use struct {
	op            *ir.Op
	reads, writes bool
}

// useOf: the last block is the destination, but for products, whose destination is third, and those that add to it read
// it, too; adamw has three.
func useOf(u *ir.Use) use {
	op, i := u.Owner(), u.Index()
	if op.Is(host.Gemm) {
		return use{op, i != 2 || op.NumOperands() > 3, i == 2}
	}
	if op.Is(host.Adamw) {
		writes := slices.Contains(host.AdamwNew, i)
		return use{op, !writes, writes}
	}
	last := i == op.NumOperands()-1
	return use{op, !last || op.Is(host.Dot) && op.Attrs().Bool("accumulate"), last}
}

// after reports whether another use, before this one in its block, writes the block.
func (u use) after(uses []use) bool {
	for _, w := range uses {
		if w.writes && w.op != u.op && w.op.Block() == u.op.Block() && w.op.IsBefore(u.op) {
			return true
		}
	}
	return false
}
