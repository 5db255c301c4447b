package blublas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
)

// simtAttentions is one of every kind: sizes that are no multiples of blocks, other numbers of keys than queries, shared keys, every
// number of features in a row of shared memory, and several parts of the keys.
func simtAttentions() []Attention {
	var all []Attention
	add := func(target string, a Attention, warps, columns int) {
		a.Precision, a.Target, a.Block = FP32Strict, target, AttentionBlock{Warps: warps, Tiles: 1, Columns: columns, Stages: 1, PerSM: 1}
		q, kv, qkv := packed(1, a.Heads, a.Queries, a.Features), packed(2, a.KeyHeads, a.Keys, a.Features), packed(3, a.Heads, a.Queries, a.Features)
		a.Q, a.O, a.DO, a.DQ, a.K, a.V, a.DK, a.DV = qkv, q, q, qkv, kv, kv, kv, kv
		if len(all)%2 == 0 {
			a.LSE = gapped(a)
		}
		all = append(all, a)
	}
	add(ptx.SM90A, Attention{Batch: 2, Heads: 1, KeyHeads: 1, Queries: 300, Keys: 300, Features: 64, Causal: true, Scale: 0.125}, 8, 128)
	add(ptx.SM80, Attention{Batch: 1, Heads: 2, KeyHeads: 2, Queries: 256, Keys: 256, Features: 64, Causal: true, Scale: 0.125}, 4, 64)
	add(ptx.SM90A, Attention{Batch: 1, Heads: 4, KeyHeads: 2, Queries: 70, Keys: 140, Features: 32, Causal: true, Scale: 0.2}, 4, 64)
	add(ptx.SM80, Attention{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 133, Keys: 17, Features: 48, Scale: 0.3}, 4, 64)
	add(ptx.SM80, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 137, Keys: 20, Features: 36, Causal: true, Scale: 0.1}, 4, 64)
	add(ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 70, Keys: 200, Features: 128, Causal: true, Scale: 0.1}, 4, 64)
	add(ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 60, Keys: 300, Features: 80, Scale: 0.1}, 8, 64)
	add(ptx.SM89, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 150, Keys: 64, Features: 20, Scale: 0.1}, 4, 64)
	return all
}

// simtKernels builds the four kernels.
func (a Attention) simtKernels(t *testing.T) []*Kernel {
	c := ir.NewContext(ptx.Dialect)
	var all []*Kernel
	for _, build := range []func(*ir.Builder, Device) (*Kernel, error){a.SIMTForward, a.SIMTDeltas, a.SIMTGrad, a.SIMTSumQueries} {
		kernel, err := build(ir.NewBuilder(c, nil), H200)
		require.NoError(t, err)
		require.NoError(t, ir.Verify(c, kernel.Op))
		all = append(all, kernel)
	}
	return all
}

// simtLaunch runs some of them, in order.
func (e *emulatedAttention) simtLaunch(a Attention, kernels []*Kernel) error {
	addresses := map[string]uint64{"q": e.q.buffer.Base, "k": e.k.buffer.Base, "v": e.v.buffer.Base, "o": e.o.buffer.Base, "do": e.do.buffer.Base, "dq": e.dq.buffer.Base,
		"dk": e.dk.buffer.Base, "dv": e.dv.buffer.Base, "lse": e.logSums.Base, "delta": e.deltas.Base, "parts": e.memory.Alloc(int(a.SIMTPartialBytes(H200))).Base}
	for _, kernel := range kernels {
		var params []any
		for _, p := range kernel.Params {
			params = append(params, addresses[p.Name])
		}
		if err := emulate.Launch(e.memory, kernel.Op, kernel.Grid, params...); err != nil {
			return fmt.Errorf("%s: %w", kernel.Name, err)
		}
	}
	return nil
}

// Outputs and gradients on float32 units differ from float64's by no more than those of a plain program in float32, and a half.
func TestSIMTAttention(t *testing.T) {
	for i, a := range simtAttentions() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			e := a.prepare(rand.New(rand.NewPCG(uint64(i), 7)))
			require.NoError(t, e.simtLaunch(a, a.simtKernels(t)))
			got := exact{e.o.read(t), e.sums(a), e.dq.read(t), e.dk.read(t), e.dv.read(t)}
			for _, x := range []struct {
				name      string
				got, want []float64
			}{{"o", got.o, e.want.o}, {"lse", got.lse, e.want.lse}, {"dq", got.dq, e.want.dq}, {"dk", got.dk, e.want.dk}, {"dv", got.dv, e.want.dv}} {
				worst, largest := farthest(t, x.name, x.got, x.want)
				t.Logf("%s: %.2g", x.name, worst/largest)
				require.LessOrEqual(t, worst, 0x1p-19*largest, x.name)
			}
		})
	}
}

// The errors of sums over many keys and queries are like those of a plain program in float32.
func TestSIMTAttentionIsFaithful(t *testing.T) {
	for _, s := range []struct{ queries, keys int }{{16, 640}, {640, 16}, {96, 96}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			a := Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: s.queries, Keys: s.keys, Features: 64, Scale: 0.125, Precision: FP32Strict, Target: ptx.SM90A,
				Block: AttentionBlock{Warps: 4, Tiles: 1, Columns: 64, Stages: 1, PerSM: 1}}
			a = a.placed()
			e := a.prepare(rand.New(rand.NewPCG(5, 7)))
			require.NoError(t, e.simtLaunch(a, a.simtKernels(t)))
			single := a.single(e.q.read(t), e.k.read(t), e.v.read(t), e.do.read(t))
			for _, x := range []struct {
				name              string
				got, want, single []float64
			}{{"o", e.o.read(t), e.want.o, single.o}, {"dq", e.dq.read(t), e.want.dq, single.dq}, {"dk", e.dk.read(t), e.want.dk, single.dk}, {"dv", e.dv.read(t), e.want.dv, single.dv}} {
				ours, theirs := apart(x.got, x.want), apart(x.single, x.want)
				t.Logf("%s: %.2e, float32 %.2e", x.name, ours, theirs)
				require.LessOrEqual(t, ours, 1.2*theirs, x.name)
			}
		})
	}
}

// The kernels without one of their barriers, waits or groups are reported.
func TestSIMTAttentionMutants(t *testing.T) {
	// A tile meets two blocks of keys of which it sees a part.
	a := Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 200, Keys: 230, Features: 32, Causal: true, Scale: 0.2, Precision: FP32Strict, Target: ptx.SM80,
		Block: AttentionBlock{Warps: 4, Tiles: 1, Columns: 64, Stages: 1, PerSM: 1}}
	a = a.placed()
	require.NoError(t, a.prepare(rand.New(rand.NewPCG(1, 2))).simtLaunch(a, a.simtKernels(t)))
	for number, kernel := range a.simtKernels(t) {
		for n, m := range mutants(kernel.Op) {
			if !slices.Contains(orders, nth(kernel.Op, n).Def()) {
				continue
			}
			t.Run(fmt.Sprintf("%s %d %s", kernel.Name, n, m.name), func(t *testing.T) {
				t.Parallel()
				e, all := a.prepare(rand.New(rand.NewPCG(1, 2))), a.simtKernels(t)
				m.change(nth(all[number].Op, n))
				require.Error(t, e.simtLaunch(a, all[:number+1]))
			})
		}
	}
}

// farthest is how far numbers are from those wanted, and how large these are, at most.
func farthest(t *testing.T, name string, got, want []float64) (worst, largest float64) {
	t.Helper()
	for i := range want {
		if math.IsInf(want[i], -1) { // a query that sees no key
			require.Equal(t, want[i], got[i], name)
			continue
		}
		require.False(t, math.IsNaN(got[i]), "%s[%d]", name, i)
		largest = math.Max(largest, math.Abs(want[i]))
		worst = math.Max(worst, math.Abs(got[i]-want[i]))
	}
	return worst, largest
}
