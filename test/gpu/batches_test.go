package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
)

// Products of batches, in every layout, are the tensor cores' where a precision has them: tf32 operands that wgmma can't read, and of which
// there are no copies, are read by mma.
func TestBatches(t *testing.T) {
	source := []byte(`model m(H = 3, S = 136, D = 24) {
  fn nt(q: f32[H, S, D], k: f32[H, S, D]) -> f32[H, S, S] { return einsum("hqd,hkd->hqk", q, k) }
  fn nn(p: f32[H, S, S], v: f32[H, S, D]) -> f32[H, S, D] { return matmul(p, v) }
  fn tn(p: f32[H, S, S], q: f32[H, S, D]) -> f32[H, S, D] { return einsum("hqk,hqd->hkd", p, q) }
}
`)
	for _, tc := range []struct {
		precision string
		nt, other string // what multiplies
	}{{"bf16", "ptx.wgmma", "ptx.wgmma"}, {"tf32", "ptx.wgmma", "ptx.mma"}, {"fp32-strict", "ptx.outer_fma", "ptx.outer_fma"}} {
		r, err := driver.Compile("m.blu", source, driver.Options{Target: "cuda", Precision: tc.precision, CompileTo: "graph"})
		require.NoError(t, err)
		products := 0
		for _, k := range loweredKernels(t, r) {
			if !isProduct(k) {
				continue
			}
			products++
			want := tc.other
			if ir.SymName(k)[:7] == "gemm_nt" {
				want = tc.nt
			}
			t.Run(tc.precision+" "+ir.SymName(k), func(t *testing.T) {
				o := lowerptx.Options{Target: ptx.SM90A, Products: "templates"}
				found := map[string]bool{}
				lowered := lowerCopy(t, r.Ctx, r.Module, k, ".look", o)
				ir.Walk(lowered, func(op *ir.Op) ir.WalkResult {
					found[op.Name()] = true
					return ir.Advance
				})
				lowered.Erase()
				require.True(t, found[want], "%v", found)
				emulateKernel(t, r.Ctx, r.Module, k, o)
			})
		}
		require.Equal(t, 3, products)
	}
}
