package driver_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/ir"
	"blutrain/lower/inspect"
)

// planned is what a program takes by plan, what kernels work in included, and what a step is predicted to cost.
type planned struct {
	needs, accumulated int64 // bytes, and those that accumulate's kernels read and write
	seconds            float64
}

func plan(t *testing.T, model string, o driver.Options) planned {
	t.Helper()
	src, err := os.ReadFile("../examples/" + model + ".blu")
	require.NoError(t, err)
	r, err := driver.Compile(model+".blu", src, o)
	require.NoError(t, err)
	report, err := inspect.Read(r.Artifact)
	require.NoError(t, err)
	p := planned{needs: needs(t, r)}
	for _, k := range report.Kernels {
		for _, f := range k.Functions {
			if f.Function == "accumulate" {
				p.accumulated += int64(f.Count) * k.Bytes
			}
		}
	}
	p.seconds, _ = report.Seconds("accumulate")
	return p
}

// needs is the bytes that a program takes by plan, those that kernels work in included.
func needs(t *testing.T, r *driver.Result) int64 {
	t.Helper()
	report, err := inspect.Read(r.Artifact)
	require.NoError(t, err)
	scratch := int64(0)
	for _, k := range report.Kernels {
		scratch = max(scratch, k.Scratch)
	}
	return r.Artifact.Manifest.Memory.Total + scratch
}

// A budget is met by the plan, whatever the precision and the target, most of it is used, and more memory never means more time.
func TestBudgetIsMet(t *testing.T) {
	sizes := map[string]float64{"L": 3, "H": 4, "C": 256, "V": 1024, "T": 256, "B": 4, "S": 256}
	if testing.Short() {
		t.Skip("compiles some hundred times")
	}
	for _, tc := range []struct{ model, target, precision string }{
		{"gpt2", "cuda", "bf16"}, {"gpt2", "cuda", "tf32"}, {"gpt2", "cuda", "fp32"}, {"gpt2", "cuda", "fp32-strict"},
		{"gpt2", "cpu", "fp32"}, {"gpt2", "cpu", "bf16"}, {"llama", "cuda", "bf16"},
	} {
		t.Run(tc.model+" "+tc.target+" "+tc.precision, func(t *testing.T) {
			t.Parallel()
			o := driver.Options{Target: tc.target, Precision: tc.precision, Set: sizes}
			if tc.model == "llama" {
				o.Set = map[string]float64{"L": 3, "H": 4, "K": 2, "C": 256, "F": 512, "V": 1024, "B": 4, "S": 256}
			}
			usual := plan(t, tc.model, o)
			slowest := usual.seconds * 10
			for _, part := range []float64{0.92, 1, 1.1, 4} {
				o.Budget = int64(part * float64(usual.needs))
				p := plan(t, tc.model, o)
				t.Logf("%.2f: %d of %d, %.3f GB moved, %.4g ms", part, p.needs, o.Budget, float64(p.accumulated)/1e9, 1e3*p.seconds)
				require.LessOrEqual(t, p.needs, o.Budget)
				if part <= 1.1 {
					require.Greater(t, float64(p.needs), 0.95*float64(o.Budget))
				}
				require.LessOrEqual(t, p.seconds, slowest*1.0001, "more memory, more time")
				slowest = p.seconds
				if part >= 1 {
					require.LessOrEqual(t, p.seconds, usual.seconds*1.0001, "slower than without a budget")
				}
			}
		})
	}
}

// A budget that can't be met is refused with the least that can, which is met when it is asked for.
func TestLeastBudget(t *testing.T) {
	o := driver.Options{Target: "cuda", Precision: "bf16", Set: map[string]float64{"L": 3, "H": 2, "C": 128, "V": 512, "T": 128, "B": 4, "S": 128}, Budget: 1 << 20}
	small := []driver.Options{
		{Target: "cpu", Sharding: driver.Sharding{Mesh: "dp=2", Zero: 1}}, {Target: "cuda", Precision: "bf16"},
		{Target: "cpu"}, {Target: "cuda", Precision: "bf16", Sharding: driver.Sharding{Mesh: "dp"}}, {Target: "cuda", Precision: "fp32"},
	}
	if testing.Short() {
		o.Set["L"], small = 1, small[:2]
	}
	src, err := os.ReadFile("../examples/gpt2.blu")
	require.NoError(t, err)
	_, err = driver.Compile("gpt2.blu", src, o)
	require.ErrorContains(t, err, "function accumulate does not fit a memory budget of 1.00 MiB: the least that recomputation leads to is ")
	m := regexp.MustCompile(`leads to is ([0-9.]+) MiB`).FindStringSubmatch(err.Error())
	require.NotNil(t, m, err.Error())
	var least float64
	_, err = fmt.Sscan(m[1], &least)
	require.NoError(t, err)
	o.Budget = int64(least * (1 << 20))
	require.LessOrEqual(t, plan(t, "gpt2", o).needs, o.Budget)

	// Of a small model, whose estimates are far off, too.
	for _, o := range small {
		o.Budget, o.Set = 1, map[string]float64{"V": 17, "W": 2, "E": 3, "M": 5, "B": 2, "S": 3}
		src, err := os.ReadFile("../examples/mlp.blu")
		require.NoError(t, err)
		for range 2 { // asked for nothing, and for a little less than the least
			_, err = driver.Compile("mlp.blu", src, o)
			require.Error(t, err)
			m := regexp.MustCompile(`leads to is ([0-9.]+) KiB`).FindStringSubmatch(err.Error())
			require.NotNil(t, m, err.Error())
			_, err = fmt.Sscan(m[1], &least)
			require.NoError(t, err)
			enough := o
			enough.Budget = int64(least * (1 << 10))
			_, err = driver.Compile("mlp.blu", src, enough)
			require.NoError(t, err, "%+v", o)
			o.Budget = int64(0.99 * least * (1 << 10))
		}
	}
}

// Candidates, which have memory of their own while they are measured, take nothing of a budget.
func TestBudgetWithCandidates(t *testing.T) {
	src, err := os.ReadFile("../examples/gpt2.blu")
	require.NoError(t, err)
	least := func(candidates int) string {
		_, err := driver.Compile("gpt2.blu", src, driver.Options{Target: "cuda", Precision: "bf16", Budget: 1 << 20, Candidates: candidates,
			Set: map[string]float64{"L": 1, "H": 2, "C": 128, "V": 2000, "T": 128, "B": 4, "S": 128}})
		require.ErrorContains(t, err, "does not fit a memory budget of 1.00 MiB")
		return err.Error()
	}
	require.Equal(t, least(0), least(32))
}

// A program that is compiled on from a dump stays within its budget, in what kernels work in too.
func TestBudgetFromDumps(t *testing.T) {
	o := driver.Options{Target: "cuda", Set: map[string]float64{"L": 1, "H": 4, "C": 256, "V": 1024, "T": 256, "B": 4, "S": 256}}
	src, err := os.ReadFile("../examples/gpt2.blu")
	require.NoError(t, err)
	usual := plan(t, "gpt2", o)
	least := usual
	for o.Budget = usual.needs; least.needs == usual.needs; o.Budget -= 1 << 14 {
		least = plan(t, "gpt2", o)
	}
	o.Budget = least.needs
	require.InEpsilon(t, least.seconds, usual.seconds, 1e-9, "nothing is recomputed: kernels work in less")
	for _, phase := range []string{"graph", "kernels", "buffers"} {
		o.CompileTo = phase
		r, err := driver.Compile("gpt2.blu", src, o)
		require.NoError(t, err)
		text := ir.Print(r.Module, ir.PrintOptions{Locations: true, ElideAbove: -1})
		r, err = driver.Compile("gpt2.mlir", text, driver.Options{})
		require.NoError(t, err)
		require.Equal(t, least.needs, needs(t, r), phase)
	}
}
