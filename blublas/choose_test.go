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

// Weights' gradients of GPT-2 are the kernels that measured best on an H200 (bench/NOTES.md): for few tiles three consumers, in parts of K.
func TestWeightGradients(t *testing.T) {
	for _, tc := range []struct {
		m, n int
		want string
	}{
		{3072, 768, "wgmma bf16 tile=192x192x64 stages=4 warpgroups=3 split=2"}, {768, 3072, "wgmma bf16 tile=192x192x64 stages=4 warpgroups=3 split=2"},
		{2304, 768, "wgmma bf16 tile=128x192x64 stages=4 warpgroups=2 turns split=7"}, {768, 768, "wgmma bf16 tile=128x256x64 stages=4 warpgroups=2 split=7"},
		{50304, 768, "wgmma bf16 tile=128x192x64 stages=4 warpgroups=2 turns"},
	} {
		for _, accumulate := range []bool{false, true} {
			g := Gemm{M: tc.m, N: tc.n, K: 16384, Precision: BF16, A: Operand{MNMajor: true, Pitch: tc.m}, B: Operand{MNMajor: true, Pitch: tc.n}, Epilogue: Standard(Options{Out: ir.F32, Accumulate: accumulate})}
			all := Candidates(g, H200)
			require.Equal(t, tc.want, all[0].Choice(), "%d x %d", tc.m, tc.n)
			for _, c := range Measurable(g, H200) {
				require.True(t, c.Consumers < 3 || c.SplitK > 1, c.Choice())
			}
		}
	}
}

// A batch in tf32 whose operands aren't both K-major is for mma, which reads them as they lie: of a batch there are no copies that wgmma could read.
// All else is wgmma's.
func TestBatches(t *testing.T) {
	for _, tc := range []struct {
		precision Precision
		a, b      bool // MN-major
		batch     int
		want      Unit // "": there is no kernel without copies
	}{
		{TF32, false, false, 6, WGMMA}, {TF32, false, true, 6, MMA}, {TF32, true, false, 6, MMA}, {TF32, true, true, 6, MMA},
		{TF32, false, false, 0, WGMMA}, {TF32, false, true, 0, ""}, {TF32, true, true, 0, ""},
		{BF16, false, false, 6, WGMMA}, {BF16, false, true, 6, WGMMA}, {BF16, true, true, 6, WGMMA},
		{FP32Strict, false, true, 6, SIMT}, {FP16x3, false, false, 6, ""},
	} {
		g := Gemm{M: 256, N: 256, K: 256, Precision: tc.precision, A: Operand{tc.a, 256}, B: Operand{tc.b, 256}, Epilogue: Standard(Options{Out: ir.F32})}
		if tc.batch > 0 {
			g.Batch = []Batch{{Size: tc.batch, A: 256 * 256, B: 256 * 256}}
		}
		for _, all := range [][]Gemm{Candidates(g, H200), Measurable(g, H200)} {
			require.Equal(t, tc.want != "", len(all) > 0, "%+v", tc)
			for _, c := range all {
				require.Equal(t, tc.want, c.Unit, "%+v", tc)
				found, ok := Find(g, H200, c.Choice())
				require.True(t, ok)
				require.Equal(t, c.Name(), found.Name())
			}
		}
	}
}

// What can be measured is more than what prediction chooses from, and its choices are found again by their text, whatever the parts of K.
func TestFind(t *testing.T) {
	for _, p := range []Precision{FP32Strict, FP16x3, TF32, BF16} {
		g := Gemm{M: 3072, N: 768, K: 16384, Precision: p, A: Operand{Pitch: 16384}, B: Operand{Pitch: 16384}, Epilogue: Standard(Options{Out: ir.F32})}
		all, few := Measurable(g, H200), Candidates(g, H200)
		require.GreaterOrEqual(t, len(all), len(few))
		texts := map[string]bool{}
		for _, c := range all {
			require.NoError(t, c.Check(H200))
			require.False(t, texts[c.Choice()], "%s is the choice of two kernels", c.Choice())
			texts[c.Choice()] = true
			found, ok := Find(g, H200, c.Choice())
			require.True(t, ok, c.Choice())
			require.Equal(t, c.Name(), found.Name())
		}
		for _, c := range few {
			require.True(t, texts[c.Choice()], c.Choice())
		}
	}
	g := Gemm{M: 64, N: 768, K: 128, Precision: BF16, A: Operand{Pitch: 128}, B: Operand{Pitch: 128}, Epilogue: Standard(Options{Out: ir.F32})}
	_, ok := Find(g, H200, "wgmma bf16 tile=128x128x64 stages=6 warpgroups=2 turns split=2")
	require.True(t, ok)
	_, ok = Find(g, H200, "wgmma bf16 tile=128x128x64 stages=6 warpgroups=2 turns split=3")
	require.False(t, ok, "K is two stages deep")
	_, ok = Find(g, H200, "wgmma bf16 tile=128x128x64 stages=7 warpgroups=2 turns")
	require.False(t, ok)
}

// Keys differ where a choice may, and nowhere else.
func TestKeys(t *testing.T) {
	g := Gemm{M: 64, N: 768, K: 128, Precision: BF16, A: Operand{Pitch: 128}, B: Operand{MNMajor: true, Pitch: 768}, Epilogue: Epilogue{Kind: "reads=f32 writes=f32", Sums: true}}
	require.Equal(t, "product bf16 m=64 n=768 k=128 a=k:128 b=mn:768 reads=f32 writes=f32 sums", g.Key("bf16"))
	g.Unaligned[1], g.Batch, g.Epilogue = true, []Batch{{Size: 3, A: 10}}, Epilogue{}
	require.Equal(t, "product bf16 m=64 n=768 k=128 a=k:128 b=mn:768 b=unaligned batch=3:10:0", g.Key("bf16"))
	a := Attention{Batch: 2, Heads: 4, KeyHeads: 2, Queries: 8, Keys: 16, Features: 64, Causal: true, Precision: BF16}
	require.Equal(t, "attention-gradient-keys bf16 batch=2 heads=4/2 queries=8 keys=16 features=64 causal", a.Key(AttentionGradKeys))
	a.Target = ptx.SM90A
	for kernel := range AttentionGradKeys + 1 {
		texts := map[string]bool{}
		for _, b := range a.Blocks(kernel) {
			require.False(t, texts[b.Choice()], "%s is the choice of two blocks", b.Choice())
			texts[b.Choice()] = true
		}
	}
}

// Which block of attention comes first is as it was measured on an H200 (bench/NOTES.md): gradients take turns, three warpgroups make long sequences of planes.
func TestAttentionBlocks(t *testing.T) {
	a := Attention{Batch: 1, Heads: 12, KeyHeads: 12, Queries: longQueries - 1, Keys: longQueries, Features: 64, Target: ptx.SM90A}
	for _, p := range []Precision{FP16, FP16x3} {
		a.Precision = p
		short := a.Blocks(AttentionForward)
		require.Equal(t, 2, short[0].Consumers)
		long := a
		long.Queries++
		require.Equal(t, 3, long.Blocks(AttentionForward)[0].Consumers)
		require.ElementsMatch(t, short, long.Blocks(AttentionForward))
	}
	a.Precision = BF16
	for kernel := range AttentionGradKeys + 1 {
		first := a.Blocks(kernel)[0]
		require.True(t, first.Turns && first.Staged && first.Consumers == 2, first.Choice())
	}
}
