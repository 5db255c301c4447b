package e2e

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/runtime"
	"blutrain/test/numbers"
)

// What ranks send in a step is what the compiler counted, which is what the formulas say: with n ranks, G bytes of gradients and 8 of loss
// and count, 2(n-1)/n (G + 8) for data parallelism; with ZeRO-1, (n-1)/n (G + P + 2*12), G and P padded to multiples of n; and for each
// layer, what attention's way of sharing a sequence needs.
func TestRanksSendWhatWasCounted(t *testing.T) {
	m := models[0]
	set := map[string]float64{}
	for name, v := range m.set {
		set[name] = v
	}
	set["H"] = 4
	inputs := numbers.Golden(t, m.golden+".inputs")
	for i, l := range []layout{
		{dp: 2, cp: 1}, {dp: 3, cp: 1}, {dp: 4, cp: 1}, {dp: 3, cp: 1, zero: 1}, {dp: 4, cp: 1, zero: 1},
		{dp: 1, cp: 2, context: "ring"}, {dp: 1, cp: 4, context: "ring"}, {dp: 1, cp: 4, context: "ulysses"}, {dp: 1, cp: 4, context: "gather"},
		{dp: 2, cp: 2, context: "ring", zero: 1},
	} {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			a := onMesh(t, m.file, set, l)
			var mu sync.Mutex
			sent := map[string]int64{} // by function, of all ranks
			var last string
			onRanks(t, "local", a, l, func(r member) error {
				load(t, r, inputs)
				for _, s := range r.Manifest().States {
					if s.Role != artifact.Param {
						require.NoError(t, r.WriteState(s.Name, make([]byte, s.Bytes())))
					}
				}
				call := func(fn string, in map[string]runtime.Array) error {
					before := sentBy(r.mesh)
					if _, err := r.Call(fn, in, runtime.Scalars{"first": 1, "lr": 1e-3, "step": 1}); err != nil {
						return err
					}
					mu.Lock()
					defer mu.Unlock()
					sent[fn] += sentBy(r.mesh) - before
					return nil
				}
				if err := call(r.Manifest().LastAccumulate(), batch(t, inputs)); err != nil {
					return err
				}
				mu.Lock()
				last = r.Manifest().LastAccumulate()
				mu.Unlock()
				return call("apply", nil)
			})
			n := int64(l.dp * l.cp)
			for fn, total := range sent {
				f, _ := a.Manifest.Function(fn)
				counted := int64(0)
				for _, c := range f.Collectives {
					counted += c.Sent
				}
				require.InDelta(t, float64(counted), float64(total)/float64(n), float64(len(f.Collectives)), "%s: a byte of rounding each call", fn)
			}
			if l.cp == 1 {
				formula := dataFormula(a, float64(n))
				require.InDelta(t, formula, float64(sent[last]+sent["apply"])/float64(n), 1)
			} else {
				require.Positive(t, sent[last])
			}
		})
	}
}

// dataFormula is what a rank must send in a step of one micro-batch.
func dataFormula(a *artifact.Artifact, n float64) float64 {
	g := 0.0
	for _, s := range a.Manifest.States {
		if s.Role == artifact.Gradient {
			g += float64(s.Bytes())
		}
	}
	if a.Manifest.Mesh.Zero == 0 {
		return 2 * (n - 1) / n * (g + 8)
	}
	g *= n // shards
	return (n - 1) / n * (2*g + 2*12)
}

// sentBy is what a rank has sent in all groups.
func sentBy(m *dtms.Mesh) int64 {
	total := int64(0)
	seen := map[*dtms.Communicator]bool{}
	for _, c := range []*dtms.Communicator{m.World, m.DP, m.CP} {
		if !seen[c] {
			seen[c] = true
			total += c.Traffic().Total().Sent
		}
	}
	return total
}
