package recompute

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// cost estimates the floating-point operations of an operation: exactly for products, and for all else in operations for
// each element, where a function such as exp counts as costly and moving an element as one.
func cost(op *ir.Op) float64 {
	switch op.Def() {
	case blu.Dot:
		lhs, _ := blu.DotOperandAxes(op)
		depth := 1.0
		for _, d := range lhs.Contract {
			depth *= float64(op.Operand(0).Shape()[d])
		}
		return 2 * elements(op.Result(0)) * depth
	case blu.Attention:
		return 2 * attentionProduct(op)
	case blu.AttentionGrad:
		return 5 * attentionProduct(op)
	case blu.Softmax, blu.LogSoftmax, blu.Layernorm, blu.LayernormGrad, blu.Rmsnorm, blu.RmsnormGrad, blu.CrossEntropyGrad,
		blu.RandomUniform, blu.RandomNormal, blu.Adamw, blu.Sgd, blu.Rope,
		blu.Exp, blu.Log, blu.Sqrt, blu.Rsqrt, blu.Tanh, blu.Erf, blu.Sigmoid, blu.Sin, blu.Cos, blu.Pow, blu.Div,
		blu.Gelu, blu.GeluGrad, blu.Silu, blu.SiluGrad:
		return costly * elements(op.Result(0))
	case blu.CrossEntropy:
		return costly * elements(op.Operand(0))
	case blu.ReduceSum, blu.ReduceMax, blu.ReduceMin, blu.Argmax:
		return elements(op.Operand(0))
	}
	if op.Has(ir.View) || op.Has(ir.ConstantLike) || op.Has(ir.Terminator) || op.NumResults() == 0 {
		return 0
	}
	return elements(op.Result(0))
}

// costly is about how many additions a transcendental function, or a row operation's element, costs.
const costly = 12

// attentionProduct is the operations of one product of queries and keys.
func attentionProduct(op *ir.Op) float64 {
	keys := op.Operand(1).Shape()
	n := 2 * elements(op.Operand(0)) * float64(keys[len(keys)-2])
	if op.Attrs().Bool("causal") {
		n /= 2
	}
	return n
}

func elements(v *ir.Value) float64 { return float64(ir.NumElements(v.Shape())) }
