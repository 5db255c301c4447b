package builtin

import (
	"math"

	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
)

// Section is a group of built-ins in the reference.
type Section struct {
	Title string
	Rows  []*Row
}

// Table lists the built-ins that programs call by name, in the order of the reference.
var Table = []Section{
	{"Elementwise, one operand", []*Row{
		unaryRow("exp", "exponential", Float, blu.Exp, math.Exp),
		unaryRow("log", "natural logarithm", Float, blu.Log, math.Log),
		unaryRow("sqrt", "square root", Float, blu.Sqrt, math.Sqrt),
		unaryRow("rsqrt", "reciprocal square root, 1 / sqrt(x)", Float, blu.Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }),
		unaryRow("sin", "sine of x in radians", Float, blu.Sin, math.Sin),
		unaryRow("cos", "cosine of x in radians", Float, blu.Cos, math.Cos),
		unaryRow("tanh", "hyperbolic tangent", Float, blu.Tanh, math.Tanh),
		unaryRow("erf", "error function", Float, blu.Erf, math.Erf),
		unaryRow("abs", "absolute value", Number, blu.Abs, math.Abs),
		unaryRow("sign", "-1, 0 or 1", Number, blu.Sign, nil),
		unaryRow("floor", "largest whole number that is not greater", Float, blu.Floor, math.Floor),
		{Name: "square", Doc: "x * x", Result: "as x", Params: []Param{adopting("x", Number)},
			Infer: sameAsX, Fold: fold1(func(x float64) float64 { return x * x }), Emit: emitSquare},
		{Name: "relu", Doc: "max(x, 0); NaN stays NaN", Result: "as x", Params: []Param{tensor("x", Float)}, Infer: sameAsX, Emit: emitRelu},
		unaryRow("sigmoid", "logistic function, 1 / (1 + exp(-x))", Float, blu.Sigmoid, nil),
		{Name: "silu", Doc: "x * sigmoid(x)", Result: "as x", Params: []Param{tensor("x", Float)}, Infer: sameAsX, Emit: emitOp(blu.Silu)},
		{Name: "gelu", Doc: `Gaussian error linear unit: "tanh" is GPT-2's approximation, "erf" the exact function (they differ by at most 4.8e-4, near |x| = 2.7)`,
			Result: "as x", Params: []Param{tensor("x", Float), choice("approximate", "tanh", "erf")}, Infer: sameAsX, Emit: emitGelu},
		{Name: "stop_gradient", Doc: "x, through which no gradient flows", Result: "as x", Params: []Param{tensor("x", Tensor)},
			Infer: sameAsX, Emit: emitOp(blu.StopGradient)},
	}},
	{"Elementwise, several operands", []*Row{
		{Name: "maximum", Doc: "the greater, element by element; NaN where either is NaN", Result: "x and y broadcast",
			Params: []Param{adopting("x", Number), adopting("y", Number)}, Infer: inferJoint, Fold: fold2(math.Max), Emit: emitBinary(blu.Max)},
		{Name: "minimum", Doc: "the lesser, element by element; NaN where either is NaN", Result: "x and y broadcast",
			Params: []Param{adopting("x", Number), adopting("y", Number)}, Infer: inferJoint, Fold: fold2(math.Min), Emit: emitBinary(blu.Min)},
		{Name: "pow", Doc: "x to the power y", Result: "x and y broadcast",
			Params: []Param{adopting("x", Float), adopting("y", Float)}, Infer: inferJoint, Fold: fold2(math.Pow), Emit: emitBinary(blu.Pow)},
		{Name: "where", Doc: "x where cond holds, else y; no gradient, not even NaN, flows from the side not taken", Result: "cond, x and y broadcast",
			Params: []Param{tensor("cond", Boolean), adopting("x", Tensor), adopting("y", Tensor)}, Infer: inferWhere, Emit: emitWhere},
		{Name: "cast", Doc: "x converted to another dtype; floats to integers round toward zero", Result: "dtype[dims of x]",
			Params: []Param{tensor("x", Tensor), {Name: "dtype", Kind: DTypeArg}}, Infer: inferCast, Emit: emitCast},
	}},
	{"Reductions", []*Row{
		reductionRow("sum", "sum over axes", Number, emitSum),
		reductionRow("mean", "mean over axes", Float, emitMean),
		reductionRow("var", "mean squared distance from the mean over axes (divided by the count, not by the count less one)", Float, emitVar),
		reductionRow("max", "greatest over axes", Number, emitReduce(blu.ReduceMax)),
		reductionRow("min", "least over axes", Number, emitReduce(blu.ReduceMin)),
		reductionRow("norm", "Euclidean norm over axes; its gradient at zero is zero", Float, emitNorm),
		{Name: "argmax", Doc: "where the greatest stands along an axis, the first of equals; no gradient", Result: "i32, without the axis",
			Params: []Param{tensor("x", Number), axis("axis")}, Infer: inferArgmax, Emit: emitArgmax},
		{Name: "softmax", Doc: "exp(x) / sum(exp(x)) along an axis; zeros where all entries are -inf", Result: "as x",
			Params: []Param{tensor("x", Float), axisDefault("axis", -1)}, Infer: inferAlongAxis, Emit: emitAlongAxis(blu.Softmax)},
		{Name: "log_softmax", Doc: "log(softmax(x)) without overflow", Result: "as x",
			Params: []Param{tensor("x", Float), axisDefault("axis", -1)}, Infer: inferAlongAxis, Emit: emitAlongAxis(blu.LogSoftmax)},
	}},
	{"Shapes", []*Row{
		{Name: "reshape", Doc: "the same elements in row-major order; one size may be -1, which takes what is left", Result: "dims = shape",
			Params: []Param{tensor("x", Tensor), {Name: "shape", Kind: DimsArg}}, Infer: inferReshape, Emit: emitReshape},
		{Name: "transpose", Doc: "dimension i of the result is dimension perm[i] of x", Result: "dims permuted",
			Params: []Param{tensor("x", Tensor), {Name: "perm", Kind: DimsArg}}, Infer: inferTranspose, Emit: emitTranspose},
		{Name: "broadcast", Doc: "x repeated to a shape: dimensions match from the right, and each is equal or 1 or missing at the left", Result: "dims = shape",
			Params: []Param{adopting("x", Tensor), {Name: "shape", Kind: DimsArg}}, Infer: inferBroadcast, Emit: emitBroadcast},
		{Name: "unsqueeze", Doc: "x with a dimension of size 1 put in at an axis", Result: "one dimension more",
			Params: []Param{tensor("x", Tensor), axis("axis")}, Infer: inferUnsqueeze, Emit: emitReshape},
		{Name: "squeeze", Doc: "x without a dimension of size 1", Result: "one dimension less",
			Params: []Param{tensor("x", Tensor), axis("axis")}, Infer: inferSqueeze, Emit: emitReshape},
		{Name: "slice", Doc: "x from start to end along an axis, end excluded; negative positions count from the end", Result: "one dimension shorter",
			Params: []Param{tensor("x", Tensor), axis("axis"), intDefault("start", 0), {Name: "end", Kind: IntArg, Optional: true}},
			Infer:  inferSlice, Emit: emitSlice},
		{Name: "split", Doc: "x in parts along an axis: equal ones, as many as there are names or as parts says, or of given sizes", Result: "a tuple",
			Params: []Param{tensor("x", Tensor), axis("axis"), {Name: "parts", Kind: IntArg, Optional: true}, {Name: "sizes", Kind: DimsArg, Optional: true}},
			Infer:  inferSplit, Emit: emitSplit},
		{Name: "concat", Doc: "tensors one after the other along an axis", Result: "dims equal but for the axis",
			Params: []Param{{Name: "xs", Kind: Tensors}, axis("axis")}, Infer: inferConcat, Emit: emitConcat},
		{Name: "pad", Doc: "x with low elements before it and high after it along an axis, all equal to value", Result: "one dimension longer",
			Params: []Param{tensor("x", Tensor), axis("axis"), intDefault("low", 0), intDefault("high", 0),
				{Name: "value", Kind: NumArg, Default: shape.IntOf(shape.Lit(0))}}, Infer: inferPad, Emit: emitPad},
		{Name: "heads", Doc: "x [..., S, C] cut into n heads", Result: "[..., n, S, C/n]",
			Params: []Param{tensor("x", Tensor), {Name: "n", Kind: IntArg}}, Infer: inferHeads, Emit: emitHeads},
		{Name: "merge", Doc: "x [..., H, S, D] with its heads side by side, the inverse of heads", Result: "[..., S, H*D]",
			Params: []Param{tensor("x", Tensor)}, Infer: inferMerge, Emit: emitMerge},
	}},
	{"Making tensors", []*Row{
		{Name: "zeros", Doc: "a tensor of zeros", Result: "dtype[shape]", Params: []Param{{Name: "shape", Kind: DimsArg}, dtypeDefault("dtype", shape.F32)},
			Infer: inferFull, Emit: emitFull(0)},
		{Name: "ones", Doc: "a tensor of ones", Result: "dtype[shape]", Params: []Param{{Name: "shape", Kind: DimsArg}, dtypeDefault("dtype", shape.F32)},
			Infer: inferFull, Emit: emitFull(1)},
		{Name: "full", Doc: "a tensor of one value", Result: "dtype[shape]",
			Params: []Param{{Name: "shape", Kind: DimsArg}, {Name: "value", Kind: NumArg}, dtypeDefault("dtype", shape.F32)}, Infer: inferFull, Emit: emitFullValue},
		{Name: "arange", Doc: "0, 1, ..., n - 1", Result: "dtype[n]", Params: []Param{{Name: "n", Kind: IntArg}, dtypeDefault("dtype", shape.I32)},
			Infer: inferArange, Emit: emitArange},
		{Name: "one_hot", Doc: "1 at position x of a new last dimension of size n, 0 elsewhere; a row of zeros where x is out of range", Result: "dtype[dims of x, n]",
			Params: []Param{tensor("x", Integer), {Name: "n", Kind: IntArg}, dtypeDefault("dtype", shape.F32)}, Infer: inferOneHot, Emit: emitOneHot},
		{Name: "gather", Doc: "rows of x, as x[indices]; an index out of range is a run-time error", Result: "[dims of indices, dims of x but the first]",
			Params: []Param{tensor("x", Tensor), tensor("indices", Integer)}, Infer: inferGather, Emit: emitGather},
	}},
	{"Products", []*Row{
		{Name: "linear", Doc: "x times the transpose of w, plus b: w is [outputs, inputs], as in PyTorch's Linear", Result: "[..., outputs]",
			Params: []Param{tensor("x", Float), tensor("w", Float), optional("b", Float)}, Infer: inferLinear, Emit: emitLinear},
		{Name: "matmul", Doc: "matrix product of the last two dimensions; the dimensions before them are equal, or only x has them", Result: "[..., M, N]",
			Params: []Param{tensor("x", Float), tensor("y", Float)}, Infer: inferMatmul, Emit: emitMatmul},
		{Name: "einsum", Doc: `sum of products by letters, "bsc,oc->bso": letters that the result lacks are summed`, Result: "by the letters after ->",
			Params: []Param{{Name: "spec", Kind: StringArg}, {Name: "xs", Kind: Tensors}}, Infer: inferEinsum, Emit: emitEinsum},
	}},
	{"Layers", []*Row{
		{Name: "layernorm", Doc: "(x - mean) / sqrt(var + eps) * g + b over the last dimension", Result: "as x",
			Params: []Param{tensor("x", Float), tensor("g", Float), optional("b", Float), numDefault("eps", 1e-5)}, Infer: inferNorm, Emit: emitLayernorm},
		{Name: "rmsnorm", Doc: "x / sqrt(mean(x*x) + eps) * g over the last dimension", Result: "as x",
			Params: []Param{tensor("x", Float), tensor("g", Float), numDefault("eps", 1e-5)}, Infer: inferNorm, Emit: emitRmsnorm},
		{Name: "attention", Doc: "softmax(scale * q k^T) v. q is [B, H, S, D], k and v are [B, K, T, D]; K divides H, and H/K heads of q share one of k and v (grouped queries). " +
			"scale is 1/sqrt(D) unless given. causal: query i sees keys up to i + T - S", Result: "as q",
			Params: []Param{tensor("q", Float), tensor("k", Float), tensor("v", Float), boolDefault("causal", false), {Name: "scale", Kind: NumArg, Optional: true}},
			Infer:  inferAttention, Emit: emitAttention},
		{Name: "rope", Doc: "rotary position embedding of x [..., S, D]: pairs (i, i + D/2) turn by position * base^(-2i/D), as in Hugging Face's Llama", Result: "as x",
			Params: []Param{tensor("x", Float), numDefault("base", 10000)}, Infer: inferRope, Emit: emitRope},
		{Name: "dropout", Doc: "in training, each element is zero with probability p and else x / (1 - p); otherwise x", Result: "as x",
			Params: []Param{tensor("x", Float), {Name: "p", Kind: NumArg}}, Infer: inferDropout, Emit: emitDropout, Random: true},
	}},
	{"Images", []*Row{
		{Name: "conv2d", Doc: "convolution of x [N, C, H, W] with w [O, C, KH, KW], as PyTorch's: the window moves by stride over x with padding zeros on each side", Result: "[N, O, ...]",
			Params: []Param{tensor("x", Float), tensor("w", Float), optional("b", Float), intDefault("stride", 1), intDefault("padding", 0)},
			Infer:  inferConv2d, Emit: emitConv2d},
		{Name: "max_pool", Doc: "greatest of each window of size by size; stride is size unless given; at ties the gradient is shared", Result: "[N, C, ...]",
			Params: []Param{tensor("x", Float), {Name: "size", Kind: IntArg}, {Name: "stride", Kind: IntArg, Optional: true}}, Infer: inferPool, Emit: emitMaxPool},
		{Name: "avg_pool", Doc: "mean of each window of size by size; stride is size unless given", Result: "[N, C, ...]",
			Params: []Param{tensor("x", Float), {Name: "size", Kind: IntArg}, {Name: "stride", Kind: IntArg, Optional: true}}, Infer: inferPool, Emit: emitAvgPool},
	}},
	{"Losses: a sum and a count", []*Row{
		{Name: "cross_entropy", Doc: "sum of -log_softmax(logits)[target] over targets that are not ignore, and their number. logits is [..., V], targets has its dims but the last. " +
			"A target that is neither ignore nor in 0..V is a run-time error", Result: "(f32, f32); f64 where the arguments are",
			Params: []Param{tensor("logits", Float), tensor("targets", Integer), intDefault("ignore", -1)}, Infer: inferCrossEntropy, Emit: emitCrossEntropy},
		{Name: "mse", Doc: "sum of (x - y)^2 and the number of elements", Result: "(f32, f32); f64 where the arguments are",
			Params: []Param{tensor("x", Float), tensor("y", Float)}, Infer: inferMse, Emit: emitMse},
	}},
}

// Operators maps operators to their rows. Their parameters are called as an error tells them.
var Operators = map[string]*Row{
	"+":  arithmeticRow("+", emitBinary(blu.Add)),
	"-":  arithmeticRow("-", emitBinary(blu.Sub)),
	"*":  arithmeticRow("*", emitBinary(blu.Mul)),
	"/":  {Name: "/", Params: []Param{adopting("left", Number), adopting("right", Number)}, Infer: inferDivide, Emit: emitBinary(blu.Div)},
	"==": comparisonRow("==", "eq", Tensor),
	"!=": comparisonRow("!=", "ne", Tensor),
	"<":  comparisonRow("<", "lt", Number),
	"<=": comparisonRow("<=", "le", Number),
	">":  comparisonRow(">", "gt", Number),
	">=": comparisonRow(">=", "ge", Number),
	"&&": {Name: "&&", Params: []Param{adopting("left", Boolean), adopting("right", Boolean)}, Infer: inferJoint, Emit: emitBinary(blu.And)},
	"||": {Name: "||", Params: []Param{adopting("left", Boolean), adopting("right", Boolean)}, Infer: inferJoint, Emit: emitBinary(blu.Or)},
}

// Prefixes maps the operators that stand before their operand.
var Prefixes = map[string]*Row{
	"-": {Name: "-", Params: []Param{tensor("x", Number)}, Infer: sameAsX, Emit: emitOp(blu.Neg)},
	"!": {Name: "!", Params: []Param{tensor("x", Boolean)}, Infer: sameAsX, Emit: emitOp(blu.Not)},
}

// Index is x[...]: slices and positions in Call.Index, or a single tensor of row numbers as its second argument.
var Index = &Row{Name: "index", Params: []Param{tensor("x", Tensor), optional("rows", Integer)}, Infer: inferIndex, Emit: emitIndex}

func tensor(name string, k Kind) Param   { return Param{Name: name, Kind: k} }
func adopting(name string, k Kind) Param { return Param{Name: name, Kind: k, Adopts: true} }
func optional(name string, k Kind) Param { return Param{Name: name, Kind: k, Optional: true} }
func axis(name string) Param             { return Param{Name: name, Kind: AxisArg} }

func axisDefault(name string, a int64) Param {
	return Param{Name: name, Kind: AxisArg, Default: shape.IntOf(shape.Lit(a))}
}

func intDefault(name string, n int64) Param {
	return Param{Name: name, Kind: IntArg, Default: shape.IntOf(shape.Lit(n))}
}

func numDefault(name string, v float64) Param {
	return Param{Name: name, Kind: NumArg, Default: shape.FloatOf(v)}
}

func boolDefault(name string, v bool) Param {
	return Param{Name: name, Kind: BoolArg, Default: shape.BoolOf(v)}
}

func dtypeDefault(name string, d shape.DType) Param {
	return Param{Name: name, Kind: DTypeArg, Default: shape.DTypeOf(d)}
}

// choice is a string parameter; its first choice is the default.
func choice(name string, choices ...string) Param {
	return Param{Name: name, Kind: StringArg, Default: shape.StringOf(choices[0]), Choices: choices}
}

func fold1(f func(float64) float64) func([]float64) float64 {
	if f == nil {
		return nil
	}
	return func(a []float64) float64 { return f(a[0]) }
}

func fold2(f func(x, y float64) float64) func([]float64) float64 {
	return func(a []float64) float64 { return f(a[0], a[1]) }
}
