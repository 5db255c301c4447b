package host

import (
	"math"
	"unsafe"

	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

func (d *decoder) fill(op *ir.Op, r []int) (instr, error) {
	v := op.Attrs().FloatOr("value", 0)
	switch kindOf(op.Operand(0)) {
	case kindF32:
		return fillWith(r[0], float32(v)), nil
	case kindI32:
		return fillWith(r[0], int32(v)), nil
	case kindI64:
		return fillWith(r[0], int64(v)), nil
	case kindMask:
		return fillWith(r[0], mask(v != 0)), nil
	}
	return nil, unsupported(op)
}

func fillWith[T any](reg int, v T) instr {
	return func(f *frame) {
		d := &f.blocks[reg]
		for i := range d.rows {
			out := row[T](d, i)
			for c := range out {
				out[c] = v
			}
		}
	}
}

func (d *decoder) iota(op *ir.Op, r []int) (instr, error) {
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

func (d *decoder) copies(op *ir.Op, r []int) (instr, error) {
	from, to := kindOf(op.Operand(0)), kindOf(op.Operand(1))
	switch {
	case from == kindByte && to == kindMask:
		return func(f *frame) { convert(f, r, func(b byte) uint32 { return mask(b != 0) }) }, nil
	case from == kindMask && to == kindByte:
		return func(f *frame) { convert(f, r, func(m uint32) byte { return byte(m & 1) }) }, nil
	case from != to:
		return nil, unsupported(op)
	}
	switch from {
	case kindF32, kindI32, kindMask:
		return copyBlocks[uint32](r), nil
	case kindByte:
		return copyBlocks[byte](r), nil
	case kindBF16, kindF16:
		return copyBlocks[uint16](r), nil
	case kindI64:
		return copyBlocks[uint64](r), nil
	}
	return nil, unsupported(op)
}

// copyBlocks copies x to d, repeating rows and columns as needed.
func copyBlocks[T any](r []int) instr {
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
	for c := range d.cols {
		*at[T](d, i, c) = *at[T](x, from, min(c, x.cols-1))
	}
}

// convert maps the elements of one block to another of the same extents.
func convert[T, U any](f *frame, r []int, fn func(T) U) {
	x, d := &f.blocks[r[0]], &f.blocks[r[1]]
	if !same(f, d, x) {
		return
	}
	for i := range d.rows {
		for c := range d.cols {
			*at[U](d, i, c) = fn(*at[T](x, min(i, x.rows-1), min(c, x.cols-1)))
		}
	}
}

func (d *decoder) cast(op *ir.Op, r []int) (instr, error) {
	from, to := kindOf(op.Operand(0)), kindOf(op.Operand(1))
	switch [2]kind{from, to} {
	case [2]kind{kindF32, kindF32}, [2]kind{kindI32, kindI32}:
		return copyBlocks[uint32](r), nil
	case [2]kind{kindF32, kindBF16}:
		return func(f *frame) {
			f.eachRow(r, func(d, x *block, i, j int) { f.k.ToBF16(row[uint16](d, i), row[float32](x, j)) })
		}, nil
	case [2]kind{kindBF16, kindF32}:
		return func(f *frame) {
			f.eachRow(r, func(d, x *block, i, j int) { f.k.FromBF16(row[float32](d, i), row[uint16](x, j)) })
		}, nil
	case [2]kind{kindF32, kindF16}:
		return func(f *frame) {
			f.eachRow(r, func(d, x *block, i, j int) { f.k.ToF16(row[uint16](d, i), row[float32](x, j)) })
		}, nil
	case [2]kind{kindF16, kindF32}:
		return func(f *frame) {
			f.eachRow(r, func(d, x *block, i, j int) { f.k.FromF16(row[float32](d, i), row[uint16](x, j)) })
		}, nil
	case [2]kind{kindF32, kindI32}:
		return func(f *frame) { convert(f, r, toInt32) }, nil
	case [2]kind{kindI32, kindF32}:
		return func(f *frame) { convert(f, r, func(x int32) float32 { return float32(x) }) }, nil
	case [2]kind{kindI64, kindI32}:
		return func(f *frame) { convert(f, r, func(x int64) int32 { return int32(x) }) }, nil
	case [2]kind{kindI32, kindI64}:
		return func(f *frame) { convert(f, r, func(x int32) int64 { return int64(x) }) }, nil
	case [2]kind{kindI64, kindF32}:
		return func(f *frame) { convert(f, r, func(x int64) float32 { return float32(x) }) }, nil
	case [2]kind{kindMask, kindF32}:
		return func(f *frame) { convert(f, r, func(m uint32) float32 { return float32(m & 1) }) }, nil
	case [2]kind{kindMask, kindI32}:
		return func(f *frame) { convert(f, r, func(m uint32) int32 { return int32(m & 1) }) }, nil
	case [2]kind{kindF32, kindMask}:
		return func(f *frame) { convert(f, r, func(x float32) uint32 { return mask(x != 0) }) }, nil
	case [2]kind{kindI32, kindMask}:
		return func(f *frame) { convert(f, r, func(x int32) uint32 { return mask(x != 0) }) }, nil
	}
	return nil, op.Errorf("host.cast from %s to %s has no instruction on this device", op.Operand(0).Type(), op.Operand(1).Type())
}

// toInt32 truncates towards zero; NaN is 0, and what is out of range the nearest.
func toInt32(x float32) int32 {
	switch {
	case x != x:
		return 0
	case x >= math.MaxInt32:
		return math.MaxInt32
	case x <= math.MinInt32:
		return math.MinInt32
	}
	return int32(x)
}

// eachRow calls use for every row i of the destination and the row j of the source that belongs to it.
func (f *frame) eachRow(r []int, use func(d, x *block, i, j int)) {
	x, d := &f.blocks[r[0]], &f.blocks[r[1]]
	if !same(f, d, x) {
		return
	}
	if x.cols != d.cols {
		f.fail("operand of %v for a destination of %v", x, d)
		return
	}
	for i := range d.rows {
		use(d, x, i, min(i, x.rows-1))
	}
}

func (d *decoder) transpose(op *ir.Op, r []int) (instr, error) {
	if k := kindOf(op.Operand(0)); k != kindF32 && k != kindI32 && k != kindMask {
		return nil, unsupported(op)
	}
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if x.rows != d.cols || x.cols != d.rows {
			f.fail("transposition of %v into %v", x, d)
			return
		}
		if d.empty() {
			return
		}
		if x.colStride == 1 && d.colStride == 1 {
			f.k.Transpose(elements[float32](d), d.rowStride, elements[float32](x), x.rowStride, x.rows, x.cols)
			return
		}
		for i := range d.rows {
			for c := range d.cols {
				*at[uint32](d, i, c) = *at[uint32](x, c, i)
			}
		}
	}, nil
}

// indices is an index block's rows: one number a row.
func indices(b *block) []int32 {
	if b.rowStride == 1 || b.rows == 1 {
		return unsafe.Slice((*int32)(b.p), b.rows)
	}
	out := make([]int32, b.rows)
	for i := range out {
		out[i] = *at[int32](b, i, 0)
	}
	return out
}

func (d *decoder) gather(op *ir.Op, r []int) (instr, error) {
	t := d.k.refs[r[0]]
	k := kindOf(op.Operand(4))
	if k != kindF32 && k != kindI32 || kindOf(op.Operand(1)) != kindI32 || len(t.shape) != 2 || t.strides[1] != 1 && t.shape[1] != 1 {
		return nil, unsupported(op)
	}
	return func(f *frame) {
		idx, first, col, out := indices(&f.blocks[r[1]]), f.index[r[2]], f.index[r[3]], &f.blocks[r[4]]
		if col < 0 || col+int64(out.cols) > t.shape[1] || out.rows != len(idx) {
			f.fail("rows of %v from column %d of a table of %v", out, col, t.shape)
			return
		}
		for i, v := range idx {
			if int64(v) < 0 || int64(v) >= t.shape[0] {
				f.fail("index %d at position %d is out of range: the table has %d rows", v, first+int64(i), t.shape[0])
				return
			}
			src := unsafe.Slice((*float32)(unsafe.Add(f.refs[r[0]], (int64(v)*t.strides[0]+col)*4)), out.cols)
			copy(row[float32](out, i), src)
		}
	}, nil
}

func (d *decoder) pick(op *ir.Op, r []int) (instr, error) {
	t := d.k.refs[r[0]]
	rank := len(t.shape)
	offsets, dst := r[3:len(r)-1], r[len(r)-1]
	if kindOf(op.Operand(len(r)-1)) != kindF32 || kindOf(op.Operand(1)) != kindI32 || rank < 2 || len(offsets) != rank-1 {
		return nil, unsupported(op)
	}
	ignore, ignores := op.Attrs().Int("ignore")
	return func(f *frame) {
		idx, first, out := indices(&f.blocks[r[1]]), f.index[r[2]], &f.blocks[dst]
		base, ok := int64(0), out.rows == len(idx) && out.cols == 1
		for i, o := range offsets {
			extent := int64(1)
			if i == rank-2 {
				extent = int64(len(idx))
			}
			v := f.index[o]
			ok = ok && v >= 0 && v+extent <= t.shape[i]
			base += v * t.strides[i]
		}
		if !ok {
			f.fail("picks %v beyond a reference of %v", out, t.shape)
			return
		}
		for i, v := range idx {
			x := float32(0)
			switch {
			case ignores && int64(v) == ignore:
			case int64(v) < 0 || int64(v) >= t.shape[rank-1]:
				f.fail("index %d at position %d is out of range: there are %d", v, first+int64(i), t.shape[rank-1])
				return
			default:
				x = *(*float32)(unsafe.Add(f.refs[r[0]], (base+int64(i)*t.strides[rank-2]+int64(v)*t.strides[rank-1])*4))
			}
			*at[float32](out, i, 0) = x
		}
	}, nil
}

func (d *decoder) scatterAdd(op *ir.Op, r []int) (instr, error) {
	x, idx, out := d.k.refs[r[0]], d.k.refs[r[1]], d.k.refs[r[3]]
	width := op.Attrs().IntOr("cols", 0)
	ok := len(x.shape) == 2 && len(idx.shape) == 1 && len(out.shape) == 2 && x.shape[0] == idx.shape[0] && x.shape[1] == out.shape[1]
	if !ok || x.elemBytes != 4 || idx.elemBytes != 4 || out.elemBytes != 4 {
		return nil, unsupported(op)
	}
	hasInit := len(r) > 4
	return func(f *frame) {
		col := f.index[r[2]]
		if col < 0 || col > out.shape[1] {
			f.fail("column %d of a table of %v", col, out.shape)
			return
		}
		n := int(min(width, out.shape[1]-col))
		table := rowsOf(f, r[3], out, col, n)
		if hasInit {
			init := rowsOf(f, r[4], d.k.refs[r[4]], col, n)
			if init.p != table.p {
				for i := range table.rows {
					copyRow[float32](&init, &table, i)
				}
			}
		} else {
			for i := range table.rows {
				clear(row[float32](&table, i))
			}
		}
		src := rowsOf(f, r[0], x, col, n)
		for i := range src.rows {
			v := *(*int32)(unsafe.Add(f.refs[r[1]], int64(i)*idx.strides[0]*4))
			if int64(v) < 0 || int64(v) >= out.shape[0] {
				f.fail("index %d at position %d is out of range: the table has %d rows", v, i, out.shape[0])
				return
			}
			dst := row[float32](&table, int(v))
			f.k.Binary(prim.Add, dst, dst, row[float32](&src, i))
		}
	}, nil
}

// rowsOf is the block of columns col to col+n of all rows of a two-dimensional reference.
func rowsOf(f *frame, reg int, t reference, col int64, n int) block {
	return block{unsafe.Add(f.refs[reg], col*t.strides[1]*t.elemBytes), int(t.shape[0]), n, int(t.strides[0]), int(t.strides[1])}
}

func (d *decoder) random(op *ir.Op, r []int) (instr, error) {
	if kindOf(op.Operand(0)) != kindI64 || kindOf(op.Operand(2)) != kindF32 {
		return nil, unsupported(op)
	}
	a := op.Attrs()
	stream, pitch := uint64(a.IntOr("stream", 0)), a.IntOr("pitch", 0)
	normal := a.Str("fn") == "normal"
	mean, std := a.FloatOr("mean", 0), a.FloatOr("std", 1)
	return func(f *frame) {
		seed, start, d := uint64(*at[int64](&f.blocks[r[0]], 0, 0)), f.index[r[1]], &f.blocks[r[2]]
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
