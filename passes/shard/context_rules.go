package shard

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// rule rewrites an operation that has pieces among its operands; ok is false where it can't.
type rule func(d *divider, op *ir.Op) (ok bool, err error)

// rules are by operation; elementwise ones have one rule together.
var rules = map[*ir.OpDef]rule{
	blu.Broadcast: simple((*divider).broadcast),
	blu.Reshape:   simple((*divider).reshape),
	blu.Transpose: simple((*divider).transpose),
	blu.Slice:     simple((*divider).slice),
	blu.Pad:       simple((*divider).pad),
	blu.Concat:    simple((*divider).concat),

	blu.ReduceSum: simple((*divider).reduceSum),
	blu.ReduceMax: simple((*divider).reduceExtreme),
	blu.ReduceMin: simple((*divider).reduceExtreme),
	blu.Argmax:    simple((*divider).along),

	blu.Dot:        simple((*divider).dot),
	blu.Gather:     simple((*divider).gather),
	blu.ScatterAdd: simple((*divider).scatterAdd),

	blu.Softmax:    simple((*divider).along),
	blu.LogSoftmax: simple((*divider).along),
	blu.Rope:       simple((*divider).rope),

	blu.Layernorm:        rows([]kind{row, same, same}, []kind{row, row, row}),
	blu.LayernormGrad:    rows([]kind{row, same, row, row, row}, []kind{row, term, term}),
	blu.Rmsnorm:          rows([]kind{row, same}, []kind{row, row}),
	blu.RmsnormGrad:      rows([]kind{row, same, row, row}, []kind{row, term}),
	blu.CrossEntropy:     rows([]kind{row, row}, []kind{term, term, row}),
	blu.CrossEntropyGrad: rows([]kind{row, row, row, same}, []kind{row}),

	blu.SumSquares: simple((*divider).sumSquares),

	blu.Attention:     (*divider).attention,
	blu.AttentionGrad: (*divider).attentionGrad,
}

// simple is a rule without errors.
func simple(f func(d *divider, op *ir.Op) bool) rule {
	return func(d *divider, op *ir.Op) (bool, error) { return f(d, op), nil }
}

// common is the first sharding of pieces among operands.
func (d *divider) common(op *ir.Op) sharding {
	for _, v := range op.Operands() {
		if h := d.get(v); h.how == divided {
			return h.sharding
		}
	}
	return sharding{}
}

// local is all operands of an operation under a sharding.
func (d *divider) local(op *ir.Op, s sharding) []*ir.Value {
	vs := op.Operands()
	for i, v := range vs {
		vs[i] = d.as(v, s)
	}
	return vs
}

func (d *divider) elementwise(op *ir.Op) bool {
	s := d.common(op)
	d.replace(op, d.local(op, s), op.Attrs(), s)
	return true
}

func (d *divider) broadcast(op *ir.Op) bool {
	s := d.common(op)
	to := sharding{divided, int(op.Attrs().Ints("axes")[s.axis]), s.outer}
	d.replace(op, d.local(op, s), op.Attrs(), to)
	return true
}

func (d *divider) reshape(op *ir.Op) bool {
	s := d.common(op)
	to, ok := d.reshaped(op.Operand(0).Shape(), op.Result(0).Shape(), s)
	if ok {
		d.replace(op, d.local(op, s), op.Attrs(), to)
	}
	return ok
}

func (d *divider) transpose(op *ir.Op) bool {
	s := d.common(op)
	to := sharding{divided, slices.Index(op.Attrs().Ints("perm"), int64(s.axis)), s.outer}
	d.replace(op, d.local(op, s), op.Attrs(), to)
	return true
}

// slice of other axes than the divided one; or of a few places of that.
func (d *divider) slice(op *ir.Op) bool {
	s := d.common(op)
	n := op.Operand(0).Shape()[s.axis]
	if op.Result(0).Shape()[s.axis] != n {
		return d.slicePlaces(op, s)
	}
	limits := slices.Clone(op.Attrs().Ints("limits"))
	limits[s.axis] = n / d.n
	d.replace(op, d.local(op, s), d.withInts(op.Attrs(), "limits", limits), s)
	return true
}

// slicePlaces is a slice along the divided axis of no more places than a rank has, the last token for one: a sum of what the
// ranks have of it.
func (d *divider) slicePlaces(op *ir.Op, s sharding) bool {
	h := d.get(op.Operand(0))
	if d.wholes[h.v] != nil { // nothing to communicate
		d.keep(op, sharding{})
		return true
	}
	shape, local := op.Operand(0).Shape(), h.v.Shape()
	places := op.Result(0).Shape()[s.axis]
	if s.outer != 1 || places > local[s.axis] || !ir.IsFloat(h.v.Type()) {
		return false
	}
	at := func(name string) int64 { return op.Attrs().Ints(name)[s.axis] }
	outer, inner := ir.NumElements(shape[:s.axis]), shape[s.axis]/d.chunks
	owners, rows := ir.NewTensor(d.Ctx.I32(), places), ir.NewTensor(d.Ctx.I32(), outer, places)
	for i := range places {
		place := at("starts") + i*at("steps")
		owner, second := d.owner(place / inner)
		owners.Data[i] = float64(owner)
		for o := range outer {
			rows.Data[o*places+i] = float64(o*local[s.axis] + second*inner + place%inner)
		}
	}
	width := ir.NumElements(shape[s.axis+1:])
	taken := d.Gather(d.ReshapeTo(h.v, outer*local[s.axis], width), d.Constant(blu.DenseOf(d.Ctx, rows)))
	mine := d.Compare(d.Constant(blu.DenseOf(d.Ctx, owners)), d.Fill(d.rank, owners.Shape), "eq")
	taken = d.Select(d.BroadcastTo(mine, []int64{1}, taken.Shape()), taken, d.SplatLike(taken, 0))
	to := slices.Clone(shape)
	to[s.axis] = places
	own := d.ReshapeTo(taken, to...)
	starts, limits := slices.Clone(op.Attrs().Ints("starts")), slices.Clone(op.Attrs().Ints("limits"))
	steps := slices.Clone(op.Attrs().Ints("steps"))
	starts[s.axis], limits[s.axis], steps[s.axis] = 0, places, 1
	d.become(op, []*ir.Value{d.Slice(own, starts, limits, steps)}, sharding{how: partial})
	return true
}

// pad of other axes; along the divided one a piece becomes a term of a sum, if sums are what it is for.
func (d *divider) pad(op *ir.Op) bool {
	s := d.common(op)
	if op.Attrs().Ints("low")[s.axis] == 0 && op.Attrs().Ints("high")[s.axis] == 0 {
		d.replace(op, d.local(op, s), op.Attrs(), s)
		return true
	}
	if op.Attrs().FloatOr("value", 0) != 0 || !summed(op.Result(0)) {
		return false
	}
	d.keep(op, sharding{how: partial})
	return true
}

// summed reports whether a value is only added to others, to a state at last.
func summed(v *ir.Value) bool {
	for u := range v.Uses() {
		switch op := u.Owner(); op.Def() {
		case blu.Accumulate:
		case blu.Add, blu.Sub, blu.Neg, blu.Reshape, blu.Transpose:
			if !summed(op.Result(0)) {
				return false
			}
		default:
			return false
		}
	}
	return ir.IsFloat(v.Type())
}

func (d *divider) concat(op *ir.Op) bool {
	s := d.common(op)
	if axis, _ := op.Attrs().Int("axis"); axis == int64(s.axis) {
		return false
	}
	return d.elementwise(op)
}

// along is for operations along one axis, which is another one than the divided.
func (d *divider) along(op *ir.Op) bool {
	s := d.common(op)
	axis, _ := op.Attrs().Int("axis")
	if axis == int64(s.axis) {
		return false
	}
	to := s
	if len(op.Result(0).Shape()) < len(op.Operand(0).Shape()) && axis < int64(s.axis) {
		to.axis--
	}
	d.replace(op, d.local(op, s), op.Attrs(), to)
	return true
}

// reduced is how the result of a reduction is divided; ok is false when the divided axis is reduced.
func reduced(op *ir.Op, s sharding) (to sharding, ok bool) {
	to = s
	for _, a := range op.Attrs().Ints("axes") {
		if a == int64(s.axis) {
			return sharding{}, false
		}
		if a < int64(s.axis) {
			to.axis--
		}
	}
	return to, true
}

func (d *divider) reduceSum(op *ir.Op) bool {
	s := d.common(op)
	to, ok := reduced(op, s)
	if !ok {
		to = sharding{how: partial}
	}
	d.replace(op, d.local(op, s), op.Attrs(), to)
	return true
}

// reduceExtreme takes the greatest, or least, of each piece, and then of those.
func (d *divider) reduceExtreme(op *ir.Op) bool {
	s := d.common(op)
	if to, ok := reduced(op, s); ok {
		d.replace(op, d.local(op, s), op.Attrs(), to)
		return true
	}
	own := d.CreateState(op.Def(), ir.OpState{Operands: d.local(op, s), Attrs: op.Attrs(), Results: op.ResultTypes()}).Result(0)
	of := d.allRanks(own)[0]
	best := d.Create(op.Def(), []*ir.Value{of}, ir.NamedAttr{Name: "axes", Value: d.Ctx.I64s(0)})
	d.become(op, best.Results(), sharding{})
	return true
}

// dot follows the first operand that is divided: along a batch axis both are, and the result; along a contracted one both
// are, and the result is a sum; along another one the result is, and all of the other operand is needed.
func (d *divider) dot(op *ir.Op) bool {
	of, other := 0, 1
	if d.get(op.Operand(0)).how != divided {
		of, other = 1, 0
	}
	s := d.get(op.Operand(of)).sharding
	lhs, rhs := blu.DotOperandAxes(op)
	axes := []blu.DotAxes{lhs, rhs}
	operands := make([]*ir.Value, 2)
	operands[of] = d.as(op.Operand(of), s)
	at, axis := axes[of], int64(s.axis)
	var to sharding
	if i := slices.Index(at.Batch, axis); i >= 0 {
		operands[other] = d.as(op.Operand(other), sharding{divided, int(axes[other].Batch[i]), s.outer})
		to = sharding{divided, i, s.outer}
	} else if i := slices.Index(at.Contract, axis); i >= 0 {
		operands[other] = d.as(op.Operand(other), sharding{divided, int(axes[other].Contract[i]), s.outer})
		to = sharding{how: partial}
	} else {
		i := slices.Index(at.Free, axis) + len(at.Batch)
		if of == 1 {
			i += len(lhs.Free)
		}
		if d.get(op.Operand(other)).how == divided {
			d.remark(op, "blu.dot of two pieces of a sequence that are no pair: cp=%d gathers one of them", d.n)
		}
		operands[other] = d.as(op.Operand(other), sharding{})
		to = sharding{divided, i, s.outer}
	}
	d.replace(op, operands, op.Attrs(), to)
	return true
}

// gather of rows by pieces of the indices, or of pieces of rows.
func (d *divider) gather(op *ir.Op) bool {
	table, indices := op.Operand(0), op.Operand(1)
	if s := d.get(indices).sharding; s.how == divided {
		d.replace(op, []*ir.Value{d.as(table, sharding{}), d.as(indices, s)}, nil, s)
		return true
	}
	s := d.get(table).sharding
	if s.axis == 0 {
		return false
	}
	to := sharding{divided, len(indices.Shape()) + s.axis - 1, s.outer}
	d.replace(op, []*ir.Value{d.as(table, s), d.as(indices, sharding{})}, nil, to)
	return true
}

// scatterAdd of a piece of the rows is a term of the table's sum; of a piece of each row it is that piece of the table.
func (d *divider) scatterAdd(op *ir.Op) bool {
	updates, indices := op.Operand(0), op.Operand(1)
	s := d.common(op)
	n := len(indices.Shape())
	if s.axis < n {
		d.replace(op, d.local(op, s), op.Attrs(), sharding{how: partial})
		return true
	}
	to := sharding{divided, s.axis - n + 1, s.outer}
	d.replace(op, []*ir.Value{d.as(updates, s), d.as(indices, sharding{})}, op.Attrs(), to)
	return true
}

// sumSquares adds up the squares of pieces. What is whole counts on one rank, terms must be added up before.
func (d *divider) sumSquares(op *ir.Op) bool {
	vs := op.Operands()
	for i, v := range vs {
		if h := d.get(v); h.how == divided {
			vs[i] = h.v
		} else {
			vs[i] = d.onFirst(d.whole(v))
		}
	}
	d.replace(op, vs, op.Attrs(), sharding{how: partial})
	return true
}

// kind is what an operand or result is to an operation on rows: positions of all axes but the last.
type kind uint8

const (
	row  kind = iota // rows, or one entry for each
	same             // the same for all rows
	term             // a sum over rows
)

// rows is the rule of operations that work on each row of their first operand.
func rows(operands, results []kind) rule {
	return func(d *divider, op *ir.Op) (bool, error) {
		s := d.common(op)
		for i, v := range op.Operands() {
			h := d.get(v)
			if h.how == divided && (operands[i] != row || h.axis == len(op.Operand(0).Shape())-1) {
				return false, nil
			}
		}
		vs := op.Operands()
		for i, k := range operands {
			if k == row {
				vs[i] = d.as(vs[i], s)
			} else {
				vs[i] = d.as(vs[i], sharding{})
			}
		}
		to := make([]sharding, len(results))
		for i, k := range results {
			to[i] = s
			if k == term {
				to[i] = sharding{how: partial}
			}
		}
		d.replace(op, vs, op.Attrs(), to...)
		return true, nil
	}
}

// rope of a piece of the positions turns by the angles of those: the cosines and sines of all positions are what rope makes
// of points at (1, 0), and the rank takes its rows of them.
func (d *divider) rope(op *ir.Op) bool {
	s := d.common(op)
	shape := op.Operand(0).Shape()
	rank := len(shape)
	if s.axis < rank-2 {
		d.replace(op, d.local(op, s), op.Attrs(), s)
		return true
	}
	if s.axis == rank-1 || s.outer != 1 {
		return false
	}
	x := d.wide(d.as(op.Operand(0), s))
	positions, features := shape[rank-2], shape[rank-1]
	half := d.Ctx.Tensor([]int64{positions, features / 2}, x.Elem())
	points := d.Concat([]*ir.Value{d.Splat(half, 1), d.Splat(half, 0)}, 1)
	r := blu.RopeOp{Op: op}
	table := d.piece(d.Rope(points, r.Base(), r.Inverse()), sharding{divided, 0, 1})
	x1, x2 := d.halves(x, rank-1)
	cos, sin := d.halves(table, 1)
	axes := []int64{int64(rank - 2), int64(rank - 1)}
	cos, sin = d.BroadcastTo(cos, axes, x1.Shape()), d.BroadcastTo(sin, axes, x1.Shape())
	y := d.Concat([]*ir.Value{
		d.Sub(d.Mul(x1, cos), d.Mul(x2, sin)),
		d.Add(d.Mul(x2, cos), d.Mul(x1, sin)),
	}, int64(rank-1))
	d.become(op, []*ir.Value{d.CastTo(y, op.Result(0).Elem())}, s)
	return true
}

// halves is a value cut in the middle of an axis.
func (d *divider) halves(x *ir.Value, axis int) (first, second *ir.Value) {
	n := x.Shape()[axis]
	return d.cut(x, axis, 0, n/2), d.cut(x, axis, n/2, n)
}

// cut is a range of an axis.
func (d *divider) cut(x *ir.Value, axis int, from, to int64) *ir.Value {
	starts, limits := make([]int64, len(x.Shape())), slices.Clone(x.Shape())
	starts[axis], limits[axis] = from, to
	return d.Slice(x, starts, limits, slices.Repeat([]int64{1}, len(starts)))
}

// wide is x in at least float32, in which sums are taken.
func (d *divider) wide(x *ir.Value) *ir.Value {
	if x.Elem() == ir.Type(d.Ctx.F64()) {
		return x
	}
	return d.CastTo(x, d.Ctx.F32())
}
