package recompute

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// Logits that only a loss needs are never in memory whole: kernels compute them some rows at a time when there are more
// than so many elements. The estimate counts what is there at once.
const (
	wholeLogits = 1 << 26 // elements
	logitsRows  = 1024
)

// sumsChunks reports whether a product adds up what chunks of logits give, so that its result is in memory from the first
// chunk to the last whatever follows.
func sumsChunks(op *ir.Op) bool {
	if op == nil || !op.Is(blu.Dot) {
		return false
	}
	for _, v := range op.Operands() {
		if v.DefinedBy(blu.CrossEntropyGrad) && inChunks(v) {
			return true
		}
	}
	return false
}

// bytesInMemory is the bytes of a value, or of the rows of logits, or of their gradient, that are there at once.
func bytesInMemory(v *ir.Value) int64 {
	n := ir.NumElements(v.Shape())
	if inChunks(v) {
		n = min(n, logitsRows*v.Shape()[len(v.Shape())-1])
	}
	if inSum(v) {
		return 0
	}
	return n * ir.ByteSize(v.Elem())
}

// inSum reports whether a value is added to a sum that the function keeps in storage: products and lookups' rows are added where
// that lies, one after the other.
func inSum(v *ir.Value) bool {
	if !v.HasOneUse() || !v.DefinedBy(blu.Dot) && !v.DefinedBy(blu.ScatterAdd) && !v.DefinedBy(blu.Add) {
		return false
	}
	for u := range v.Uses() {
		switch op := u.Owner(); {
		case op.Is(blu.Accumulate):
			return u.Index() == 1 && op.Operand(0).Op() == nil
		case op.Is(blu.Add):
			return (u.Index() == 0 || !v.DefinedBy(blu.Add)) && inSum(op.Result(0))
		}
	}
	return false
}

// inChunks reports whether a value is logits, or their gradient, that are computed some rows at a time.
func inChunks(v *ir.Value) bool {
	logits := v
	if v.DefinedBy(blu.CrossEntropyGrad) {
		logits = v.Op().Operand(0)
	}
	return ir.NumElements(v.Shape()) > wholeLogits && logits.DefinedBy(blu.Dot) && onlyForLoss(logits)
}

// onlyForLoss reports whether a product is used by a cross entropy and its gradient alone, and that by products.
func onlyForLoss(logits *ir.Value) bool {
	for u := range logits.Uses() {
		op := u.Owner()
		if !op.Is(blu.CrossEntropy) && !op.Is(blu.CrossEntropyGrad) {
			return false
		}
		for w := range op.Result(0).Uses() {
			if op.Is(blu.CrossEntropyGrad) && !w.Owner().Is(blu.Dot) {
				return false
			}
		}
	}
	return true
}
