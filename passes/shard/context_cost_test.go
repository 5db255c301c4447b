package shard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/dtms"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes/recompute"
)

// What a rank sends in a step, for its share of sequences, is what the formulas of the methods say: with n ranks and
// p = B S/n D elements of one head's pieces, for each layer
//
//	ring     keys and values go around in the forward and the backward part, their gradients in the latter: 6 (n-1) Hk p
//	ulysses  q, k, v, o and the gradients of all four, of which (n-1)/n leave the rank: (4 H + 4 Hk) p (n-1)/n
//	gather   keys and values to all others, and as much of their gradients: 4 (n-1) Hk p
func TestContextVolume(t *testing.T) {
	const b, s, h, hk, d, layers, bytes = 2, 48, 8, 4, 4, 2, 4
	for _, n := range []int64{2, 4} {
		p, others := float64(b*s/n*d*layers*bytes), float64(n-1)
		for context, want := range map[string]float64{
			"ring":    6 * others * hk * p,
			"ulysses": (4*h + 4*hk) * p * others / float64(n),
			"gather":  4 * others * hk * p,
		} {
			_, module, remarks := llama(t, s).sharded(t, dtms.Mesh{DP: 1, CP: int(n), Context: context})
			require.Empty(t, remarks)
			sent := 0.0
			for op := range ir.LookupSymbol(module, "accumulate").Body().Ops() {
				if dtms.IsCollective(op) {
					require.Equal(t, dtms.CP, op.Attrs().Str("group"))
					sent += dtms.CallOf(op).Sent(n)
				}
			}
			require.Equal(t, want, sent, "%s, %d ranks", context, n)
			t.Logf("%s, %d ranks: %.0f bytes a rank and step", context, n, sent)
		}
	}
}

// What a step needs beside states falls as the number of ranks of a sequence grows: nothing in it is of all tokens, but,
// where they are gathered, keys and values.
func TestContextMemory(t *testing.T) {
	for _, m := range []model{
		example(t, "gpt2", map[string]float64{"V": 64, "T": 1024, "L": 2, "H": 8, "C": 64, "B": 4, "S": 1024}),
		example(t, "llama", map[string]float64{"V": 64, "L": 2, "H": 8, "K": 8, "C": 64, "F": 192, "B": 4, "S": 1024}),
	} {
		alone := peak(t, m, driver.Sharding{})
		for _, n := range []float64{2, 8} {
			if testing.Short() && n == 2 {
				continue
			}
			for _, context := range dtms.Contexts {
				bytes := peak(t, m, driver.Sharding{Mesh: fmt.Sprintf("cp=%.0f", n), Context: context})
				t.Logf("%s, cp=%.0f, %s: %d KiB, 1/%.2f of %d", m.name, n, context, int64(bytes)>>10, alone/bytes, int64(alone)>>10)
				if context != "gather" {
					require.Less(t, bytes, alone/n*1.25)
				}
			}
		}
	}
}

// peak is the most bytes that a training step is estimated to need at one time, states not counted.
func peak(t *testing.T, m model, o driver.Sharding) float64 {
	t.Helper()
	r, err := driver.Compile(m.name+".blu", []byte(m.text), driver.Options{Target: "cpu", Recompute: "none", CompileTo: "graph", Set: m.sizes, Sharding: o})
	require.NoError(t, err)
	bytes, ok := recompute.Estimate(ir.LookupSymbol(r.Module, "accumulate"), recompute.TargetFor("cpu", ""))
	require.True(t, ok)
	return float64(bytes)
}
