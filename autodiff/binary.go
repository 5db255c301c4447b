package autodiff

import "blutrain/ir"

// y = a + b:  da = dy, db = dy
func add(_ *reverse, _ *ir.Op, dy *ir.Value) []*ir.Value { return []*ir.Value{dy, dy} }

// y = a - b:  da = dy, db = -dy
func sub(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	ds := []*ir.Value{dy, nil}
	if r.wants(op.Operand(1)) {
		ds[1] = r.Neg(dy)
	}
	return ds
}

// y = a b:  da = dy b, db = dy a
func mul(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	a, b := op.Operand(0), op.Operand(1)
	ds := make([]*ir.Value, 2)
	if r.wants(a) {
		ds[0] = r.Mul(dy, b)
	}
	if r.wants(b) {
		ds[1] = r.Mul(dy, a)
	}
	return ds
}

// y = a / b:  da = dy / b, db = -da y
func div(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	da := r.Div(dy, op.Operand(1))
	ds := []*ir.Value{da, nil}
	if r.wants(op.Operand(1)) {
		ds[1] = r.Neg(r.Mul(da, op.Result(0)))
	}
	return ds
}

// y = a^b:  da = dy b a^(b-1), and 0 where b is 0;  db = dy y log(a), and 0 where a is 0
func pow(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	a, b, y := op.Operand(0), op.Operand(1), op.Result(0)
	zero := r.SplatLike(y, 0)
	ds := make([]*ir.Value, 2)
	if r.wants(a) {
		slope := r.Mul(b, r.Pow(a, r.Sub(b, r.SplatLike(b, 1))))
		ds[0] = r.Mul(dy, r.Select(r.Compare(b, zero, "eq"), zero, slope))
	}
	if r.wants(b) {
		slope := r.Mul(y, r.Log(a))
		ds[1] = r.Mul(dy, r.Select(r.Compare(a, zero, "eq"), zero, slope))
	}
	return ds
}

// y = max(a, b):  da = dy where a > b, db = dy elsewhere
func maximum(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return r.divide(r.Compare(op.Operand(0), op.Operand(1), "gt"), op.Operand(0), op.Operand(1), dy)
}

// y = min(a, b):  da = dy where a < b, db = dy elsewhere
func minimum(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return r.divide(r.Compare(op.Operand(0), op.Operand(1), "lt"), op.Operand(0), op.Operand(1), dy)
}

// y = select(c, a, b):  da = dy where c, db = dy elsewhere; nothing to c
func selection(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	ds := r.divide(op.Operand(0), op.Operand(1), op.Operand(2), dy)
	return []*ir.Value{nil, ds[0], ds[1]}
}

// divide gives dy to a where c holds and to b elsewhere.
func (r *reverse) divide(c, a, b, dy *ir.Value) []*ir.Value {
	zero := r.SplatLike(dy, 0)
	ds := make([]*ir.Value, 2)
	if r.wants(a) {
		ds[0] = r.Select(c, dy, zero)
	}
	if r.wants(b) {
		ds[1] = r.Select(c, zero, dy)
	}
	return ds
}
