package recompute_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes/recompute"
)

func TestProbe(t *testing.T) {
	for _, tc := range []struct {
		model, target, precision string
		set                      map[string]float64
	}{
		{"gpt2", "cuda", "bf16", nil},
		{"gpt2", "cuda", "fp32", nil},
		{"gpt2", "cpu", "bf16", map[string]float64{"B": 4}},
		{"llama", "cuda", "bf16", nil},
		{"llama", "cuda", "tf32", nil},
		{"mlp", "cuda", "bf16", nil},
		{"mlp", "cuda", "fp32", nil},
	} {
		src, err := os.ReadFile("../../examples/" + tc.model + ".blu")
		require.NoError(t, err)
		for _, mode := range []string{"none", "auto", "full"} {
			o := driver.Options{Target: tc.target, Precision: tc.precision, Recompute: mode, Set: tc.set, CompileTo: "graph"}
			r, err := driver.Compile(tc.model+".blu", src, o)
			require.NoError(t, err)
			e, _ := recompute.Estimate(ir.LookupSymbol(r.Module, "accumulate"), recompute.TargetFor(tc.target, "sm_90a"))
			o.CompileTo = "buffers"
			r, err = driver.Compile(tc.model+".blu", src, o)
			require.NoError(t, err)
			arena, _ := ir.LookupSymbol(r.Module, "accumulate").Attrs().Int("mem.arena")
			fmt.Printf("%s %s %s %s: estimate %.1f MiB, arena %.1f, %+.2f%%\n", tc.model, tc.target, tc.precision, mode, float64(e)/(1<<20), float64(arena)/(1<<20), 100*(float64(e)/float64(arena)-1))
		}
	}
}
