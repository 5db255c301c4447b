package prim

import (
	"fmt"
	"slices"
	"unsafe"
)

// A Gemm is one matrix product C = op(A) op(B), or C += op(A) op(B). Matrices are
// row-major; LDA, LDB and LDC are the distances in elements between rows as
// stored, so that a matrix may be a window of a larger one.
type Gemm struct {
	M, N, K        int
	A              []float32 // [M, K]; [K, M] if TransA
	B              []float32 // [K, N]; [N, K] if TransB
	C              []float32 // [M, N]
	LDA, LDB, LDC  int
	TransA, TransB bool
	Accumulate     bool // add to C

	// Epilogue, if not nil, is called once for each block C[i0:i1, j0:j1] when it
	// is final, by the worker in whose cache it is. The blocks tile C; where they
	// are cut depends on the sizes, the instruction set and the number of workers,
	// so what is computed of an element may not. batch is 0 but in GemmBatch.
	Epilogue func(worker, batch, i0, i1, j0, j1 int)
}

// A Batch repeats a Gemm over some axes, as a tensor's leading dimensions do; products are
// numbered in row-major order, the last axis fastest.
type Batch []BatchAxis

// A BatchAxis repeats a Gemm Count times, StrideA, StrideB and StrideC elements
// apart in A, B and C. A stride of 0 shares an operand.
type BatchAxis struct{ Count, StrideA, StrideB, StrideC int }

func (b Batch) count() int {
	n := 1
	for _, x := range b {
		n *= x.Count
	}
	return n
}

// offsets are where product i starts in A, B and C.
func (b Batch) offsets(i int) (at [3]int) {
	for j := len(b) - 1; j >= 0; j-- {
		x := b[j]
		q := i % x.Count
		i /= x.Count
		at[0], at[1], at[2] = at[0]+q*x.StrideA, at[1]+q*x.StrideB, at[2]+q*x.StrideC
	}
	return at
}

// Check says what is wrong with the product, if anything: a negative size, a
// leading dimension below the row's length, a matrix that reaches beyond its
// slice.
func (g *Gemm) Check() error { return g.CheckBatch(nil) }

// CheckBatch is Check for a batch. It also refuses products that overlap in C.
func (g *Gemm) CheckBatch(b Batch) error {
	if g.M < 0 || g.N < 0 || g.K < 0 {
		return fmt.Errorf("prim: gemm of size %dx%dx%d: negative size", g.M, g.N, g.K)
	}
	if g.TransA && g.TransB {
		return fmt.Errorf("prim: gemm with both operands transposed: compute B A into the transpose of C instead")
	}
	last := [3]int{}
	for _, x := range b {
		if x.Count < 0 || x.StrideA < 0 || x.StrideB < 0 || x.StrideC < 0 {
			return fmt.Errorf("prim: gemm batch: negative count or stride in %+v", x)
		}
		last[0], last[1], last[2] = last[0]+(x.Count-1)*x.StrideA, last[1]+(x.Count-1)*x.StrideB, last[2]+(x.Count-1)*x.StrideC
	}
	if b.count() == 0 {
		return nil
	}
	rowsA, colsA, rowsB, colsB := g.M, g.K, g.K, g.N
	if g.TransA {
		rowsA, colsA = colsA, rowsA
	}
	if g.TransB {
		rowsB, colsB = colsB, rowsB
	}
	for i, m := range []struct {
		name       string
		rows, cols int
		ld, length int
	}{
		{"A", rowsA, colsA, g.LDA, len(g.A)},
		{"B", rowsB, colsB, g.LDB, len(g.B)},
		{"C", g.M, g.N, g.LDC, len(g.C)},
	} {
		if m.rows == 0 || m.cols == 0 {
			continue
		}
		if m.ld < m.cols && m.rows > 1 {
			return fmt.Errorf("prim: gemm: rows of %s are %d long and %d apart", m.name, m.cols, m.ld)
		}
		if need := span(m.rows, m.ld, m.cols, 1) + last[i]; need > m.length {
			return fmt.Errorf("prim: gemm: %s[%d, %d] needs %d elements, has %d", m.name, m.rows, m.cols, need, m.length)
		}
	}
	return g.checkOverlap(b)
}

// checkOverlap refuses a C whose elements may coincide: going from the least
// stride up, each axis must step over all that the axes before it reach.
func (g *Gemm) checkOverlap(b Batch) error {
	axes := Batch{{Count: g.N, StrideC: 1}, {Count: g.M, StrideC: g.LDC}}
	axes = append(axes, b...)
	slices.SortFunc(axes, func(x, y BatchAxis) int { return x.StrideC - y.StrideC })
	reach := 0
	for _, x := range axes {
		if x.Count < 2 {
			continue
		}
		if x.StrideC <= reach {
			return fmt.Errorf("prim: gemm batch: products overlap in C: an axis of %d has stride %d, others reach %d",
				x.Count, x.StrideC, reach)
		}
		reach += (x.Count - 1) * x.StrideC
	}
	return nil
}

const (
	// blockK is the length of the dot products that are accumulated in
	// registers; their sums are added in C. It fixes the rounding, and is the
	// same for every instruction set. A panel of 32 x 256 floats is 32 KiB.
	blockK = 256

	// superK and packedA bound the part of A that is packed at a time: 8 MiB,
	// which stays in the last-level cache while all of B passes by.
	superK  = 8 * blockK
	packedA = 2 << 20

	maxCols = 128 // columns of C in a task
	maxRows = 512 // rows of C in a task
	// tasksPerWorker are enough that workers finish together.
	tasksPerWorker = 6
	// directPanels is the most panels of A for which rows of B are read where they lie:
	// packing them would take longer than it saves (measured at 768 to 4096 columns).
	directPanels = 5
	// panelsPerTask is how many panels of A a packing task packs.
	panelsPerTask = 8
	// serialFlops is the size below which waking workers costs more than it saves.
	serialFlops = 1 << 18
)

// An Engine computes matrix products on a pool. It owns the packing buffers
// (8 MiB, and 128 KiB a worker) and runs one product at a time.
type Engine struct {
	k    *Kernels
	pool *Pool
	a    []float32   // packed A of the current super-block
	b    [][]float32 // packed B of each worker's current strip

	packTask, mulTask func(worker, task int) // bound once, so that a call allocates nothing
	s                 superBlock
}

// NewEngine makes an engine that computes with k on the pool's workers.
func NewEngine(k *Kernels, p *Pool) *Engine {
	e := &Engine{k: k, pool: p}
	e.packTask, e.mulTask = e.pack, e.multiply
	for range p.N() {
		e.b = append(e.b, make([]float32, blockK*maxCols))
	}
	return e
}

// Gemm computes one product. It panics if Check finds an error.
func (e *Engine) Gemm(g *Gemm) { e.GemmBatch(g, nil) }

// GemmBatch computes a batch of products. It panics if CheckBatch finds an error.
func (e *Engine) GemmBatch(g *Gemm, b Batch) {
	if err := g.CheckBatch(b); err != nil {
		panic(err.Error())
	}
	products := b.count()
	if g.M == 0 || g.N == 0 || products == 0 {
		return
	}
	if g.K == 0 {
		e.empty(g, b)
		return
	}
	ks := min(g.K, superK)
	rows := evenly(g.M, packedA/ks, e.k.tile.rows)
	count := max(1, packedA/(rows*ks))
	for b0 := 0; b0 < products; b0 += count {
		for m0 := 0; m0 < g.M; m0 += rows {
			for k0 := 0; k0 < g.K; k0 += ks {
				e.super(g, b, b0, min(count, products-b0), m0, min(rows, g.M-m0), k0, min(ks, g.K-k0))
			}
		}
	}
	e.s.g = nil
}

// empty is the product of K = 0.
func (e *Engine) empty(g *Gemm, b Batch) {
	for i := range b.count() {
		at := b.offsets(i)[2]
		for r := 0; r < g.M && !g.Accumulate; r++ {
			clear(g.C[at+r*g.LDC:][:g.N])
		}
		if g.Epilogue != nil {
			g.Epilogue(0, i, 0, g.M, 0, g.N)
		}
	}
}

// evenly cuts n into the fewest equal parts of at most limit, and returns the
// length of a part, a multiple of unit.
func evenly(n, limit, unit int) int {
	limit = max(limit/unit, 1) * unit
	parts := ceil(n, limit)
	return ceil(ceil(n, parts), unit) * unit
}

func ceil(a, b int) int { return (a + b - 1) / b }

// A superBlock is the part of a product (or of several products of a batch) for
// which A is packed at once: count products, rows rows from m0, depth steps from
// k0. Its rows are cut into panels of nearly equal height, so that none is so
// low that its kernel is slow. Tasks are blocks of panels times strips of columns.
type superBlock struct {
	g                             *Gemm
	batch                         Batch
	b0, count, m0, rows, k0, deep int

	panels, high, extra int // extra panels of high+1 rows, then panels of high rows
	blocks              int // of panels
	cols, strips        int // columns in a strip
	last                bool
}

func (e *Engine) super(g *Gemm, b Batch, b0, count, m0, rows, k0, deep int) {
	t := &e.k.tile
	s := superBlock{g: g, batch: b, b0: b0, count: count, m0: m0, rows: rows, k0: k0, deep: deep}
	s.panels = ceil(rows, t.rows)
	s.high, s.extra = rows/s.panels, rows%s.panels
	s.blocks = ceil(rows, maxRows)
	s.cols = maxCols
	many := tasksPerWorker * e.pool.N()
	if s.few(t) { // reading B is what takes time, so it had better be in long pieces
		many = 2 * e.pool.N()
		s.cols = max(maxCols, ceil(g.N, 4*many)/maxCols*maxCols)
	}
	if e.pool.N() == 1 {
		many = 1
	}
	if s.tasks() < many {
		s.cols = max(maxCols/2, t.cols)
	}
	if s.tasks() < many {
		s.blocks = max(s.blocks, ceil(rows, maxRows/2))
	}
	if s.tasks() < many {
		s.cols = t.cols
	}
	s.strips = ceil(g.N, s.cols)
	s.last = k0+deep == g.K
	e.s = s
	if need := count * rows * deep; len(e.a) < need {
		e.a = make([]float32, need)
	}
	packs, muls := count*ceil(deep, blockK)*ceil(s.panels, panelsPerTask), s.tasks()
	if 2*float64(rows)*float64(g.N)*float64(deep)*float64(count) < serialFlops {
		for i := range packs {
			e.pack(0, i)
		}
		for i := range muls {
			e.multiply(0, i)
		}
		return
	}
	e.pool.Run(packs, e.packTask)
	e.pool.Run(muls, e.mulTask)
}

func (s *superBlock) tasks() int { return s.count * s.blocks * ceil(s.g.N, s.cols) }

// row is the first row of panel p, relative to m0.
func (s *superBlock) row(p int) int { return p*s.high + min(p, s.extra) }

// packedAt is where the panel that starts at row r is in the packed A of product
// i of the super-block, for the steps from p on, of which there are depth.
func (s *superBlock) packedAt(i, r, p, depth int) int { return (i*s.deep+p)*s.rows + r*depth }

// pack is the task that packs some panels of A for one block of K.
func (e *Engine) pack(_, task int) {
	s, t := &e.s, &e.k.tile
	g := s.g
	groups := ceil(s.panels, panelsPerTask)
	p0 := task % groups * panelsPerTask
	p1 := min(p0+panelsPerTask, s.panels)
	task /= groups
	kBlocks := ceil(s.deep, blockK)
	k0, i := task%kBlocks*blockK, task/kBlocks
	depth := min(blockK, s.deep-k0)
	a := g.A[s.batch.offsets(s.b0 + i)[0]:]
	for p := p0; p < p1; {
		r := s.row(p)
		high := s.row(p+1) - r
		dst := &e.a[s.packedAt(i, r, k0, depth)]
		if !g.TransA {
			t.transpose(dst, high, &a[(s.m0+r)*g.LDA+s.k0+k0], g.LDA, high, depth)
			p++
			continue
		}
		q := p + 1 // panels of the same height go together
		for q < p1 && s.row(q+1)-s.row(q) == high {
			q++
		}
		t.copyA(dst, high*depth, &a[(s.k0+k0)*g.LDA+s.m0+r], g.LDA, depth, (q-p)*high, high)
		p = q
	}
}

// multiply is the task that computes one block of C.
func (e *Engine) multiply(worker, task int) {
	s, t := &e.s, &e.k.tile
	g := s.g
	// All strips of one block of A follow each other, so that it stays in the second-level cache.
	strip := task % s.strips
	task /= s.strips
	block, i := task%s.blocks, task/s.blocks
	p0, p1 := block*s.panels/s.blocks, (block+1)*s.panels/s.blocks
	j0 := strip * s.cols
	n := min(s.cols, g.N-j0)
	at := s.batch.offsets(s.b0 + i)
	b, c := e.b[worker], g.C[at[2]:]
	if s.few(t) {
		e.fewRows(i, j0, n, at, b)
	}
	for k0 := 0; k0 < s.deep && !s.few(t); k0 += blockK {
		depth := min(blockK, s.deep-k0)
		acc := g.Accumulate || s.k0+k0 > 0
		direct := !g.TransB && p1-p0 <= directPanels
		whole := n / t.cols * t.cols // columns that the first panel's kernels pack on the way
		if g.TransB || direct {
			whole = 0
		}
		if whole < n && !direct {
			e.packB(b[whole*depth:], g.B[at[1]:], j0+whole, n-whole, s.k0+k0, depth)
		}
		tiles, panels := ceil(n, t.cols), p1-p0
		for turn := range tiles * panels {
			p, j := p0+turn/tiles, turn%tiles*t.cols // a panel of A stays in the first-level cache
			if t.keepsB {
				p, j = p0+turn%panels, turn/panels*t.cols
			}
			r := s.row(p)
			high := s.row(p+1) - r
			a := &e.a[s.packedAt(i, r, k0, depth)]
			to, w := &c[(s.m0+r)*g.LDC+j0+j], min(t.cols, n-j)
			row := at[1] + (s.k0+k0)*g.LDB + j0 + j // of B, unless it is transposed
			switch {
			case direct:
				t.direct[high](depth, a, 1, high, &g.B[row], g.LDB, to, g.LDC, w, acc)
			case p == p0 && j < whole:
				t.packing[high](depth, a, &g.B[row], g.LDB, &b[j*depth], to, g.LDC, w, acc)
			default:
				t.packed[high](depth, a, &b[j*depth], to, g.LDC, w, acc)
			}
		}
	}
	if s.last && g.Epilogue != nil {
		g.Epilogue(worker, s.b0+i, s.m0+s.row(p0), s.m0+s.row(p1), j0, j0+n)
	}
}

// few reports whether there is but one panel, so low that packing B would take longer than multiplying by it.
func (s *superBlock) few(t *tileTable) bool { return s.rows < len(t.across) }

// fewRows computes n columns from j0 on of a product of few rows, of each first all sums and then the next, so that B is read
// in the order in which it lies, as far as that goes. Where rows of B run along k, those of the next columns are asked for
// meanwhile, in just that order.
func (e *Engine) fewRows(i, j0, n int, at [3]int, b []float32) {
	s, t, g := &e.s, &e.k.tile, e.s.g
	wide := t.wide[s.rows]
	for j, w := j0, 0; j < j0+n; j += w {
		w = min(t.cols, j0+n-j)
		if !g.TransB && wide.cols > 0 && wide.cols <= j0+n-j {
			w = wide.cols
		}
		for k := 0; k < s.deep; k += blockK {
			depth := min(blockK, s.deep-k)
			acc := g.Accumulate || s.k0+k > 0
			a, to := &e.a[s.packedAt(i, 0, k, depth)], &g.C[at[2]+s.m0*g.LDC+j]
			switch row := at[1] + (s.k0+k)*g.LDB + j; {
			case g.TransB && w == t.cols && depth%4 == 0:
				row = at[1] + j*g.LDB + s.k0 + k
				ahead := row
				if next := j + t.cols; next+t.cols <= j0+n && g.LDB == g.K && g.K == s.deep {
					ahead = at[1] + next*g.LDB + k*t.cols
				}
				t.across[s.rows](depth, a, &g.B[row], g.LDB, &g.B[ahead], to, g.LDC, acc)
			case g.TransB:
				e.packB(b, g.B[at[1]:], j, w, s.k0+k, depth)
				t.packed[s.rows](depth, a, &b[0], to, g.LDC, w, acc)
			case w == wide.cols:
				wide.mul(depth, a, &g.B[row], g.LDB, to, g.LDC, acc)
			default:
				t.direct[s.rows](depth, a, 1, s.rows, &g.B[row], g.LDB, to, g.LDC, w, acc)
			}
		}
	}
}

// packB packs n columns of B from j0 on, depth steps from k0 on. Columns that
// fill the last panel up are left as they are: what is computed from them is
// not stored.
func (e *Engine) packB(dst, b []float32, j0, n, k0, depth int) {
	g, t := e.s.g, &e.k.tile
	if !g.TransB {
		t.copyB(&dst[0], t.cols*depth, &b[k0*g.LDB+j0], g.LDB, depth, n, t.cols)
		return
	}
	for j := 0; j < n; j += t.lanes {
		at := j/t.cols*t.cols*depth + j%t.cols
		t.transpose(&dst[at], t.cols, &b[(j0+j)*g.LDB+k0], g.LDB, min(t.lanes, n-j), depth)
	}
}

// floatsAt is p + n elements.
func floatsAt(p *float32, n int) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n))
}
