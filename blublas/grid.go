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
	row, col *ir.Value // of its first element
	step     *ir.Value // first stage's worth of K
	split    *ir.Value // index of the part of K
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

// locate decodes a tile's number: parts of K outermost, then groups of rows of tiles, in each group column by column.
func (g grid) locate(b *ptx.Builder, number *ir.Value) place {
	split := b.I32(0)
	if g.SplitK > 1 {
		split = b.DivI(number, g.tilesM*g.tilesN)
		number = b.Sub(number, b.MulI(split, g.tilesM*g.tilesN))
	}
	rows := g.together()
	group := b.DivI(number, rows*g.tilesN)
	in := b.Sub(number, b.MulI(group, rows*g.tilesN))
	n := b.DivI(in, rows)
	m := b.Add(b.MulI(group, rows), b.Sub(in, b.MulI(n, rows)))
	return place{row: b.MulI(m, g.BM*max(g.Cluster, 1)), col: b.MulI(n, g.BN), step: b.MulI(split, g.steps), split: split}
}
