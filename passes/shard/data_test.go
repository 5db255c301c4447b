package shard_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes"
	"blutrain/passes/internal/evaluate"
	"blutrain/passes/recompute"
	"blutrain/passes/shard"
)

// odd is a model whose parameters have sizes that no number of ranks divides, a scalar among them.
const odd = `model odd(V = 11, T = 8, L = 2, C = 6) {
  param wte: f32[V, C] = normal(std: 0.5)
  param wpe: f32[T, C] = normal(std: 0.3)
  module block {
    param ln_g: f32[C] = ones
    param ln_b: f32[C] = zeros
    param w: f32[5, C] = normal(std: 0.4)
    param b: f32[5] = normal(std: 0.1)
    param o: f32[C, 5] = normal(std: 0.4)
    param s: f32[] = ones
    fn forward(x: f32[B, S, C]) -> f32[B, S, C] {
      return x + s * linear(gelu(linear(layernorm(x, ln_g, ln_b, eps: 1e-5), w, b), approximate: "tanh"), o)
    }
  }
  layers h: block[L]
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let x = wte[tokens] + wpe[0:S]
    for layer in h { x = layer.forward(x) }
    return cross_entropy(linear(x, wte), targets, ignore: -1)
  }
}
train odd {
  minimize loss
  batch B = 2, S = 8
  optimizer OPTIMIZER
  clip global_norm 1.0
}
`

const (
	adamw = "adamw(lr: constant(max: 1e-2, warmup: 2), betas: (0.9, 0.95), weight_decay: 0.1 where rank >= 2)"
	sgd   = "sgd(lr: constant(max: 1e-2, warmup: 2), momentum: 0.9, nesterov: true, weight_decay: 0.1 where rank >= 2)"
)

// graph compiles a model as far as the phase graph.
func graph(t *testing.T, text string, o driver.Options) (*ir.Context, *ir.Op) {
	t.Helper()
	o.Target, o.CompileTo = "ref", "graph"
	r, err := driver.Compile("model.blu", []byte(text), o)
	require.NoError(t, err)
	return r.Ctx, r.Module
}

// microBatch is tokens and targets, of which from none to all are ignored.
func microBatch(number int) map[string]*ir.Tensor {
	rng := rand.New(rand.NewPCG(uint64(number), 7))
	tokens, targets := ir.NewTensor(nil, 2, 8), ir.NewTensor(nil, 2, 8)
	for i := range tokens.Data {
		tokens.Data[i] = float64(rng.IntN(11))
		targets.Data[i] = float64(rng.IntN(11))
		if rng.IntN(4) < number%5 {
			targets.Data[i] = -1
		}
	}
	return map[string]*ir.Tensor{"tokens": tokens, "targets": targets}
}

// history is what training leaves, and an evaluation of a micro-batch of the rank's own after it.
type history struct {
	evaluate.History
	evaluated map[string]*ir.Tensor
}

// train takes three steps of so many micro-batches.
func train(p *evaluate.Program, rank, ranks, total int) (h history, err error) {
	if h.History, err = p.Train(evaluate.Training{Steps: 3, Micros: total, Ranks: ranks, Batch: microBatch}, rank); err != nil {
		return h, err
	}
	h.evaluated, err = p.Call("eval", microBatch(100+rank), nil)
	return h, err
}

// whole is a state on all ranks, put together where it is sharded.
func whole(m *ir.Op, all []history, name string) []float64 {
	decl := ir.LookupSymbol(m, name)
	d, sharded := decl.Attr("shard").(*ir.DictAttr)
	if !sharded {
		return all[0].States[name].Data
	}
	var data []float64
	for _, h := range all {
		data = append(data, h.States[name].Data...)
	}
	return data[:ir.NumElements(ir.Attrs(d.Entries).Ints("shape"))]
}

func requireNear(t *testing.T, want, got []float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-12*max(1, math.Abs(want[i])), "%s[%d]", what, i)
	}
}

// Any number of ranks computes what one rank computes with all their micro-batches, in float64 to 1e-12, whatever number
// of targets each of them ignores: losses and gradients are sums over counts.
func TestRanksComputeTheSame(t *testing.T) {
	const total = 12
	for _, optimizer := range []string{adamw, sgd} {
		text := strings.Replace(odd, "OPTIMIZER", optimizer, 1)
		c, m := graph(t, text, driver.Options{})
		alone := evaluate.NewProgram(c, m, nil)
		one, err := train(alone, 0, 1, total)
		require.NoError(t, err)
		require.NotEqual(t, one.Loss[0], one.Loss[1])
		for _, tc := range []struct {
			mesh   string
			zero   int
			dp     int
			bucket int64
			seed   uint64 // of the order of operations before each pass; 0: as they are
		}{
			{"dp", 0, 1, 0, 0}, {"dp", 0, 2, 0, 0}, {"dp", 0, 3, 300, 0}, {"dp=4", 0, 4, 1, 0}, {"dp", 0, 2, 500, 1}, {"dp", 0, 2, 500, 2},
			{"dp=1", 1, 1, 0, 0}, {"dp=2", 1, 2, 0, 0}, {"dp=3", 1, 3, 300, 0}, {"dp=4", 1, 4, 1, 0}, {"dp=3", 1, 3, 500, 3}, {"dp=2", 1, 2, 900, 4},
		} {
			t.Run(fmt.Sprintf("%.5s %d ranks %s zero %d, order %d", optimizer, tc.dp, tc.mesh, tc.zero, tc.seed), func(t *testing.T) {
				c, m := graph(t, text, driver.Options{
					Sharding:  driver.Sharding{Mesh: tc.mesh, Zero: tc.zero, Bucket: tc.bucket},
					Passes:    passes.Config{Shuffle: tc.seed != 0, Seed: tc.seed},
					Recompute: []string{"auto", "full"}[tc.seed%2],
				})
				all, err := evaluate.OnRanks(c, m, tc.dp, 1, func(p *evaluate.Program, r *dtms.Rank) (history, error) { return train(p, r.World, tc.dp, total) })
				require.NoError(t, err)
				for _, h := range all {
					requireNear(t, one.Loss, h.Loss, "loss")
					requireNear(t, one.Norm, h.Norm, "grad_norm")
				}
				for state := range one.States {
					if state == "loss_sum" || state == "count" {
						continue // with zero=1 they are each rank's own until apply
					}
					requireNear(t, one.States[state].Data, whole(m, all, state), state)
				}
				want := map[string]float64{}
				for rank := range tc.dp {
					out, err := alone.Call("eval", microBatch(100+rank), nil)
					require.NoError(t, err)
					want["loss_sum"] += out["loss_sum"].Data[0]
					want["count"] += out["count"].Data[0]
				}
				for _, h := range all {
					for name, v := range want {
						requireNear(t, []float64{v}, h.evaluated[name].Data, name)
					}
				}
			})
		}
	}
}

// Shards are what the states say, and weight decay stays with its parameters.
func TestShardedStates(t *testing.T) {
	text := strings.Replace(odd, "OPTIMIZER", adamw, 1)
	_, m := graph(t, text, driver.Options{Sharding: driver.Sharding{Mesh: "dp=4", Zero: 1}})
	for name, size := range map[string]int64{"grads/wte": 17, "adamw.m/h.0.b": 2, "adamw.v/h.1.s": 1, "grads/h.0.w": 8} {
		require.Equal(t, []int64{size}, ir.LookupSymbol(m, name).Attr("type").(*ir.TypeAttr).Type.(*ir.TensorType).Shape, name)
	}
	require.Nil(t, ir.LookupSymbol(m, "wte").Attr("shard"))
	require.Nil(t, ir.LookupSymbol(m, "accumulate_last"), "every accumulate sums over the ranks")
	decayed, all := 0, 0
	for op := range ir.LookupSymbol(m, "apply").Body().Ops() {
		if op.Is(blu.Adamw) {
			all++
			if op.Attrs().FloatOr("weight_decay", 0) > 0 {
				decayed++
			}
		}
	}
	require.Equal(t, []int{14, 6}, []int{all, decayed}, "two embeddings and two matrices a layer are decayed")
}

// Without a mesh nothing is left of all this.
func TestWithoutMesh(t *testing.T) {
	text, err := os.ReadFile("../../examples/mlp.blu")
	require.NoError(t, err)
	_, m := graph(t, string(text), driver.Options{})
	printed := string(driver.Text(m, false))
	require.NotContains(t, printed, "dtms.")
	require.NotContains(t, printed, "mesh")
	require.NotContains(t, printed, "shard")
}

// Adding up over the ranks needs no memory, so that accumulate_last is estimated as accumulate is, or as less, for sums are continued early.
func TestSumsNeedNoMemory(t *testing.T) {
	text, err := os.ReadFile("../../examples/gpt2.blu")
	require.NoError(t, err)
	r, err := driver.Compile("gpt2.blu", text, driver.Options{CompileTo: "train", Set: map[string]float64{"L": 3, "H": 2, "C": 64, "V": 512, "T": 8, "B": 1, "S": 8}})
	require.NoError(t, err)
	require.NoError(t, shard.Run(r.Ctx, r.Module, dtms.Mesh{CP: 1}, shard.Watch{Visit: func(*ir.Op) {}}))
	one, ok := recompute.Estimate(ir.LookupSymbol(r.Module, "accumulate"), recompute.TargetFor("cpu", ""))
	require.True(t, ok)
	last, ok := recompute.Estimate(ir.LookupSymbol(r.Module, "accumulate_last"), recompute.TargetFor("cpu", ""))
	require.True(t, ok)
	require.LessOrEqual(t, last, one)
}

// What can't be sharded is refused with what and where, before anything goes wrong.
func TestRefused(t *testing.T) {
	train := func(text string) (*ir.Context, *ir.Op) {
		r, err := driver.Compile("model.blu", []byte(text), driver.Options{CompileTo: "train"})
		require.NoError(t, err)
		return r.Ctx, r.Module
	}
	text := strings.Replace(odd, "OPTIMIZER", adamw, 1)
	watch := shard.Watch{Visit: func(*ir.Op) {}}
	two := dtms.Mesh{DP: 2, CP: 1, Zero: 1}

	c, m := train(text)
	require.NoError(t, shard.Run(c, m, two, watch))
	require.ErrorContains(t, shard.Run(c, m, two, watch), "model.blu:1:1: error: shard: the module is sharded already")

	c, m = train(text)
	ir.LookupSymbol(m, "loss").SetAttr("sym_name", c.String("accumulate_last"))
	require.ErrorContains(t, shard.Run(c, m, dtms.Mesh{CP: 1}, watch), "a model's function can't be called accumulate_last: a mesh makes one of that name")

	c, m = train(text)
	for op := range ir.LookupSymbol(m, "accumulate").Body().Ops() {
		if op.Is(blu.Accumulate) && len(op.Result(0).Shape()) == 2 {
			op.ReplaceWith(blu.On(ir.NewBuilder(c, nil).Before(op)).Add(op.Operand(0), op.Operand(1)))
			break
		}
	}
	require.ErrorContains(t, shard.Run(c, m, two, watch), "blu.add uses a state in accumulate that only a shard is there of")

	c, m = train(text)
	for op := range ir.LookupSymbol(m, "apply").Body().Ops() {
		if op.Is(blu.SumSquares) {
			op.ReplaceWith(blu.On(ir.NewBuilder(c, nil).Before(op)).Splat(op.Result(0).Type(), 1))
			break
		}
	}
	require.ErrorContains(t, shard.Run(c, m, two, watch), "apply does not read loss_sum and count and the gradients' norm")
	require.ErrorContains(t, shard.Run(c, m, dtms.Mesh{CP: 1, Zero: 1}, watch), "say dp=N in the mesh")
}
