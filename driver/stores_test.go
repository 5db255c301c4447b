package driver

import (
	"bytes"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/ir"
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

// An artifact says that its kernels have threads store all results, whether it was compiled at once or on from a dump; of others nothing is said.
func TestThreadStoresAreSaid(t *testing.T) {
	src, err := os.ReadFile("../examples/mlp.blu")
	require.NoError(t, err)
	for _, stores := range []bool{false, true} {
		o := Options{Target: "cuda", Precision: "bf16", ThreadStores: stores}
		r, err := Compile("mlp.blu", src, o)
		require.NoError(t, err)
		require.Equal(t, stores, r.Artifact.Manifest.ThreadStores)
		text, err := r.Artifact.Encode()
		require.NoError(t, err)
		a, err := artifact.Decode(text)
		require.NoError(t, err)
		require.Equal(t, stores, a.Manifest.ThreadStores)
		o.CompileTo = "target"
		r, err = Compile("mlp.blu", src, o)
		require.NoError(t, err)
		dump := ir.Print(r.Module, ir.PrintOptions{ElideAbove: -1})
		require.Equal(t, stores, bytes.Contains(dump, []byte("blu.thread_stores")))
		r, err = Compile("mlp.6.target.mlir", dump, Options{})
		require.NoError(t, err)
		require.Equal(t, stores, r.Artifact.Manifest.ThreadStores)
	}
}
