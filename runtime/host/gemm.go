package host

import (
	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// product decodes a matrix product with its epilogue. It runs on all workers: the workers' frames take over the registers
// of the frame that started it.
func (d *decoder) product(op *ir.Op) (instr, error) {
	if d.gemm != nil {
		return nil, op.Errorf("host.gemm within an epilogue")
	}
	ks := kinds(op)
	if !all(ks[:3], kindF32) || len(ks) > 3 && ks[3] != kindMask {
		return nil, unsupported(op)
	}
	if err := checkColumns(op); err != nil {
		return nil, err
	}
	regs := make([]int, op.NumOperands())
	for i, v := range op.Operands() {
		regs[i] = d.regs[v]
	}
	e, err := d.epilogue(op)
	if err != nil {
		return nil, err
	}
	d.k.usesEngine = true
	ta, tb := op.Attrs().Bool("ta"), op.Attrs().Bool("tb")
	return func(f *frame) {
		g, ok := matrices(f, regs, ta, tb)
		if !ok {
			return
		}
		var first firstError
		if len(e.body) > 0 {
			f.d.share(f)
			g.Epilogue = func(worker, _, i0, i1, j0, j1 int) {
				for i := i0; i < i1; i += e.rows {
					for j := j0; j < j1; j += e.cols {
						if err := e.run(&f.d.frames[worker], i, j, min(e.rows, i1-i), min(e.cols, j1-j)); err != nil {
							first.keep(i*g.N+j, err)
						}
					}
				}
			}
		}
		f.d.engine.Gemm(&g)
		f.err = first.err
	}, nil
}

// epilogue is what is done to a finished block of a product, a piece of at most rows by cols at a time.
type epilogue struct {
	rows, cols int
	args       [4]int // registers of the piece's first row and column, its rows and columns
	body       []instr
}

func (d *decoder) epilogue(op *ir.Op) (*epilogue, error) {
	piece, args := op.Attrs().Ints("piece"), op.Body().Args()
	if len(piece) != 2 || piece[0] < 1 || piece[1] < 1 {
		return nil, op.Errorf("host.gemm: pieces of %v", piece)
	}
	e := &epilogue{rows: int(piece[0]), cols: int(piece[1])}
	if len(args) != len(e.args) {
		return nil, op.Errorf("host.gemm: the epilogue has %d arguments, not row, column, rows, columns", len(args))
	}
	if _, err := d.indices(op, args...); err != nil {
		return nil, err
	}
	for i, a := range args {
		e.args[i] = d.newIndex(a)
	}
	d.gemm = op
	var err error
	e.body, err = d.block(op.Body())
	d.gemm = nil
	return e, err
}

// run works on one piece.
func (e *epilogue) run(f *frame, i, j, rows, cols int) error {
	for a, v := range [...]int{i, j, rows, cols} {
		f.index[e.args[a]] = int64(v)
	}
	f.err = nil
	for _, in := range e.body {
		if in(f); f.err != nil {
			break
		}
	}
	return f.err
}

// share gives every worker the registers of frame f.
func (d *device) share(f *frame) {
	for w := range d.frames {
		if o := &d.frames[w]; o != f {
			copy(o.index, f.index)
			copy(o.blocks, f.blocks)
			copy(o.refs, f.refs)
			o.iterations = f.iterations
		}
	}
}

// matrices sets up the matrix product of blocks a, b, c and, optionally, beta.
func matrices(f *frame, regs []int, ta, tb bool) (g prim.Gemm, ok bool) {
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
	g = prim.Gemm{
		M: m, N: n, K: k, TransA: ta, TransB: tb,
		A: elements[float32](a), B: elements[float32](b), C: elements[float32](c),
		LDA: leading(a), LDB: leading(b), LDC: leading(c),
	}
	if len(regs) > 3 {
		beta := &f.blocks[regs[3]]
		if beta.empty() {
			f.fail("matrix product with an empty beta")
			return g, false
		}
		g.Accumulate = *at[uint32](beta, 0, 0) != 0
	}
	if err := g.Check(); err != nil {
		f.fail("%v", err)
		return g, false
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
