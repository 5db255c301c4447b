package cases

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/runtime"
)

var inf = math.Inf(1)

// within: each element within a bound of what is wanted, and none NaN where that is a number.
func within(t *testing.T, bound float64, want, got []float64, context ...any) {
	t.Helper()
	require.Len(t, got, len(want), context...)
	for i := range want {
		if want[i] == got[i] {
			continue
		}
		require.InDelta(t, want[i], got[i], bound, context...)
	}
}

// TestCase_SoftmaxOfLargeValuesAndMaskedRows: very large values give the one-hot limit exactly, a row of -inf zeros; gradients are finite.
func TestCase_SoftmaxOfLargeValuesAndMaskedRows(t *testing.T) {
	m := Compile(t, `
model m() {
  param x: f32[4, 3] = zeros
  fn y(one: f32[B]) -> f32[4, 3] { return softmax(x, axis: 1) * sum(one) }
  fn logs(one: f32[B]) -> f32[4, 3] { return log_softmax(x, axis: 1) * sum(one) }
  fn loss(w: f32[B, 4, 3]) -> (f32, f32) { return (sum(softmax(x, axis: 1) * w), 1.0) }
}
train m {
  minimize loss
  batch B = 1
  optimizer sgd(lr: 0.1)
}`, nil)
	m.Set("x", 1e4, 3e38, -3e38, -inf, -inf, -inf, 88, 89, -inf, -3e38, -3e38, -3e38)
	e := math.Exp(-1)
	want := []float64{0, 1, 0, 0, 0, 0, e / (1 + e), 1 / (1 + e), 0, 1. / 3, 1. / 3, 1. / 3}
	m.Call("y", map[string]runtime.Array{"one": floats([]float64{1}, 1)}, nil, func(target string, out map[string][]float64) {
		within(t, 1e-7, want, out["y"], target)
		require.Equal(t, want[:6], out["y"][:6], "the limits are exact")
	})
	w := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 4}
	m.Gradients(map[string]runtime.Array{"w": floats(w, 1, 4, 3)}, func(target string, state func(string) []float64) {
		p := e / (1 + e)
		within(t, 1e-6, []float64{0, 0, 0, 0, 0, 0, -p * (1 - p), p * (1 - p), 0, -4. / 9, -1. / 9, 5. / 9}, state("grads/x"), target)
	})
	m.Set("x", 1e4, 3e38, -3e38, 0, 0, 0, 88, 89, 90, 1, 2, 3)
	m.Call("logs", map[string]runtime.Array{"one": floats([]float64{1}, 1)}, nil, func(target string, out map[string][]float64) {
		within(t, 1e-6, []float64{-math.Log(3), -math.Log(3), -math.Log(3)}, out["logs"][3:6], target)
		require.Equal(t, 0.0, out["logs"][1], target)
	})
}

// TestCase_FullyMaskedQuery: a causal query that would see no key is a compile error.
func TestCase_FullyMaskedQuery(t *testing.T) {
	_, err := driver.Compile("case.blu", []byte(`
model m() {
  param q: f32[1, 1, 4, 2] = normal(std: 1.0)
  param k: f32[1, 1, 2, 2] = normal(std: 1.0)
  fn y(one: f32[B]) -> f32[1, 1, 4, 2] { return attention(q, k, k, causal: true) * sum(one) }
}
`), driver.Options{Target: "cpu", Set: map[string]float64{"B": 1}})
	require.ErrorContains(t, err, "case.blu:5:62: error: attention: causal: q has 4 queries, more than the 2 keys of k, so that the first would see nothing")
}

const classifier = `
model m(V = 7) {
  param x: f32[4, V] = normal(std: 1.0)
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) { return cross_entropy(x[tokens], targets, ignore: -1) }
}
train m {
  minimize loss
  batch B = 1, S = 4
  optimizer sgd(lr: 1.0)
}`

// TestCase_EveryTargetIgnored: the loss is 0 of 0, gradients are zero, and a step changes nothing.
func TestCase_EveryTargetIgnored(t *testing.T) {
	m := Compile(t, classifier, nil)
	in := map[string]runtime.Array{"tokens": ints([]int32{0, 1, 2, 3}, 1, 4), "targets": ints([]int32{-1, -1, -1, -1}, 1, 4)}
	before := read(t, m.Programs["cpu"], "x")
	m.Gradients(in, func(target string, state func(string) []float64) {
		require.Equal(t, make([]float64, 28), state("grads/x"), target)
		require.Equal(t, []float64{0}, state("loss_sum"), target)
		require.Equal(t, []float64{0}, state("count"), target)
	})
	m.Call("apply", nil, runtime.Scalars{"lr": 1, "step": 1}, func(target string, out map[string][]float64) {
		require.Equal(t, []float64{0}, out["loss"], target)
		require.Equal(t, []float64{0}, out["grad_norm"], target)
		require.Equal(t, before, read(t, m.Programs[target], "x"), target)
	})
}

// TestCase_TargetOutOfRange: a target that is neither ignored nor in the vocabulary is an error with position and value; so is an index
// of an embedding, and nothing is read out of bounds.
func TestCase_TargetOutOfRange(t *testing.T) {
	m := Compile(t, classifier, nil)
	for _, target := range []int32{-2, 7, math.MaxInt32, math.MinInt32} {
		in := map[string]runtime.Array{"tokens": ints([]int32{0, 1, 2, 3}, 1, 4), "targets": ints([]int32{0, -1, target, 6}, 1, 4)}
		for _, fn := range []string{"loss", "accumulate", "eval"} {
			m.Error(fn, in, "position", "2", intText(target), "case.blu:4:")
		}
	}
}

// TestCase_OneClass: of one class every loss is 0, and targets are checked nonetheless.
func TestCase_OneClass(t *testing.T) {
	m := Compile(t, `
model m {
  param x: f32[3, 7, 1] = normal(std: 1)
  fn loss(targets: i32[3, 7]) -> (f32, f32) { return cross_entropy(x, targets) }
}
`, nil)
	targets := make([]int32, 21)
	targets[5], targets[9] = -1, -1
	in := map[string]runtime.Array{"targets": ints(targets, 3, 7)}
	m.Call("loss", in, nil, func(target string, out map[string][]float64) {
		require.Equal(t, map[string][]float64{"loss.0": {0}, "loss.1": {19}}, out, target)
	})
	for _, wrong := range []int32{-2, 1, math.MaxInt32} {
		targets[17] = wrong
		m.Error("loss", map[string]runtime.Array{"targets": ints(targets, 3, 7)}, "position", intText(wrong), "case.blu:4:")
	}
}

func TestCase_EmbeddingIndexOutOfRange(t *testing.T) {
	m := Compile(t, classifier, nil)
	for _, token := range []int32{-1, 4, math.MaxInt32, math.MinInt32} {
		in := map[string]runtime.Array{"tokens": ints([]int32{0, 1, 2, token}, 1, 4), "targets": ints([]int32{0, 0, 0, 0}, 1, 4)}
		for _, fn := range []string{"loss", "accumulate", "eval"} {
			m.Error(fn, in, "position", "3", intText(token), "case.blu:4:")
		}
	}
}

// TestCase_UnequalMicroBatches: micro-batches with unequal numbers of ignored targets give what one batch of all gives.
func TestCase_UnequalMicroBatches(t *testing.T) {
	one, two := Compile(t, classifier, map[string]float64{"B": 2}), Compile(t, classifier, map[string]float64{"accumulate": 2})
	tokens, targets := []int32{0, 1, 2, 3, 3, 2, 1, 0}, []int32{0, -1, -1, -1, 4, 5, 6, 0}
	_, err := one.Programs["cpu"].Call("accumulate", map[string]runtime.Array{"tokens": ints(tokens, 2, 4), "targets": ints(targets, 2, 4)}, runtime.Scalars{"first": 1})
	require.NoError(t, err)
	for i, first := range []float64{1, 0} {
		in := map[string]runtime.Array{"tokens": ints(tokens[4*i:4*i+4], 1, 4), "targets": ints(targets[4*i:4*i+4], 1, 4)}
		_, err := two.Programs["cpu"].Call("accumulate", in, runtime.Scalars{"first": first})
		require.NoError(t, err)
	}
	var outs []map[string]runtime.Array
	for _, m := range []*Model{one, two} {
		out, err := m.Programs["cpu"].Call("apply", nil, runtime.Scalars{"lr": 1, "step": 1})
		require.NoError(t, err)
		outs = append(outs, out)
	}
	for _, name := range []string{"loss", "grad_norm"} {
		within(t, 1e-6, value(outs[0][name]), value(outs[1][name]), name)
	}
	within(t, 1e-6, read(t, one.Programs["cpu"], "x"), read(t, two.Programs["cpu"], "x"))
}

// TestCase_WhereDoesNotLeakNaN: the gradient of the side not taken is 0 even where its derivative is infinite.
func TestCase_WhereDoesNotLeakNaN(t *testing.T) {
	m := Compile(t, lossOf("f32[3]", "sum(where(x > 0.5, sqrt(x), full([3], 1.0)))"), nil)
	m.Set("x", 0, 4, -1)
	m.Gradients(one, func(target string, state func(string) []float64) {
		within(t, 1e-7, []float64{0, 0.25, 0}, state("grads/x"), target)
		within(t, 1e-7, []float64{4}, state("loss_sum"), target)
	})
}

// lossOf is a model whose loss is an expression of one parameter x.
func lossOf(shape, expression string) string {
	return `
model m() {
  param x: ` + shape + ` = zeros
  fn loss(one: f32[B]) -> (f32, f32) { return (` + expression + `, sum(one)) }
}
train m {
  minimize loss
  batch B = 1
  optimizer sgd(lr: 0.1)
}`
}

var one = map[string]runtime.Array{"one": floats([]float64{1}, 1)}

// TestCase_LayerNormOfLargeMeans: the answer of float64 to the accuracy of float32, whatever the mean.
func TestCase_LayerNormOfLargeMeans(t *testing.T) {
	m := Compile(t, `
model m() {
  param g: f32[4] = ones
  param b: f32[4] = zeros
  fn y(x: f32[B, 4]) -> f32[B, 4] { return layernorm(x, g, b, eps: 1e-5) }
}
`, map[string]float64{"B": 5})
	rows := []float64{40000, 40001, 40002, 40003, 0.1, 0.1, 0.1, 0.1, 1e7, 1e7 + 1, 1e7 + 2, 1e7 + 3, -3e4 + 0.3, -3e4 - 0.2, -3e4, -3e4 + 0.1, 1e15, -1e15, 1e15, 1e15}
	var want []float64
	for i := 0; i < len(rows); i += 4 {
		mean, variance := 0.0, 0.0
		for _, x := range rows[i : i+4] {
			mean += float64(float32(x)) / 4
		}
		for _, x := range rows[i : i+4] {
			variance += (float64(float32(x)) - mean) * (float64(float32(x)) - mean) / 4
		}
		for _, x := range rows[i : i+4] {
			want = append(want, (float64(float32(x))-mean)/math.Sqrt(variance+1e-5))
		}
	}
	m.Call("y", map[string]runtime.Array{"x": floats(rows, 5, 4)}, nil, func(target string, out map[string][]float64) {
		within(t, 1e-6, want, out["y"], target)
	})
}

// TestCase_LayerNormGradientOfLargeMeans: adding a constant to a row changes no gradient.
func TestCase_LayerNormGradientOfLargeMeans(t *testing.T) {
	source := `
model m() {
  param x: f32[2, 4] = zeros
  param g: f32[4] = ones
  param b: f32[4] = zeros
  fn loss(w: f32[B, 2, 4]) -> (f32, f32) { return (sum(layernorm(x, g, b, eps: 1e-5) * w) + sum(var(x, axis: 1)), 1.0) }
}
train m {
  minimize loss
  batch B = 1
  optimizer sgd(lr: 0.1)
}`
	m := Compile(t, source, nil)
	in := map[string]runtime.Array{"w": floats([]float64{1, 2, -3, 5, 0.5, -2, 1, 4}, 1, 2, 4)}
	names := []string{"grads/x", "grads/g", "grads/b"}
	want := map[string][]float64{}
	m.Set("x", 0, 1, 2, 3, 0, 2, 1, 5)
	m.Programs["cpu"].Close()
	_, err := m.Programs["ref"].Call("accumulate", in, runtime.Scalars{"first": 1})
	require.NoError(t, err)
	for _, name := range names {
		want[name] = read(t, m.Programs["ref"], name)
	}
	m = Compile(t, source, nil)
	const c = 1 << 23 // beyond it float32 has no halves, which the mean needs
	m.Set("x", c, c+1, c+2, c+3, c, c+2, c+1, c+5)
	m.Gradients(in, func(target string, state func(string) []float64) {
		for _, name := range names {
			within(t, 2e-5, want[name], state(name), "%s: %s", target, name)
		}
	})
}

// TestCase_NormOfZero: the gradient is zero, as documented.
func TestCase_NormOfZero(t *testing.T) {
	m := Compile(t, lossOf("f32[2, 3]", "sum(norm(x, axis: 1))"), nil)
	m.Set("x", 0, 0, 0, 0, 3, -4)
	m.Gradients(one, func(target string, state func(string) []float64) {
		within(t, 1e-7, []float64{0, 0, 0, 0, 0.6, -0.8}, state("grads/x"), target)
	})
}

// TestCase_TiedWeights: the gradient is the sum over both uses, and the parameter is there, and updated, once.
func TestCase_TiedWeights(t *testing.T) {
	source := func(params, head string) string {
		return `
model m(V = 5, C = 3) {
  ` + params + `
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) { return cross_entropy(linear(wte[tokens], ` + head + `), targets) }
}
train m {
  minimize loss
  batch B = 1, S = 3
  optimizer sgd(lr: 1.0)
}`
	}
	tied := Compile(t, source("param wte: f32[V, C] = normal(std: 1.0)", "wte"), nil)
	apart := Compile(t, source("param wte: f32[V, C] = normal(std: 1.0)\n  param head: f32[V, C] = normal(std: 1.0)", "head"), nil)
	weights := read(t, tied.Programs["ref"], "wte")
	tied.Set("wte", weights...)
	apart.Set("wte", weights...)
	apart.Set("head", weights...)
	in := map[string]runtime.Array{"tokens": ints([]int32{1, 4, 1}, 1, 3), "targets": ints([]int32{0, 1, 2}, 1, 3)}
	want := map[string][]float64{}
	apart.Gradients(in, func(target string, state func(string) []float64) {
		head := state("grads/head")
		for i, g := range state("grads/wte") {
			want[target] = append(want[target], g+head[i])
		}
	})
	tied.Gradients(in, func(target string, state func(string) []float64) {
		within(t, 1e-6, want[target], state("grads/wte"), target)
		params := 0
		for _, s := range tied.Programs[target].Manifest().States {
			if s.Role == artifact.Param {
				params++
			}
		}
		require.Equal(t, 1, params, "one tensor in a checkpoint")
	})
	tied.Call("apply", nil, runtime.Scalars{"lr": 1, "step": 1}, func(target string, _ map[string][]float64) {
		var moved []float64
		for i, w := range weights {
			moved = append(moved, w-want[target][i]/3)
		}
		within(t, 1e-6, moved, read(t, tied.Programs[target], "wte"), target)
	})
}

// TestCase_SumsOfManyTerms: a table that is looked up twice and multiplied with three times, beside one that is only looked up, over
// micro-batches. What the sums of gradients held before the first, be it NaN, does not matter.
func TestCase_SumsOfManyTerms(t *testing.T) {
	m := Compile(t, `
model m(V = 5, C = 4) {
  param table: f32[V, C] = normal(std: 1.0)
  param other: f32[V, C] = normal(std: 1.0)
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let x = table[tokens] + other[tokens]
    let y = tanh(linear(x, table) + linear(x * x, table))
    let z = table[targets] * sum(y, axis: 2, keep: true)
    return cross_entropy(linear(z, table), targets)
  }
}
train m {
  minimize loss
  batch B = 2, S = 3, accumulate = 2
  optimizer sgd(lr: 1.0)
}`, nil)
	for _, name := range []string{"table", "other"} {
		m.Set(name, read(t, m.Programs["ref"], name)...)
	}
	nan := slices.Repeat([]float64{math.NaN()}, 20)
	m.Set("grads/table", nan...)
	m.Set("grads/other", nan...)
	m.Set("loss_sum", math.NaN())
	got := map[string]map[string][]float64{}
	for i, in := range []map[string]runtime.Array{
		{"tokens": ints([]int32{1, 4, 1, 0, 0, 0}, 2, 3), "targets": ints([]int32{0, 1, 2, 0, 4, 4}, 2, 3)},
		{"tokens": ints([]int32{3, 3, 2, 1, 0, 4}, 2, 3), "targets": ints([]int32{1, 1, 1, 1, 1, 0}, 2, 3)},
		{"tokens": ints([]int32{0, 1, 2, 3, 4, 4}, 2, 3), "targets": ints([]int32{4, 3, 2, 1, 0, 0}, 2, 3)},
	} {
		m.Each(func(target string, p runtime.Program) {
			_, err := p.Call("accumulate", in, runtime.Scalars{"first": float64(max(0, 1-i)), "seed": 3})
			require.NoError(t, err, target)
			sums := map[string][]float64{}
			for _, name := range []string{"grads/table", "grads/other", "loss_sum", "count"} {
				sums[name] = read(t, p, name)
			}
			got[target] = sums
		})
		for name, want := range got["ref"] {
			within(t, 1e-3, want, got["cpu"][name], name)
		}
	}
}

// TestCase_BroadcastBias: the gradient of a bias sums over batch and sequence.
func TestCase_BroadcastBias(t *testing.T) {
	m := Compile(t, `
model m() {
  param b: f32[2] = zeros
  fn loss(x: f32[B, S, 2]) -> (f32, f32) { return (sum(square(x + broadcast(b, [B, S, 2]))), 1.0) }
}
train m {
  minimize loss
  batch B = 2, S = 3
  optimizer sgd(lr: 0.1)
}`, nil)
	x := []float64{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}
	m.Gradients(map[string]runtime.Array{"x": floats(x, 2, 3, 2)}, func(target string, state func(string) []float64) {
		require.Equal(t, []float64{42, 420}, state("grads/b"), target)
	})
}

// TestCase_GradientNorm: the norm of gradients of any realistic size, here 10^18, is right, and clipping by it works.
func TestCase_GradientNorm(t *testing.T) {
	source := strings.Replace(lossOf("f32[4]", "sum(x) * 1e18"), "optimizer sgd(lr: 0.1)", "optimizer sgd(lr: 1.0)\n  clip global_norm 2.0", 1)
	m := Compile(t, source, nil)
	m.Gradients(one, func(target string, state func(string) []float64) {
		for _, g := range state("grads/x") {
			require.InEpsilon(t, 1e18, g, 1e-6, target)
		}
	})
	m.Call("apply", nil, runtime.Scalars{"lr": 1, "step": 1}, func(target string, out map[string][]float64) {
		require.InEpsilon(t, 2e18, out["grad_norm"][0], 1e-6, target)
		within(t, 1e-6, []float64{-1, -1, -1, -1}, read(t, m.Programs[target], "x"), target)
	})
}

// TestCase_WeightDecayWhere: only what the model says decays.
func TestCase_WeightDecayWhere(t *testing.T) {
	m := Compile(t, `
model m() {
  param w: f32[1, 2] = constant(1.0)
  param g: f32[2] = constant(1.0)
  fn loss(one: f32[B]) -> (f32, f32) { return (sum(stop_gradient(w)) + sum(stop_gradient(g)), sum(one)) }
}
train m {
  minimize loss
  batch B = 1
  optimizer adamw(lr: 0.1, weight_decay: 0.5 where rank >= 2)
}`, nil)
	m.Gradients(one, func(target string, state func(string) []float64) {
		require.Equal(t, []float64{0, 0}, state("grads/g"), target)
	})
	m.Call("apply", nil, runtime.Scalars{"lr": 0.1, "step": 1}, func(target string, _ map[string][]float64) {
		require.Equal(t, []float64{1, 1}, read(t, m.Programs[target], "g"), target)
		within(t, 1e-6, []float64{0.95, 0.95}, read(t, m.Programs[target], "w"), target)
	})
}

// TestCase_GeluTanhAndErf: the model says which, and they differ by 4.7e-4 at 2.7.
func TestCase_GeluTanhAndErf(t *testing.T) {
	m := Compile(t, `
model m() {
  fn tanhs(x: f32[B]) -> f32[B] { return gelu(x, approximate: "tanh") }
  fn erfs(x: f32[B]) -> f32[B] { return gelu(x, approximate: "erf") }
}
`, map[string]float64{"B": 5})
	xs := []float64{-2.7, -1, 0, 0.5, 2.7}
	var tanhs, erfs []float64
	for _, x := range xs {
		x = float64(float32(x))
		tanhs = append(tanhs, x/2*(1+math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))))
		erfs = append(erfs, x/2*math.Erfc(-x/math.Sqrt2))
	}
	require.Greater(t, math.Abs(tanhs[0]-erfs[0]), 4e-4)
	in := map[string]runtime.Array{"x": floats(xs, 5)}
	m.Call("tanhs", in, nil, func(target string, out map[string][]float64) { within(t, 3e-7, tanhs, out["tanhs"], target) })
	m.Call("erfs", in, nil, func(target string, out map[string][]float64) { within(t, 3e-7, erfs, out["erfs"], target) })
}

// TestCase_NoGradientThroughIntegers: what has no gradient is a compile error at its place in the source.
func TestCase_NoGradientThroughIntegers(t *testing.T) {
	for expression, reason := range map[string]string{
		"sum(cast(argmax(x, axis: 0), f32))":   "case.blu:4:57: error: no gradient can pass through argmax",
		"sum(cast(x > 0.5, f32))":              "case.blu:4:59: error: no gradient can pass through a comparison",
		"sum(cast(cast(x, i32), f32))":         "case.blu:4:57: error: no gradient can pass through a cast to i32",
		"sum(stop_gradient(cast(x > 0, f32)))": "",

		"sum(cast(stop_gradient(x) > 0.5, f32))":               "",
		"sum(cast(stop_gradient(-x) > stop_gradient(x), f32))": "",
		"sum(cast(stop_gradient(x) > x * 2.0, f32))":           "case.blu:4:74: error: no gradient can pass through a comparison",
	} {
		_, err := driver.Compile("case.blu", []byte(lossOf("f32[3]", expression)), driver.Options{Target: "ref"})
		if reason == "" {
			require.NoError(t, err, expression)
			continue
		}
		require.ErrorContains(t, err, reason, expression)
	}
}

// TestCase_EmptyAndRankZero: tensors without elements are refused where they are written; those without dimensions are numbers.
func TestCase_EmptyAndRankZero(t *testing.T) {
	for _, expression := range []string{
		"sum(x[0:0])", "sum(x[:, 4:])", "sum(zeros([0]))", "sum(reshape(x, [0, 12]))", "sum(split(x, axis: 0, sizes: [0, 3]))",
		"sum(concat(sum(x), sum(x), axis: 0))", "softmax(sum(x))", "sum(sum(x), axis: 0)", "argmax(sum(x), axis: 0)", "sum(x)[0]",
	} {
		_, err := driver.Compile("case.blu", []byte(lossOf("f32[3, 4]", expression)), driver.Options{Target: "cpu"})
		require.ErrorContains(t, err, "case.blu:4:", expression)
	}
	for expression, want := range map[string]float64{
		"sum(sum(x))": 12, "max(sum(x))": 12, "norm(sum(x))": 12, "transpose(sum(x), [])": 12, "sum(x[0][0])": 1, "reshape(x[0, 0], [1, 1])[0, 0]": 1,
		"sum(concat(x[0:1], x, axis: 0))": 16, "sum(pad(x, axis: 0))": 12,
	} {
		m := Compile(t, lossOf("f32[3, 4]", expression), nil)
		m.Set("x", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
		m.Gradients(one, func(target string, state func(string) []float64) {
			require.Equal(t, []float64{want}, state("loss_sum"), "%s: %s", target, expression)
		})
	}
}

func value(a runtime.Array) []float64 { return formats.Tensor(a).Float64s() }
