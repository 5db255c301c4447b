package ranks

import (
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/lower/inspect"
	"blutrain/runtime/ranks"
)

// With many tokens a rank, products go on behind the sum of the table of embeddings, which is ready last: losses and gradients are those of
// one rank, and devices take the program.
func TestDeferred(t *testing.T) {
	const steps, rows = 2, 32
	text, err := os.ReadFile("../../examples/gpt2.blu")
	require.NoError(t, err)
	train := func(dp int, o driver.Sharding) (report *inspect.Report, out [][2]float64) {
		set := maps.Clone(sizes["gpt2"])
		set["B"] = float64(rows / dp)
		r, err := driver.Compile("gpt2.blu", text, driver.Options{Target: "cpu", Set: set, Sharding: o})
		require.NoError(t, err)
		require.NoError(t, run(t, r.Artifact, dp, 1, func(r *ranks.Rank) error {
			all, err := train(r, steps, int(set["B"]), int(set["S"]), int32(set["V"]))
			if r.Mesh.Rank() == 0 {
				out = all
			}
			return err
		}))
		report, err = inspect.Read(r.Artifact)
		require.NoError(t, err)
		return report, out
	}
	_, want := train(1, driver.Sharding{})
	for _, o := range []driver.Sharding{{Mesh: "dp=2", Bucket: 512}, {Mesh: "dp=2", Bucket: 512, Zero: 1}} {
		report, got := train(2, o)
		for i := range want {
			require.InEpsilon(t, want[i][0], got[i][0], 2e-6, "%+v: loss of step %d", o, i)
			require.InEpsilon(t, want[i][1], got[i][1], 2e-5, "%+v: gradient of step %d", o, i)
		}
		behind := 0.0
		for _, f := range report.Functions {
			for _, c := range f.Collectives {
				if (f.Name == "accumulate" || f.Name == "accumulate_last") && c.Call.Elems == 61*16 {
					behind = max(behind, c.Flops)
				}
			}
		}
		require.Positive(t, behind, "%+v: operations behind the table's sum", o)
	}
}
