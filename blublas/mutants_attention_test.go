package blublas

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// The kernels of attention without one of their barriers, waits or groups are reported, in a ring of two stages and in one
// of three, of warps and of warpgroups.
func TestAttentionMutants(t *testing.T) {
	groups := AttentionBlock{Tiles: 1, Columns: 64, Stages: 2, PerSM: 1, Consumers: 1}
	held := groups
	held.Held = true
	turns := held
	turns.Turns, turns.Consumers = true, 2
	for _, c := range []struct {
		precision Precision
		target    string
		block     AttentionBlock
		positions int
	}{
		{BF16, ptx.SM80, AttentionBlock{Warps: 2, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}, 120},
		{BF16, ptx.SM80, AttentionBlock{Warps: 2, Tiles: 1, Columns: 16, Stages: 3, PerSM: 1}, 120},
		{BF16, ptx.SM90A, held, 250}, {FP16x3, ptx.SM90A, groups, 250}, {BF16, ptx.SM90A, turns, 250},
	} {
		if testing.Short() && c.block.Consumers > 0 {
			continue
		}
		a := Attention{Batch: 1, Heads: 2, KeyHeads: 2, Queries: c.positions, Keys: c.positions, Features: 32, Causal: true, Scale: 0.2, Precision: c.precision, Target: c.target, Block: c.block}
		a = a.placed()
		a.run(t, rand.New(rand.NewPCG(1, 2)))
		for number, kernel := range a.kernels(t) {
			for n, m := range mutants(kernel.Op) {
				if !slices.Contains(orders, nth(kernel.Op, n).Def()) {
					continue
				}
				t.Run(fmt.Sprintf("%s %d %s", kernel.Name, n, m.name), func(t *testing.T) {
					t.Parallel()
					e, all := a.prepare(rand.New(rand.NewPCG(1, 2))), a.kernels(t)
					m.change(nth(all[number].Op, n))
					var err error
					for i := 0; i <= number && err == nil; i++ {
						err = e.launch(all[i])
					}
					require.Error(t, err)
				})
			}
		}
	}
}

// nth is an operation by its number in the order of the text.
func nth(kernel *ir.Op, n int) (found *ir.Op) {
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		if found == nil && n == 0 {
			found = op
			return ir.Stop
		}
		n--
		return ir.Advance
	})
	return found
}
