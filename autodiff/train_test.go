package autodiff

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/ir/diag"
	"blutrain/test/numbers"
)

// Reference evaluation agrees with PyTorch's float64 to this.
const exact = 1e-10

func (m *model) adamw() []ir.NamedAttr {
	return []ir.NamedAttr{
		{Name: "kind", Value: m.c.String("adamw")},
		{Name: "beta1", Value: m.c.FloatAttr(0.9, m.c.F64())},
		{Name: "beta2", Value: m.c.FloatAttr(0.95, m.c.F64())},
		{Name: "eps", Value: m.c.FloatAttr(1e-8, m.c.F64())},
	}
}

func (m *model) sgd() []ir.NamedAttr {
	return []ir.NamedAttr{
		{Name: "kind", Value: m.c.String("sgd")},
		{Name: "momentum", Value: m.c.FloatAttr(0.9, m.c.F64())},
	}
}

// requireGradients holds the gradient sums, divided by the count, to the stored gradients.
func requireGradients(t *testing.T, r *runner, want *numbers.Values) {
	t.Helper()
	n := r.storage[count].Data[0]
	want.RequireClose(t, "loss_sum", r.storage[lossSum].Data, exact)
	require.Equal(t, want.Scalar(t, "count"), n)
	names := want.Names("grad.")
	require.NotEmpty(t, names)
	for _, p := range names {
		g := r.storage[gradName(p)]
		require.NotNil(t, g, p)
		mean := make([]float64, len(g.Data))
		for i, v := range g.Data {
			mean[i] = v / n
		}
		want.RequireClose(t, "grad."+p, mean, exact)
	}
}

func (m *model) batch(names ...string) map[string]*ir.Tensor {
	given := map[string]*ir.Tensor{}
	for _, n := range names {
		given[n] = datum(m.c, m.in, m.t, n)
	}
	return given
}

// Every gradient of GPT-2 is the stored one, and so are the values of its exported functions.
func TestGPT2(t *testing.T) {
	m := gpt2(t, 2)
	r := m.programs()
	given := m.batch("tokens", "targets")
	given["first"] = scalar(1)
	r.call(Accumulate, given)
	want := numbers.Golden(t, "gpt2-small.float64")
	requireGradients(t, r, want)
	want.RequireClose(t, "logits", r.call("logits", given)["logits"].Data, exact)
	want.RequireClose(t, "loss_sum", r.call("loss", given)["loss.0"].Data, exact)
	out := r.call(Eval, given)
	want.RequireClose(t, "loss_sum", out[lossSum].Data, exact)
	want.RequireClose(t, "count", out[count].Data, 0)
}

// The gradient of a split is a concatenation, not a sum of padded parts.
func TestSplitGradientIsConcat(t *testing.T) {
	m := gpt2(t, 2)
	m.programs()
	pads, concats := 0, 0
	for op := range ir.LookupSymbol(m.module, Accumulate).Body().Ops() {
		switch {
		case op.Is(blu.Pad):
			pads++
		case op.Is(blu.Concat):
			require.Equal(t, 3, op.NumOperands())
			concats++
		}
	}
	require.Equal(t, 1, pads) // of the position embedding: S < T
	require.Equal(t, 2, concats)
}

// The same from one row at a time: the rows have unequal numbers of ignored targets.
func TestMicroBatches(t *testing.T) {
	m := gpt2(t, 1)
	r := m.programs()
	for _, s := range r.storage { // what the sums held before does not matter
		if len(s.Shape) == 0 {
			s.Data[0] = math.NaN()
		}
	}
	given := m.batch("tokens", "targets")
	for row := range 2 {
		micro := map[string]*ir.Tensor{"first": scalar(float64(1 - row))}
		for name, x := range given {
			micro[name] = rowOf(x, row)
		}
		r.call(Accumulate, micro)
	}
	requireGradients(t, r, numbers.Golden(t, "gpt2-small.float64"))
}

// rowOf is a batch of one row.
func rowOf(x *ir.Tensor, row int) *ir.Tensor {
	n := int(x.Shape[len(x.Shape)-1])
	return &ir.Tensor{Shape: []int64{1, int64(n)}, Elem: x.Elem, Data: x.Data[row*n : (row+1)*n]}
}

// Twenty steps of each optimizer follow PyTorch's float64 run: losses, norms, and the parameters at the end.
func TestTraining(t *testing.T) {
	for kind, replace := range map[string][]string{
		"adamw": nil,
		"sgd":   {"adamw(lr", "sgd(lr", "betas: (0.9, 0.95), eps: 1e-8,", "momentum: 0.9,"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := gpt2(t, 1, replace...)
			r := m.programs()
			v := numbers.Golden(t, "train-"+kind)
			tokens, targets := datum(m.c, v, t, "tokens"), datum(m.c, v, t, "targets")
			rates := v.Float64s(t, "learning_rates")
			var losses, norms []float64
			for step, lr := range rates {
				for row := range 2 {
					r.call(Accumulate, map[string]*ir.Tensor{
						"tokens": rowOf(tokens, 2*step+row), "targets": rowOf(targets, 2*step+row), "first": scalar(float64(1 - row)),
					})
				}
				out := r.call(Apply, map[string]*ir.Tensor{"lr": scalar(lr), "step": scalar(float64(step + 1))})
				losses = append(losses, out["loss"].Data[0])
				norms = append(norms, out["grad_norm"].Data[0])
			}
			v.RequireClose(t, "losses", losses, exact)
			v.RequireClose(t, "grad_norms", norms, exact)
			for _, p := range v.Names("final.") {
				v.RequireClose(t, "final."+p, r.storage[p].Data, 1e-9)
			}
		})
	}
}

func TestLlama(t *testing.T) {
	m := llama(t)
	r := m.programs()
	given := m.batch("tokens", "targets")
	given["first"] = scalar(1)
	r.call(Accumulate, given)
	requireGradients(t, r, numbers.Golden(t, "llama-small.float64"))
}

// mlp is mlp-small: see test/numbers/scripts/mlp_small.py.
func mlp(t *testing.T) *model {
	m := newModel(t, "mlp-small.inputs", "w1", "b1", "w2", "b2")
	f := newFunction(m.c, "loss", m.c.FileLoc("mlp.blu", 9, 3))
	b := f.Builder
	x, targets := m.input(f, "x", m.typeOf("x")), m.input(f, "targets", m.typeOf("targets"))
	h := linear(b, x, m.get(b, "w1"), m.get(b, "b1"))
	h = b.Max(h, number(b, h, 0))
	ce := b.CrossEntropy(linear(b, h, m.get(b, "w2"), m.get(b, "b2")), targets, -1)
	f.output("sum", ce.Result(0))
	f.output("count", ce.Result(1))
	m.add(f, false)
	return m
}

func TestMLP(t *testing.T) {
	m := mlp(t)
	r := m.train(0, m.sgd()...)
	given := m.batch("x", "targets")
	given["first"] = scalar(1)
	r.call(Accumulate, given)
	requireGradients(t, r, numbers.Golden(t, "mlp-small.float64"))
}

// A step in which nothing counted: loss and norm are 0, and nothing is NaN.
func TestStepWithoutTargets(t *testing.T) {
	m := mlp(t)
	r := m.train(1, m.adamw()...)
	given := m.batch("x", "targets")
	for i := range given["targets"].Data {
		given["targets"].Data[i] = -1
	}
	given["first"] = scalar(1)
	before := append([]float64{}, r.storage["w1"].Data...)
	r.call(Accumulate, given)
	out := r.call(Apply, map[string]*ir.Tensor{"lr": scalar(0.1), "step": scalar(1)})
	require.Equal(t, []float64{0}, out["loss"].Data)
	require.Equal(t, []float64{0}, out["grad_norm"].Data)
	require.Equal(t, before, r.storage["w1"].Data)
}

// Parameters are initialized as they say; optimizer state with zeros.
func TestInit(t *testing.T) {
	m := mlp(t)
	c := m.c
	attr := func(name string, v float64) ir.NamedAttr {
		return ir.NamedAttr{Name: name, Value: c.FloatAttr(v, c.F64())}
	}
	inits := map[string]*ir.DictAttr{
		"w1": c.Dict(ir.NamedAttr{Name: "kind", Value: c.String("normal")}, attr("mean", 1), attr("std", 0.01)),
		"b1": c.Dict(ir.NamedAttr{Name: "kind", Value: c.String("ones")}),
		"w2": c.Dict(ir.NamedAttr{Name: "kind", Value: c.String("uniform")}, attr("low", 2), attr("high", 4)),
		"b2": c.Dict(ir.NamedAttr{Name: "kind", Value: c.String("constant")}, attr("value", -3)),
	}
	for name, d := range inits {
		ir.LookupSymbol(m.module, name).SetAttr("init", d)
	}
	r := m.train(1, m.adamw()...)
	r.storage["adamw.m/w1"].Data[0] = 5
	r.call(Init, map[string]*ir.Tensor{"seed": scalar(42)})
	bounds := map[string][2]float64{"w1": {0.94, 1.06}, "b1": {1, 1}, "w2": {2, 4}, "b2": {-3, -3}, "adamw.m/w1": {0, 0}, "adamw.v/b2": {0, 0}}
	for name, b := range bounds {
		for _, v := range r.storage[name].Data {
			require.GreaterOrEqual(t, v, b[0], name)
			require.LessOrEqual(t, v, b[1], name)
		}
	}
	first := append([]float64{}, r.storage["w1"].Data...)
	r.call(Init, map[string]*ir.Tensor{"seed": scalar(42)})
	require.Equal(t, first, r.storage["w1"].Data)
	r.call(Init, map[string]*ir.Tensor{"seed": scalar(43)})
	require.NotEqual(t, first, r.storage["w1"].Data)
}

// The module declares the storage of training; a checkpoint holds the optimizer's, and nothing that a step makes anew.
func TestStates(t *testing.T) {
	m := mlp(t)
	m.train(1, m.sgd()...)
	var got []string
	for op := range m.module.Body().Ops() {
		if op.Is(blu.State) {
			s := blu.StateOp{Op: op}
			got = append(got, fmt.Sprintf("%s %s %v %v", s.SymName(), s.Type(), s.Role(), s.Persist()))
		}
	}
	require.Equal(t, []string{
		"grads/w1 tensor<13x7xf32> gradient false", "grads/b1 tensor<13xf32> gradient false",
		"grads/w2 tensor<5x13xf32> gradient false", "grads/b2 tensor<5xf32> gradient false",
		"sgd.momentum/w1 tensor<13x7xf32> optimizer true", "sgd.momentum/b1 tensor<13xf32> optimizer true",
		"sgd.momentum/w2 tensor<5x13xf32> optimizer true", "sgd.momentum/b2 tensor<5xf32> optimizer true",
		"loss_sum tensor<f32> accumulator false", "count tensor<f32> accumulator false",
	}, got)
}

// What makes a model untrainable is said at its place.
func TestTrainErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *model)
		want   string
	}{
		{"name taken", func(m *model) {
			f := newFunction(m.c, "apply", m.c.FileLoc("mlp.blu", 30, 3))
			m.add(f, false)
		}, "mlp.blu:30:3: error: a model's function can't be called apply"},
		{"name of a later function", func(m *model) {
			m.add(newFunction(m.c, "accumulate_last", m.c.FileLoc("mlp.blu", 30, 3)), false)
		}, "mlp.blu:30:3: error: a model's function can't be called accumulate_last: the compiler makes a function of that name"},
		{"parameter of such a name", func(m *model) {
			ir.LookupSymbol(m.module, "b1").SetAttr("sym_name", m.c.String("refresh"))
		}, "a model's parameter can't be called refresh"},
		{"name of a state", func(m *model) {
			ir.LookupSymbol(m.module, "b1").SetAttr("sym_name", m.c.String("count"))
			m.minimize("loss", "sgd")
		}, "a model's parameter can't be called count: training adds up in a state of that name"},
		{"no count", func(m *model) {
			f := newFunction(m.c, "only", m.c.FileLoc("mlp.blu", 31, 3))
			f.output("sum", f.Splat(m.c.Tensor(nil, m.c.F32()), 0))
			m.add(f, false)
			m.minimize("only", "sgd")
		}, "mlp.blu:31:3: error: only can't be minimized: it must return two scalars"},
		{"no such loss", func(m *model) { m.minimize("los", "sgd") }, "there is no function los to minimize"},
		{"no such optimizer", func(m *model) { m.minimize("loss", "adagrad") }, `there is no optimizer "adagrad": expected adamw or sgd`},
		{"recursion", func(m *model) {
			f := newFunction(m.c, "again", m.c.FileLoc("mlp.blu", 32, 3))
			f.CreateState(fn.Call, ir.OpState{Loc: m.c.FileLoc("mlp.blu", 33, 7), Attrs: []ir.NamedAttr{{Name: "callee", Value: m.c.Symbol("again")}}})
			m.add(f, false)
		}, "mlp.blu:33:7: error: recursive call: again calls again"},
		{"integer parameter", func(m *model) {
			ir.LookupSymbol(m.module, "b1").SetAttr("type", m.c.TypeAttr(m.c.Tensor([]int64{13}, m.c.I32())))
			m.minimize("loss", "sgd")
		}, "parameter b1 can't be trained: its elements are i32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mlp(t)
			c.change(m)
			require.ErrorContains(t, Train(m.c, m.module), c.want)
		})
	}
}

func (m *model) minimize(fn, kind string) {
	m.module.SetAttr("blu.train", m.c.Dict(
		ir.NamedAttr{Name: "minimize", Value: m.c.Symbol(fn)},
		ir.NamedAttr{Name: "optimizer", Value: m.c.Dict(ir.NamedAttr{Name: "kind", Value: m.c.String(kind)})},
	))
}

// Each copy of a random operation draws from a stream of its own.
func TestRandomStreams(t *testing.T) {
	m := mlp(t)
	c := m.c
	x := c.Tensor([]int64{64}, c.F32())
	seed := c.Tensor(nil, c.I64())
	f := newFunction(c, "noise", f0(c))
	f.result(f.RandomUniform(f.arg(seed, f.Loc), 0, x))
	noise := m.add(f, true)
	f = newFunction(c, "two", f0(c))
	s := f.scalar("seed", c.I64())
	for _, name := range []string{"a", "b"} {
		f.output(name, m.call(f.Builder, noise, s)[0])
	}
	m.add(f, false)
	r := m.train(1, m.adamw()...)
	out := r.call("two", map[string]*ir.Tensor{"seed": scalar(1)})
	require.NotEqual(t, out["a"].Data, out["b"].Data)
	require.Equal(t, out, r.call("two", map[string]*ir.Tensor{"seed": scalar(1)}))
	require.Nil(t, ir.LookupSymbol(m.module, "noise"), "private functions are inlined and gone")
	for op := range m.module.Body().Ops() {
		require.False(t, op.Is(blu.Get))
	}
}

// Dropout: accumulate draws from its seed, each layer its own mask; eval and the model's functions neither drop nor ask
// for a seed.
func TestDropout(t *testing.T) {
	m := gpt2(t, 2, "merge(a)", "dropout(merge(a), p: 0.1)")
	r := m.programs()
	streams := map[int64]bool{}
	for op := range ir.LookupSymbol(m.module, Accumulate).Body().Ops() {
		if op.Is(blu.RandomUniform) {
			streams[blu.RandomUniformOp{Op: op}.Stream()] = true
		}
	}
	require.Len(t, streams, 2)

	want := numbers.Golden(t, "gpt2-small.float64")
	given := m.batch("tokens", "targets")
	want.RequireClose(t, "loss_sum", r.call(Eval, given)[lossSum].Data, exact)
	want.RequireClose(t, "logits", r.call("logits", given)["logits"].Data, exact)
	given["first"] = scalar(1)
	sums := map[float64]bool{want.Scalar(t, "loss_sum"): true}
	for _, seed := range []float64{0, 1, 1} {
		given["seed"] = scalar(seed)
		r.call(Accumulate, given)
		sums[r.storage[lossSum].Data[0]] = true
	}
	require.Len(t, sums, 3, "two seeds and no dropout")
}

// An error in the source is told at its line, with the calls that lead there.
func TestErrorInSource(t *testing.T) {
	m := gpt2(t, 2, "return y + linear(m, out_w, out_b)", "return y + linear(m * cast(m > 0.0, f32), out_w, out_b)")
	failure := Train(m.c, m.module)
	var text strings.Builder
	require.NoError(t, diag.Render(&text, ir.Diagnostics(failure), nil))
	src, err := os.ReadFile("../examples/gpt2.blu")
	require.NoError(t, err)
	line := func(text string) int { // where the example has it
		before, _, found := strings.Cut(string(src), text)
		require.True(t, found, text)
		return 1 + strings.Count(before, "\n")
	}
	product, call, loss := line("return y + linear(m, out_w, out_b)"), line("layer.forward(x)"), line("return cross_entropy")
	require.Equal(t, fmt.Sprintf(`gpt2.blu:%d:36: error: no gradient can pass through a comparison: it gives truth values (stop_gradient says that none is wanted)
gpt2.blu:%d:26: note: called from here
gpt2.blu:%d:26: note: called from here
gpt2.blu:%d:29: note: the gradient is asked for here
gpt2.blu:%d:3: note: loss is minimized
`, product, call, loss, product, loss-1), text.String())
}

func f0(c *ir.Context) *ir.Location { return c.FileLoc("mlp.blu", 50, 3) }
