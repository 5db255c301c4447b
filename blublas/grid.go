package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// grid is the tiles of C in the order in which they are worked on.
type grid struct {
	Gemm
	tilesM int // of BM rows times the cluster's size
	tilesN int
	steps  int // stages' worth of K in one part
}

// place is where a tile of C lies.
type place struct {
	row, col *ir.Value   // of its first element
	step     *ir.Value   // first stage's worth of K
	split    *ir.Value   // index of the part of K
	batch    []*ir.Value // which matrices
	matrix   *ir.Value   // where its result is among those of all parts of K and all matrices; nil where there is one
}

// together is how many rows of tiles are walked together, so that the blocks at work at one time share operands: the
// largest divisor that isn't too large.
func (g grid) together() int {
	rows := 1
	for n := 2; n <= 8; n++ {
		if g.tilesM%n == 0 {
			rows = n
		}
	}
	return rows
}

// locate decodes a tile's number: parts of K outermost, then matrices of a batch, then groups of rows of tiles from the last to
// the first, in each group column by column. Loops and attention go over rows from the first on: what one kernel wrote last, and L2 still
// has, is what the next one begins with.
func (g grid) locate(b *ptx.Builder, number *ir.Value) place {
	at := place{split: b.I32(0)}
	if n := g.matrices(); g.SplitK*n > 1 {
		at.matrix = b.DivI(number, g.tilesM*g.tilesN)
		number = b.Sub(number, b.MulI(at.matrix, g.tilesM*g.tilesN))
		matrix := at.matrix
		if g.SplitK > 1 {
			at.split = b.DivI(matrix, n)
			matrix = b.Sub(matrix, b.MulI(at.split, n))
		}
		at.batch = g.decode(b, matrix)
	}
	rows := g.together()
	group := b.DivI(number, rows*g.tilesN)
	in := b.Sub(number, b.MulI(group, rows*g.tilesN))
	n := b.DivI(in, rows)
	m := b.Sub(b.I32(g.tilesM-1), b.Add(b.MulI(group, rows), b.Sub(in, b.MulI(n, rows))))
	at.row, at.col, at.step = b.MulI(m, g.BM*max(g.Cluster, 1)), b.MulI(n, g.BN), b.MulI(at.split, g.steps)
	return at
}

// decode is the indices of a matrix in its batch.
func (g Gemm) decode(b *ptx.Builder, matrix *ir.Value) []*ir.Value {
	index := make([]*ir.Value, len(g.Batch))
	for i := len(index) - 1; i >= 0; i-- {
		index[i] = b.RemI(matrix, g.Batch[i].Size)
		matrix = b.DivI(matrix, g.Batch[i].Size)
	}
	return index
}

// matrixOf is where an operand's matrix of a batch starts; strides are in elements.
func (g Gemm) matrixOf(b *ptx.Builder, at place, base *ir.Value, size int, stride func(Batch) int) *ir.Value {
	for i, d := range g.Batch {
		if s := stride(d); s != 0 {
			base = b.MulWide(at.batch[i], s*size, base)
		}
	}
	return base
}

func strideA(d Batch) int { return d.A }
func strideB(d Batch) int { return d.B }
