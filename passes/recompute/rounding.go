package recompute

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/lower/kernels"
)

// roundedBytes is the size of an element of bfloat16.
const roundedBytes = 2

// rounding is what kernels will keep in bfloat16: what is read rounded is stored so, beside the float32 if something reads that too.
type rounding struct {
	operands map[*ir.Op][]int   // that an operation reads rounded
	wanted   map[*ir.Value]bool // read rounded, perhaps through views
	exact    map[*ir.Value]bool // bfloat16 and nothing else: what attention gives, and views and concatenations of that
}

func roundingOf(fn *ir.Op, t Target) rounding {
	r := rounding{operands: map[*ir.Op][]int{}, wanted: map[*ir.Value]bool{}, exact: map[*ir.Value]bool{}}
	for op := range fn.Body().Ops() {
		list := roundedOperands(op, t)
		for _, v := range op.Results() {
			r.exact[v] = r.isExact(v, len(list) > 0)
		}
		if len(list) > 0 {
			r.operands[op] = list
		}
	}
	for op := fn.Body().Last(); op != nil; op = op.Prev() {
		for _, i := range r.operands[op] {
			r.wanted[op.Operand(i)] = true
		}
		if roleOf(op) == view && r.wanted[op.Result(0)] {
			r.wanted[op.Operand(0)] = true
		}
	}
	return r
}

// roundedOperands is what kernels read rounded: by the lowering's own rules, but that the gradient of the rows that chunks of logits
// are computed of is put together in float32.
func roundedOperands(op *ir.Op, t Target) []int {
	list := kernels.RoundedOperands(op)
	if op.Is(blu.LayernormGrad) || op.Is(blu.RmsnormGrad) {
		list = slices.DeleteFunc(list, func(i int) bool { return sumsChunks(op.Operand(i).Op(), t) })
	}
	return list
}

// isExact tells of an operation's result, whose operands are known, whether it is bfloat16 alone.
func (r rounding) isExact(v *ir.Value, rounds bool) bool {
	op := v.Op()
	switch {
	case op.Is(blu.Attention):
		return rounds && v == op.Result(0)
	case op.Is(blu.AttentionGrad):
		return rounds
	case roleOf(op) == view, op.Is(blu.Concat):
		for _, x := range op.Operands() {
			if !r.exact[x] {
				return false
			}
		}
		return op.NumOperands() > 0
	}
	return false
}

// twin reports whether a value is there rounded, beside what it is or in its place.
func (r rounding) twin(v *ir.Value) bool {
	t, ok := v.Elem().(*ir.FloatType)
	return r.wanted[v] && !r.exact[v] && ok && t.Kind == ir.F32
}

// roundsTo16 reports whether an operation rounds its operand to bfloat16.
func roundsTo16(op *ir.Op) bool {
	if !op.Is(blu.Cast) {
		return false
	}
	t, ok := op.Result(0).Elem().(*ir.FloatType)
	return ok && t.Kind == ir.BF16
}

// widens reports whether an operation's result is rounded what its operand is.
func widens(op *ir.Op) bool {
	if !op.Is(blu.Cast) {
		return false
	}
	t, ok := op.Operand(0).Elem().(*ir.FloatType)
	return ok && t.Kind == ir.BF16
}
