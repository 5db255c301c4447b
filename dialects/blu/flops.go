package blu

import "blutrain/ir"

// Flops counts the floating-point operations of an operation's matrix products, a multiplication and an addition as two:
// what is compared to a machine's peak. It is 0 for what multiplies no matrices. Causal attention counts half.
func Flops(op *ir.Op) float64 {
	switch op.Def() {
	case Dot:
		depth := countAlong(op.Operand(0).Shape(), op.Attrs().Ints("lhs_contract"))
		return 2 * float64(ir.NumElements(op.Result(0).Shape())) * float64(depth)
	case Attention:
		return 2 * attentionFlops(op)
	case AttentionGrad:
		return 5 * attentionFlops(op)
	}
	return 0
}

// attentionFlops is the operations of one product of queries and keys.
func attentionFlops(op *ir.Op) float64 {
	q, k := op.Operand(0).Shape(), op.Operand(1).Shape()
	n := 2 * float64(ir.NumElements(q)) * float64(k[len(k)-2])
	if op.Attrs().Bool("causal") {
		n /= 2
	}
	return n
}
