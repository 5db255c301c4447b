package driver

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
)

// bulkStore is how PTX has the copy engine write to global memory.
const bulkStore = ".global.shared::cta."

// With threads that store, no kernel has the copy engine write to global memory; without it products and attention do, of the same launches.
func TestThreadStores(t *testing.T) {
	for _, precision := range []string{"bf16", "fp32", "tf32"} {
		t.Run(precision, func(t *testing.T) {
			if testing.Short() && precision != "bf16" {
				t.Skip("one precision is enough for a short test")
			}
			usual, _ := mustTune(t, Options{Precision: precision})
			threads, _ := mustTune(t, Options{Precision: precision, ThreadStores: true})
			require.Empty(t, bulkStores(t, threads))
			require.Equal(t, launches(t, usual), launches(t, threads))
			names := strings.Join(bulkStores(t, usual), " ")
			for _, kind := range []string{"gemm_", "attention_causal_", "attention_grad_"} {
				require.Equal(t, precision == "bf16", strings.Contains(names, kind), "%s among %s", kind, names)
			}
		})
	}
}

// bulkStores lists the kernels that have the copy engine write.
func bulkStores(t *testing.T, a *artifact.Artifact) (names []string) {
	kernels := 0
	for _, f := range a.Files {
		if path.Ext(f.Name) != ".ptx" {
			continue
		}
		kernels++
		if strings.Contains(string(f.Data), bulkStore) {
			names = append(names, path.Base(f.Name))
		}
	}
	require.Greater(t, kernels, 20)
	return names
}

// launches counts what the functions of a program launch.
func launches(t *testing.T, a *artifact.Artifact) int {
	program, ok := a.File(artifact.ProgramName)
	require.True(t, ok)
	return strings.Count(string(program), "exec.launch")
}
