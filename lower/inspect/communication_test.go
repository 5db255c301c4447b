package inspect_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/dtms"
	"blutrain/driver"
	"blutrain/lower/inspect"
)

// sharded is the report of Llama, with grouped queries, on a mesh.
func sharded(t *testing.T, o driver.Options) *inspect.Report {
	t.Helper()
	src, err := os.ReadFile("../../examples/llama.blu")
	require.NoError(t, err)
	o.Set = map[string]float64{"L": 3, "H": 8, "K": 4, "C": 64, "F": 48, "V": 51, "B": 2, "S": 32, "accumulate": 3}
	r, err := driver.Compile("llama.blu", src, o)
	require.NoError(t, err)
	report, err := inspect.Read(r.Artifact)
	require.NoError(t, err)
	return report
}

// What the program's calls send in a step is what the formulas of each way say: n ranks in all, of which c share a sequence;
// G bytes of gradients and P of parameters; B, S, D the batch of a rank, the tokens of a sequence and the width of a head,
// H and K heads of queries and of keys, L layers, m micro-batches. Nothing is sent that need not be.
func TestVolume(t *testing.T) {
	const L, H, K, B, S, D, m = 3, 8, 4, 2, 32, 8, 3
	const head = 4 * B * S * D // bytes of one head of a whole sequence
	attention := map[string]func(c float64) float64{
		// Forward, keys and values pass c-1 ranks. Backward, they do so again, and their gradients come home after c-1.
		"ring": func(c float64) float64 { return L * head * 6 * K * (c - 1) / c },
		// Forward, q, k, v, o change from tokens to heads or back, backward do, dq, dk, dv: of a rank's part of each, 1/c stays.
		"ulysses": func(c float64) float64 { return L * head * (4*H + 4*K) / c * (c - 1) / c },
		// Forward, every rank gets all keys and values; backward, their gradients are summed where they belong.
		"gather": func(c float64) float64 { return L * head * 4 * K * (c - 1) / c },
	}
	tests := []struct {
		mesh    string
		zero    int
		context string
		n, c    float64
		target  string
	}{
		{"dp=2", 0, "", 2, 1, "cpu"}, {"dp=3", 0, "", 3, 1, "ref"}, {"cp=4", 0, "ring", 4, 4, "cpu"}, {"dp=2,cp=2", 0, "ring", 4, 2, "ref"},
		{"cp=4", 0, "ulysses", 4, 4, "ref"}, {"dp=3,cp=2", 0, "ulysses", 6, 2, "cpu"}, {"cp=2", 0, "gather", 2, 2, "ref"},
		{"dp=4", 1, "", 4, 1, "cpu"}, {"dp=7", 1, "", 7, 1, "ref"}, {"dp=2,cp=2", 1, "ring", 4, 2, "ref"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s zero %d %s", tt.mesh, tt.zero, tt.context), func(t *testing.T) {
			r := sharded(t, driver.Options{Target: tt.target, Sharding: driver.Sharding{Mesh: tt.mesh, Zero: tt.zero, Context: tt.context}})
			var G, P float64
			for _, s := range r.Manifest.States {
				switch s.Role {
				case "gradient":
					G += float64(s.Bytes())
				case "param":
					P += float64(s.Bytes())
				}
			}
			want := 2 * (tt.n - 1) / tt.n * (G + 8)
			if tt.zero == 1 {
				require.InDelta(t, P/tt.n, G, 40*4, "a rank has its shards, which are padded by less than an element each")
				padded := G * tt.n
				want = (tt.n - 1) / tt.n * (m*padded + padded + 2*12)
			} else {
				require.Equal(t, P, G)
			}
			world, ok := r.SentPerStep(dtms.World)
			require.True(t, ok)
			require.InDelta(t, want, world, 1e-6)
			formula, _, ok := r.Formula()
			require.True(t, ok)
			require.InDelta(t, want, formula, 1e-6)
			for _, f := range r.Functions { // the manifest says the same
				m, ok := r.Manifest.Function(f.Name)
				require.True(t, ok)
				require.Len(t, m.Collectives, len(f.Collectives))
				for i, c := range f.Collectives {
					require.Equal(t, int64(c.Call.Sent(int64(r.Mesh.Ranks(c.Call.Group)))), m.Collectives[i].Sent)
				}
			}
			cp, _ := r.SentPerStep(dtms.CP)
			if tt.context == "" {
				require.Zero(t, cp)
			} else {
				require.InDelta(t, m*attention[tt.context](tt.c), cp, 1e-6)
			}
		})
	}
}

// The sums of gradients go on behind the rest of the backward pass.
func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		zero int
		in   string
	}{{0, "accumulate_last"}, {1, "accumulate"}} {
		r := sharded(t, driver.Options{Target: "cpu", Sharding: driver.Sharding{Mesh: "dp=2", Zero: tt.zero, Bucket: 16 << 10}})
		for _, f := range r.Functions {
			if f.Name != tt.in {
				continue
			}
			first, last := f.Collectives[0], f.Collectives[len(f.Collectives)-1]
			require.Greater(t, len(f.Collectives), 4)
			require.Less(t, last.Share, 0.1, "what is ready last has nothing left to go on behind")
			if tt.zero == 0 {
				require.Greater(t, first.Share, 0.3, "the first bucket has most of the backward pass behind it, which is two thirds of the work")
			} else {
				require.Greater(t, first.Share, 0.05, "two are under way at most")
			}
		}
	}
}

func TestWriteCommunication(t *testing.T) {
	var b bytes.Buffer
	sharded(t, driver.Options{Target: "ref", Sharding: driver.Sharding{Mesh: "dp,cp=2"}}).WriteCommunication(&b)
	require.Contains(t, b.String(), "mesh dp = any, cp = 2 (ring); zero = 0\n")
	require.Contains(t, b.String(), "2 (n-1)/n of it")
	require.Contains(t, b.String(), "to all n ranks: 2 (n-1)/n (G + 8), G = ")
	require.Contains(t, b.String(), "to the 2 ranks of a sequence")
	b.Reset()
	sharded(t, driver.Options{Target: "ref"}).WriteCommunication(&b)
	require.Equal(t, "The program is for one rank: it was compiled without --mesh.\n", b.String())
}
