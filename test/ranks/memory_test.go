package ranks

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
)

func memory(t *testing.T, o driver.Sharding, set map[string]float64) artifact.Memory {
	t.Helper()
	text, err := os.ReadFile("../../examples/gpt2.blu")
	require.NoError(t, err)
	r, err := driver.Compile("gpt2.blu", text, driver.Options{Target: "cpu", Set: set, Sharding: o})
	require.NoError(t, err)
	return r.Artifact.Manifest.Memory
}

// What a rank needs for gradients and optimizer state falls as 1/ranks where they are sharded, to the padding of the smallest tensors;
// what it needs for the values of a step where it has its part of the sequence.
func TestMemory(t *testing.T) {
	set := map[string]float64{"V": 256, "T": 256, "L": 2, "H": 8, "C": 64, "B": 2, "S": 256}
	one := memory(t, driver.Sharding{}, set)
	for _, n := range []int64{2, 3, 8} {
		m := memory(t, driver.Sharding{Mesh: fmt.Sprintf("dp=%d", n), Zero: 1}, set)
		t.Logf("zero 1 on %d ranks: gradients %d of %d, optimizer state %d of %d, arena %d of %d", n, m.Gradients, one.Gradients, m.Optimizer, one.Optimizer, m.Arena, one.Arena)
		require.Equal(t, one.Params, m.Params)
		require.InEpsilon(t, one.Gradients/n, m.Gradients, 1e-3)
		require.InEpsilon(t, one.Optimizer/n, m.Optimizer, 1e-3)
		require.LessOrEqual(t, m.Arena, one.Arena+one.Gradients, "in the arena may be gradients that are not scattered yet")
	}
	for _, n := range []int64{2, 4} {
		m := memory(t, driver.Sharding{Mesh: fmt.Sprintf("cp=%d", n)}, set)
		t.Logf("a sequence on %d ranks: arena %d of %d, 1/%.2f", n, m.Arena, one.Arena, float64(one.Arena)/float64(m.Arena))
		require.Equal(t, one.Gradients, m.Gradients)
		require.Less(t, float64(m.Arena), 1.3*float64(one.Arena)/float64(n))
	}
}
