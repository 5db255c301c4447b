package binary

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// countFlops counts the floating-point operations of matrix products and attention in each function, a multiplication and
// an addition as two: what is compared to a machine's peak as model FLOPs utilization. Causal attention counts half.
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
			n += flops(op)
			return ir.Advance
		})
		counts[ir.SymName(f)] = n
	}
	return counts
}

func flops(op *ir.Op) float64 {
	switch op.Def() {
	case blu.Dot:
		depth := int64(1)
		for _, d := range op.Attrs().Ints("lhs_contract") {
			depth *= op.Operand(0).Shape()[d]
		}
		return 2 * float64(ir.NumElements(op.Result(0).Shape())) * float64(depth)
	case blu.Attention:
		return 2 * attentionProduct(op)
	case blu.AttentionGrad:
		return 5 * attentionProduct(op)
	}
	return 0
}

// attentionProduct is the operations of one product of queries and keys.
func attentionProduct(op *ir.Op) float64 {
	q, k := op.Operand(0).Shape(), op.Operand(1).Shape()
	n := 2 * float64(ir.NumElements(q)) * float64(k[len(k)-2])
	if op.Attrs().Bool("causal") {
		n /= 2
	}
	return n
}
