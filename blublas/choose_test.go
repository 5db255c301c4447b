package blublas

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Every candidate can be built, the predicted times ascend, and sizes that measured well (bench/RESULTS.md) are found.
func TestCandidates(t *testing.T) {
	old := A100
	for _, d := range []Device{H200, old} {
		for _, p := range []Precision{FP32Strict, FP16x3, BF16x6, TF32, BF16} {
			g := Gemm{M: 3072, N: 768, K: 16384, Precision: p, A: Operand{Pitch: 16384}, B: Operand{Pitch: 16384}, Epilogue: Standard(Options{Out: ir.F32})}
			all := Candidates(g, d)
			if d.Target == ptx.SM80 && (p == FP16x3 || p == BF16x6) {
				require.Empty(t, all)
				require.ErrorContains(t, Explain(g, d), "wgmma needs sm_90a")
				continue
			}
			require.NotEmpty(t, all, p)
			require.True(t, slices.IsSortedFunc(all, func(a, b Gemm) int { return int(1e12 * (a.Cost(d).Seconds - b.Cost(d).Seconds)) }))
			for _, c := range all {
				require.NoError(t, c.Check(d))
				if p == FP32Strict {
					require.GreaterOrEqual(t, c.SplitK, 4, "a chain of 16384 sums")
				}
			}
		}
	}
	g := Gemm{M: 3072, N: 768, K: 16384, Precision: BF16, A: Operand{MNMajor: true, Pitch: 3072}, B: Operand{MNMajor: true, Pitch: 768}, Epilogue: Standard(Options{Out: ir.BF16})}
	require.True(t, slices.ContainsFunc(Candidates(g, H200), func(c Gemm) bool { return c.BN == 192 && c.SplitK == 4 }))
	g.A.Pitch = 3073
	require.Empty(t, Candidates(g, H200))
	require.ErrorContains(t, Explain(g, H200), "the copy engine needs a multiple of 16")
}
