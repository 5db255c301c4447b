package recompute_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/driver"
	"blutrain/ir"
)

// rowsOf is how many rows of logits are computed at once in each function of a model that has a loss, 0 for as many as by default.
func rowsOf(t *testing.T, model []byte, o driver.Options) map[string]int64 {
	o.CompileTo = "graph"
	r, err := driver.Compile("m.blu", model, o)
	require.NoError(t, err)
	rows := map[string]int64{}
	ir.Walk(r.Module, func(op *ir.Op) ir.WalkResult {
		if op.Is(blu.CrossEntropy) {
			rows[ir.SymName(op.Parent())] = op.Operand(0).Op().Attrs().IntOr(blu.RowsAttr, 0)
		}
		return ir.Advance
	})
	return rows
}

// Rows of logits at once become more where the batch is large and memory is fullest elsewhere, or a budget has room for them, but never a
// quarter of all of them; evaluation has those that training has.
func TestRows(t *testing.T) {
	gpt2, err := os.ReadFile("../../examples/gpt2.blu")
	require.NoError(t, err)
	for _, tc := range []struct {
		precision, recompute string
		batch                float64
		budget               int64 // GiB
		want                 int64
	}{
		{precision: "bf16", batch: 4},
		{precision: "bf16", batch: 16},
		{precision: "bf16", batch: 64, want: 8192},
		{precision: "bf16", batch: 64, recompute: "full"},
		{precision: "bf16", batch: 64, budget: 40, want: 16384},
		{precision: "bf16", batch: 64, budget: 16},
		{precision: "fp32", batch: 16},
		{precision: "fp32", batch: 64, want: 4096},
		{precision: "tf32", batch: 16},
		{precision: "tf32", batch: 64, want: 4096},
		{precision: "fp32-strict", batch: 16},
		{precision: "fp32-strict", batch: 64, want: 4096},
	} {
		if tc.budget > 0 && testing.Short() {
			continue // plans several times
		}
		o := driver.Options{Target: "cuda", Precision: tc.precision, Recompute: tc.recompute, Budget: tc.budget << 30, Set: map[string]float64{"B": tc.batch}}
		require.Equal(t, map[string]int64{"accumulate": tc.want, "eval": tc.want, "loss": tc.want}, rowsOf(t, gpt2, o), "%+v", tc)
	}
}

// However many classifiers a model has, whatever their losses are weighted with and whatever is recomputed: their logits are never in memory
// whole. A loss that was computed again kept them there once.
func TestSeveralClassifiers(t *testing.T) {
	const source = `model m(V = 4097, C = 64) {
  param e: f32[V, C] = normal(std: 0.5)
  param w: f32[V, C] = normal(std: 0.1)
  param p: f32[C, C] = normal(std: 0.1)
  param k: f32 = ones
  fn loss(tokens: i32[B], targets: i32[B]) -> (f32, f32) {
    let x = e[tokens]
    let y = x + tanh(linear(x, p))
    let (a, n) = cross_entropy(linear(y, e), minimum(targets, V - 1), ignore: -1)
    let (b, _) = cross_entropy(linear(y, w), tokens, ignore: -1)
    return (%s, n)
  }
}
train m {
  minimize loss
  batch B = 9984
  optimizer sgd(lr: 0.01)
}
`
	for _, sum := range []string{"a + b", "a + 0.5 * b", "exp(k) * tanh(k) * a + sigmoid(k) * b"} {
		for _, recomputed := range []string{"none", "auto", "full"} {
			for _, precision := range []string{"fp32", "bf16"} {
				o := driver.Options{Target: "cuda", Precision: precision, Recompute: recomputed, CompileTo: "buffers"}
				r, err := driver.Compile("m.blu", fmt.Appendf(nil, source, sum), o)
				require.NoError(t, err)
				arena, ok := ir.LookupSymbol(r.Module, "accumulate").Attrs().Int("mem.arena")
				require.True(t, ok)
				require.Less(t, arena, int64(9984*4097*2), "%s, %s, recompute %s", sum, precision, recomputed)
			}
		}
	}
}

// A function that needs more memory than training does not exceed a budget for the sake of the rows that training has: it has fewer.
func TestRowsOfAFunctionThatNeedsMore(t *testing.T) {
	const source = `model m(V = 4096, C = 64) {
  param e: f32[V, C] = normal(std: 0.5)
  param w: f32[V, C] = normal(std: 0.1)
  fn loss(tokens: i32[B], targets: i32[B]) -> (f32, f32) { return cross_entropy(linear(e[tokens], w), targets, ignore: -1) }
  fn score(tokens: i32[524288], targets: i32[524288]) -> (f32, f32) { return cross_entropy(linear(e[tokens], w), targets, ignore: -1) }
}
train m {
  minimize loss
  batch B = 65536
  optimizer sgd(lr: 0.01)
}
`
	o := driver.Options{Target: "cuda", Precision: "bf16", Budget: 200 << 20}
	require.Equal(t, map[string]int64{"accumulate": 16384, "eval": 16384, "loss": 16384, "score": 8192}, rowsOf(t, []byte(source), o))
	r, err := driver.Compile("m.blu", []byte(source), o)
	require.NoError(t, err)
	require.LessOrEqual(t, r.Artifact.Manifest.Memory.Total, o.Budget)
}
