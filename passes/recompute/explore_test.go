package recompute_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/passes/recompute"
)

func TestExplore(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  map[string]float64
	}{{"gpt2", nil}, {"gpt2", map[string]float64{"L": 48, "H": 25, "C": 1600}}, {"gpt2", map[string]float64{"B": 1, "S": 128}}, {"llama", nil}, {"mlp", nil}} {
		src, err := os.ReadFile("../../examples/" + tc.name + ".blu")
		require.NoError(t, err)
		for _, o := range []recompute.Options{{Mode: "none"}, {Mode: "auto"}, {Mode: "full"}, {Budget: 6 << 30}, {Budget: 12 << 30},{Budget: 50 << 30}} {
			r, err := driver.Compile(tc.name+".blu", src, driver.Options{Target: "ref", Set: tc.set, CompileTo: "graph"})
			require.NoError(t, err)
			start := time.Now()
			reports, err := recompute.Run(r.Ctx, r.Module, o, nil)
			took := time.Since(start)
			fmt.Println(tc.name, tc.set, o, took, err)
			for _, x := range reports {
				if x.Function == "accumulate" || x.Copies > 0 {
					fmt.Printf("    %s %s -> %s  work %.3g added %.1f%% copies %d\n", x.Function, recompute.Size(x.Before), recompute.Size(x.After), x.Work, 100*x.Added/x.Work, x.Copies)
				}
			}
		}
	}
}
