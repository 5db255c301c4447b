package cases

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
)

// found are seeds of models that were compiled wrong once.
var found = []uint64{25, 72, 75, 84, 129, 241, 593, 655, 687, 1048}

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
	for _, seed := range found {
		t.Run(fmt.Sprint("found ", seed), func(t *testing.T) { checkModel(t, seed) })
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
	verified(t, compile(shuffled), compile(driver.Options{Target: "ref"}), 1e-4, 2e-5)
}
