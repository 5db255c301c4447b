package autodiff

import "blutrain/ir"

// sum = sum over rows that count of lse - logits[target]:
//
//	dlogits = dsum (softmax(logits) - onehot(target)), and 0 in rows whose target is ignored
//
// which is blu.cross_entropy_grad; it recomputes the softmax from lse.
func crossEntropy(r *reverse, op *ir.Op, dsum *ir.Value) []*ir.Value {
	logits, targets, lse := op.Operand(0), op.Operand(1), op.Result(2)
	ignore, _ := op.Attrs().Int("ignore")
	return one(r.CrossEntropyGrad(logits, targets, lse, dsum, ignore))
}
