package host

import (
	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// gemm decodes a matrix product with its epilogue. It runs on all workers: the workers' frames take over the registers of
// the frame that started it.
func (d *decoder) gemm(op *ir.Op) (instr, error) {
	if d.nested > 0 {
		return nil, op.Errorf("host.gemm within an epilogue")
	}
	d.k.usesEngine = true
	regs := d.operands(op)
	ta, tb := op.Attrs().Bool("ta"), op.Attrs().Bool("tb")
	piece := op.Attrs().Ints("piece")
	if len(piece) != 2 || piece[0] < 1 || piece[1] < 1 {
		return nil, op.Errorf("host.gemm: pieces of %v", piece)
	}
	pieceRows, pieceCols := int(piece[0]), int(piece[1])
	var args [4]int
	var epilogue []instr
	if body := op.Body(); body != nil {
		if len(body.Args()) != len(args) {
			return nil, op.Errorf("host.gemm: the epilogue has %d arguments, not row, column, rows, columns", len(body.Args()))
		}
		for i, a := range body.Args() {
			args[i] = d.newIndex(a)
		}
		d.nested++
		var err error
		epilogue, err = d.block(body)
		d.nested--
		if err != nil {
			return nil, err
		}
	}
	return func(f *frame) {
		g, ok := product(f, regs, ta, tb)
		if !ok {
			return
		}
		var first firstError
		if len(epilogue) > 0 {
			g.Epilogue = func(worker, _, i0, i1, j0, j1 int) {
				w := &f.d.frames[worker]
				for i := i0; i < i1; i += pieceRows {
					for j := j0; j < j1; j += pieceCols {
						w.index[args[0]], w.index[args[1]] = int64(i), int64(j)
						w.index[args[2]], w.index[args[3]] = int64(min(pieceRows, i1-i)), int64(min(pieceCols, j1-j))
						w.err = nil
						for _, in := range epilogue {
							in(w)
						}
						if w.err != nil {
							first.keep(i*g.N+j, w.err)
						}
					}
				}
			}
			f.d.share(f)
		}
		f.d.engine.Gemm(&g)
		f.err = first.err
	}, nil
}

// share gives every worker the registers of frame f.
func (d *device) share(f *frame) {
	for w := range d.frames {
		if o := &d.frames[w]; o != f {
			copy(o.index, f.index)
			copy(o.blocks, f.blocks)
		}
	}
}

// product sets up the matrix product of blocks a, b, c and, optionally, beta.
func product(f *frame, regs []int, ta, tb bool) (g prim.Gemm, ok bool) {
	a, b, c := &f.blocks[regs[0]], &f.blocks[regs[1]], &f.blocks[regs[2]]
	m, k := a.rows, a.cols
	if ta {
		m, k = k, m
	}
	kb, n := b.rows, b.cols
	if tb {
		kb, n = n, kb
	}
	if kb != k || m != c.rows || n != c.cols {
		f.fail("matrix product of %v and %v (transposed: %v, %v) into %v", a, b, ta, tb, c)
		return g, false
	}
	for _, x := range []*block{a, b, c} {
		if x.colStride != 1 && x.cols > 1 {
			f.fail("matrix product with columns %d apart", x.colStride)
			return g, false
		}
	}
	g = prim.Gemm{
		M: m, N: n, K: k, TransA: ta, TransB: tb,
		A: elements[float32](a), B: elements[float32](b), C: elements[float32](c),
		LDA: leading(a), LDB: leading(b), LDC: leading(c),
	}
	if len(regs) > 3 {
		g.Accumulate = *at[uint32](&f.blocks[regs[3]], 0, 0) != 0
	}
	return g, true
}

// leading is the distance between rows; with one row any distance will do.
func leading(b *block) int {
	if b.rows <= 1 {
		return max(b.cols, 1)
	}
	return b.rowStride
}
