package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two steps of training leave the same bits in every parameter and moment for any number of threads: with attention over
// several blocks of queries and keys, none of which the sizes divide, and gradients summed over two micro-batches.
func TestSameBitsForAnyNumberOfThreads(t *testing.T) {
	for _, m := range []struct {
		file string
		set  map[string]float64
	}{
		{"gpt2.blu", map[string]float64{"V": 301, "T": 200, "L": 2, "H": 3, "C": 48, "B": 2, "S": 200, "accumulate": 2}},
		{"llama.blu", map[string]float64{"V": 301, "L": 2, "H": 4, "K": 2, "C": 64, "F": 96, "B": 2, "S": 200, "accumulate": 2}},
	} {
		t.Run(m.file, func(t *testing.T) {
			a := example(t, m.file, m.set)
			var first [][]byte
			for _, threads := range []int{1, 2, 3, 7} {
				p := Open(t, a, threads)
				states := stepped(t, &a.Manifest, p, p.Call, 2)
				if first == nil {
					first = states
				}
				for i := range states {
					require.Equal(t, first[i], states[i], "state %d with %d threads", i, threads)
				}
			}
		})
	}
}
