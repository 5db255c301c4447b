package recompute

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/lower/kernels"
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
func (g *graph) bytesInMemory(v *ir.Value, elem int64) int64 {
	if inSum(v) {
		return 0
	}
	n := ir.NumElements(v.Shape())
	if inChunks(v, g.target) {
		n = min(n, g.chunkRows(logitsOf(v))*v.Shape()[len(v.Shape())-1])
	}
	return n * elem
}

// fewestChunks is into how many chunks logits are cut at least where more rows are computed at once than by default.
const fewestChunks = 4

// rowsAtOnce is how many rows of logits there are at once at most: by default, or some times as many.
func (g *graph) rowsAtOnce(logits *ir.Value) int64 {
	most := kernels.RowsAtOnce(logits.Op(), g.target.LogitsRows)
	rows := rowsOf(logits)
	if g.target.LargerChunks && logits.Op().Attr(blu.RowsAttr) == nil && rows > fewestChunks*most {
		most = min(most*g.times, (rows+fewestChunks-1)/fewestChunks)
	}
	return most
}

func rowsOf(v *ir.Value) int64 { return ir.NumElements(v.Shape()[:len(v.Shape())-1]) }

// chunks is how many chunks logits are computed in.
func (g *graph) chunks(logits *ir.Value) int64 {
	most := g.rowsAtOnce(logits)
	return (rowsOf(logits) + most - 1) / most
}

// chunkRows is how many rows of logits there are at once, whose number chunks share.
func (g *graph) chunkRows(logits *ir.Value) int64 {
	chunks := g.chunks(logits)
	return (rowsOf(logits) + chunks - 1) / chunks
}

// logitsOf is the logits that a value is, or is the gradient of.
func logitsOf(v *ir.Value) *ir.Value {
	if v.DefinedBy(blu.CrossEntropyGrad) {
		return v.Op().Operand(0)
	}
	return v
}

// chunked is an operation that is computed once for each chunk of logits.
type chunked struct {
	logits *ir.Value
	again  []int32 // values that each chunk but the first reads or writes once more
}

// chunkedOf is what of an operation, of the graph's node n, is done for each chunk; nil where it has nothing to do with such logits.
func (g *graph) chunkedOf(op *ir.Op, n *node) *chunked {
	of := func(v *ir.Value) bool { return inChunks(v, g.target) }
	if op.Is(blu.CrossEntropy) && of(op.Operand(0)) {
		return &chunked{logits: op.Operand(0)}
	}
	if !op.Is(blu.Dot) {
		return nil
	}
	if of(op.Result(0)) {
		return &chunked{op.Result(0), n.in[1:2]}
	}
	for i, v := range op.Operands() {
		if !v.DefinedBy(blu.CrossEntropyGrad) || !of(v) {
			continue
		}
		if lhs, rhs := blu.DotOperandAxes(op); slices.Contains([]blu.DotAxes{lhs, rhs}[i].Free, int64(len(v.Shape())-1)) {
			return &chunked{logitsOf(v), []int32{n.first, n.first}} // a sum over rows: read and written
		}
		return &chunked{logitsOf(v), n.in[1-i : 2-i]}
	}
	return nil
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
	logits := logitsOf(v)
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
