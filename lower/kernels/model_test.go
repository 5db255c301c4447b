package kernels

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/autodiff"
	"blutrain/dialects"
	"blutrain/dialects/fn"
	"blutrain/dialects/tile"
	"blutrain/frontend"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// model compiles an example up to the graph phase.
func model(t testing.TB, name string, set map[string]float64) (*ir.Context, *ir.Op) {
	t.Helper()
	file := filepath.Join("..", "..", "examples", name)
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	c := dialects.NewContext()
	m, diags := frontend.Compile(c, file, src, frontend.Options{Set: set})
	require.False(t, diags.HasErrors(), "%v", diags)
	require.NoError(t, autodiff.Train(c, m))
	rewrite.MergeEqual(m, nil)
	rewrite.EraseDead(m)
	return c, m
}

func TestShowModel(t *testing.T) {
	name := os.Getenv("MODEL")
	if name == "" {
		t.Skip()
	}
	c, m := model(t, name, nil)
	start := time.Now()
	require.NoError(t, Run(c, m, CPU()))
	t.Logf("%v", time.Since(start))
	kernels, launches := 0, 0
	for op := range m.Body().Ops() {
		if op.Is(tile.Kernel) {
			kernels++
		}
		if op.Is(fn.Func) {
			n := 0
			for o := range op.Body().Ops() {
				if o.Is(tile.Launch) {
					n++
				}
			}
			launches += n
			t.Logf("%s: %d launches", ir.SymName(op), n)
		}
	}
	t.Logf("%d kernels, %d launches", kernels, launches)
	os.WriteFile("/tmp/model.mlir", ir.Print(m, ir.PrintOptions{}), 0o644)
}
