package blu

import (
	"slices"

	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{
	Name:    "blu",
	Summary: "neural-network programs: pure operations on tensors with static shapes",
	Ops: slices.Concat(
		[]*ir.OpDef{Param, State, Get},
		[]*ir.OpDef{Constant, Iota},
		[]*ir.OpDef{Neg, Abs, Exp, Log, Sqrt, Rsqrt, Tanh, Erf, Sigmoid, Sin, Cos, Sign, Floor, Not, StopGradient},
		[]*ir.OpDef{Add, Sub, Mul, Div, Pow, Max, Min, And, Or},
		[]*ir.OpDef{Compare, Select, Cast},
		[]*ir.OpDef{Broadcast, Reshape, Transpose, Slice, Pad, Concat},
		[]*ir.OpDef{ReduceSum, ReduceMax, ReduceMin, Argmax},
		[]*ir.OpDef{Dot},
		[]*ir.OpDef{Gather, ScatterAdd},
		[]*ir.OpDef{Softmax, LogSoftmax},
		[]*ir.OpDef{Layernorm, LayernormGrad, Rmsnorm, RmsnormGrad},
		[]*ir.OpDef{Gelu, GeluGrad, Silu, SiluGrad},
		[]*ir.OpDef{Rope, Attention, AttentionGrad, CrossEntropy, CrossEntropyGrad},
		[]*ir.OpDef{RandomUniform, RandomNormal},
		[]*ir.OpDef{Accumulate, SumSquares, Adamw, Sgd},
	),
}
