package gpu

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/tile"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/lower/buffers"
	"blutrain/lower/kernels"
	"blutrain/test/cases"
)

// Every kernel of random models as PTX, emulated.
func TestRandomModelsAsPTX(t *testing.T) {
	first, last := uint64(0), uint64(19)
	if testing.Short() {
		last = 3
	}
	if seeds := os.Getenv("CASES_SEEDS"); seeds != "" {
		_, err := fmt.Sscanf(seeds, "%d-%d", &first, &last)
		require.NoError(t, err)
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			source := cases.RandomModel(seed)
			r, err := driver.Compile("random.blu", []byte(source), driver.Options{Target: "cuda", CompileTo: "graph"})
			require.NoError(t, err)
			require.NoError(t, kernels.Run(r.Ctx, r.Module, kernels.CUDA()))
			require.NoError(t, buffers.Run(r.Ctx, r.Module, buffers.Options{Align: 256}))
			var all []*ir.Op
			for op := range r.Module.Body().Ops() {
				if op.Is(tile.Kernel) {
					all = append(all, op)
				}
			}
			for _, k := range all {
				t.Run(ir.SymName(k), func(t *testing.T) { emulateKernel(t, r.Ctx, r.Module, k, general) })
			}
			if t.Failed() {
				t.Log(source)
			}
		})
	}
}
