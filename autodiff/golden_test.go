package autodiff

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/test/numbers"
)

// goldenCases says how each case of test/numbers/scripts/ops.py is written in blu; arguments by their names there.
var goldenCases = map[string]struct {
	args string // names, separated by one space
	body build
}{
	"softmax":        {"x", softmaxOver(1)},
	"softmax_huge":   {"x", softmaxOver(1)},
	"softmax_masked": {"x", softmaxOver(1)},
	"softmax_middle": {"x", softmaxOver(1)},

	"layernorm":          {"x gain bias", normalized},
	"layernorm_offset":   {"x gain bias", normalized},
	"layernorm_constant": {"x gain bias", normalized},
	"rmsnorm":            {"x gain", rmsNormalized},
	"rmsnorm_zero":       {"x gain", rmsNormalized},

	"gelu_tanh": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Gelu(in[0], "tanh")) }},
	"gelu_erf":  {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Gelu(in[0], "erf")) }},
	"silu":      {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Silu(in[0])) }},
	"sigmoid":   {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Sigmoid(in[0])) }},
	"tanh":      {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Tanh(in[0])) }},
	"relu":      {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Max(in[0], number(b, in[0], 0))) }},

	"cross_entropy":         {"x targets", summedLoss},
	"cross_entropy_huge":    {"x targets", summedLoss},
	"cross_entropy_ignored": {"x targets", summedLoss},

	"attention_causal":  {"q k v", attended(true)},
	"attention_full":    {"q k v", attended(false)},
	"attention_grouped": {"q k v", attended(true)},
	"attention_sharp":   {"q k v", attended(true)},
	"rope":              {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Rope(in[0], 10000, false)) }},

	"linear":         {"x w b", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(linear(b, in[0], in[1], in[2])) }},
	"matmul_batched": {"a b", dotted([]int64{0}, []int64{0}, []int64{2}, []int64{1})},
	"einsum_matmul":  {"a b", dotted(nil, nil, []int64{1}, []int64{0})},
	"einsum_scores":  {"a b", dotted([]int64{0, 2}, []int64{0, 2}, []int64{3}, []int64{3})},
	"einsum_outer": {"a b", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Transpose(b.Dot(in[0], in[1], nil, nil, nil, nil), []int64{1, 0}))
	}},
	"einsum_summed": {"a b", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Dot(b.ReduceSum(in[0], []int64{1}), in[1], nil, nil, []int64{1}, []int64{0}))
	}},
	"einsum_dot": {"a b", dotted(nil, nil, []int64{0, 1}, []int64{0, 1})},

	"sum": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.ReduceSum(in[0], []int64{0, 2})) }},
	"mean": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		s := b.ReduceSum(in[0], []int64{1})
		return single(b.Div(s, number(b, s, 4)))
	}},
	"max":      {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.ReduceMax(in[0], []int64{1})) }},
	"max_ties": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.ReduceMax(in[0], []int64{1})) }},
	"min":      {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.ReduceMin(in[0], []int64{0, 1})) }},
	"norm": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Sqrt(b.ReduceSum(b.Mul(in[0], in[0]), []int64{1})))
	}},
	"logsumexp": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		x := in[0]
		top := b.StopGradient(b.ReduceMax(x, []int64{1}))
		shifted := b.Sub(x, b.BroadcastTo(top, []int64{0}, x.Shape()))
		return single(b.Add(top, b.Log(b.ReduceSum(b.Exp(shifted), []int64{1}))))
	}},

	"where": {"c a b", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		taken := b.Compare(in[0], number(b, in[0], 0), "gt")
		return single(b.Select(taken, in[1], b.BroadcastTo(in[2], []int64{0, 1}, in[1].Shape())))
	}},
	"where_sqrt": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		x := in[0]
		return single(b.Select(b.Compare(x, number(b, x, 0.5), "gt"), b.Sqrt(x), number(b, x, 1)))
	}},
	"pow":            {"a b", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Pow(in[0], in[1])) }},
	"square_at_zero": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Pow(in[0], number(b, in[0], 2))) }},
	"gather_rows":    {"table indices", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Gather(in[0], in[1])) }},
	"broadcast_bias": {"x b", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Add(in[0], b.BroadcastTo(in[1], []int64{0, 1, 2}, in[0].Shape())))
	}},
	"broadcast_mul": {"a b", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		shape := []int64{3, 4, 5}
		wide := func(x *ir.Value) *ir.Value { return b.BroadcastTo(x, []int64{0, 1, 2}, shape) }
		return single(b.Mul(wide(in[0]), wide(in[1])))
	}},
	"div": {"a b", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Div(in[0], b.BroadcastTo(in[1], []int64{0, 1}, in[0].Shape())))
	}},
	"concat": {"a b", func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Concat(in, 1)) }},
	"slice": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Slice(in[0], []int64{0, 1}, []int64{3, 5}, []int64{1, 2}))
	}},
	"conv2d":      {"x w", convolution(2, 1)},
	"conv2d_unit": {"x w", convolution(1, 0)},
	"max_pool2d": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.ReduceMax(windows(b, in[0]), []int64{3, 5}))
	}},
	"avg_pool2d": {"x", func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		s := b.ReduceSum(windows(b, in[0]), []int64{3, 5})
		return single(b.Div(s, number(b, s, 4)))
	}},
}

func softmaxOver(axis int64) build {
	return func(b *blu.Builder, in []*ir.Value) []*ir.Value { return single(b.Softmax(in[0], axis)) }
}

func normalized(b *blu.Builder, in []*ir.Value) []*ir.Value {
	return b.Layernorm(in[0], in[1], in[2], 1e-5).Results()[:1]
}

func rmsNormalized(b *blu.Builder, in []*ir.Value) []*ir.Value {
	return b.Rmsnorm(in[0], in[1], 1e-5).Results()[:1]
}

func summedLoss(b *blu.Builder, in []*ir.Value) []*ir.Value {
	return b.CrossEntropy(in[0], in[1], -1).Results()[:1]
}

func attended(causal bool) build {
	return func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		d := in[0].Shape()[3]
		return b.Attention(in[0], in[1], in[2], causal, 1/math.Sqrt(float64(d))).Results()[:1]
	}
}

func dotted(lhsBatch, rhsBatch, lhsContract, rhsContract []int64) build {
	return func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Dot(in[0], in[1], lhsBatch, rhsBatch, lhsContract, rhsContract))
	}
}

// windows is [N, C, H, W] as [N, C, H/2, 2, W/2, 2].
func windows(b *blu.Builder, x *ir.Value) *ir.Value {
	s := x.Shape()
	return b.ReshapeTo(x, s[0], s[1], s[2]/2, 2, s[3]/2, 2)
}

// convolution sums, over the places of the window, products of strided slices of the padded image with that place's
// weights.
func convolution(stride, padding int64) build {
	return func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		border := []int64{0, 0, padding, padding}
		x, w := b.Pad(in[0], border, border, 0), in[1]
		s, k := x.Shape(), w.Shape()
		oh, ow := (s[2]-k[2])/stride+1, (s[3]-k[3])/stride+1
		var sum *ir.Value
		for i := range k[2] {
			for j := range k[3] {
				part := b.Slice(x, []int64{0, 0, i, j}, []int64{s[0], s[1], i + stride*(oh-1) + 1, j + stride*(ow-1) + 1}, []int64{1, 1, stride, stride})
				weights := b.ReshapeTo(b.Slice(w, []int64{0, 0, i, j}, []int64{k[0], k[1], i + 1, j + 1}, []int64{1, 1, 1, 1}), k[0], k[1])
				y := b.Transpose(b.Dot(part, weights, nil, nil, []int64{1}, []int64{1}), []int64{0, 3, 1, 2})
				if sum != nil {
					y = b.Add(sum, y)
				}
				sum = y
			}
		}
		return single(sum)
	}
}

// Values and gradients of single operations are PyTorch's in float64.
func TestGoldenOps(t *testing.T) {
	in, want := numbers.Golden(t, "ops.inputs"), numbers.Golden(t, "ops.float64")
	stored := 0
	for _, name := range want.Names("") {
		if rest, ok := strings.CutSuffix(name, ".out"); ok {
			require.Contains(t, goldenCases, rest)
			stored++
		}
	}
	require.Len(t, goldenCases, stored)
	for name, gc := range goldenCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inputs []input
			var args []*ir.Tensor
			names := strings.Fields(gc.args)
			for _, a := range names {
				x := in.Tensor(t, name+".in."+a)
				spec := dims(x.Shape...)
				if !x.DType.IsFloat() {
					spec.ints = []int64{} // by type; the values come from the file
				}
				inputs = append(inputs, spec)
				args = append(args, &ir.Tensor{Shape: x.Shape, Data: x.Float64s()})
			}
			p := newProgram(t, inputs, gc.body)
			for i := range args {
				args[i].Elem = inputs[i].elem(p.c)
			}
			ct := in.Tensor(t, name+".ct")
			args = append(args, &ir.Tensor{Shape: ct.Shape, Elem: p.c.F64(), Data: ct.Float64s()})
			results := p.call(p.vjp(p.fn), args)
			want.RequireClose(t, name+".out", results[0].Data, exact)
			gradients := results[1:]
			for _, a := range names {
				if want.Has(name + ".grad." + a) {
					want.RequireClose(t, name+".grad."+a, gradients[0].Data, exact)
					gradients = gradients[1:]
				}
			}
			require.Empty(t, gradients)
		})
	}
}
