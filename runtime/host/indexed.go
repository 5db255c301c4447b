package host

import (
	"unsafe"

	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// positions is an index block as one number a row.
func positions(f *frame, b *block) []int32 {
	switch {
	case b.cols != 1:
		f.fail("indices %v, which are no column", b)
		return nil
	case b.rowStride == 1 || b.rows == 1:
		return unsafe.Slice((*int32)(b.p), b.rows)
	}
	out := make([]int32, b.rows)
	for i := range out {
		out[i] = *at[int32](b, i, 0)
	}
	return out
}

// unit reports whether the elements along the last dimension lie next to each other.
func (r reference) unit() bool {
	n := len(r.shape)
	return r.strides[n-1] == 1 || r.shape[n-1] == 1
}

func (d *decoder) gather(op *ir.Op, r []int) (instr, error) {
	t := d.k.refs[r[0]]
	ks := kinds(op)
	if len(t.shape) != 2 || ks[0] != kindI32 || ks[1] != elementKind(t.elem) || ks[1] != kindF32 && ks[1] != kindI32 {
		return nil, unsupported(op)
	}
	return func(f *frame) {
		idx, first, col, out := positions(f, &f.blocks[r[1]]), f.index[r[2]], f.index[r[3]], &f.blocks[r[4]]
		if col < 0 || col > t.shape[1]-int64(out.cols) || out.rows != len(idx) {
			f.fail("rows of %v from column %d of a table of %v", out, col, t.shape)
			return
		}
		for i, v := range idx {
			if int64(v) < 0 || int64(v) >= t.shape[0] {
				f.fail("index %d at position %d is out of range: the table has %d rows", v, first+int64(i), t.shape[0])
				return
			}
			src := unsafe.Add(f.refs[r[0]], (int64(v)*t.strides[0]+col*t.strides[1])*4)
			if t.unit() && out.colStride == 1 {
				copy(row[float32](out, i), unsafe.Slice((*float32)(src), out.cols))
				continue
			}
			for c := range out.cols {
				*at[float32](out, i, c) = *(*float32)(unsafe.Add(src, int64(c)*t.strides[1]*4))
			}
		}
		if f.traffic != nil {
			f.count(out.distinct()*4, true, false)
		}
	}, nil
}

func (d *decoder) pick(op *ir.Op, r []int) (instr, error) {
	t := d.k.refs[r[0]]
	rank := len(t.shape)
	offsets, dst := r[3:len(r)-1], r[len(r)-1]
	if !are(kinds(op), kindI32, kindF32) || !isBlock(op.Operand(len(r)-1)) || elementKind(t.elem) != kindF32 || rank < 2 || len(offsets) != rank-1 {
		return nil, unsupported(op)
	}
	ignore, ignores := op.Attrs().Int("ignore")
	return func(f *frame) {
		idx, first, out := positions(f, &f.blocks[r[1]]), f.index[r[2]], &f.blocks[dst]
		base, ok := int64(0), out.rows == len(idx) && out.cols == 1
		for i, o := range offsets {
			extent := int64(1)
			if i == rank-2 {
				extent = int64(len(idx))
			}
			v := f.index[o]
			ok = ok && v >= 0 && v <= t.shape[i]-extent
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
		if f.traffic != nil {
			f.count(out.distinct()*4, true, false)
		}
	}, nil
}

// A scatter holds the references of a host.scatter_add.
type scatter struct {
	x, index, out, init reference
	regs                []int // of x, index, column, out and, where there is one, init
	cols                int64
}

func (d *decoder) scatterAdd(op *ir.Op, r []int) (instr, error) {
	refs := d.k.refs
	s := scatter{x: refs[r[0]], index: refs[r[1]], out: refs[r[3]], init: refs[r[3]], regs: r, cols: op.Attrs().IntOr("cols", 0)}
	if len(r) > 4 {
		s.init = refs[r[4]]
	}
	ok := s.cols > 0 && len(s.index.shape) == 1 && elementKind(s.index.elem) == kindI32
	for _, t := range []reference{s.x, s.out, s.init} {
		ok = ok && len(t.shape) == 2 && t.shape[1] == s.out.shape[1] && elementKind(t.elem) == kindF32
	}
	if !ok || s.x.shape[0] != s.index.shape[0] || s.init.shape[0] != s.out.shape[0] {
		return nil, op.Errorf("host.scatter_add of %v at %v into %v and %v has no instruction on this device", s.x, s.index, s.init, s.out)
	}
	return s.run, nil
}

func (s *scatter) run(f *frame) {
	col := f.index[s.regs[2]]
	if col < 0 || col > s.out.shape[1] {
		f.fail("column %d of a table of %v", col, s.out.shape)
		return
	}
	n := int(min(s.cols, s.out.shape[1]-col))
	table := columns(f, s.regs[3], s.out, col, n)
	if n == 0 {
		return
	}
	s.start(f, &table, col, n)
	src := columns(f, s.regs[0], s.x, col, n)
	for i := range src.rows {
		v := *(*int32)(unsafe.Add(f.refs[s.regs[1]], int64(i)*s.index.strides[0]*4))
		if int64(v) < 0 || int64(v) >= s.out.shape[0] {
			f.fail("index %d at position %d is out of range: the table has %d rows", v, i, s.out.shape[0])
			return
		}
		if table.colStride == 1 && src.colStride == 1 {
			dst := row[float32](&table, int(v))
			f.k.Binary(prim.Add, dst, dst, row[float32](&src, i))
			continue
		}
		for c := range n {
			*at[float32](&table, int(v), c) += *at[float32](&src, i, c)
		}
	}
	if f.traffic != nil {
		f.count(int64(src.rows)*int64(4*n+4), true, false)
		f.count(src.distinct()*4, true, true)
	}
}

// start makes the table's columns what is added to: those of init, or zero.
func (s *scatter) start(f *frame, table *block, col int64, n int) {
	bytes := table.distinct() * 4
	if len(s.regs) > 4 {
		init := columns(f, s.regs[4], s.init, col, n)
		if init.p == table.p && init.rowStride == table.rowStride && init.colStride == table.colStride {
			return
		}
		f.copyLanes(&init, table)
		if f.traffic != nil {
			f.count(bytes, true, true)
		}
		return
	}
	for i := range table.rows {
		if table.colStride == 1 {
			clear(row[float32](table, i))
			continue
		}
		for c := range n {
			*at[float32](table, i, c) = 0
		}
	}
	if f.traffic != nil {
		f.count(bytes, false, true)
	}
}

// columns is the block of columns col to col+n of all rows of a two-dimensional reference.
func columns(f *frame, reg int, t reference, col int64, n int) block {
	return block{unsafe.Add(f.refs[reg], col*t.strides[1]*t.elemBytes), int(t.shape[0]), n, int(t.strides[0]), int(t.strides[1])}
}
