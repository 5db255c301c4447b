package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
)

// TestRandomModels: whatever model is compiled, and in whatever order its operations come, the CPU computes what the reference
// does: losses, gradients, the optimizer's step.
func TestRandomModels(t *testing.T) {
	models := uint64(150)
	if testing.Short() {
		models = 25
	}
	for seed := range models {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkModel(t, seed) })
	}
}

func FuzzRandomModels(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) { checkModel(t, seed) })
}

func checkModel(t *testing.T, seed uint64) {
	source := RandomModel(seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(source)
		}
	})
	compile := func(o driver.Options) *artifact.Artifact {
		r, err := driver.Compile("random.blu", []byte(source), o)
		require.NoError(t, err)
		return r.Artifact
	}
	shuffled := driver.Options{Target: "cpu", Recompute: []string{"none", "auto", "full"}[seed%3]}
	shuffled.Passes.Shuffle, shuffled.Passes.Seed = seed%2 == 1, seed
	oracle := driver.Options{Target: "ref"}
	if strings.Contains(source, "dropout") { // random numbers are drawn in the order of operations
		oracle.Passes = shuffled.Passes
	}
	verified(t, compile(shuffled), compile(oracle), 1e-4, 2e-5)
}

// TestFoundByRandomModels: models like those that random ones found to be compiled wrong.
func TestFoundByRandomModels(t *testing.T) {
	for name, body := range map[string]string{
		"a zero that sums begin with and values are compared to": "let y = relu(x)\n    return (norm(tanh(x)) + norm(tanh(y)), 2.0)",
		"what is the same for all of a broadcast axis":           "let y = sqrt(abs(broadcast(x, [2, B, S, 6])) + 0.5)\n    let z = cos(x) + tanh(x)\n    return (sum(tanh(y)) + mean(tanh(z)) + norm(x), 2.0)",
		"a norm along an axis, taken away":                       "let y = x - norm(x, axis: 1, keep: true)\n    return (sum(tanh(y)) + norm(tanh(x)) + mean(tanh(y[1])), 2.0)",
	} {
		t.Run(name, func(t *testing.T) {
			source := "model m(V = 5) {\n  param p: f32[V, 6] = normal(std: 1.0)\n" +
				"  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {\n    let x = p[tokens]\n    " + body + "\n  }\n}\n" +
				"train m {\n  minimize loss\n  batch B = 3, S = 4\n  optimizer sgd(lr: 0.1)\n}\n"
			for _, recompute := range []string{"none", "full"} {
				r, err := driver.Compile("found.blu", []byte(source), driver.Options{Target: "cpu", Recompute: recompute})
				require.NoError(t, err)
				verified(t, r.Artifact, r.Artifact, 1e-4, 2e-5)
			}
		})
	}
}
