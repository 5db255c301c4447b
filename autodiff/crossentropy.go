package autodiff

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// sum = sum over rows that count of lse - logits[target]:
//
//	dlogits = dsum (softmax(logits) - onehot(target)), and 0 in rows whose target is ignored
//
// which is blu.cross_entropy_grad; it recomputes the softmax from lse.
func crossEntropy(r *reverse, op *ir.Op, dsum *ir.Value) []*ir.Value {
	ce := blu.CrossEntropyOp{Op: op}
	return one(r.CrossEntropyGrad(ce.Logits(), ce.Targets(), ce.Lse(), dsum, ce.Ignore()))
}
