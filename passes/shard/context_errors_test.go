package shard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/dtms"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes/shard"
)

// What can't be shared by ranks of a sequence says so, with the numbers that decide it.
func TestContextErrors(t *testing.T) {
	mlp := example(t, "mlp", map[string]float64{"V": 11, "W": 3, "E": 4, "M": 6, "B": 2, "S": 9})
	short := gpt2(t, 12)
	short.sizes["S"] = 6
	for _, tc := range []struct {
		name    string
		m       model
		cp      int
		context string
		want    string
	}{
		{"zigzag", gpt2(t, 20), 4, "ring", "gpt2.blu:51:3: error: shard: S = 20 can't be divided by 8: cp=4 cuts a sequence into 8 chunks, two a rank, one of the first half and one of the second, " +
			"so that causal attention is the same work for all; S = 16 and S = 24 can"},
		{"too short", short, 4, "gather", "S = 6 can't be divided by 8: cp=4 cuts a sequence into 8 chunks, two a rank, one of the first half and one of the second, " +
			"so that causal attention is the same work for all; S = 8 can"},
		{"contiguous", mlp, 2, "ring", "S = 9 can't be divided by 2: cp=2 cuts a sequence into 2 pieces, one a rank; S = 8 and S = 10 can"},
		{"heads", gpt2(t, 24), 3, "ulysses", "gpt2.blu:32:15: error: shard: ulysses with cp=3 gives each rank an equal number of heads, and the heads of this attention are 4; " +
			"cp = 2, 4 can, and --context ring takes any number of heads"},
		{"key heads", llama(t, 24), 8, "ulysses", "ulysses with cp=8 gives each rank an equal number of heads, and the heads of this attention are 8 of queries and 4 of keys; cp = 2, 4 can"},
		{"no divisor", llama(t, 24), 3, "ulysses", "cp=3 gives each rank an equal number of heads, and the heads of this attention are 8 of queries and 4 of keys; cp = 2, 4 can"},
		{"no sequence", model{"flat", `model flat(C = 4) {
  param w: f32[3, C] = ones
  fn loss(x: f32[B, C], y: f32[B, 3]) -> (f32, f32) {
    return mse(linear(x, w), y)
  }
}
train flat {
  minimize loss
  batch B = 4
  optimizer sgd(lr: constant(max: 0.1))
}
`, nil}, 2, "ring", "shard: cp=2 divides the axis S of a batch, and the model's train block gives no S"},
		{"no tokens", model{"odd", `model odd(C = 4) {
  param w: f32[3, C] = ones
  fn loss(x: f32[B, C], y: f32[S, 3]) -> (f32, f32) {
    return mse(linear(x, w), y)
  }
}
train odd {
  minimize loss
  batch B = 6, S = 6
  optimizer sgd(lr: constant(max: 0.1))
}
`, nil}, 2, "ring", "shard: cp=2 divides inputs of shape [B, S, ...], and accumulate has none with S = 6"},
		{"no training", model{"plain", `model plain(C = 4) {
  param w: f32[3, C] = ones
  fn f(x: f32[2, C]) -> f32[2, 3] {
    return linear(x, w)
  }
}
`, nil}, 2, "ring", "shard: cp=2 divides the sequences of a training step, and the model has no train block"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, module := tc.m.functions(t)
			err := shard.Run(c, module, dtms.Mesh{DP: 1, CP: tc.cp, Context: tc.context}, shard.Watch{Visit: func(*ir.Op) {}})
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// What every rank computes whole is remarked, at its place in the source, and nothing else is.
func TestContextRemarks(t *testing.T) {
	mesh := dtms.Mesh{DP: 1, CP: 2, Context: "ring"}
	for _, m := range models(t) {
		_, _, remarks := m.sharded(t, mesh)
		text := strings.Join(remarks, "\n")
		switch m.name {
		case "attention_by_hand":
			require.Contains(t, text, "blu.dot of two pieces of a sequence that are no pair: cp=2 gathers one of them")
		case "softmax_over_tokens":
			require.Contains(t, text, "blu.softmax can't be computed from pieces of a sequence: cp=2 gathers its operands, and every rank computes all of it")
		case "prefix":
			require.Contains(t, text, "blu.concat can't be computed from pieces")
		case "from_memory":
			require.Contains(t, text, "blu.attention can't be computed from pieces")
		case "last_axis":
			require.Contains(t, text, "blu.rmsnorm can't be computed from pieces")
		case "dropout":
			require.Contains(t, text, "blu.random_uniform draws numbers for all tokens: cp=2 cuts them afterwards")
		case "reversed_pairs", "statistics_of_tokens":
		default:
			require.Empty(t, remarks, m.name)
		}
	}
	mlp := example(t, "mlp", nil)
	r, err := driver.Compile("mlp.blu", []byte(mlp.text), driver.Options{Target: "ref", CompileTo: "graph", Sharding: driver.Sharding{Mesh: "cp=2"}})
	require.NoError(t, err)
	require.NotEmpty(t, r.Warnings)
	require.Equal(t, "mlp.blu:25:24: remark: blu.slice can't be computed from pieces of a sequence: cp=2 gathers its operands, and every rank computes all of it",
		strings.Split(r.Warnings[0].String(), "\n")[0])
}
