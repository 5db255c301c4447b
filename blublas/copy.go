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
	OutPitch   int // elements from row to row of the copy
	Target     string
}

const (
	copyEdge    = 32
	copyThreads = 256
	copyPitch   = 4 * (copyEdge + 1) // bytes of a row in shared memory: columns are in different banks
)

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

// Build makes the kernel. Parameters: matrix, copy. A block moves 32 x 32 elements through shared memory.
func (t Copy) Build(at *ir.Builder) (*Kernel, error) {
	width := t.Cols
	if t.Transposed {
		width = t.Rows
	}
	if t.Pitch < t.Cols || t.OutPitch < width || t.Size != 2 && t.Size != 4 || uint64(t.Rows)*uint64(t.Pitch) >= 1<<32 || uint64(t.Bytes()) >= 1<<33 {
		return nil, fmt.Errorf("copy %dx%d of %d bytes: rows %d and %d apart", t.Rows, t.Cols, t.Size, t.Pitch, t.OutPitch)
	}
	across := ceil(t.Cols, copyEdge)
	k := &Kernel{Name: symbol(fmt.Sprintf("copy_%dx%dx%d_p%d_%d_%v", t.Rows, t.Cols, t.Size, t.Pitch, t.OutPitch, t.Transposed)), Threads: copyThreads, Cluster: 1,
		Grid: across * ceil(t.Rows, copyEdge), Shared: copyEdge * copyPitch, Params: []Param{{Name: "x"}, {Name: "y"}}}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: t.Target, Threads: k.Threads, Shared: k.Shared}, at.Ctx.I64(), at.Ctx.I64())
	k.Op = b.Kernel
	t.build(b, k.Op.Body().Args(), across)
	return k, nil
}

func (t Copy) build(b *ptx.Builder, args []*ir.Value, across int) {
	tid, block, shared := b.Special("tid.x"), b.Special("ctaid.x"), b.SharedBase()
	lane, warp := b.Binary(ptx.And, tid, b.I32(31)), b.DivI(tid, 32)
	row0, col0 := b.MulI(b.DivI(block, across), copyEdge), b.MulI(b.RemI(block, across), copyEdge)
	elem := b.Ctx.Int(8 * t.Size)
	const step = copyThreads / 32
	for i := 0; i < copyEdge; i += step {
		row, col := b.Add(row0, b.AddI(warp, i)), b.Add(col0, lane)
		in := b.And(b.Compare("lo", row, b.I32(t.Rows)), b.Compare("lo", col, b.I32(t.Cols)))
		x := b.Load(b.MulWide(b.Add(b.MulI(row, t.Pitch), col), t.Size, args[0]), elem, 1, ptx.Access{Space: "global", If: in})
		b.Store(b.Add(shared, b.Add(b.MulI(b.AddI(warp, i), copyPitch), b.MulI(lane, 4))), x, ptx.Access{Space: "shared"})
	}
	b.Do(ptx.Sync, nil)
	rows, cols := t.Rows, t.Cols
	along, down := 4, copyPitch // bytes in shared memory from column to column, and row to row, of the copy
	if t.Transposed {
		row0, col0, rows, cols = col0, row0, cols, rows
		along, down = copyPitch, 4
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
