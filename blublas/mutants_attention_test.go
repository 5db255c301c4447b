package blublas

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

const attentionMutantTable = "testdata/mutants_attention.txt"

// harmlessInAttention says why changes are not found.
var harmlessInAttention = map[string]string{
	"no ptx.cp_commit":                     "rows are read in the loop, whose first wait is one for all copies",
	"no ptx.cp_wait pending=1":             "rows are read in the loop, whose first wait is one for all copies",
	"no ptx.cp_wait pending=2":             "rows are read in the loop, whose first wait is one for all copies",
	"no ptx.bar_sync":                      "rows are read in the loop, where all meet first",
	"no ptx.bar_sync threads=256":          "turns, which decide who multiplies first",
	"no ptx.mbarrier_wait":                 "of rows' buffers, which those of stages have waited for; or of blocks of columns that others need",
	"no ptx.mbarrier_arrive":               "of blocks of columns that other consumers need, where there is one",
	"no ptx.setmaxnreg count=240 inc=unit": "how many registers a kernel uses is the assembler's",
	"no ptx.wgmma_fence":                   "one of two between waits, the second for what is loaded between them; the emulator asks for one",
	"no ptx.warp_sync":                     "the warp meets again before what it read is written over",
}

// The kernels of attention without one of their barriers, fences, waits or groups are reported, in a ring of two stages and in one
// of three, of warps and of warpgroups. One multiprocessor has all tiles, so that all buffers are used again.
func TestAttentionMutants(t *testing.T) {
	d := small(ptx.SM90A)
	d.SMs = 1
	groups := AttentionBlock{Tiles: 1, Columns: 64, Stages: 2, PerSM: 1, Consumers: 1}
	held, part := groups, groups
	held.Held, part.HeldPart = true, true
	turns, staged := held, held
	turns.Turns, turns.Consumers, staged.Staged = true, 2, true
	cases := []struct {
		precision Precision
		target    string
		block     AttentionBlock
		positions int
		features  int
	}{
		{BF16, ptx.SM80, AttentionBlock{Warps: 2, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}, 90, 32},
		{BF16, ptx.SM80, AttentionBlock{Warps: 2, Tiles: 1, Columns: 16, Stages: 3, PerSM: 1}, 90, 32},
		{BF16, ptx.SM90A, held, 150, 32}, {FP16x3, ptx.SM90A, part, 150, 32}, {BF16, ptx.SM90A, turns, 250, 32}, {BF16, ptx.SM90A, staged, 150, 64},
	}
	tables := make([]string, len(cases))
	t.Run("kernels", func(t *testing.T) {
		for i, c := range cases {
			if testing.Short() && c.block.Consumers > 0 {
				continue
			}
			a := Attention{Batch: 1, Heads: 2, KeyHeads: 2, Queries: c.positions, Keys: c.positions, Features: c.features, Causal: true, Scale: 0.2, Precision: c.precision, Target: c.target, Block: c.block}
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				tables[i] = a.placed().mutants(t, d)
			})
		}
	})
	if !testing.Short() {
		sameTable(t, attentionMutantTable, strings.Join(tables, ""))
	}
}

// mutants is the table of attention's kernels. Each runs after those before it as they are, on what these leave, which no mutant writes.
func (a Attention) mutants(t *testing.T, d Device) (table string) {
	e := a.prepare(rand.New(rand.NewPCG(1, 2)))
	for number, k := range a.kernelsFor(t, d) {
		all := mutants(k.Op)
		maps.DeleteFunc(all, func(n int, _ mutant) bool { return !slices.Contains(orders, nth(k.Op, n).Def()) })
		table += k.Name + "\n" + tabulate(t, all, harmlessInAttention, func(n int, m mutant) string {
			changed := a.kernelsFor(t, d)[number]
			m.change(nth(changed.Op, n))
			if err := e.launch(changed); err != nil {
				return finding(err)
			}
			return "not found"
		})
		require.NoError(t, e.launch(k))
	}
	return table
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
