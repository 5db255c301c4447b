package shard_test

import (
	"fmt"
	"testing"

	"blutrain/dialects/dtms"
)

// written is a model with a body of a loss: x is embedded tokens, [B, S, C], and y is what predicts the targets.
func written(name, params, body string) model {
	text := fmt.Sprintf(`model %s(V = 11, C = 8, M = 5, H = 2, P = 0.25) {
  param embed: f32[V, C] = normal(std: 1.0)
  param w: f32[C, C] = normal(std: 1.0)
  param g: f32[C] = ones
  %s
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let x = embed[tokens]
    %s
    return cross_entropy(linear(y, embed), targets, ignore: -1)
  }
}
train %s {
  minimize loss
  batch B = 2, S = 12
  optimizer sgd(lr: constant(max: 0.1), momentum: 0.9)
}
`, name, params, body, name)
	return model{name, text, nil}
}

// models are of all that mixes or does not mix tokens.
func models(t *testing.T) []model {
	return []model{
		written("attention_by_hand", "", `
    let s = einsum("bsc,btc->bst", x, linear(x, w))
    let y = x + einsum("bst,btc->bsc", softmax(s, axis: 2), rmsnorm(x, g))`),
		written("softmax_over_tokens", "", `
    let y = x + softmax(linear(x, w), axis: 1)`),
		written("statistics_of_tokens", "", `
    let y = linear(x, w) + x * mean(x, axis: 1, keep: true) + rmsnorm(max(x, axis: 1, keep: true), g)`),
		written("prefix", "param prefix: f32[2, M, C] = normal(std: 1.0)", `
    let all = concat(prefix, x, axis: 1)
    let a = attention(heads(x, H), heads(all, H), heads(linear(all, w), H), causal: true)
    let y = x + merge(a)`),
		written("to_memory", "param memory: f32[2, M, C] = normal(std: 1.0)", `
    let a = attention(heads(linear(x, w), H), heads(memory, H), heads(rmsnorm(memory, g), H))
    let y = x + merge(a)`),
		written("from_memory", "param memory: f32[2, M, C] = normal(std: 1.0)", `
    let a = merge(attention(heads(memory, H), heads(linear(x, w), H), heads(x, H)))
    let y = x + merge(attention(heads(x, H), heads(a, H), heads(rmsnorm(a, g), H)))`),
		written("from_longer_memory", "param memory: f32[2, 24, C] = normal(std: 1.0)", `
    let y = x + merge(attention(heads(linear(x, w), H), heads(memory, H), heads(memory, H)))
              + mean(merge(attention(heads(memory, H), heads(x, H), heads(x, H))) + rmsnorm(memory, g), axis: 1, keep: true)`),
		written("both_ways", "", `
    let h = merge(attention(heads(x, H), heads(linear(x, w), H), heads(x, H), causal: true))
    let y = x + merge(attention(heads(h, H), heads(rmsnorm(h, g), H), heads(x, H)))`),
		written("positions", "param p: f32[64] = normal(std: 1.0)", `
    let t = cast(arange(S), f32) * 0.1
    let y = linear(x, w) + x * reshape(sin(t), [S, 1]) + reshape(p[0:S], [S, 1])`),
		written("merged_axes", "", `
    let rows = reshape(x, [B * S, C])
    let h = reshape(tanh(linear(rows, w)), [B, S, 2, C / 2])
    let y = reshape(transpose(h, [0, 1, 3, 2]), [B, S, C]) + reshape(rmsnorm(rows, g), [B, S, C])`),
		written("last_axis", "param n: f32[12] = ones", `
    let columns = transpose(rmsnorm(transpose(linear(x, w), [0, 2, 1]), n), [0, 2, 1])
    let y = rmsnorm(x, g) + columns`),
		written("reversed_pairs", "", `
    let pairs = reshape(x, [B, S / 4, 4, C])
    let y = reshape(transpose(pairs, [0, 2, 1, 3]), [B, S, C]) + linear(x, w)`),
		written("dropout", "", `
    let y = dropout(linear(dropout(x, p: P), w), p: 0.5) + dropout(mean(x, axis: 1, keep: true), p: P)`),
		written("float64", "", `
    let d = cast(x, f64)
    let h = rope(heads(cast(linear(x, w), f64), H))
    let y = x + cast(merge(attention(h, rope(heads(d, H)), heads(d, H), causal: true)), f32)`),
		{"last_token", `model last_token(V = 11, C = 8, H = 2) {
  param embed: f32[V, C] = normal(std: 1.0)
  param w: f32[C, C] = normal(std: 1.0)
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let x = embed[tokens]
    let y = x + linear(merge(attention(heads(x, H), heads(x, H), heads(x, H), causal: true)), w)
    return cross_entropy(linear(y[:, S - 1] + y[:, 0] * 0.5, embed), targets[:, S - 1], ignore: -1)
  }
}
train last_token {
  minimize loss
  batch B = 2, S = 12
  optimizer sgd(lr: constant(max: 0.1), momentum: 0.9)
}
`, nil},
		written("few_places", "", `
    let h = tanh(linear(x, w))
    let y = linear(h, w) + pad(h[:, 2:6], axis: 1, low: 3, high: 5) + mean(h[:, 5:7], axis: 1, keep: true)`),
		{"penalty", `model penalty(V = 11, C = 8) {
  param embed: f32[V, C] = normal(std: 1.0)
  param w: f32[C, C] = normal(std: 1.0)
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let (a, n) = cross_entropy(linear(linear(embed[tokens], w), embed), targets, ignore: -1)
    let (b, m) = mse(w, zeros([C, C]))
    return (a + b * 0.5, n + m)
  }
}
train penalty {
  minimize loss
  batch B = 2, S = 12
  optimizer sgd(lr: constant(max: 0.1), momentum: 0.9)
}
`, nil},
	}
}

// Every model is right on many ranks, whatever there are rules for.
func TestContextModels(t *testing.T) {
	all := append(models(t),
		example(t, "mlp", map[string]float64{"V": 11, "W": 3, "E": 4, "M": 6, "B": 2, "S": 12}),
		gpt2(t, 12, "causal: true", "causal: false"),
		gpt2(t, 12, "merge(a)", "dropout(merge(a), p: 0.25)", "wpe[0:S]", "dropout(wpe[0:S], p: 0.25)"),
		llama(t, 12, "causal: true", "causal: false"),
	)
	for _, m := range all {
		for _, context := range dtms.Contexts {
			for _, cp := range []int{2, 3} {
				if context == "ulysses" && cp == 3 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/cp=%d", m.name, context, cp), func(t *testing.T) {
					requireEquivalent(t, m, dtms.Mesh{DP: 1, CP: cp, Context: context})
				})
			}
		}
	}
}

// Attention in bfloat16 is merged and its gradients are added in float32: results differ by roundings of what is stored.
func TestContextNarrow(t *testing.T) {
	m := written("narrow", "", `
    let d = cast(x, bf16)
    let h = rope(heads(cast(linear(x, w), bf16), H))
    let y = x + cast(merge(attention(h, rope(heads(d, H)), heads(d, H), causal: true)), f32)`)
	for _, context := range dtms.Contexts {
		requireWithin(t, m, dtms.Mesh{DP: 1, CP: 2, Context: context}, 0.01)
	}
}
