package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Copy describes the kernel that brings a matrix into the layout that a product's unit reads: transposed, or with rows as
// far apart as background copies need them.
type Copy struct {
	Rows, Cols int // of the matrix as it lies: Cols are contiguous
	Pitch      int // elements from row to row
	Size       int // bytes of an element: 2 or 4
	Transposed bool
	OutPitch   int  // elements from row to row of the copy
	Unaligned  bool // the matrix may start anywhere, not at a multiple of 16 bytes
	Target     string
}

const (
	copyEdge      = 32
	copyThreads   = 256
	transposeEdge = 64
)

// copyPitch is the bytes of a row of n elements in shared memory: columns are in different banks.
func copyPitch(n int) int { return 4 * (n + 1) }

// Bytes is the size of the copy.
func (t Copy) Bytes() int64 {
	rows := t.Rows
	if t.Transposed {
		rows = t.Cols
	}
	return int64(rows) * int64(t.OutPitch) * int64(t.Size)
}

// Seconds predicts the time: reading and writing, of which a transposition reaches about three quarters.
func (t Copy) Seconds(d Device) float64 {
	return launch + 2*float64(t.Rows)*float64(t.Cols)*float64(t.Size)/(0.75*d.Bandwidth)
}

// inVectors reports whether the transposed matrix can be written 16 bytes at a time.
func (t Copy) inVectors() bool {
	return t.Transposed && t.Size == 4 && t.OutPitch%4 == 0 && max(t.Pitch, t.OutPitch) < 1<<22
}

// Check is why there is no kernel for the copy: its indices have 32 bits.
func (t Copy) Check() error {
	width := t.Cols
	if t.Transposed {
		width = t.Rows
	}
	if t.Pitch < t.Cols || t.OutPitch < width || t.Size != 2 && t.Size != 4 || uint64(t.Rows)*uint64(t.Pitch) >= 1<<32 || uint64(t.Bytes()) >= 1<<33 {
		return fmt.Errorf("copy %dx%d of %d bytes: rows %d and %d apart", t.Rows, t.Cols, t.Size, t.Pitch, t.OutPitch)
	}
	return nil
}

// Build makes the kernel. Parameters: matrix, copy. A block moves 32 x 32 elements through shared memory, or transposes 64 x 64.
func (t Copy) Build(at *ir.Builder) (*Kernel, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	edge, build := copyEdge, t.build
	if t.inVectors() {
		edge, build = transposeEdge, t.transpose
	}
	across := ceil(t.Cols, edge)
	k := &Kernel{Name: symbol(fmt.Sprintf("copy_%dx%dx%d_p%d_%d_%v_%v", t.Rows, t.Cols, t.Size, t.Pitch, t.OutPitch, t.Transposed, t.Unaligned)), Threads: copyThreads, Cluster: 1,
		Grid: across * ceil(t.Rows, edge), Shared: edge * copyPitch(edge), Params: []Param{{Name: "x"}, {Name: "y"}}}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: t.Target, Threads: k.Threads, Shared: k.Shared}, at.Ctx.I64(), at.Ctx.I64())
	k.Op = b.Kernel
	build(b, k.Op.Body().Args(), across)
	return k, nil
}

func (t Copy) build(b *ptx.Builder, args []*ir.Value, across int) {
	tid, block, shared := b.Special("tid.x"), b.Special("ctaid.x"), b.SharedBase()
	lane, warp := b.Binary(ptx.And, tid, b.I32(31)), b.DivI(tid, 32)
	row0, col0 := b.MulI(b.DivI(block, across), copyEdge), b.MulI(b.RemI(block, across), copyEdge)
	elem := b.Ctx.Int(8 * t.Size)
	const step = copyThreads / 32
	pitch := copyPitch(copyEdge)
	for i := 0; i < copyEdge; i += step {
		row, col := b.Add(row0, b.AddI(warp, i)), b.Add(col0, lane)
		in := b.And(b.Compare("lo", row, b.I32(t.Rows)), b.Compare("lo", col, b.I32(t.Cols)))
		x := b.Load(b.MulWide(b.Add(b.MulI(row, t.Pitch), col), t.Size, args[0]), elem, 1, ptx.Access{Space: "global", If: in})
		b.Store(b.Add(shared, b.Add(b.MulI(b.AddI(warp, i), pitch), b.MulI(lane, 4))), x, ptx.Access{Space: "shared"})
	}
	b.Do(ptx.Sync, nil)
	rows, cols := t.Rows, t.Cols
	along, down := 4, pitch // bytes in shared memory from column to column, and row to row, of the copy
	if t.Transposed {
		row0, col0, rows, cols = col0, row0, cols, rows
		along, down = pitch, 4
	}
	for i := 0; i < copyEdge; i += step {
		row, col := b.Add(row0, b.AddI(warp, i)), b.Add(col0, lane)
		in := b.And(b.Compare("lo", row, b.I32(rows)), b.Compare("lo", col, b.I32(cols)))
		x := b.Load(b.Add(shared, b.Add(b.MulI(b.AddI(warp, i), down), b.MulI(lane, along))), elem, 1, ptx.Access{Space: "shared"})
		at := b.MulWide(b.Add(b.MulI(row, t.OutPitch), col), t.Size, args[1])
		b.Store(at, x, ptx.Access{Space: "global", If: in})
	}
	b.Do(ptx.Return, nil)
}

// transpose moves squares of 32-bit elements: it reads four next to each other where the matrix lies so, and writes as many. A
// warp has 4 rows of 32 elements at a time, which are all in different banks, whichever way they are read.
func (t Copy) transpose(b *ptx.Builder, args []*ir.Value, across int) {
	tid, block, shared := b.Special("tid.x"), b.Special("ctaid.x"), b.SharedBase()
	row0, col0 := b.MulI(b.DivI(block, across), transposeEdge), b.MulI(b.RemI(block, across), transposeEdge)
	lane, warp := b.Binary(ptx.And, tid, b.I32(31)), b.DivI(tid, 32)
	pitch := copyPitch(transposeEdge)
	wide := 4
	if t.Unaligned || t.Pitch%4 != 0 || t.Cols%4 != 0 {
		wide = 1
	}
	row, col, down := b.Add(b.MulI(warp, wide), b.DivI(lane, 32/wide)), b.MulI(b.RemI(lane, 32/wide), wide), wide*copyThreads/32
	from := b.MulWide(b.Add(b.MulI(b.Add(row0, row), t.Pitch), b.Add(col0, col)), 4, args[0])
	var xs [][]*ir.Value
	squares(down, func(i, j int) {
		in := b.And(b.Compare("lo", b.Add(row0, b.AddI(row, i)), b.I32(t.Rows)), b.Compare("lo", b.Add(col0, b.AddI(col, j)), b.I32(t.Cols)))
		xs = append(xs, b.Scalars(b.Load(from, b.Ctx.F32(), wide, ptx.Access{Space: "global", Offset: 4 * (i*t.Pitch + j), If: in})))
	})
	to, n := b.Add(shared, b.Add(b.MulI(row, pitch), b.MulI(col, 4))), 0
	squares(down, func(i, j int) {
		for e, x := range xs[n] {
			b.Store(to, x, ptx.Access{Space: "shared", Offset: i*pitch + 4*(j+e)})
		}
		n++
	})
	b.Do(ptx.Sync, nil)
	// Rows of the copy are columns of the matrix.
	row, col = b.MulI(b.Binary(ptx.And, lane, b.I32(7)), 4), b.Add(b.MulI(warp, 4), b.DivI(lane, 8))
	at := b.Add(shared, b.Add(b.MulI(row, pitch), b.MulI(col, 4)))
	out := b.MulWide(b.Add(b.MulI(b.Add(col0, col), t.OutPitch), b.Add(row0, row)), 4, args[1])
	squares(copyThreads/8, func(i, j int) {
		var four []*ir.Value
		for e := range 4 {
			four = append(four, b.Load(at, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: (j+e)*pitch + 4*i}))
		}
		in := b.And(b.Compare("lo", b.Add(col0, b.AddI(col, i)), b.I32(t.Cols)), b.Compare("lo", b.Add(row0, b.AddI(row, j)), b.I32(t.Rows)))
		b.Store(out, b.Vector(four...), ptx.Access{Space: "global", Offset: 4 * (i*t.OutPitch + j), If: in})
	})
	b.Do(ptx.Return, nil)
}

// squares calls f for each place that a warp's rows have in a square of transposeEdge: so many rows at a time, 32 columns.
func squares(down int, f func(i, j int)) {
	for i := 0; i < transposeEdge; i += down {
		for j := 0; j < transposeEdge; j += 32 {
			f(i, j)
		}
	}
}
