package binary

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// countFlops counts the floating-point operations of matrix products in each function: what is compared to a machine's peak
// as model FLOPs utilization. What is only computed again, to save memory, doesn't count.
func countFlops(module *ir.Op) map[string]float64 {
	from := module
	if step := nested(module, Step); step != nil {
		from = step
	}
	counts := map[string]float64{}
	for f := range from.Body().Ops() {
		if !f.Is(fn.Func) {
			continue
		}
		n := 0.0
		ir.Walk(f, func(op *ir.Op) ir.WalkResult {
			if op.Attr(blu.RecomputedAttr) == nil {
				n += blu.Flops(op)
			}
			return ir.Advance
		})
		counts[ir.SymName(f)] = n
	}
	return counts
}
