package frontend

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/frontend/builtin"
	"blutrain/ir"
	"blutrain/test/numbers"
)

// compiled is a module that can be evaluated: each blu.get has become the constant that the parameter holds.
type compiled struct {
	t      testing.TB
	c      *ir.Context
	module *ir.Op
}

func compile(t testing.TB, name string, src []byte, set map[string]float64, value func(param string) []float64) *compiled {
	c := dialects.NewContext()
	module, diags := Compile(c, name, src, Options{Set: set})
	require.Empty(t, diags)
	require.NoError(t, ir.Verify(c, module))
	for f := range module.Body().Ops() {
		if len(f.Regions()) == 0 {
			continue
		}
		for op := range f.Body().Ops() {
			if !op.Is(blu.Get) {
				continue
			}
			typ := op.Result(0).Type()
			var raw []byte
			for _, v := range value(op.Attrs().Sym("param")) {
				raw = ir.EncodeElement(raw, ir.Elem(typ), v)
			}
			k := ir.NewBuilder(c, nil).Before(op).CreateState(blu.Constant, ir.OpState{
				Attrs: []ir.NamedAttr{{Name: "value", Value: c.Dense(typ, raw)}}, Results: []ir.Type{typ},
			})
			op.ReplaceWith(k.Result(0))
		}
	}
	return &compiled{t, c, module}
}

// call evaluates an exported function; each argument is data in the shape that the function wants.
func (m *compiled) call(fn string, args ...[]float64) []*ir.Tensor {
	in := ir.Interp{Ctx: m.c, Module: m.module}
	params := in.Symbol(fn).Body().Args()
	require.Len(m.t, args, len(params))
	data := make([]ir.Datum, len(args))
	for i, a := range args {
		x := ir.NewTensor(params[i].Elem(), params[i].Shape()...)
		require.Len(m.t, a, len(x.Data), "argument %d", i)
		copy(x.Data, a)
		data[i] = x
	}
	out, err := in.Call(fn, data...)
	require.NoError(m.t, err)
	tensors := make([]*ir.Tensor, len(out))
	for i, d := range out {
		tensors[i] = d.(*ir.Tensor)
	}
	return tensors
}

// TestExamplesAgreeWithPyTorch evaluates the examples at small sizes and compares with PyTorch in float64.
func TestExamplesAgreeWithPyTorch(t *testing.T) {
	for _, test := range []struct {
		file, golden string
		set          map[string]float64
	}{
		{"gpt2.blu", "gpt2-small", map[string]float64{"V": 97, "T": 32, "L": 2, "H": 2, "C": 32, "B": 2, "S": 24}},
		{"llama.blu", "llama-small", map[string]float64{"V": 97, "L": 2, "H": 4, "K": 2, "C": 32, "F": 48, "B": 2, "S": 24}},
	} {
		t.Run(test.file, func(t *testing.T) {
			in, want := numbers.Golden(t, test.golden+".inputs"), numbers.Golden(t, test.golden+".float64")
			m := compile(t, test.file, examples(t)[test.file], test.set, func(p string) []float64 { return in.Float64s(t, p) })
			tokens, targets := in.Float64s(t, "tokens"), in.Float64s(t, "targets")
			want.RequireClose(t, "logits", m.call("logits", tokens)[0].Data, 1e-10)
			loss := m.call("loss", tokens, targets)
			want.RequireClose(t, "loss_sum", loss[0].Data, 1e-10)
			want.RequireClose(t, "count", loss[1].Data, 0)
		})
	}
}

// TestBuiltinsAgreeWithPyTorch evaluates built-ins on stored inputs and compares with PyTorch in float64.
func TestBuiltinsAgreeWithPyTorch(t *testing.T) {
	in, want := numbers.Golden(t, "ops.inputs"), numbers.Golden(t, "ops.float64")
	for _, test := range []struct{ name, value string }{
		{"softmax", "softmax(x)"},
		{"softmax_huge", "softmax(x)"},
		{"softmax_masked", "softmax(x, axis: 1)"},
		{"softmax_middle", "softmax(x, axis: 1)"},
		{"layernorm", "layernorm(x, gain, bias)"},
		{"layernorm_offset", "layernorm(x, gain, bias, eps: 1e-5)"},
		{"layernorm_constant", "layernorm(x, gain, bias)"},
		{"rmsnorm", "rmsnorm(x, gain)"},
		{"rmsnorm_zero", "rmsnorm(x, gain)"},
		{"gelu_tanh", "gelu(x)"},
		{"gelu_erf", `gelu(x, approximate: "erf")`},
		{"silu", "silu(x)"},
		{"sigmoid", "sigmoid(x)"},
		{"tanh", "tanh(x)"},
		{"relu", "relu(x)"},
		{"cross_entropy", "LOSS cross_entropy(x, targets)"},
		{"cross_entropy_huge", "LOSS cross_entropy(x, targets, ignore: -1)"},
		{"cross_entropy_ignored", "LOSS cross_entropy(x, targets)"},
		{"attention_causal", "attention(q, k, v, causal: true)"},
		{"attention_full", "attention(q, k, v)"},
		{"attention_grouped", "attention(q, k, v, causal: true, scale: 1 / sqrt(4))"},
		{"attention_sharp", "attention(q, k, v, causal: true)"},
		{"rope", "rope(x)"},
		{"linear", "linear(x, w, b)"},
		{"matmul_batched", "matmul(a, b)"},
		{"einsum_matmul", `einsum("ij,jk->ik", a, b)`},
		{"einsum_scores", `einsum("bshd,bthd->bhst", a, b)`},
		{"einsum_outer", `einsum("i,j->ji", a, b)`},
		{"einsum_summed", `einsum("ijk,kl->il", a, b)`},
		{"einsum_dot", `einsum("ij,ij->", a, b)`},
		{"sum", "sum(x, axis: [0, 2])"},
		{"mean", "mean(x, axis: 1)"},
		{"max", "max(x, axis: 1)"},
		{"max_ties", "max(x, axis: -1)"},
		{"min", "min(x, axis: (0, 1))"},
		{"norm", "norm(x, axis: 1)"},
		{"logsumexp", "log(sum(exp(x - max(x, axis: 1, keep: true)), axis: 1)) + max(x, axis: 1)"},
		{"where", "where(c > 0, a, b)"},
		{"where_sqrt", "where(x > 0.5, sqrt(x), 1.0)"},
		{"pow", "pow(a, b)"},
		{"square_at_zero", "pow(x, 2)"},
		{"square_at_zero", "square(x)"},
		{"gather_rows", "table[indices]"},
		{"gather_rows", "gather(table, indices)"},
		{"broadcast_bias", "x + b"},
		{"broadcast_mul", "a * b"},
		{"div", "a / b"},
		{"concat", "concat(a, b, axis: 1)"},
		{"conv2d", "conv2d(x, w, stride: 2, padding: 1)"},
		{"conv2d_unit", "conv2d(x, w)"},
		{"max_pool2d", "max_pool(x, 2)"},
		{"avg_pool2d", "avg_pool(x, size: 2)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var params []string
			var args [][]float64
			for _, p := range in.Names(test.name + ".in.") {
				x := in.Tensor(t, test.name+".in."+p)
				dtype := "f32"
				if !x.DType.IsFloat() {
					dtype = "i32"
				}
				params = append(params, p+": "+dtype+dims(x.Shape))
				args = append(args, x.Float64s())
			}
			body := "return " + test.value
			if loss, isLoss := strings.CutPrefix(test.value, "LOSS "); isLoss {
				body = "let (sum, _) = " + loss + "\nreturn sum"
			}
			src := "model m() {\nfn f(" + strings.Join(params, ", ") + ") -> f32" + dims(want.Tensor(t, test.name+".out").Shape) + " {\n" + body + "\n}\n}\n"
			got := compile(t, "m.blu", []byte(src), nil, nil).call("f", args...)
			want.RequireClose(t, test.name+".out", got[0].Data, 1e-10)
		})
	}
}

func dims(shape []int64) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// TestBuiltinsByHand evaluates what needs no other program to know the answer.
func TestBuiltinsByHand(t *testing.T) {
	const x = "let x = reshape(arange(6, f32), [2, 3]) + 1\n" // 1 2 3 / 4 5 6
	for _, test := range []struct {
		result, body string
		want         []float64
	}{
		{"f32[2, 3]", "return x", []float64{1, 2, 3, 4, 5, 6}},
		{"f32[3, 2]", "return transpose(x, perm: [1, 0])", []float64{1, 4, 2, 5, 3, 6}},
		{"f32[3]", "return x[1]", []float64{4, 5, 6}},
		{"f32[2]", "return x[:, -1]", []float64{3, 6}},
		{"f32", "return x[0, 1]", []float64{2}},
		{"f32[1, 2]", "return x[1:, 1:3]", []float64{5, 6}},
		{"f32[2, 2]", "return x[:, :-1]", []float64{1, 2, 4, 5}},
		{"f32[2, 2]", "return slice(x, axis: 1, start: 1)", []float64{2, 3, 5, 6}},
		{"f32[2, 2]", "return slice(x, axis: -1, end: -1)", []float64{1, 2, 4, 5}},
		{"f32[2, 5]", "return pad(x, axis: 1, low: 1, high: 1, value: 9)", []float64{9, 1, 2, 3, 9, 9, 4, 5, 6, 9}},
		{"f32[2]", "let (a, b, c) = split(x, axis: 1)\nreturn reshape(c - a * b, [2])", []float64{1, -14}},
		{"f32[2, 2]", "let (a, b) = split(x, axis: 1, sizes: [1, 2])\nreturn a + b", []float64{3, 4, 9, 10}},
		{"f32[2, 1]", "let (_, b) = split(x, axis: 0, parts: 2)\nreturn transpose(b, perm: [1, 0])[0:2]", []float64{4, 5}},
		{"f32[3, 2, 1]", "return heads(x, 3)", []float64{1, 4, 2, 5, 3, 6}},
		{"f32[2, 3]", "return merge(heads(x, 3))", []float64{1, 2, 3, 4, 5, 6}},
		{"f32[2, 1, 3]", "return unsqueeze(x, axis: 1)", []float64{1, 2, 3, 4, 5, 6}},
		{"f32[3]", "return squeeze(x[0:1], axis: 0)", []float64{1, 2, 3}},
		{"f32[2, 2, 3]", "return broadcast(x, [2, 2, 3])", []float64{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}},
		{"f32[2, 3]", "return broadcast(x[:, 0:1], [2, 3])", []float64{1, 1, 1, 4, 4, 4}},
		{"f32[3, 2]", "return reshape(x, [-1, 2])", []float64{1, 2, 3, 4, 5, 6}},
		{"f32[2, 3]", "return x - sum(x)", []float64{-20, -19, -18, -17, -16, -15}},
		{"f32[1, 3]", "return mean(x, axis: 0, keep: true)", []float64{2.5, 3.5, 4.5}},
		{"f32[2]", "return var(x, axis: 1) * 3", []float64{2, 2}},
		{"f32", "return norm(x - x)", []float64{0}},
		{"i32[2]", "return argmax(x, axis: 1)", []float64{2, 2}},
		{"f32[2, 3]", "return maximum(x, 3) - minimum(4, x)", []float64{2, 1, 0, 0, 1, 2}},
		{"f32[2, 3]", "return where(x >= 3 && !(x == 5) || x < 2, x, -x)", []float64{1, -2, 3, 4, -5, 6}},
		{"bool[2, 3]", "return x != 2", []float64{1, 0, 1, 1, 1, 1}},
		{"bool[2, 3]", "return 3 > x", []float64{1, 1, 0, 0, 0, 0}},
		{"bool[2, 3]", "return x <= 2", []float64{1, 1, 0, 0, 0, 0}},
		{"i32[2, 3]", "return cast(x / 2, i32)", []float64{0, 1, 1, 2, 2, 3}},
		{"f32[2, 3]", "return floor(x / 2) + sign(x - 3) + abs(x - 3)", []float64{1, 1, 1, 4, 5, 7}},
		{"f32[2, 3]", "return log(exp(x)) + square(rsqrt(x) * sqrt(x)) - 1", []float64{1, 2, 3, 4, 5, 6}},
		{"f32[2, 3]", "return square(sin(x)) + square(cos(x)) + erf(x - x)", []float64{1, 1, 1, 1, 1, 1}},
		{"f32[2, 3]", "return log(softmax(x)) - log_softmax(x)", []float64{0, 0, 0, 0, 0, 0}},
		{"f32[2, 3]", "return stop_gradient(x)", []float64{1, 2, 3, 4, 5, 6}},
		{"f32[2]", "return zeros([2]) + ones([2]) + full([2], 1.5)", []float64{2.5, 2.5}},
		{"i64[3]", "return arange(3, i64)", []float64{0, 1, 2}},
		{"f32[2, 3]", "return one_hot(arange(2) * 2, 3)", []float64{1, 0, 0, 0, 0, 1}},
		{"f32[2, 2]", "return matmul(x, transpose(x, perm: [1, 0]))", []float64{14, 32, 32, 77}},
		{"f32", `return einsum("ij,ik,i->", x, x, x[:, 0])`, []float64{36 + 4*225}},
		{"f32[3]", `return einsum("ij->j", x)`, []float64{5, 7, 9}},
		{"f32[3, 2]", `return einsum("ij->ji", x)`, []float64{1, 4, 2, 5, 3, 6}},
		{"(f32, f32)", "return mse(x, x + 2)", []float64{24, 6}},
		{"f32[2, 3]", "return layernorm(x, ones([3]))*0 + x", []float64{1, 2, 3, 4, 5, 6}},
		{"f32[2, 3]", "return -x", []float64{-1, -2, -3, -4, -5, -6}},
		{"f32[2, 3]", "let s = 0.0\nfor i in 0..3 {\ns = s + x * i\n}\nreturn s", []float64{3, 6, 9, 12, 15, 18}},
		{"f32[2, 3]", "if 2 * 3 == 6 && f32 == f32 {\nx = x + 1\n} else if 1 < 2 {\nx = x + 2\n} else {\nx = x + 3\n}\nreturn x", []float64{2, 3, 4, 5, 6, 7}},
		{"f32[2, 3]", "let (a, b) = (x, 2)\nreturn a * b", []float64{2, 4, 6, 8, 10, 12}},
		{"f32", "return maximum(2, 3) * sqrt(2*8) + pow(2, 3) - abs(-1) + 7 % 4", []float64{22}},
	} {
		src := "model m() {\nfn f() -> " + test.result + " {\n" + x + test.body + "\n}\n}\n"
		file := "m.blu"
		c := dialects.NewContext()
		module, diags := Compile(c, file, []byte(src), Options{})
		require.NoError(t, diags.Err(), src)
		require.NoError(t, ir.Verify(c, module), src)
		var got []float64
		for _, out := range (&compiled{t, c, module}).call("f") {
			got = append(got, out.Data...)
		}
		require.InDeltaSlice(t, test.want, got, 1e-12, test.body)
	}
}

// TestEveryBuiltinIsEvaluated holds the tests above to the whole table.
func TestEveryBuiltinIsEvaluated(t *testing.T) {
	src, err := os.ReadFile("numbers_test.go")
	require.NoError(t, err)
	for row := range builtin.Rows() {
		require.True(t, strings.Contains(string(src), row.Name+"("), "no test here evaluates %s", row.Name) // Contains would print the file
	}
}

// TestDropout checks that dropout keeps the share it promises when training, scales what it keeps, and is nothing else.
func TestDropout(t *testing.T) {
	m := compile(t, "m.blu", []byte(`
model m(N = 10000) {
  module layer {
    fn drop(x: f32[N]) -> f32[N] {
      return dropout(x, 0.25)
    }
  }
  layers h: layer[2]
  fn f(x: f32[N]) -> f32[N] {
    for l in h { x = l.drop(x) }
    return x
  }
}
`), nil, nil)
	x := slices.Repeat([]float64{3}, 10000)
	trained := m.call("f", x, []float64{7}, []float64{1})[0].Data
	kept := 0
	for _, v := range trained {
		if v != 0 {
			require.InDelta(t, 3/0.75/0.75, v, 1e-6)
			kept++
		}
	}
	require.InDelta(t, 0.75*10000, kept, 200) // one function, one stream: both layers drop the same places until inlined
	require.Equal(t, x, m.call("f", x, []float64{7}, []float64{0})[0].Data)
	require.Equal(t, trained, m.call("f", x, []float64{7}, []float64{1})[0].Data)
	require.NotEqual(t, trained, m.call("f", x, []float64{8}, []float64{1})[0].Data)
}
