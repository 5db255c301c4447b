package gpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
	"blutrain/lower/kernels"
	lowerptx "blutrain/lower/ptx"
)

// Kernels whose results the copy engine would store compute the same where threads do.
func TestThreadStores(t *testing.T) {
	r, all := tileKernels(t, "gpt2.blu", map[string]float64{"V": 40, "T": 72, "L": 1, "H": 1, "C": 64, "B": 1, "S": 72}, "bf16", kernels.CUDA())
	usual := lowerptx.Options{Target: ptx.SM90A, Products: "auto"}
	threads := usual
	threads.ThreadStores = true
	products, attentions := 0, 0
	for _, k := range all {
		if !lowersTo(t, r.Ctx, r.Module, k, usual, ptx.TMAStore) {
			continue
		}
		if isProduct(k) {
			products++
		}
		if strings.HasPrefix(ir.SymName(k), "attention") {
			attentions++
		}
		t.Run(ir.SymName(k), func(t *testing.T) {
			require.False(t, lowersTo(t, r.Ctx, r.Module, k, threads, ptx.TMAStore))
			emulateWithin(t, r.Ctx, r.Module, k, threads, allowance{tolerance: func(e ir.Type) float64 { return max(tolerance(e), attentionTolerance["bf16"]) }})
		})
	}
	require.Greater(t, products, 2)
	require.Equal(t, 2, attentions)
}
