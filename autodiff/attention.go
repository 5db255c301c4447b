package autodiff

import "blutrain/ir"

// o = P v with P = softmax(scale q kT + mask). With dP = do vT and dS = P (dP - sum(do o, last axis)):
//
//	dq = scale dS k,  dk = scale dST q,  dv = PT do
//
// which is blu.attention_grad; it recomputes P from lse, the log-sum-exp of each row of scores.
func attention(r *reverse, op *ir.Op, do *ir.Value) []*ir.Value {
	at := op.Attrs()
	o, lse := op.Result(0), op.Result(1)
	d := r.AttentionGrad(op.Operand(0), op.Operand(1), op.Operand(2), o, lse, do, at.Bool("causal"), at.FloatOr("scale", 0))
	return d.Results()
}

// y = x rotated by angles that grow with the position: dx is dy rotated back.
func rope(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	at := op.Attrs()
	return one(r.Rope(dy, at.FloatOr("base", 0), !at.Bool("inverse")))
}
