package shard

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// pieceThrough makes the rank's piece of a value that is whole from pieces of what it is computed from, and is nil where
// that is no better than to take the piece. So what is whole only because nothing has divided it yet (positions that are
// repeated over the batch, masks, constants) is computed in pieces, and the whole value is not computed at all.
func (d *divider) pieceThrough(v *ir.Value, s sharding) *ir.Value {
	op := v.Op()
	if op == nil {
		return nil
	}
	if op.Has(ir.Random) {
		d.remark(op, "%s draws numbers for all tokens: cp=%d cuts them afterwards, so that they do not depend on the number of ranks", op.Name(), d.n)
		return nil
	}
	if op.Has(ir.Elementwise) {
		operands := op.Operands()
		for i, x := range operands {
			operands[i] = d.piece(x, s)
		}
		return d.again(op, s, operands, op.Attrs())
	}
	switch op.Def() {
	case blu.Constant:
		return d.pieceOfConstant(op, s)
	case blu.Iota:
		return d.pieceOfIota(op, s)
	case blu.Broadcast:
		return d.pieceOfBroadcast(op, s)
	case blu.Reshape:
		if from, ok := d.reshaped(v.Shape(), op.Operand(0).Shape(), s); ok {
			return d.again(op, s, []*ir.Value{d.piece(op.Operand(0), from)}, nil)
		}
	case blu.Transpose:
		from := sharding{divided, int(op.Attrs().Ints("perm")[s.axis]), s.outer}
		return d.again(op, s, []*ir.Value{d.piece(op.Operand(0), from)}, op.Attrs())
	case blu.Dot:
		return d.pieceOfDot(op, s)
	}
	return nil
}

// again is an operation on pieces, for a piece of its only result.
func (d *divider) again(op *ir.Op, s sharding, operands []*ir.Value, attrs []ir.NamedAttr) *ir.Value {
	t := d.typeOf(op.Result(0).Type(), s)
	return d.CreateState(op.Def(), ir.OpState{Operands: operands, Attrs: attrs, Results: []ir.Type{t}, Loc: op.Loc()}).Result(0)
}

func (d *divider) pieceOfConstant(op *ir.Op, s sharding) *ir.Value {
	a, ok := op.Attr("value").(*ir.DenseAttr)
	if !ok || !a.Splat {
		return nil
	}
	return d.Constant(d.Ctx.Dense(d.typeOf(op.Result(0).Type(), s), []byte(a.Raw)))
}

// pieceOfIota counts along another axis than the divided one, or takes its piece of the numbers.
func (d *divider) pieceOfIota(op *ir.Op, s sharding) *ir.Value {
	axis, _ := op.Attrs().Int("axis")
	if axis != int64(s.axis) {
		return d.again(op, s, nil, op.Attrs())
	}
	v := op.Result(0)
	n := v.Shape()[axis]
	if len(v.Shape()) == 1 {
		return nil
	}
	numbers := d.Iota(0, d.Ctx.Tensor([]int64{n}, v.Elem()))
	return d.BroadcastTo(d.piece(numbers, sharding{divided, 0, s.outer}), []int64{axis}, d.localShape(v.Shape(), s))
}

func (d *divider) pieceOfBroadcast(op *ir.Op, s sharding) *ir.Value {
	x, axes := op.Operand(0), op.Attrs().Ints("axes")
	if i := slices.Index(axes, int64(s.axis)); i >= 0 && x.Shape()[i] > 1 {
		x = d.piece(x, sharding{divided, i, s.outer})
	}
	return d.again(op, s, []*ir.Value{x}, op.Attrs())
}

// pieceOfDot divides the operands that have the axis.
func (d *divider) pieceOfDot(op *ir.Op, s sharding) *ir.Value {
	l, r := blu.DotOperandAxes(op)
	lhs, rhs := op.Operand(0), op.Operand(1)
	axis := s.axis
	switch batch, free := len(l.Batch), len(l.Free); {
	case axis < batch:
		lhs = d.piece(lhs, sharding{divided, int(l.Batch[axis]), s.outer})
		rhs = d.piece(rhs, sharding{divided, int(r.Batch[axis]), s.outer})
	case axis < batch+free:
		lhs = d.piece(lhs, sharding{divided, int(l.Free[axis-batch]), s.outer})
	default:
		rhs = d.piece(rhs, sharding{divided, int(r.Free[axis-batch-free]), s.outer})
	}
	return d.again(op, s, []*ir.Value{lhs, rhs}, op.Attrs())
}
