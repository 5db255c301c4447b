package autodiff

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// ruleCase is one way to use one operation.
type ruleCase struct {
	op     string
	name   string
	inputs []input
	body   build
}

func single(v *ir.Value) []*ir.Value { return []*ir.Value{v} }

// unaryCase applies an operation to numbers within a range.
func unaryCase(op string, low, high float64, f func(b *blu.Builder, x *ir.Value) *ir.Value) ruleCase {
	draw := func(rng *rand.Rand) float64 { return low + (high-low)*rng.Float64() }
	return ruleCase{op, "", []input{dims(3, 5).drawn(draw)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(f(b, in[0]))
	}}
}

// binaryCase applies an operation to two tensors, the first positive.
func binaryCase(op string, f func(b *blu.Builder, x, y *ir.Value) *ir.Value) ruleCase {
	positive := func(rng *rand.Rand) float64 { return 0.5 + 2*rng.Float64() }
	return ruleCase{op, "", []input{dims(4, 3).drawn(positive), dims(4, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(f(b, in[0], in[1]))
	}}
}

// ruleCases lists uses of every differentiable operation, with the shapes that have broken such rules elsewhere.
var ruleCases = []ruleCase{
	unaryCase("neg", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Neg(x) }),
	unaryCase("abs", 0.1, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Abs(b.Neg(x)) }),
	unaryCase("exp", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Exp(x) }),
	unaryCase("log", 0.5, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Log(x) }),
	unaryCase("sqrt", 0.5, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Sqrt(x) }),
	unaryCase("rsqrt", 0.5, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Rsqrt(x) }),
	unaryCase("tanh", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Tanh(x) }),
	unaryCase("erf", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Erf(x) }),
	unaryCase("sigmoid", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Sigmoid(x) }),
	unaryCase("sin", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Sin(x) }),
	unaryCase("cos", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Cos(x) }),
	unaryCase("sign", 0.1, 2, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Mul(x, b.Sign(x)) }),
	unaryCase("floor", 0.1, 0.9, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Add(x, b.Floor(x)) }),
	unaryCase("cast", -2, 2, func(b *blu.Builder, x *ir.Value) *ir.Value {
		return b.Cast(b.Sin(b.Cast(x, b.Ctx.Tensor(x.Shape(), b.Ctx.F32()))), x.Type())
	}),
	unaryCase("gelu", -4, 4, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Gelu(x, "tanh") }),
	unaryCase("gelu", -4, 4, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Gelu(x, "erf") }),
	unaryCase("silu", -4, 4, func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Silu(x) }),

	binaryCase("add", func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Add(x, y) }),
	binaryCase("add", func(b *blu.Builder, x, _ *ir.Value) *ir.Value { return b.Add(x, x) }),
	binaryCase("sub", func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Sub(x, y) }),
	binaryCase("sub", func(b *blu.Builder, x, _ *ir.Value) *ir.Value { return b.Sub(x, x) }),
	binaryCase("mul", func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Mul(x, y) }),
	binaryCase("mul", func(b *blu.Builder, x, _ *ir.Value) *ir.Value { return b.Mul(x, x) }),
	binaryCase("div", func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Div(y, x) }),
	binaryCase("pow", func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Pow(x, y) }),
	binaryCase("pow", func(b *blu.Builder, _, y *ir.Value) *ir.Value {
		return b.Pow(y, b.SplatLike(y, 3))
	}),
	binaryCase("max", func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Max(x, y) }),
	binaryCase("min", func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Min(x, y) }),
	binaryCase("select", func(b *blu.Builder, x, y *ir.Value) *ir.Value {
		return b.Select(b.Compare(x, y, "lt"), b.Exp(x), b.Mul(x, y))
	}),

	{"broadcast", "new and stretched dimensions", []input{dims(3, 1, 2)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.BroadcastTo(in[0], []int64{1, 2, 4}, []int64{5, 3, 4, 1, 2}))
	}},
	{"broadcast", "bias over batch and sequence", []input{dims(2, 3, 4), dims(4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Mul(in[0], b.BroadcastTo(in[1], []int64{2}, []int64{2, 3, 4})))
	}},
	{"broadcast", "scalar", []input{dims()}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.BroadcastTo(in[0], nil, []int64{2, 3}))
	}},
	{"broadcast", "one to one", []input{dims(1, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.BroadcastTo(in[0], []int64{0, 1}, []int64{1, 3}))
	}},
	{"reshape", "", []input{dims(4, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ReshapeTo(in[0], 2, 1, 6))
	}},
	{"transpose", "no involution", []input{dims(2, 3, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Transpose(in[0], []int64{2, 0, 1}))
	}},
	{"slice", "", []input{dims(5, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Slice(in[0], []int64{1, 0}, []int64{4, 4}, []int64{1, 1}))
	}},
	{"slice", "steps that end short of the end", []input{dims(9, 7)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Slice(in[0], []int64{1, 0}, []int64{8, 7}, []int64{2, 3}))
	}},
	{"slice", "steps beyond the end", []input{dims(7)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Slice(in[0], []int64{2}, []int64{7}, []int64{4}))
	}},
	{"slice", "nothing", []input{dims(3, 2)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return []*ir.Value{b.Slice(in[0], []int64{1, 0}, []int64{1, 2}, []int64{1, 1}), in[0]}
	}},
	{"slice", "split in three", []input{dims(2, 7)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		a, m, z := cutLast(b, in[0], 0, 2), cutLast(b, in[0], 2, 5), cutLast(b, in[0], 5, 7)
		return []*ir.Value{b.Mul(a, z), b.Exp(m)}
	}},
	{"slice", "neighbours in the middle, and one apart", []input{dims(9)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return []*ir.Value{cutLast(b, in[0], 7, 8), b.Mul(cutLast(b, in[0], 1, 3), cutLast(b, in[0], 3, 5))}
	}},
	{"slice", "a part that goes two ways", []input{dims(4), dims(4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		x := b.Add(in[0], in[1])
		return []*ir.Value{b.Exp(cutLast(b, in[0], 0, 2)), cutLast(b, x, 2, 4)}
	}},
	{"slice", "parts along both axes", []input{dims(4, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		top := b.Slice(in[0], []int64{0, 0}, []int64{2, 4}, []int64{1, 1})
		low := b.Slice(in[0], []int64{2, 0}, []int64{4, 4}, []int64{1, 1})
		return []*ir.Value{b.Exp(low), b.Mul(cutLast(b, top, 0, 2), cutLast(b, top, 2, 4))}
	}},
	{"slice", "overlapping, and twice the same", []input{dims(5)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		x := cutLast(b, in[0], 1, 4)
		return []*ir.Value{b.Mul(x, cutLast(b, in[0], 0, 3)), b.Mul(cutLast(b, in[0], 1, 4), x)}
	}},
	{"slice", "neighbours along one axis, apart along another", []input{dims(4, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		x := b.Slice(in[0], []int64{0, 0}, []int64{2, 2}, []int64{1, 1})
		y := b.Slice(in[0], []int64{2, 2}, []int64{4, 4}, []int64{1, 1})
		z := b.Slice(in[0], []int64{0, 2}, []int64{2, 4}, []int64{1, 1})
		return []*ir.Value{b.Mul(b.Exp(x), y), z}
	}},
	{"pad", "", []input{dims(2, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Pad(in[0], []int64{1, 0}, []int64{2, 1}, 7))
	}},
	{"concat", "one of them twice", []input{dims(2, 3), dims(2, 1)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Concat([]*ir.Value{in[0], in[1], in[0]}, 1))
	}},
	{"concat", "an empty one", []input{dims(2, 3), dims(0, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Concat(in, 0))
	}},

	{"reduce_sum", "inner and outer", []input{dims(2, 3, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ReduceSum(in[0], []int64{0, 2}))
	}},
	{"reduce_sum", "all", []input{dims(2, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ReduceSum(in[0], []int64{0, 1}))
	}},
	{"reduce_sum", "of nothing", []input{dims(2, 0)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ReduceSum(in[0], []int64{1}))
	}},
	{"reduce_max", "", []input{dims(2, 5, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ReduceMax(in[0], []int64{1}))
	}},
	{"reduce_min", "", []input{dims(2, 5, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ReduceMin(in[0], []int64{0, 2}))
	}},

	{"dot", "linear", []input{dims(2, 5, 4), dims(3, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Dot(in[0], in[1], nil, nil, []int64{2}, []int64{1}))
	}},
	{"dot", "batches in another order, two contracted", []input{dims(3, 4, 2, 5, 6), dims(6, 2, 3, 7, 5)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Dot(in[0], in[1], []int64{2, 0}, []int64{1, 2}, []int64{4, 3}, []int64{0, 4}))
	}},
	{"dot", "outer product", []input{dims(3), dims(2)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Dot(in[0], in[1], nil, nil, nil, nil))
	}},
	{"dot", "inner product with itself", []input{dims(3, 2)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Dot(in[0], in[0], nil, nil, []int64{0, 1}, []int64{0, 1}))
	}},
	{"dot", "nothing contracted, batch", []input{dims(3, 2), dims(2, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Dot(in[0], in[1], []int64{1}, []int64{0}, nil, nil))
	}},

	{"gather", "repeated rows", []input{dims(5, 3), indices([]int64{2, 3}, 0, 4, 4, 1, 4, 0)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Gather(in[0], in[1]))
	}},
	{"gather", "from a vector, at one place", []input{dims(5), indices([]int64{}, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Gather(in[0], in[1]))
	}},
	{"scatter_add", "", []input{dims(2, 3, 2), indices([]int64{2, 3}, 0, 4, 4, 1, 4, 0)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ScatterAdd(in[0], in[1], 5))
	}},

	{"softmax", "last", []input{dims(3, 5)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Softmax(in[0], 1))
	}},
	{"softmax", "middle", []input{dims(2, 4, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Softmax(in[0], 1))
	}},
	{"log_softmax", "", []input{dims(4, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.LogSoftmax(in[0], 0))
	}},
	{"layernorm", "", []input{dims(2, 3, 6), dims(6), dims(6)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.Layernorm(in[0], in[1], in[2], 1e-5).Results()[:1]
	}},
	{"layernorm", "statistics used too", []input{dims(3, 6), dims(6), dims(6)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.Layernorm(in[0], in[1], in[2], 1e-5).Results()
	}},
	{"rmsnorm", "", []input{dims(2, 3, 6), dims(6)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.Rmsnorm(in[0], in[1], 1e-5).Results()[:1]
	}},
	{"rope", "", []input{dims(2, 3, 5, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Rope(in[0], 10000, false))
	}},
	{"attention", "causal", []input{dims(2, 2, 4, 3), dims(2, 2, 4, 3), dims(2, 2, 4, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.Attention(in[0], in[1], in[2], true, 0.5).Results()[:1]
	}},
	{"attention", "grouped, more keys than queries", []input{dims(1, 4, 2, 3), dims(1, 2, 5, 3), dims(1, 2, 5, 3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.Attention(in[0], in[1], in[2], false, 0.7).Results()[:1]
	}},
	{"attention", "log-sum-exp used too", []input{dims(1, 2, 3, 2), dims(1, 1, 3, 2), dims(1, 1, 3, 2)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.Attention(in[0], in[1], in[2], true, 1).Results()
	}},
	{"cross_entropy", "ignored rows", []input{dims(4, 5), indices([]int64{4}, 2, -1, 0, 4)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.CrossEntropy(in[0], in[1], -1).Results()[:1]
	}},
	{"cross_entropy", "mean", []input{dims(2, 3, 5), indices([]int64{2, 3}, 2, -1, 0, 4, 1, -1)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		op := b.CrossEntropy(in[0], in[1], -1)
		return single(b.Div(op.Result(0), op.Result(1)))
	}},
	{"stop_gradient", "beside a path that counts", []input{dims(3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		zero := b.Sub(b.StopGradient(in[0]), b.StopGradient(in[0]))
		return single(b.Add(in[0], zero))
	}},
}

// Every operation that claims a derivative has a rule, every rule belongs to one that does, and both are tested.
func TestEveryDifferentiableOpHasARule(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range ruleCases {
		tested[c.op] = true
	}
	for _, op := range blu.Dialect.Ops {
		_, has := rules[op.FullName()]
		_, decomposed := blu.Decompose[op.FullName()]
		if op.Traits&ir.Differentiable != 0 {
			require.True(t, has || decomposed, "%s is differentiable, but has neither rule nor decomposition", op.FullName())
		} else {
			require.False(t, has, "%s has a rule, but is not marked Differentiable", op.FullName())
		}
		require.Equal(t, has, tested[op.Name], "%s: rule, and test of it", op.FullName())
	}
}

// First and second derivatives agree with finite differences.
func TestRules(t *testing.T) {
	for _, rc := range ruleCases {
		t.Run(rc.op+" "+rc.name, func(t *testing.T) {
			t.Parallel()
			rng := seeded(rc.op + rc.name)
			p := newProgram(t, rc.inputs, rc.body)
			g, x := p.dotProductTest(rng, p.fn, p.tensors(rng, rc.inputs))
			p.dotProductTest(rng, g, x)
		})
	}
}

// The gradient has its operands' types also in narrow formats, where statistics are wider.
func TestRulesInOtherTypes(t *testing.T) {
	for _, rc := range ruleCases {
		for _, kind := range []ir.FloatKind{ir.F32, ir.BF16} {
			p := newProgramOf(t, kind, rc.inputs, rc.body)
			g := p.vjp(p.vjp(p.fn))
			require.Equal(t, kind, g.Body().Arg(0).Elem().(*ir.FloatType).Kind)
		}
	}
}
