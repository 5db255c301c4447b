package blublas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// What ordinary loads have read of shared memory, the copy engine overwrites after a fence of both proxies only: PTX orders them no
// other way, and an H200 showed it. The emulator knows one proxy, so the text is looked at: before a warp gives back a slot of an
// epilogue's sources, or rows that it took to registers, stand the fence and the meeting of its lanes.
func TestReadsBeforeCopies(t *testing.T) {
	products := Gemm{M: 256, N: 256, K: 128, Precision: BF16, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 128, BK: 64, Stages: 3, Consumers: 2, Cluster: 1, SplitK: 1, Pingpong: true}
	products = with(products, "nt", 256, 256, 128)
	products.Epilogue = Standard(Options{Out: ir.F32, Bias: true, Residual: true})
	plan := products.planWGMMA()
	require.NotNil(t, plan.fetching)
	kernel, err := products.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), small(ptx.SM90A))
	require.NoError(t, err)
	require.Equal(t, plan.fetching.steps, fenced(t, kernel.Op, plan.fetching.empty()))

	held := 0
	for _, a := range attentions() {
		if !a.Block.Held {
			continue
		}
		for _, k := range a.kernels(t)[len(a.kernels(t))-3:] { // those that make planes come before them
			fences := 0
			ir.WalkPost(k.Op, func(op *ir.Op) {
				if op.Is(ptx.Fence) && op.Attrs().Str("kind") == "async" {
					require.True(t, op.Next().Is(ptx.WarpSync))
					fences++
				}
			})
			require.Positive(t, fences, k.Name)
			held++
		}
	}
	require.Positive(t, held)
}

// fenced counts the places where barriers from an offset on are arrived at, each of which must follow the fence.
func fenced(t *testing.T, kernel *ir.Op, offset int) (n int) {
	ir.WalkPost(kernel, func(op *ir.Op) {
		if op.Is(ptx.BarrierArrive) && op.Attrs().IntOr("offset", 0) == int64(offset) {
			n++
			for want, at := []*ir.OpDef{ptx.WarpSync, ptx.Fence}, op.Prev(); len(want) > 0; at = at.Prev() {
				require.NotNil(t, at)
				if at.Is(want[0]) {
					want = want[1:]
					continue
				}
				require.False(t, at.Is(ptx.Load), "a load after the fence")
			}
		}
	})
	return n
}
