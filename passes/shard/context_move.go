package shard

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// How values pass from one sharding to another. What needs no communication is index arithmetic on the place of the rank.

// cut is a piece of a value.
type cut struct {
	v *ir.Value
	sharding
}

// as is what the rank has, or gets, of a value of the function under a sharding.
func (d *divider) as(v *ir.Value, to sharding) *ir.Value {
	h := d.get(v)
	switch {
	case h.sharding == to:
		return h.v
	case to.how == whole:
		return d.whole(v)
	case to.how == partial:
		return d.part(v)
	case h.how == partial:
		return d.reduceScatter(h.v, to)
	case h.how == divided: // otherwise
		d.remarkLoc(v, "a value is needed in pieces along two axes: cp=%d gathers it", d.n)
	}
	return d.piece(d.whole(v), to)
}

func (d *divider) remarkLoc(v *ir.Value, format string, args ...any) {
	if v.Op() != nil {
		d.remark(v.Op(), format, args...)
	}
}

// whole is all of a value of the function, on every rank.
func (d *divider) whole(v *ir.Value) *ir.Value {
	h := d.get(v)
	if h.how == whole {
		return h.v
	}
	if w := d.wholes[h.v]; w != nil {
		return w
	}
	var w *ir.Value
	if h.how == partial {
		w = d.allReduce(h.v)
	} else {
		w = d.allGather(h.v, v.Shape(), h.sharding)
		d.pieces[cut{w, h.sharding}] = h.v
	}
	d.wholes[h.v] = w
	return w
}

// part makes a value of the function a term of a sum: a piece in its place among zeros; or a whole value, on the first rank.
func (d *divider) part(v *ir.Value) *ir.Value {
	h := d.get(v)
	switch h.how {
	case partial:
		return h.v
	case divided:
		rows, width := d.rowsOf(v.Shape(), h.sharding)
		placed := d.ScatterAdd(d.ReshapeTo(h.v, rows, d.share(), width), d.chunkRows(rows), rows*d.chunks)
		return d.ReshapeTo(placed, v.Shape()...)
	}
	return d.onFirst(h.v)
}

// onFirst is a whole value on the first rank, zeros on the others.
func (d *divider) onFirst(v *ir.Value) *ir.Value {
	first := d.Compare(d.rank, d.SplatLike(d.rank, 0), "eq")
	return d.Select(d.Fill(first, v.Shape()), v, d.SplatLike(v, 0))
}

// piece is the rank's piece of a value that is whole.
func (d *divider) piece(v *ir.Value, s sharding) *ir.Value {
	key := cut{v, s}
	if p := d.pieces[key]; p != nil {
		return p
	}
	p := d.pieceThrough(v, s)
	if p == nil {
		p = d.pieceOf(v, s)
	}
	d.pieces[key] = p
	return p
}

// pieceOf takes the rank's chunks out of a value that is whole.
func (d *divider) pieceOf(v *ir.Value, s sharding) *ir.Value {
	rows, width := d.rowsOf(v.Shape(), s)
	taken := d.Gather(d.ReshapeTo(v, rows*d.chunks, width), d.chunkRows(rows))
	return d.ReshapeTo(taken, d.localShape(v.Shape(), s)...)
}

// chunkRows is, for a number of rows of chunks, which of all the chunks the rank has: [rows, share], i32. Rank r has chunk r
// of a row and, in zigzag, chunk 2n-1-r, the r-th from the end.
func (d *divider) chunkRows(rows int64) *ir.Value {
	if at := d.indices[rows]; at != nil {
		return at
	}
	shape := []int64{rows, d.share()}
	t := d.Ctx.Tensor(shape, d.Ctx.I32())
	chunk := d.Fill(d.rank, shape)
	if d.zigzag() {
		last := d.Splat(t, float64(d.chunks-1))
		second := d.Compare(d.Iota(1, t), d.Splat(t, 1), "eq")
		chunk = d.Select(second, d.Sub(last, chunk), chunk)
	}
	at := d.Add(d.Mul(d.Iota(0, t), d.Splat(t, float64(d.chunks))), chunk)
	d.indices[rows] = at
	return at
}

// allReduce is the sum of all ranks' terms.
func (d *divider) allReduce(v *ir.Value) *ir.Value {
	return d.comm().AllReduce([]*ir.Value{v}, dtms.CP).Result(0)
}

// allRanks is what all ranks have, one after another, of each value: a new first axis.
func (d *divider) allRanks(vs ...*ir.Value) []*ir.Value {
	return d.comm().AllGather(vs, dtms.CP, d.n).Ys()
}

// allGather puts pieces of a value of a shape together.
func (d *divider) allGather(v *ir.Value, shape []int64, s sharding) *ir.Value {
	rows, width := d.rowsOf(shape, s)
	all := d.allRanks(v)[0]
	order := make([]int64, 0, rows*d.chunks)
	for row := range rows {
		for chunk := range d.chunks {
			order = append(order, d.gatheredRow(row, chunk, rows))
		}
	}
	return d.ReshapeTo(d.reorder(d.ReshapeTo(all, d.n*rows*d.share(), width), order), shape...)
}

// reduceScatter is the rank's piece of a sum.
func (d *divider) reduceScatter(v *ir.Value, s sharding) *ir.Value {
	shape := v.Shape()
	rows, width := d.rowsOf(shape, s)
	order := make([]int64, rows*d.chunks)
	for row := range rows {
		for chunk := range d.chunks {
			order[d.gatheredRow(row, chunk, rows)] = row*d.chunks + chunk
		}
	}
	local := d.localShape(shape, s)
	blocks := d.reorder(d.ReshapeTo(v, rows*d.chunks, width), order)
	blocks = d.ReshapeTo(blocks, append([]int64{d.n}, local...)...)
	return d.comm().ReduceScatter([]*ir.Value{blocks}, dtms.CP, d.n).Result(0)
}

// gatheredRow is where a chunk of a row is when the pieces of all ranks follow each other.
func (d *divider) gatheredRow(row, chunk, rows int64) int64 {
	rank, second := d.owner(chunk)
	return (rank*rows+row)*d.share() + second
}

// owner is the rank that has a chunk, and which of the rank's chunks it is.
func (d *divider) owner(chunk int64) (rank, which int64) {
	if d.zigzag() && chunk >= d.n {
		return d.chunks - 1 - chunk, 1
	}
	return chunk, 0
}

// reorder takes rows of a table in an order.
func (d *divider) reorder(table *ir.Value, order []int64) *ir.Value {
	t := ir.NewTensor(d.Ctx.I32(), int64(len(order)))
	same := true
	for i, row := range order {
		t.Data[i] = float64(row)
		same = same && row == int64(i)
	}
	if same {
		return table
	}
	return d.Gather(table, d.Constant(blu.DenseOf(d.Ctx, t)))
}

// comm builds collectives where the divider stands.
func (d *divider) comm() *dtms.Builder { return &dtms.Builder{Builder: d.Builder.Builder} }
