package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/builtin"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/runtime"
)

// The checked-in tile kernels, on the CPU device with one and three workers: the reference's values to float32 accuracy,
// and the same bits for any number of workers.
func TestTileKernelsOnCPU(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "lit", "tile", "*.mlir"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	files = append(files, filepath.Join("testdata", "products.mlir"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range kernelNames(t, text) {
			if name == "gemm_bias_gelu" {
				continue // split planes with a body of its own: a product for tensor cores
			}
			t.Run(name, func(t *testing.T) { compareKernel(t, text, name) })
		}
	}
}

func kernelNames(t *testing.T, text []byte) (names []string) {
	module, err := ir.Parse(dialects.NewContext(), "kernels.mlir", text)
	require.NoError(t, err)
	for op := range module.Body().Ops() {
		if op.Is(tile.Kernel) {
			names = append(names, ir.SymName(op))
		}
	}
	return names
}

func compareKernel(t *testing.T, text []byte, name string) {
	c := dialects.NewContext()
	module, err := ir.Parse(c, "kernels.mlir", text)
	require.NoError(t, err)
	require.True(t, module.Is(builtin.Module))
	module.SetAttr("blu.model", c.String("kernels"))
	kernel := ir.LookupSymbol(module, name)
	r := rand.New(rand.NewPCG(7, 8))
	ins, outs := tile.Refs(kernel)
	in := map[string]runtime.Array{}
	var args []ir.Datum
	for i, v := range ins {
		x := Random(r, v.Type(), -1, 9)
		args = append(args, x)
		if IsTransposed(v) {
			x = Transposed(x)
		}
		in[fmt.Sprint("in", i)] = Array(x)
	}
	want, err := tile.Run(&ir.Interp{Ctx: c, Module: module}, kernel, args)
	require.NoError(t, err)
	LaunchOnly(c, module, kernel)
	a := Compile(t, c, module)
	if one, known := map[string]bool{"nt_bias_tanh": true, "nn_product_twice": true, "tn_plain": true, "batched_residual": true, "tt_by_blocks": false,
		"nt_masked": true, "nt_masked_clipped": true, "nt_beside_broadcast": false}[name]; known {
		text, _ := a.File("program.mlir")
		require.Equal(t, one, strings.Contains(string(text), "host.gemm"), "one product on all workers: %s", text)
	}
	first, err := Open(t, a, 1).Call("f", in, nil)
	require.NoError(t, err)
	for i, v := range outs {
		out := fmt.Sprint("out", i)
		near(t, out, want[i].(*ir.Tensor), Tensor(first[out], v.Elem()), 2e-5)
	}
	again, err := Open(t, a, 3).Call("f", in, nil)
	require.NoError(t, err)
	require.Equal(t, first, again, "three workers give other bits than one")
}

func near(t *testing.T, what string, want, got *ir.Tensor, tolerance float64) {
	t.Helper()
	require.Equal(t, want.Shape, got.Shape, what)
	scale := 0.0
	for _, v := range want.Data {
		if !math.IsNaN(v) {
			scale = max(scale, math.Abs(v))
		}
	}
	for i := range want.Data {
		w, g := want.Data[i], got.Data[i]
		if w == g || math.IsNaN(w) && math.IsNaN(g) {
			continue
		}
		require.LessOrEqual(t, math.Abs(w-g), tolerance*(scale+1e-6), "%s[%d]: want %g, got %g", what, i, w, g)
	}
}
