package recompute

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// sumsChunks reports whether a product adds up what chunks of logits give, so that its result is in memory from the first
// chunk to the last whatever follows.
func sumsChunks(op *ir.Op, t Target) bool {
	if op == nil || !op.Is(blu.Dot) {
		return false
	}
	for _, v := range op.Operands() {
		if v.DefinedBy(blu.CrossEntropyGrad) && inChunks(v, t) {
			return true
		}
	}
	return false
}

// bytesInMemory is the bytes of a value of elements of so many bytes, or of the rows of logits, or of their gradient, that are there at
// once: logits that only a loss needs are never in memory whole.
func bytesInMemory(v *ir.Value, elem int64, t Target) int64 {
	n := ir.NumElements(v.Shape())
	if inChunks(v, t) {
		n = min(n, t.chunkRows(v.Shape(), elem)*v.Shape()[len(v.Shape())-1])
	}
	if inSum(v) {
		return 0
	}
	return n * elem
}

// chunkRows is how many rows of logits there are at once, whose number chunks share.
func (t Target) chunkRows(shape []int64, elem int64) int64 {
	rows, most := ir.NumElements(shape[:len(shape)-1]), t.LogitsRows
	if elem == roundedBytes {
		most *= 2
	}
	chunks := (rows + most - 1) / most
	return (rows + chunks - 1) / chunks
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
func inChunks(v *ir.Value, t Target) bool {
	logits := v
	if v.DefinedBy(blu.CrossEntropyGrad) {
		logits = v.Op().Operand(0)
	}
	return ir.NumElements(v.Shape()) > t.LogitsElems && logits.DefinedBy(blu.Dot) && onlyForLoss(logits)
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
