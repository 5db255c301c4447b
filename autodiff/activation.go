package autodiff

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// y = x Phi(x), or its tanh approximation: dx is blu.gelu_grad of the same kind.
func gelu(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.GeluGrad(op.Operand(0), dy, blu.GeluOp{Op: op}.Approximate()))
}

// y = x sigmoid(x):  dx = dy (s + x s (1 - s)) with s = sigmoid(x), which is blu.silu_grad
func silu(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.SiluGrad(op.Operand(0), dy))
}
