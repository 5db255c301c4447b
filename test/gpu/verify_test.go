package gpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/ref"
	"blutrain/runtime/verify"
)

// tolerances are those that functions of programs of a precision are held to.
var tolerances = map[string]float64{"fp32": 1e-4, "tf32": 1e-2, "bf16": 5e-2}

// biased is a model with a gradient that is zero: a bias of attention's keys moves no weight.
const biased = `model m(C = 32, V = 24) {
  param emb: f32[V, C] = normal(std: 1.0)
  param head: f32[V, C] = normal(std: 0.2)
  param q_w: f32[C, C] = normal(std: 0.2)
  param k_w: f32[C, C] = normal(std: 0.2)
  param k_b: f32[C] = zeros
  param v_w: f32[C, C] = normal(std: 0.2)
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let x = emb[tokens]
    let y = attention(heads(linear(x, q_w), 2), heads(linear(x, k_w, k_b), 2), heads(linear(x, v_w), 2), causal: true)
    return cross_entropy(linear(merge(y), head), targets)
  }
}
train m {
  minimize loss
  batch B = 2, S = 24
  optimizer sgd(lr: 0.1)
}
`

// A program whose products round makes other choices than the exact reference: rectifiers and maxima of windows near a tie. It verifies
// all the same, whatever it is called with; so do gradients that are zero but for roundings.
func TestRoundedChoicesVerify(t *testing.T) {
	seeds, together := 40, 4 // of them in one test
	if testing.Short() {
		seeds, together = 2, 2
	}
	convnet := example(t, "convnet.blu")
	for _, precision := range []string{"tf32", "bf16"} {
		for first := 0; first < seeds; first += together {
			t.Run(fmt.Sprint(precision, " from seed ", first), func(t *testing.T) {
				t.Parallel()
				o := driver.Options{Target: "cuda", Precision: precision, Arch: ptx.SM90A, Set: small(t, "convnet.blu")}
				p := openEmulated(t, "convnet.blu", convnet, o)
				for seed := first; seed < first+together; seed++ {
					require.Empty(t, wrong(t, p, precision, uint64(seed)), seed)
				}
			})
		}
		t.Run(precision+" zero", func(t *testing.T) {
			t.Parallel()
			p := openEmulated(t, "m.blu", []byte(biased), driver.Options{Target: "cuda", Precision: precision, Arch: ptx.SM90A})
			require.Empty(t, wrong(t, p, precision, 0))
		})
	}
}

// What is wrong with a function is found in every precision, however many choices its roundings have changed.
func TestWrongFunctionsAreFound(t *testing.T) {
	convnet := example(t, "convnet.blu")
	for _, m := range []struct {
		name, result string
		mutate       func(b *blu.Builder, f *ir.Op)
	}{
		{"a gradient is a tenth too large", "grads/conv1_w", scaleGradient("grads/conv1_w", 1.1)},
		{"a bias has no gradient", "grads/conv2_b", scaleGradient("grads/conv2_b", 0)},
		{"a rectifier passes on what it should not", "grads/conv1_w", comparing("gt", "le")},
		{"a maximum passes its gradient to the whole window", "grads/conv1_w", comparing("eq", "le")},
	} {
		for precision := range tolerances {
			if testing.Short() && precision != "bf16" {
				continue
			}
			t.Run(m.name+" "+precision, func(t *testing.T) {
				t.Parallel()
				o := driver.Options{Target: "cuda", Precision: precision, Arch: ptx.SM90A, Set: small(t, "convnet.blu")}
				p := openEmulated(t, "convnet.blu", convnet, o)
				p.device = newDevice(t, "graph.mlir", mutated(t, convnet, o, m.mutate), driver.Options{Target: o.Target, Precision: o.Precision, Arch: o.Arch}, "templates")
				seeds := uint64(4)
				if testing.Short() {
					seeds = 1
				}
				for seed := range seeds {
					require.Contains(t, wrong(t, p, precision, seed), "accumulate "+m.result, seed)
				}
			})
		}
	}
}

// wrong lists the results of functions that verification refuses.
func wrong(t *testing.T, p *emulated, precision string, seed uint64) (names []string) {
	p.forget()
	r, err := ref.Open(p.artifact, runtime.Options{})
	require.NoError(t, err)
	rows, err := verify.Compare(p, r, tolerances[precision], seed)
	require.NoError(t, err)
	for _, row := range rows {
		if row.Off() {
			names = append(names, row.Function+" "+row.Name)
		}
	}
	return names
}

// mutated is a model's module after the phase graph, with another accumulate.
func mutated(t *testing.T, src []byte, o driver.Options, mutate func(*blu.Builder, *ir.Op)) []byte {
	o.CompileTo = "graph"
	r, err := driver.Compile("convnet.blu", src, o)
	require.NoError(t, err)
	right := string(driver.Text(r.Module, false))
	mutate(blu.On(ir.NewBuilder(r.Ctx, nil)), ir.LookupSymbol(r.Module, "accumulate"))
	require.NotEqual(t, right, string(driver.Text(r.Module, false)))
	return driver.Text(r.Module, false)
}

// scaleGradient has a gradient multiplied by a number before it is added up.
func scaleGradient(state string, by float64) func(*blu.Builder, *ir.Op) {
	return func(b *blu.Builder, f *ir.Op) {
		for op := range f.Body().Ops() {
			if op.Is(blu.Accumulate) && op.Operand(0).Op() == nil && blu.ArgPort(f, op.Operand(0).Index()).Name == state {
				b.Before(op).At(op.Loc())
				op.SetOperand(1, b.Mul(op.Operand(1), b.SplatLike(op.Operand(1), by)))
			}
		}
	}
}

// comparing has the last comparison of a kind compare otherwise: that of the first layer.
func comparing(predicate, instead string) func(*blu.Builder, *ir.Op) {
	return func(b *blu.Builder, f *ir.Op) {
		var last *ir.Op
		for op := range f.Body().Ops() {
			if op.Is(blu.Compare) && op.Attrs().Str("predicate") == predicate {
				last = op
			}
		}
		last.SetAttr("predicate", b.Ctx.String(instead))
	}
}
