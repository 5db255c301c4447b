package sema

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/frontend/syntax"
	"blutrain/ir/diag"
)

func check(t testing.TB, name, src string, set map[string]float64) (*Program, diag.List) {
	t.Helper()
	file, diags := syntax.Parse(name, src)
	require.NoError(t, diags.Err())
	return Check(file, Options{Set: set})
}

func rendered(name, src string, l diag.List) string {
	var b strings.Builder
	_ = diag.Render(&b, l, diag.Sources{name: []byte(src)})
	return b.String()
}

func TestExamples(t *testing.T) {
	for _, name := range []string{"gpt2.blu", "llama.blu", "mlp.blu"} {
		src, err := os.ReadFile("../../examples/" + name)
		require.NoError(t, err)
		p, diags := check(t, name, string(src), nil)
		require.Empty(t, diags, rendered(name, string(src), diags))
		require.NotNil(t, p.Train)
	}
}

const small = `model m(C = 8, deep = true, eps = 1e-5) {
  param w: f32[C] = normal(std: eps)
  fn f(x: f32[B, C]) -> f32[B, C] {
    if deep { x = x * w }
    return x
  }
}
`

func TestSet(t *testing.T) {
	for _, test := range []struct {
		set  map[string]float64
		want string
	}{
		{map[string]float64{"B": 2}, ""},
		{map[string]float64{"B": 2, "C": 16, "eps": 1}, ""},
		{map[string]float64{}, "m.blu:3:6: error: f is never called, and the size of B is not known: name it in the batch of a train block, or pass --set B=..."},
		{map[string]float64{"B": 0}, "m.blu: error: B must be at least 1, it is set to 0"},
		{map[string]float64{"B": 2, "C": 0}, "m.blu:2:16: error: a size must be at least 1, this is 0 (C = 0)\n" +
			"m.blu:3:18: error: a size must be at least 1, this is 0 (C = 0)"},
		{map[string]float64{"B": 2, "H": 3}, "m.blu: error: H cannot be set: model m has no argument or size of that name"},
		{map[string]float64{"B": 2, "Cs": 3}, "m.blu: error: Cs cannot be set: model m has no argument or size of that name; did you mean C or eps?"},
		{map[string]float64{"B": 2, "deep": 1}, "m.blu:1:16: error: deep is a truth value and cannot be set to 1"},
	} {
		p, diags := check(t, "m.blu", small, test.set)
		if test.want == "" {
			require.Empty(t, diags)
			require.Equal(t, "w", p.Params[0].Name)
			continue
		}
		require.EqualError(t, diags.Err(), test.want)
	}
}

// TestTruths: arguments that are truth values are set to truth values, and nothing else is.
func TestTruths(t *testing.T) {
	file, diags := syntax.Parse("m.blu", small)
	require.Empty(t, diags)
	for _, test := range []struct {
		name, want string
	}{
		{"deep", ""},
		{"C", "m.blu:1:9: error: C is an integer and cannot be set to false"},
		{"B", "m.blu: error: B is a size and cannot be set to false"},
		{"dep", "m.blu: error: dep cannot be set: model m has no argument or size of that name; did you mean deep or eps?"},
	} {
		_, diags := Check(file, Options{Set: map[string]float64{"B": 2}, Truths: map[string]bool{test.name: false}})
		if test.want != "" {
			require.ErrorContains(t, diags.Err(), test.want)
			continue
		}
		require.NoError(t, diags.Err())
	}
}

// TestBatchDimensionFollowsCalls: which dimension may be missing is known through calls, slices and reshapes, and not
// guessed from its name.
func TestBatchDimensionFollowsCalls(t *testing.T) {
	const src = `fn add(x: f32[N, M], y: f32[M]) -> f32[N, M] { return x + y }
model m() {
  fn f(x: f32[B, S], y: f32[S]) -> f32[B, S] {
    let z = reshape(x, [B, 1, S])[:, 0]
    return add(z + y, y)
  }
  fn g(x: f32[S], y: f32[B, S]) -> f32[B, S] {
    return y + x
  }
}
`
	_, diags := check(t, "m.blu", src, map[string]float64{"B": 2, "S": 3})
	require.EqualError(t, diags.Err(), "m.blu:8:16: error: +: y is f32[B, S], x is f32[S]: the ranks differ; "+
		"add dimensions with unsqueeze or broadcast; B = 2, S = 3\nm.blu:7:19: note: y is declared f32[B, S] here")
}
