package host

import (
	"unsafe"

	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

func fill(op *ir.Op, r []int) (instr, error) {
	v := op.Attrs().FloatOr("value", 0)
	switch kindOf(op.Operand(0)) {
	case kindF32:
		return fillLanes(r[0], float32(v)), nil
	case kindI32:
		return fillLanes(r[0], prim.Floats([]int32{int32(v)})[0]), nil
	case kindMask:
		return fillLanes(r[0], prim.Floats([]uint32{mask(v != 0)})[0]), nil
	case kindI64:
		return func(f *frame) {
			d := &f.blocks[r[0]]
			for i := range d.rows {
				for c := range d.cols {
					*at[int64](d, i, c) = int64(v)
				}
			}
		}, nil
	}
	return nil, unsupported(op)
}

func fillLanes(reg int, v float32) instr {
	return func(f *frame) {
		d := &f.blocks[reg]
		if d.rowStride == d.cols {
			f.k.Fill(elements[float32](d), v)
			return
		}
		for i := range d.rows {
			f.k.Fill(row[float32](d, i), v)
		}
	}
}

func iotas(op *ir.Op, r []int) (instr, error) {
	axis := op.Attrs().IntOr("axis", 0)
	switch kindOf(op.Operand(1)) {
	case kindF32:
		return func(f *frame) { count[float32](f, r, axis) }, nil
	case kindI32:
		return func(f *frame) { count[int32](f, r, axis) }, nil
	case kindI64:
		return func(f *frame) { count[int64](f, r, axis) }, nil
	}
	return nil, unsupported(op)
}

func count[T int32 | int64 | float32](f *frame, r []int, axis int64) {
	start, d := f.index[r[0]], &f.blocks[r[1]]
	for i := range d.rows {
		out := row[T](d, i)
		for c := range out {
			n := start + int64(c)
			if axis == 0 {
				n = start + int64(i)
			}
			out[c] = T(n)
		}
	}
}

func copies(op *ir.Op, r []int) (instr, error) {
	ks := kinds(op)
	switch {
	case are(ks, kindByte, kindMask):
		return func(f *frame) { mapElements(f, r, func(b byte) uint32 { return mask(b != 0) }) }, nil
	case are(ks, kindMask, kindByte):
		return func(f *frame) { mapElements(f, r, func(m uint32) byte { return byte(m & 1) }) }, nil
	case ks[0] != ks[1]:
		return nil, unsupported(op)
	}
	switch ks[0] {
	case kindF32, kindI32, kindMask:
		return func(f *frame) {
			x, d := &f.blocks[r[0]], &f.blocks[r[1]]
			if same(f, d, x) {
				f.copyLanes(x, d)
			}
		}, nil
	case kindByte:
		return copyElements[byte](r), nil
	case kindBF16, kindF16:
		return copyElements[uint16](r), nil
	case kindI64:
		return copyElements[uint64](r), nil
	}
	return nil, unsupported(op)
}

// copyLanes copies a block of four-byte elements to d, repeating rows and columns as needed.
func (f *frame) copyLanes(x, d *block) {
	whole := x.rows == d.rows && x.cols == d.cols
	switch {
	case x.p == d.p && whole && x.rowStride == d.rowStride && x.colStride == d.colStride:
	case d.colStride == 1 && (x.colStride == 1 || x.cols == 1):
		f.k.CopyRows(d.rows, d.cols, target[float32](d), operand[float32](x, d))
	case whole && d.colStride == 1 && x.rowStride == 1: // x is stored with rows and columns exchanged
		f.k.Transpose(elements[float32](d), d.rowStride, elements[float32](x), x.colStride, x.cols, x.rows)
	case whole && d.rowStride == 1 && x.colStride == 1: // d is
		f.k.Transpose(elements[float32](d), d.colStride, elements[float32](x), x.rowStride, x.rows, x.cols)
	default:
		for i := range d.rows {
			copyRow[uint32](x, d, i)
		}
	}
}

// copyElements copies a block of elements of other sizes.
func copyElements[T any](r []int) instr {
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if !same(f, d, x) {
			return
		}
		for i := range d.rows {
			copyRow[T](x, d, i)
		}
	}
}

func copyRow[T any](x, d *block, i int) {
	from := min(i, x.rows-1)
	if d.colStride == 1 && x.colStride == 1 && x.cols == d.cols {
		copy(row[T](d, i), row[T](x, from))
		return
	}
	step := x.colStride
	if x.cols == 1 {
		step = 0
	}
	size := int(unsafe.Sizeof(*new(T)))
	src, dst := unsafe.Pointer(at[T](x, from, 0)), unsafe.Pointer(at[T](d, i, 0))
	for range d.cols {
		*(*T)(dst) = *(*T)(src)
		src, dst = unsafe.Add(src, step*size), unsafe.Add(dst, d.colStride*size)
	}
}

func transpose(op *ir.Op, r []int) (instr, error) {
	if ks := kinds(op); ks[0] != ks[1] || ks[0] != kindF32 && ks[0] != kindI32 && ks[0] != kindMask {
		return nil, unsupported(op)
	}
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if x.rows != d.cols || x.cols != d.rows {
			f.fail("transposition of %v into %v", x, d)
			return
		}
		if !d.empty() {
			exchanged := block{x.p, x.cols, x.rows, x.colStride, x.rowStride}
			f.copyLanes(&exchanged, d)
		}
	}, nil
}

func random(op *ir.Op, r []int) (instr, error) {
	if !are(kinds(op), kindI64, kindF32) {
		return nil, unsupported(op)
	}
	a := op.Attrs()
	stream, pitch := uint64(a.IntOr("stream", 0)), a.IntOr("pitch", 0)
	normal := a.Str("fn") == "normal"
	mean, std := a.FloatOr("mean", 0), a.FloatOr("std", 1)
	return func(f *frame) {
		s, start, d := &f.blocks[r[0]], f.index[r[1]], &f.blocks[r[2]]
		if s.empty() {
			f.fail("random numbers without a seed")
			return
		}
		seed := uint64(*at[int64](s, 0, 0))
		for i := range d.rows {
			out, first := row[float32](d, i), uint64(start+int64(i)*pitch)
			if normal {
				f.k.Normal(out, seed, stream, first, mean, std)
			} else {
				f.k.Uniform(out, seed, stream, first)
			}
		}
	}, nil
}
