package overlap_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes"
	"blutrain/passes/internal/evaluate"
	"blutrain/passes/recompute"
)

// tied is a model whose table of embeddings is its classifier too, so that its gradient is begun first and ready last.
const tied = `model tied(V = %d, T = 8, L = %d, C = %d, F = %d) {
  param wte: f32[V, C] = normal(std: 0.5)
  param wpe: f32[T, C] = normal(std: 0.3)
  module block {
    param ln_g: f32[C] = ones
    param ln_b: f32[C] = zeros
    param w: f32[F, C] = normal(std: 0.4)
    param b: f32[F] = normal(std: 0.1)
    param o: f32[C, F] = normal(std: 0.4)
    fn forward(x: f32[B, S, C]) -> f32[B, S, C] {
      return x + linear(gelu(linear(layernorm(x, ln_g, ln_b, eps: 1e-5), w, b), approximate: "tanh"), o)
    }
  }
  layers h: block[L]
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let x = wte[tokens] + wpe[0:S]
    for layer in h { x = layer.forward(x) }
    return cross_entropy(linear(x, wte), targets, ignore: -1)
  }
}
train tied {
  minimize loss
  batch B = 2, S = 8
  optimizer sgd(lr: constant(max: 1e-2, warmup: 2), momentum: 0.9, weight_decay: 0.1 where rank >= 2)
  clip global_norm 1.0
}
`

// compiled is a model on a mesh after products were put off by the pass's options, and other passes.
func compiled(t *testing.T, text, mesh, recomputation, options, then string) (*ir.Context, *ir.Op) {
	t.Helper()
	r, err := driver.Compile("tied.blu", []byte(text), driver.Options{Target: "ref", CompileTo: "train"})
	require.NoError(t, err)
	pl, err := passes.ParsePipeline(driver.Passes(), fmt.Sprintf("builtin.module(shard{%s},canonicalize,cse,dce,recompute{mode=%s},defer{%s}%s)", mesh, recomputation, options, then))
	require.NoError(t, err)
	require.NoError(t, (&passes.Config{}).Run(r.Ctx, r.Module, pl))
	return r.Ctx, r.Module
}

// behindTable is how many products are computed while the sum of the table's gradient, which is the largest, is under way.
func behindTable(f *ir.Op, table int64) (n int) {
	for start := range f.Body().Ops() {
		if !start.Is(dtms.Start) || dtms.CallOf(start).Bytes() < table {
			continue
		}
		for op := start; op != dtms.WaitOf(start); op = op.Next() {
			if blu.Flops(op) > 0 {
				n++
			}
		}
	}
	return n
}

// microBatch is tokens and targets, some of which are ignored.
func microBatch(number int) map[string]*ir.Tensor {
	rng := rand.New(rand.NewPCG(uint64(number), 5))
	in := map[string]*ir.Tensor{"tokens": ir.NewTensor(nil, 2, 8), "targets": ir.NewTensor(nil, 2, 8)}
	for at := range 16 {
		in["tokens"].Data[at], in["targets"].Data[at] = float64(rng.IntN(9)), float64(rng.IntN(9)-1)
	}
	return in
}

// train takes two steps of two micro-batches on each of dp ranks.
func train(t *testing.T, c *ir.Context, m *ir.Op, dp int) []evaluate.History {
	t.Helper()
	all, err := evaluate.OnRanks(c, m, dp, 1, func(p *evaluate.Program, r *dtms.Rank) (evaluate.History, error) {
		return p.Train(evaluate.Training{Steps: 2, Micros: 2 * dp, Ranks: dp, Batch: microBatch}, r.World)
	})
	require.NoError(t, err)
	return all
}

// Whatever is put off, for whatever costs: the same numbers, and no more memory by estimate.
func TestDeferredIsTheSame(t *testing.T) {
	deferred := 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 3))
		v, c := 9+r.IntN(60), 2+r.IntN(7)
		text := fmt.Sprintf(tied, v, 1+r.IntN(4), c, 1+r.IntN(12))
		dp, zero, mode, bucket := 2+r.IntN(4), r.IntN(2), []string{"none", "auto", "full"}[r.IntN(3)], 1<<(3+r.IntN(8))
		mesh, options := fmt.Sprintf("dp=%d zero=%d", dp, zero), fmt.Sprintf("bucket=%d intensity=%g", bucket, 0.05*float64(int(1)<<r.IntN(9)))
		t.Run(fmt.Sprintf("%d %s %s recompute %s", seed, mesh, options, mode), func(t *testing.T) {
			f := []string{"accumulate_last", "accumulate"}[zero]
			peak := func(options string) int64 {
				_, m := compiled(t, text, mesh, mode, options, "")
				bytes, ok := recompute.Estimate(ir.LookupSymbol(m, f), recompute.TargetFor("cpu", ""))
				require.True(t, ok)
				return bytes
			}
			require.LessOrEqual(t, peak(options), peak("intensity=0"))
			apart := fmt.Sprintf(",bucket{size=%d},overlap", bucket)
			ca, a := compiled(t, text, mesh, mode, "intensity=0", apart)
			cb, b := compiled(t, text, mesh, mode, options, apart)
			// The table's sum has what is computed behind its start, which was last, put off there.
			before, after := behindTable(ir.LookupSymbol(a, f), int64(4*v*c)), behindTable(ir.LookupSymbol(b, f), int64(4*v*c))
			require.GreaterOrEqual(t, after, before)
			deferred += after - before
			require.Equal(t, train(t, ca, a, dp), train(t, cb, b, dp))
		})
	}
	t.Logf("%d products put off", deferred)
	require.Greater(t, deferred, 24)
}
