package shard

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// linear rewrites an operation that has terms of a sum among its operands and is linear in them: its result is a term, too,
// and nothing need be added up yet. It is false where that is not so, or pieces are among the operands: a piece of the sum
// is less than a term of all of it.
func (d *divider) linear(op *ir.Op) bool {
	terms := d.terms(op)
	if terms == nil {
		return false
	}
	for i, v := range op.Operands() {
		if terms[i] {
			v = d.as(v, sharding{how: partial})
		} else {
			v = d.as(v, sharding{})
		}
		op.SetOperand(i, v)
	}
	d.put(op.Result(0), sharding{how: partial}, op.Result(0))
	return true
}

// terms says which operands an operation is linear in, together; all others are needed whole. It is nil for an operation
// that is not linear in the terms that are given.
func (d *divider) terms(op *ir.Op) []bool {
	n := op.NumOperands()
	is := make([]bool, n)
	count := 0
	for i, v := range op.Operands() {
		h := d.get(v)
		if h.how == divided && !op.Is(blu.Accumulate) {
			return nil
		}
		if is[i] = h.how == partial; is[i] {
			count++
		}
	}
	switch op.Def() {
	case blu.Neg, blu.Reshape, blu.Transpose, blu.Slice, blu.Broadcast, blu.ReduceSum, blu.StopGradient:
		return is
	case blu.Cast:
		from, to := op.Operand(0).Type(), op.Result(0).Type()
		return only(is, ir.IsFloat(from) && ir.IsFloat(to) && ir.ByteSize(to.(*ir.TensorType).Elem) >= ir.ByteSize(from.(*ir.TensorType).Elem)) // a narrower one rounds
	case blu.Add, blu.Sub, blu.Concat:
		return all(n)
	case blu.Pad:
		return only(is, op.Attrs().FloatOr("value", 0) == 0)
	case blu.Mul, blu.Dot:
		return only(is, count == 1)
	case blu.Div, blu.Gather, blu.ScatterAdd:
		return only(is, is[0] && count == 1)
	case blu.Select:
		return only([]bool{false, true, true}, !is[0])
	case blu.Accumulate:
		return only([]bool{true, true, false}, is[0])
	}
	return nil
}

func only(terms []bool, ok bool) []bool {
	if !ok {
		return nil
	}
	return terms
}

func all(n int) []bool {
	terms := make([]bool, n)
	for i := range terms {
		terms[i] = true
	}
	return terms
}
