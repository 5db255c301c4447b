package recompute

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// simpleFlops estimates the floating-point operations of an operation that are no matrix products: in operations for
// each element, where a function such as exp counts as costly and moving an element as one.
func simpleFlops(op *ir.Op) float64 {
	if blu.Flops(op) > 0 {
		return 0
	}
	switch op.Def() {
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

func elements(v *ir.Value) float64 { return float64(ir.NumElements(v.Shape())) }
