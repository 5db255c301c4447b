package ptx

import (
	"math/bits"

	"blutrain/dialects/mem"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// layout is where the elements of every block of a kernel are: the threads stand in tr rows of tc; a thread has vr rows at a
// time, then skips those of the others, and v columns likewise.
type layout struct {
	threads int
	tr, tc  int
	vr, v   int
	perSM   int // blocks of threads that a multiprocessor should have room for at once; 0: not said
	parts   int // blocks of threads that share a grid point; 0: one
}

// The elements of its largest block that a thread should have, and can have at most.
const (
	wantElems = 16
	maxElems  = 64
)

// warpColumns is the longest rows of several that a warp each has, if they are reduced: no thread waits for one of another warp
// then.
const warpColumns = 1024

// perThread is the rows (or columns) of a block of n that a thread has, standing among t threads of v each. All have what
// has one alone.
func perThread(n, t, v int) int {
	if n == 1 {
		return 1
	}
	return (n + t*v - 1) / (t * v) * v
}

func (y layout) rows(n int) int { return perThread(n, y.tr, y.vr) }
func (y layout) cols(n int) int { return perThread(n, y.tc, y.v) }

// rowAt is a thread's row i beyond its first.
func (y layout) rowAt(i int) int { return i/y.vr*y.tr*y.vr + i%y.vr }
func (y layout) colAt(i int) int { return i/y.v*y.tc*y.v + i%y.v }

// powerOf2 is the least power of two that is n or more.
func powerOf2(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// chooseLayout looks at the blocks of a kernel.
func chooseLayout(kernel *ir.Op, align []int64) (layout, error) {
	rows, cols, product, whole, heavy, sums, columns, loops := 1, 1, false, false, false, false, false, false
	var largest, scatter *ir.Op
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		product = product || op.Is(tile.Dot) || op.Is(tile.Contract)
		whole = whole || op.Is(tile.Contract)
		heavy = heavy || op.Name() == "tile.gelu_grad" || op.Name() == "tile.silu_grad" || len(op.Regions()) > 0 && !op.Is(tile.Kernel) && !op.Is(tile.Contract)
		sums = sums || op.Is(tile.Reduce) && op.Attrs().IntOr("axis", 0) == 1
		loops = loops || op.Name() == "scf.for"
		columns = columns || op.Is(tile.Reduce) && op.Attrs().IntOr("axis", 0) == 0
		if op.Is(tile.ScatterAdd) {
			scatter = op
		}
		for _, v := range op.Results() {
			if !tile.IsBlock(v.Type()) {
				continue
			}
			if r, c := int(v.Shape()[0]), int(v.Shape()[1]); r*c > rows*cols {
				rows, cols, largest = r, c, op
			}
		}
		return ir.Advance
	})
	var y layout
	switch {
	case scatter != nil:
		y = scatterLayout(scatter)
	case product:
		y = productLayout(rows, cols)
	default:
		v := vectors(kernel, align, cols)
		if y = loopLayout(rows, cols, v); sums && rows > 1 && cols <= warpColumns && y.tc > 32 {
			y = layout{vr: 1, v: v, tc: 32, tr: min(rows, 16)}
		}
		if rows == 1 && readsAgain(kernel) {
			y.tc = max(y.tc, min(stageThreads, powerOf2(cols/v))) // fewer blocks, and rows, at a time: they stay in the cache
		}
		if columns && !sums && rows > 1 && cols >= 32*v {
			y = columnLayout(rows, cols, v, loops)
		}
	}
	y.threads = y.tr * y.tc
	if whole && y.threads == 256 && !heavy {
		y.perSM = 2 // one computes while the other waits for memory
	}
	if y.rows(rows)*y.cols(cols) > maxElems {
		return y, largest.Errorf("%s: a block of %dx%d elements is too large for the registers of a block of threads", largest.Name(), rows, cols)
	}
	return y, nil
}

// productLayout gives each thread squares of 4x4.
func productLayout(rows, cols int) layout {
	y := layout{vr: 4, v: 4}
	y.tc = min(powerOf2((cols+3)/4), 16)
	y.tr = min(powerOf2((rows+3)/4), max(16, powerOf2(rows*cols/(wantElems*y.tc))))
	for y.tr*y.tc > 256 {
		y.tr /= 2
	}
	for y.tr*y.tc < 32 {
		y.tr *= 2
	}
	return y
}

// loopLayout is for fused loops: columns first, since they lie next to each other in memory.
func loopLayout(rows, cols, v int) layout {
	y := layout{vr: 1, v: v}
	most := 512
	if rows == 1 {
		most = 1024
	}
	threads := min(max(powerOf2(rows*cols/wantElems), 32), most)
	y.tc = min(powerOf2((cols+v-1)/v), max(32, powerOf2((threads+rows-1)/rows)))
	y.tr = max(1, min(rows, threads/y.tc))
	if most := 512 / y.tc; y.tr < rows && rows <= most {
		y.tr = rows
	}
	if y.tc < 32 {
		n := 32 / y.tc
		y.tr = (y.tr + n - 1) / n * n
	}
	return y
}

// columnThreads is the threads of a block that adds up columns in a loop: two such blocks on a multiprocessor.
const columnThreads = 512

// columnLayout is for sums of columns. Of one block a thread adds up most rows alone; of a loop over blocks all, if there are
// threads enough for the columns.
func columnLayout(rows, cols, v int, loops bool) layout {
	if !loops {
		threads := min(max(powerOf2(rows*cols/(2*wantElems)), 32), 512)
		y := layout{vr: 1, v: v, tc: min(powerOf2((cols+v-1)/v), threads)}
		y.tr = threads / y.tc
		return y
	}
	each := (cols/v + columnThreads - 1) / columnThreads // vectors
	y := layout{vr: 1, v: v, tc: (cols/v + 32*each - 1) / (32 * each) * 32, tr: 1}
	if cols%v == 0 && rows*y.cols(cols) <= maxElems {
		return y
	}
	return loopLayout(rows, cols, v)
}

// vectors is how many columns next to each other a thread has: 4 where most of what is loaded and stored allows accesses of
// as many, else 1.
func vectors(kernel *ir.Op, align []int64, cols int) int {
	if cols < 4 {
		return 1
	}
	score := 0
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		var block *ir.Value
		switch op.Def() {
		case tile.Load:
			block = op.Result(0)
		case tile.Store:
			block = op.Operand(0)
		case tile.RandomNormal, tile.RandomUniform, tile.Gather:
			score++
			return ir.Advance
		}
		if block == nil || block.Shape()[1] < 4 {
			return ir.Advance
		}
		ref := op.Operand(0)
		if op.Is(tile.Store) {
			ref = op.Operand(1)
		}
		row, col := tile.Window(op)
		if evenRows(ref, col, block.Shape()[1]) || op.Is(tile.Load) && evenRows(ref, row, block.Shape()[0]) {
			score++
		} else {
			score--
		}
		return ir.Advance
	})
	if score >= 0 {
		return 4
	}
	return 1
}

// evenRows reports whether columns are next to each other, and all rows of a reference start at multiples of 4 elements: in a
// row of a number of columns that is none, most blocks must be whole.
func evenRows(ref *ir.Value, col, block int64) bool {
	strides, _ := mem.Layout(ref.Type().(*ir.MemRefType))
	shape := ref.Shape()
	if col < 0 || strides[col] != 1 || len(strides) > 1 && shape[col]%4 != 0 && shape[col] < 2*block {
		return false
	}
	for d, s := range strides {
		if int64(d) != col && shape[d] > 1 && s%4 != 0 {
			return false
		}
	}
	return true
}
