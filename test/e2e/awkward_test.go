package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
)

// awkward is logits, [B, S, C] from tokens, whose memory layouts or fusions ask more of a target than the examples do.
var awkward = []struct{ name, params, body string }{
	{"a table that is stored transposed", "param t: f32[C, V] = normal(std: 0.5)", `
    return transpose(t, [1, 0])[tokens]`},
	{"rows to scatter that are stored transposed", "param t: f32[V, C] = normal(std: 0.5)\n  param w: f32[T, T] = ones", `
    return transpose(linear(transpose(t[tokens], [0, 2, 1]), w), [0, 2, 1])`},
	{"a mask beside a product", "param t: f32[V, C] = normal(std: 0.5)", `
    let x = heads(t[tokens], 2)
    let seen = unsqueeze(arange(S), axis: 1) >= unsqueeze(arange(S), axis: 0)
    let scores = matmul(x, transpose(x, [0, 1, 3, 2]))
    return merge(matmul(where(unsqueeze(unsqueeze(seen, axis: 0), axis: 0), scores, 0.0), x))`},
	{"a broadcast as a product's operand", "param t: f32[V, C] = normal(std: 0.5)", `
    let x = heads(t[tokens], 2)
    let y = merge(matmul(matmul(x, transpose(x, [0, 1, 3, 2])), x))
    return t[tokens] - mean(y, axis: 1, keep: true)`},
	{"rows cut into heads", "param t: f32[V, C] = normal(std: 0.5)\n  param w: f32[C, C] = ones\n  param g: f32[C] = ones", `
    let x = t[tokens]
    let y = merge(matmul(matmul(heads(x, 2), transpose(heads(linear(x, w), 2), [0, 1, 3, 2])), heads(x, 2)))
    return relu(rmsnorm(y, g)) + square(y)`},
	{"parameters of one element", "param t: f32[V, C] = normal(std: 0.5)\n  param a: f32[1] = uniform(low: 0.0, high: 1.0)\n  param b: f32[1] = normal(std: 1.0)", `
    return t[tokens] * reshape(a, [1, 1, 1]) + reshape(b, [1, 1, 1])`},
}

// Every kernel of an awkward model is within its bound, in training too.
func TestAwkwardModels(t *testing.T) {
	for _, m := range awkward {
		for _, sizes := range []map[string]float64{{"B": 1, "T": 40, "S": 40}, {"B": 2, "T": 17, "S": 17}} {
			t.Run(fmt.Sprintf("%s/%v", m.name, sizes["B"]), func(t *testing.T) {
				src := "model awkward(V = 33, C = 24, T = 8) {\n  " + m.params + `
  param out: f32[V, C] = normal(std: 0.5)
  fn logits(tokens: i32[B, S]) -> f32[B, S, C] {` + m.body + `
  }
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    return cross_entropy(linear(logits(tokens), out), targets)
  }
}
train awkward {
  minimize loss
  batch B = 1, S = 8
  optimizer sgd(lr: 0.1, momentum: 0.9)
  clip global_norm 1.0
}
`
				r, err := driver.Compile("awkward.blu", []byte(src), driver.Options{Target: "cpu", Set: sizes})
				require.NoError(t, err)
				for _, row := range kernelRows(t, r.Artifact) {
					require.False(t, row.Off(), "%s: %+v", row.Kernel, row)
				}
			})
		}
	}
}
