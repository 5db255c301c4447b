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
// of three.
func TestAttentionMutants(t *testing.T) {
	for _, block := range []AttentionBlock{{Warps: 2, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}, {Warps: 2, Tiles: 1, Columns: 16, Stages: 3, PerSM: 1}} {
		a := Attention{Batch: 1, Heads: 2, KeyHeads: 2, Queries: 120, Keys: 120, Features: 32, Causal: true, Scale: 0.2, Precision: BF16, Target: ptx.SM80, Block: block}
		q := packed(1, 2, 120, 32)
		a.Q, a.K, a.V, a.O, a.DO, a.DQ, a.DK, a.DV = q, q, q, q, q, q, q, q
		for number, kernel := range a.kernels(t) {
			for n, m := range mutants(kernel.Op) {
				if !slices.Contains(orders, nth(kernel.Op, n).Def()) {
					continue
				}
				t.Run(fmt.Sprintf("%s %d %s", kernel.Name, n, m.name), func(t *testing.T) {
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
