package autodiff

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// y = softmax(x):  dx = y (dy - sum(dy y, axis))
//
// A row that is all -inf has y = 0, and so dx = 0.
func softmax(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	y, axis := op.Result(0), blu.SoftmaxOp{Op: op}.Axis()
	return one(r.Mul(y, r.Sub(dy, r.sumOver(r.Mul(dy, y), axis))))
}

// y = x - log(sum(exp(x), axis)):  dx = dy - exp(y) sum(dy, axis)
func logSoftmax(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	axis := blu.LogSoftmaxOp{Op: op}.Axis()
	return one(r.Sub(dy, r.Mul(r.Exp(op.Result(0)), r.sumOver(dy, axis))))
}
