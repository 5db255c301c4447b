package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Results of a Staged block go by way of shared memory, from which the copy engine takes them away while the warps that made them go on. Without
// it they are stored 4 bytes a thread, 16 bytes next to each other.

// boxRows is the rows of a box of results: those of a warp.
const boxRows = 16

// results is the tensors of 16 bits that a kernel writes rows of.
func (kernel AttentionKernel) results() []string {
	switch kernel {
	case AttentionForward:
		return []string{"o"}
	case AttentionGradQueries:
		return []string{"dq"}
	}
	return []string{"dk", "dv"}
}

// box is the bytes of a warp's rows of a result: a plane like an operand's.
func (w *groups) box() operand { return operand{boxRows, w.Features, 1} }

// boxesBytes is the shared memory for the results of all warps that share tiles.
func (w *groups) boxesBytes() int {
	if !w.Block.Staged {
		return 0
	}
	return 4 * w.Block.Consumers * len(w.results) * w.box().bytes()
}

// storeResults writes a tile's results, times the factors of their rows. Staged, it also gives back the rows: its fence is one for what was read of
// them, too.
func (w *groups) storeResults(rows slot, results ...result) {
	if !w.Block.Staged {
		for _, r := range results {
			w.storeRows(w.base(r.name, r.strides, w.head), r.strides.Row, r.acc, r.factor)
		}
		return
	}
	b, box := w.b, w.box()
	boxes := b.Add(b.AddI(w.shared, w.boxes()), b.MulI(w.warpRow, len(results)*box.bytes()/boxRows))
	places := w.places(b.Add(boxes, b.MulI(b.Binary(ptx.And, w.lane, b.I32(15)), rowBytes)))
	b.Do(ptx.TMAWait, nil, "pending", 0, "read", true)
	b.Do(ptx.WarpSync, nil) // the last tile's results are no longer here
	for n, r := range results {
		for s := range w.Features / 16 {
			var words []*ir.Value
			for i := range 4 { // rows g and g+8 of 8 features, then of the next 8
				of := func(e int) *ir.Value { return w.times(b.Extract(r.acc[2*s+i/2], 2*(i%2)+e), r.factor, 0, i%2 == 1) }
				words = append(words, b.Pack("bf16", of(0), of(1)))
			}
			b.Do(ptx.StoreMatrix, []*ir.Value{places[s%4], b.Vector(words...)}, "offset", n*box.bytes()+s/4*box.column())
		}
	}
	b.Do(ptx.Fence, nil, "kind", "async")
	b.Do(ptx.WarpSync, nil)
	if !w.releasesEarly() {
		w.release(rowsEmpty, rows)
	}
	row := b.Add(w.first, w.warpRow)
	leader := b.And(b.Compare("eq", w.lane, b.I32(0)), w.inside(row))
	b.If(leader, false, func() {
		for n, r := range results {
			for c := range w.Features / 64 {
				b.Do(ptx.TMAStore, []*ir.Value{w.maps[r.name], b.AddI(boxes, n*box.bytes()+c*box.column()), b.I32(64 * c), row, w.head, w.batch})
			}
		}
	}, nil)
	b.Do(ptx.TMACommit, nil)
}

// result is what a tile leaves of a tensor: accumulators by blocks of 8 features, to be multiplied by factors of their rows.
type result struct {
	name    string
	strides Strides
	acc     []*ir.Value
	factor  rowFactor
}

// drain waits until the copy engine has read all results: no block leaves before.
func (w *groups) drain() {
	if w.Block.Staged {
		w.b.Do(ptx.TMAWait, nil, "pending", 0, "read", true)
	}
}
