package blublas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

func hopper() Gemm {
	return Gemm{M: 1024, N: 768, K: 512, Precision: BF16, Unit: WGMMA, Target: ptx.SM90A, A: Operand{Pitch: 512}, B: Operand{Pitch: 512},
		BM: 128, BN: 128, BK: 64, Stages: 4, Consumers: 2, Cluster: 1, SplitK: 1, Epilogue: Standard(Options{Out: ir.BF16})}
}

func TestCheck(t *testing.T) {
	require.NoError(t, hopper().Check(H200))
	for _, tc := range []struct {
		change func(g *Gemm)
		want   string
	}{
		{func(g *Gemm) { g.K = 0 }, "every extent must be at least 1"},
		{func(g *Gemm) { g.SplitK = 9 }, "K can't be split into 9 parts"},
		{func(g *Gemm) { g.SplitK, g.Epilogue = 2, Standard(Options{Out: ir.F32, SumColumns: true}) }, "sums no columns"},
		{func(g *Gemm) { g.Epilogue = Epilogue{} }, "nothing would be stored"},
		{func(g *Gemm) { g.M, g.N = 1<<17, 1<<16 }, "element indices have 32 bits"},
		{func(g *Gemm) { g.A.Pitch = 500 }, "A has rows of 512 elements 500 apart"},
		{func(g *Gemm) { g.B.Pitch = 513 }, "the copy engine needs a multiple of 16"},
		{func(g *Gemm) { g.Target = ptx.SM80 }, "wgmma needs sm_90a, not sm_80"},
		{func(g *Gemm) { g.Precision = FP32Strict }, "tensor cores don't multiply float32"},
		{func(g *Gemm) { g.Precision, g.BK, g.B = TF32, 32, Operand{true, 768} }, "transpose the operand first"},
		{func(g *Gemm) { g.BK = 32 }, "a stage is 64 bytes deep, must be 128"},
		{func(g *Gemm) { g.Consumers = 4 }, "4 consumer warpgroups"},
		{func(g *Gemm) { g.Consumers, g.BM, g.Pingpong = 3, 192, true }, "taking turns needs 2 consumers, not 3"},
		{func(g *Gemm) { g.Consumers, g.BM, g.BN = 3, 192, 256 }, "128 accumulators in each thread, 96 fit"},
		{func(g *Gemm) { g.BM = 64 }, "a multiple of 64 rows"},
		{func(g *Gemm) { g.BM = 512 }, "at most 256 rows"},
		{func(g *Gemm) { g.BN = 96 }, "BN = 96"},
		{func(g *Gemm) { g.Cluster = 3 }, "3 blocks can't share B's 128 columns or 64 k"},
		{func(g *Gemm) { g.Stages = 1 }, "1 stages"},
		{func(g *Gemm) { g.BM, g.BN, g.Pingpong = 128, 256, true }, "256 accumulators in each thread, 200 fit"},
		{func(g *Gemm) { g.Stages = 7 }, "bytes of shared memory, NVIDIA H200 has 232448"},
		{func(g *Gemm) { g.Unit = SIMT }, "multiply float32 only"},
		{func(g *Gemm) { g.Unit, g.BM = MMA, 64 }, "a tile of 64x128"},
		{func(g *Gemm) { g.Unit = "fpga" }, `no unit "fpga"`},
	} {
		g := hopper()
		tc.change(&g)
		require.ErrorContains(t, g.Check(H200), tc.want)
		_, err := g.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), H200)
		require.Error(t, err)
	}
	old := H200
	old.Name, old.Target = "NVIDIA A100", ptx.SM80
	require.ErrorContains(t, hopper().Check(old), "made for sm_90a, which NVIDIA A100 is not")
}

func TestNamesDiffer(t *testing.T) {
	a, b := hopper(), hopper()
	require.Equal(t, a.Name(), b.Name())
	b.Epilogue = Standard(Options{Out: ir.BF16, Bias: true})
	require.NotEqual(t, a.Name(), b.Name())
	b = hopper()
	b.Cluster = 2
	require.NotEqual(t, a.Name(), b.Name())
}

func TestSumPartsNeedsParts(t *testing.T) {
	_, err := hopper().SumParts(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), H200)
	require.ErrorContains(t, err, "K is not split")
}
