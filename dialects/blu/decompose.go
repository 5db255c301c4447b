package blu

import (
	"math"

	"blutrain/ir"
)

// Decompose says, by full name, what composite operations are in terms of primitive ones: a function that writes them at the
// insertion point and returns the values of the results. Everything that knows the primitives (differentiation, kernel
// generation) thereby knows the composites. Run-time checks of indices do not survive: targets of cross_entropy are taken
// to be in range.
var Decompose = map[string]func(b *Builder, op *ir.Op) []*ir.Value{
	"blu.softmax":            decomposeSoftmax,
	"blu.log_softmax":        decomposeLogSoftmax,
	"blu.layernorm":          decomposeLayernorm,
	"blu.layernorm_grad":     decomposeLayernormGrad,
	"blu.rmsnorm":            decomposeRmsnorm,
	"blu.rmsnorm_grad":       decomposeRmsnormGrad,
	"blu.gelu":               decomposeGelu,
	"blu.gelu_grad":          decomposeGeluGrad,
	"blu.silu":               decomposeSilu,
	"blu.silu_grad":          decomposeSiluGrad,
	"blu.rope":               decomposeRope,
	"blu.attention":          decomposeAttention,
	"blu.attention_grad":     decomposeAttentionGrad,
	"blu.cross_entropy":      decomposeCrossEntropy,
	"blu.cross_entropy_grad": decomposeCrossEntropyGrad,
	"blu.accumulate":         decomposeAccumulate,
	"blu.sum_squares":        decomposeSumSquares,
	"blu.adamw":              decomposeAdamw,
	"blu.sgd":                decomposeSgd,
}

// wide casts x to the type in which statistics of it are computed.
func (b *Builder) wide(x *ir.Value) *ir.Value { return b.CastTo(x, statType(b.Ctx, x.Elem())) }

// replaced is x with one value put in another's place.
func (b *Builder) replaced(x *ir.Value, what, by float64) *ir.Value {
	return b.Select(b.Compare(x, b.SplatLike(x, what), "eq"), b.SplatLike(x, by), x)
}

// finite is x with 0 in place of -inf: what can be subtracted from -inf and leaves -inf.
func (b *Builder) finite(x *ir.Value) *ir.Value { return b.replaced(x, math.Inf(-1), 0) }

// exponentials is exp(x - max) along an axis, the sums along it, and the maxima (0 in place of -inf); the sum is 0 where all
// of x is -inf, and at least 1 elsewhere.
func (b *Builder) exponentials(x *ir.Value, axis int64) (e, sum, shift *ir.Value) {
	shift = b.finite(b.ReduceMax(x, []int64{axis}))
	e = b.Exp(b.Sub(x, b.Along(shift, axis, x.Shape())))
	return e, b.ReduceSum(e, []int64{axis}), shift
}

// lastAxis is the number of the last axis of x.
func lastAxis(x *ir.Value) int64 { return int64(len(x.Shape()) - 1) }

// row repeats a vector for every row of a shape.
func (b *Builder) row(v *ir.Value, shape []int64) *ir.Value {
	return b.BroadcastTo(v, []int64{int64(len(shape) - 1)}, shape)
}

// rowMean is the mean over the last axis, repeated along it.
func (b *Builder) rowMean(x *ir.Value) *ir.Value {
	return b.Along(b.Mean(x, lastAxis(x)), lastAxis(x), x.Shape())
}

// columnSums adds up all rows.
func (b *Builder) columnSums(x *ir.Value) *ir.Value {
	return b.ReduceSum(x, leadingAxes(len(x.Shape())-1))
}
