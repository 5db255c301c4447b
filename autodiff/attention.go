package autodiff

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// o = P v with P = softmax(scale q kT + mask). With dP = do vT and dS = P (dP - sum(do o, last axis)):
//
//	dq = scale dS k,  dk = scale dST q,  dv = PT do
//
// which is blu.attention_grad; it recomputes P from lse, the log-sum-exp of each row of scores.
func attention(r *reverse, op *ir.Op, do *ir.Value) []*ir.Value {
	a := blu.AttentionOp{Op: op}
	return r.AttentionGrad(a.Q(), a.K(), a.V(), a.O(), a.Lse(), do, a.Causal(), a.Scale()).Results()
}

// y = x rotated by angles that grow with the position: dx is dy rotated back.
func rope(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	rope := blu.RopeOp{Op: op}
	return one(r.Rope(dy, rope.Base(), !rope.Inverse()))
}
