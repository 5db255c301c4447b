package blu

import (
	"slices"

	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// Canonical lists the rules by which the dialect's operations reach their simplest form where that is neither a value that
// exists already nor a constant, which folding finds.
var Canonical = []rewrite.Pattern{
	{Name: "merge-reshapes", Op: Reshape, Run: mergeReshapes},
	{Name: "merge-transposes", Op: Transpose, Run: mergeTransposes},
	{Name: "merge-broadcasts", Op: Broadcast, Run: mergeBroadcasts},
	{Name: "merge-slices", Op: Slice, Run: mergeSlices},
	{Name: "drop-empty-parts", Op: Concat, Run: dropEmptyParts},
	{Name: "flatten-concats", Op: Concat, Run: flattenConcats},
	{Name: "merge-casts", Op: Cast, Run: mergeCasts},
	{Name: "subtract-negations", Op: Add, Run: addOfNegation},
}

// producer is the operation of the same kind that makes op's operand, or nil.
func producer(op *ir.Op) *ir.Op {
	if x := op.Operand(0); x.DefinedBy(op.Def()) {
		return x.Op()
	}
	return nil
}

// reshape(reshape(x)) = reshape(x)
func mergeReshapes(r *rewrite.Rewriter, op *ir.Op) bool {
	inner := producer(op)
	if inner == nil {
		return false
	}
	r.Replace(op, On(r.Builder).ReshapeTo(inner.Operand(0), op.Result(0).Shape()...))
	return true
}

// transpose(transpose(x, p), q) = transpose(x, p[q])
func mergeTransposes(r *rewrite.Rewriter, op *ir.Op) bool {
	inner := producer(op)
	if inner == nil {
		return false
	}
	perm := permute(inner.Attrs().Ints("perm"), op.Attrs().Ints("perm"))
	r.Replace(op, On(r.Builder).Transpose(inner.Operand(0), perm))
	return true
}

// broadcast(broadcast(x, p), q) = broadcast(x, q[p])
func mergeBroadcasts(r *rewrite.Rewriter, op *ir.Op) bool {
	inner := producer(op)
	if inner == nil {
		return false
	}
	axes := permute(op.Attrs().Ints("axes"), inner.Attrs().Ints("axes"))
	r.Replace(op, On(r.Builder).BroadcastTo(inner.Operand(0), axes, op.Result(0).Shape()))
	return true
}

// slice(slice(x)) = slice(x): starts add up in steps of the inner one, steps multiply. A limit is one beyond the last index.
func mergeSlices(r *rewrite.Rewriter, op *ir.Op) bool {
	inner := producer(op)
	if inner == nil {
		return false
	}
	starts, steps := slices.Clone(op.Attrs().Ints("starts")), slices.Clone(op.Attrs().Ints("steps"))
	limits := make([]int64, len(starts))
	for i, count := range op.Result(0).Shape() {
		starts[i] = inner.Attrs().Ints("starts")[i] + starts[i]*inner.Attrs().Ints("steps")[i]
		steps[i] *= inner.Attrs().Ints("steps")[i]
		if count == 0 {
			starts[i] = 0 // the same nothing, within bounds
			continue
		}
		limits[i] = starts[i] + (count-1)*steps[i] + 1
	}
	r.Replace(op, On(r.Builder).Slice(inner.Operand(0), starts, limits, steps))
	return true
}

// concat(x, nothing, y) = concat(x, y)
func dropEmptyParts(r *rewrite.Rewriter, op *ir.Op) bool {
	axis, _ := op.Attrs().Int("axis")
	rest := slices.DeleteFunc(op.Operands(), func(x *ir.Value) bool { return x.Shape()[axis] == 0 })
	if len(rest) == op.NumOperands() || len(rest) == 0 {
		return false
	}
	r.Replace(op, On(r.Builder).Concat(rest, axis))
	return true
}

// concat(concat(x, y), z) = concat(x, y, z), along one axis, where nothing else wants the inner one
func flattenConcats(r *rewrite.Rewriter, op *ir.Op) bool {
	axis, _ := op.Attrs().Int("axis")
	var parts []*ir.Value
	for _, x := range op.Operands() {
		if inner := x.Op(); x.DefinedBy(Concat) && x.HasOneUse() && inner.Attr("axis") == op.Attr("axis") {
			parts = append(parts, inner.Operands()...)
		} else {
			parts = append(parts, x)
		}
	}
	if len(parts) == op.NumOperands() {
		return false
	}
	r.Replace(op, On(r.Builder).Concat(parts, axis))
	return true
}

// cast(cast(x, wide), to) = cast(x, to) where wide holds every value of x's type
func mergeCasts(r *rewrite.Rewriter, op *ir.Op) bool {
	inner := producer(op)
	if inner == nil || !holdsAll(inner.Result(0).Elem(), inner.Operand(0).Elem()) {
		return false
	}
	r.Replace(op, On(r.Builder).CastTo(inner.Operand(0), op.Result(0).Elem()))
	return true
}

// x + -y = x - y and -x + y = y - x
func addOfNegation(r *rewrite.Rewriter, op *ir.Op) bool {
	for i := range 2 {
		if n := op.Operand(1 - i); n.DefinedBy(Neg) {
			r.Replace(op, On(r.Builder).Sub(op.Operand(i), n.Op().Operand(0)))
			return true
		}
	}
	return false
}
