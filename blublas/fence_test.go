package blublas

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// What ordinary loads have read of shared memory, the copy engine overwrites after a fence of both proxies only; an H200 without it gave
// sporadic wrong elements. Each fence of every template that has some is needed: without it the emulator names the copy.
func TestReadsBeforeCopies(t *testing.T) {
	one := small(ptx.SM90A)
	one.SMs = 1 // so that slots are used again
	for _, c := range []struct {
		name     string
		o        Options
		pingpong bool
		rows     bool // how results are stored
	}{
		{"a residual and a bias, consumers in turns", Options{Out: ir.F32, Bias: true, Residual: true}, true, false},
		{"the same by rows", Options{Out: ir.F32, Bias: true, Residual: true}, true, true},
		{"a residual, both consumers at once", Options{Out: ir.F32, Residual: true}, false, false},
		{"a bias, and results in boxes", Options{Out: ir.BF16, Bias: true}, false, false},
		{"a bias by rows", Options{Out: ir.BF16, Bias: true}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := Gemm{Precision: BF16, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 64, BK: 64, Stages: 2, Consumers: 2, Cluster: 1, SplitK: 1, Pingpong: c.pingpong}
			g = with(g, "nt", 540, 64, 72)
			if g.Epilogue = ofLong(c.o); c.rows {
				g.Epilogue.Results = nil
			}
			plan := g.planWGMMA()
			require.NotNil(t, plan.fetching)
			require.Equal(t, c.rows, plan.fragments == nil)
			needed(t, func(change func(*ir.Op)) error {
				e := prepare(t, g, c.o)
				all := e.kernels(t, one)
				change(all[0].Op)
				return e.run(all, 0)
			})
		})
	}
	groups := AttentionBlock{Tiles: 1, Columns: 64, Stages: 2, PerSM: 1, Consumers: 1}
	held, part := groups, groups
	held.Held, part.HeldPart = true, true
	staged := held
	staged.Staged = true
	for name, c := range map[string]struct {
		precision Precision
		block     AttentionBlock
		features  int
	}{"rows in registers": {BF16, held, 16}, "a part of them": {FP16x3, part, 16}, "results in boxes": {BF16, staged, 64}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Attention{Batch: 1, Heads: 3, KeyHeads: 3, Queries: 70, Keys: 70, Features: c.features, Scale: 0.2, Precision: c.precision, Target: ptx.SM90A, Block: c.block}.placed()
			for number := len(a.kernels(t)) - 3; number < len(a.kernels(t)); number++ { // those that make planes come before them
				needed(t, func(change func(*ir.Op)) (err error) {
					e, all := a.prepare(rand.New(rand.NewPCG(1, 2))), a.kernelsFor(t, one)
					change(all[number].Op)
					for i := 0; i <= number && err == nil; i++ {
						err = e.launch(all[i])
					}
					return err
				})
			}
		})
	}
}

// needed holds that a kernel runs, and that it doesn't without one of its fences of both proxies.
func needed(t *testing.T, run func(change func(kernel *ir.Op)) error) {
	fences := 0
	require.NoError(t, run(func(kernel *ir.Op) { fences = len(asyncFences(kernel)) }))
	require.Positive(t, fences)
	for i := range fences {
		require.ErrorContains(t, run(func(kernel *ir.Op) { asyncFences(kernel)[i].Erase() }), `with no fence {kind = "async"} between them`)
	}
}

func asyncFences(kernel *ir.Op) (all []*ir.Op) {
	ir.WalkPost(kernel, func(op *ir.Op) {
		if op.Is(ptx.Fence) && op.Attrs().Str("kind") == "async" {
			all = append(all, op)
		}
	})
	return all
}

// Beside stages that leave room for one slot alone results go by rows: a chunk is read before the one before it is released, which would be
// waited for forever.
func TestRingOfOneSlot(t *testing.T) {
	one := small(ptx.SM90A)
	one.SMs = 1
	for _, o := range []Options{{Out: ir.F32, Residual: true}, {Out: ir.F32, Residual: true, GeluGrad: true}, {Out: ir.BF16, Residual: true, GeluGrad: true}} {
		alone := 0
		for bn := 64; bn <= 256; bn += 64 {
			for stages := 2; stages <= 9; stages++ {
				g := Gemm{Precision: BF16, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: bn, BK: 64, Stages: stages, Consumers: 2, Cluster: 1, SplitK: 1}
				g = with(g, "nt", 200, 256, 72)
				if g.Epilogue = ofLong(o); g.Check(one) != nil {
					continue
				}
				start, others := stages*(g.BM+bn)*g.BK*2, 8*(2*stages+3)
				f := g.planFragments(start, 1)
				if f == nil {
					continue
				}
				if ring := g.planFetching(g.read(), f.columns, f.end, others); ring == nil || ring.slots > 1 || ring.steps == 1 {
					continue
				}
				require.Nil(t, g.planWGMMA().fragments, "%+v", g)
				if alone++; alone == 1 {
					e := prepare(t, g, o)
					require.NoError(t, e.run(e.kernels(t, one), 0))
					require.Empty(t, e.wrong(1e-2))
				}
			}
		}
		require.Positive(t, alone, "%+v", o)
	}
}
