package blu

import "blutrain/ir"

// PrecisionAttr names the mode a product is to be computed in: fp32, fp32-strict, tf32 or bf16. It stands on products for
// targets that choose by it how to compute them; evaluation is exact and does not look at it.
const PrecisionAttr = "blu.precision"

// ProductOperands lists the operands of an operation that go into products, which a precision rounds.
func ProductOperands(op *ir.Op) []int {
	switch op.Def() {
	case Dot:
		return []int{0, 1}
	case Attention:
		return []int{0, 1, 2}
	case AttentionGrad:
		return []int{0, 1, 2, 5}
	}
	return nil
}
