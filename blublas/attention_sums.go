package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// AttentionSumRows is how many positions of a sequence the gradients' columns are added up over: as many as a warp's tile has.
const AttentionSumRows = 16

// ColumnSums says where the kernels of gradients store sums of these over positions, which are the gradients of biases: in a matrix of
// f32, the parameter "sums", that has a row for every AttentionSumRows positions of every sequence, one after the other. They are
// sums of what is rounded when it is stored.
type ColumnSums struct {
	Pitch   int // elements of a row; 0: there are no sums
	Q, K, V int // the column of the first head's first feature
}

// summed is the parameters of a kernel of gradients, with that of sums if there are any.
func (a Attention) summed(params ...string) []string {
	if a.Sums.Pitch > 0 {
		params = append(params, "sums")
	}
	return params
}

// sumRows stores the sums of the columns of what storeRows stores, from a column on.
func (w *attention) sumRows(column int, acc []*ir.Value, factor rowFactor) {
	if w.Sums.Pitch == 0 {
		return
	}
	b, perTile, positions := w.b, w.Features/8, w.Queries
	if w.rowsAreKeys {
		positions = w.Keys
	}
	for t := range w.Block.Tiles {
		var sums []*ir.Value
		for _, x := range acc[t*perTile : (t+1)*perTile] {
			sums = append(sums, b.Extract(x, 0), b.Extract(x, 1))
		}
		for r, later := range []bool{false, true} {
			inside := w.inside(w.row(t, later))
			for i := range sums {
				x := b.Select(inside, w.times(b.Extract(acc[t*perTile+i/2], 2*r+i%2), factor, t, later), b.F32(0))
				if later {
					x = b.Binary(ptx.Add, sums[i], x)
				}
				sums[i] = x
			}
		}
		first := b.AddI(b.Add(w.first, w.warpRow), 16*t)
		sums, from, mine := w.sumGroups(sums)
		row := b.Add(b.MulI(w.batch, ceil(positions, AttentionSumRows)), b.DivI(first, AttentionSumRows))
		index := b.Add(b.MulI(row, w.Sums.Pitch), b.Add(b.AddI(b.MulI(w.head, w.Features), column), b.Add(from, b.MulI(w.quad, 2))))
		at, there := b.MulWide(index, 4, w.args["sums"]), w.inside(first)
		if mine != nil {
			there = b.And(there, mine)
		}
		for i := 0; i < len(sums); i += 2 {
			b.Store(at, b.Vector(sums[i], sums[i+1]), ptx.Access{Space: "global", Offset: 16 * i, If: there})
		}
	}
}

// sumGroups adds up, in a fixed order, what the lanes of all rows of a fragment have of its columns, pairs of which are 8 apart. As long
// as pairs can be halved, a lane gives away one half and keeps the other, so that each ends with sums of its own: from which column
// on. Where they can't, some lanes have the same, of which one has to store them; mine is nil where all have.
func (w *attention) sumGroups(sums []*ir.Value) (own []*ir.Value, from, mine *ir.Value) {
	b := w.b
	from = b.I32(0)
	for d := 16; d >= 4; d /= 2 {
		add := func(x, y *ir.Value) *ir.Value {
			return b.Binary(ptx.Add, x, b.Do(ptx.Shuffle, []*ir.Value{y, b.I32(d)}, "mode", "bfly").Result(0))
		}
		upper := b.Compare("ne", b.Binary(ptx.And, w.lane, b.I32(d)), b.I32(0))
		half := len(sums) / 2
		if half%2 != 0 {
			for i, x := range sums {
				sums[i] = add(x, x)
			}
			if lower := b.Unary(ptx.Not, upper); mine == nil {
				mine = lower
			} else {
				mine = b.And(mine, lower)
			}
			continue
		}
		for i := range half {
			sums[i] = add(b.Select(upper, sums[half+i], sums[i]), b.Select(upper, sums[i], sums[half+i]))
		}
		sums = sums[:half]
		from = b.Add(from, b.Select(upper, b.I32(4*half), b.I32(0)))
	}
	return sums, from, mine
}
