package blu

import (
	"math"
	"strings"
	"testing"

	"blutrain/ir"
	"blutrain/test/numbers"
	"github.com/stretchr/testify/require"
)

// The reference evaluation agrees with PyTorch's float64 to 1e-10, values and the gradients that are operations.
func TestAgainstFloat64(t *testing.T) {
	inputs, want := numbers.Golden(t, "ops.inputs"), numbers.Golden(t, "ops.float64")
	type values = map[string]*ir.Value
	// A case gives the result and, by input, the gradients for the cotangent "ct".
	attention := func(causal bool, d float64) func(b *Builder, in values) (*ir.Value, values) {
		return func(b *Builder, in values) (*ir.Value, values) {
			a := b.Attention(in["q"], in["k"], in["v"], causal, 1/math.Sqrt(d))
			g := b.AttentionGrad(in["q"], in["k"], in["v"], a.O(), a.Lse(), in["ct"], causal, 1/math.Sqrt(d))
			return a.O(), values{"q": g.Dq(), "k": g.Dk(), "v": g.Dv()}
		}
	}
	layernorm := func(b *Builder, in values) (*ir.Value, values) {
		l := b.Layernorm(in["x"], in["gain"], in["bias"], 1e-5)
		g := b.LayernormGrad(in["x"], in["gain"], l.Mean(), l.Rstd(), in["ct"])
		return l.Y(), values{"x": g.Dx(), "gain": g.Dg(), "bias": g.Db()}
	}
	rmsnorm := func(b *Builder, in values) (*ir.Value, values) {
		l := b.Rmsnorm(in["x"], in["gain"], 1e-5)
		g := b.RmsnormGrad(in["x"], in["gain"], l.Rstd(), in["ct"])
		return l.Y(), values{"x": g.Dx(), "gain": g.Dg()}
	}
	gelu := func(kind string) func(b *Builder, in values) (*ir.Value, values) {
		return func(b *Builder, in values) (*ir.Value, values) {
			return b.Gelu(in["x"], kind), values{"x": b.GeluGrad(in["x"], in["ct"], kind)}
		}
	}
	entropy := func(b *Builder, in values) (*ir.Value, values) {
		ce := b.CrossEntropy(in["x"], in["targets"], -1)
		return ce.Sum(), values{"x": b.CrossEntropyGrad(in["x"], in["targets"], ce.Lse(), in["ct"], -1)}
	}
	plain := func(make func(b *Builder, in values) *ir.Value) func(b *Builder, in values) (*ir.Value, values) {
		return func(b *Builder, in values) (*ir.Value, values) { return make(b, in), nil }
	}
	softmax := plain(func(b *Builder, in values) *ir.Value { return b.Softmax(in["x"], 1) })
	for name, build := range map[string]func(b *Builder, in values) (*ir.Value, values){
		"softmax": softmax, "softmax_huge": softmax, "softmax_masked": softmax, "softmax_middle": softmax,
		"layernorm": layernorm, "layernorm_offset": layernorm, "layernorm_constant": layernorm,
		"rmsnorm": rmsnorm, "rmsnorm_zero": rmsnorm,
		"gelu_tanh": gelu(GeluTanh), "gelu_erf": gelu(GeluErf),
		"silu": func(b *Builder, in values) (*ir.Value, values) {
			return b.Silu(in["x"]), values{"x": b.SiluGrad(in["x"], in["ct"])}
		},
		"sigmoid":       plain(func(b *Builder, in values) *ir.Value { return b.Sigmoid(in["x"]) }),
		"tanh":          plain(func(b *Builder, in values) *ir.Value { return b.Tanh(in["x"]) }),
		"cross_entropy": entropy, "cross_entropy_huge": entropy, "cross_entropy_ignored": entropy,
		"attention_causal": attention(true, 8), "attention_full": attention(false, 8), "attention_grouped": attention(true, 4), "attention_sharp": attention(true, 4),
		"rope": func(b *Builder, in values) (*ir.Value, values) {
			return b.Rope(in["x"], 10000, false), values{"x": b.Rope(in["ct"], 10000, true)}
		},
		"matmul_batched": plain(func(b *Builder, in values) *ir.Value {
			return b.Dot(in["a"], in["b"], dims(0), dims(0), dims(2), dims(1))
		}),
		"einsum_dot": plain(func(b *Builder, in values) *ir.Value {
			return b.Dot(in["a"], in["b"], nil, nil, dims(0, 1), dims(0, 1))
		}),
		"sum":  plain(func(b *Builder, in values) *ir.Value { return b.ReduceSum(in["x"], dims(0, 2)) }),
		"mean": plain(func(b *Builder, in values) *ir.Value { return b.Mean(in["x"], 1) }),
		"max":  plain(func(b *Builder, in values) *ir.Value { return b.ReduceMax(in["x"], dims(1)) }),
		"min":  plain(func(b *Builder, in values) *ir.Value { return b.ReduceMin(in["x"], dims(0, 1)) }),
		"pow":  plain(func(b *Builder, in values) *ir.Value { return b.Pow(in["a"], in["b"]) }),
		"gather_rows": func(b *Builder, in values) (*ir.Value, values) {
			return b.Gather(in["table"], in["indices"]), values{"table": b.ScatterAdd(in["ct"], in["indices"], 6)}
		},
		"concat": plain(func(b *Builder, in values) *ir.Value { return b.Concat([]*ir.Value{in["a"], in["b"]}, 1) }),
		"slice":  plain(func(b *Builder, in values) *ir.Value { return b.Slice(in["x"], dims(0, 1), dims(3, 5), dims(1, 2)) }),
	} {
		t.Run(name, func(t *testing.T) {
			n := newBench(t)
			in := values{}
			for _, part := range inputs.Names(name + ".") {
				stored := inputs.Tensor(t, name+"."+part)
				elem := ir.Type(n.ctx.F64())
				if !stored.DType.IsFloat() {
					elem = n.ctx.I32()
				}
				in[strings.TrimPrefix(part, "in.")] = n.arg(&ir.Tensor{Shape: stored.Shape, Elem: elem, Data: stored.Float64s()})
			}
			out, grads := build(n.b, in)
			want.RequireClose(t, name+".out", n.eval(out)[0].Data, 1e-10)
			for input, g := range grads {
				want.RequireClose(t, name+".grad."+input, n.eval(g)[0].Data, 1e-10)
			}
			require.NotEmpty(t, in)
		})
	}
}
