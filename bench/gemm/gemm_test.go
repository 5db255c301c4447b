package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/blublas"
	codegen "blutrain/codegen/ptx"
	"blutrain/dialects/ptx"
	"blutrain/internal/upstream"
	"blutrain/ir"
)

// Every kernel that is checked or timed can be built, verifies, and is assembled without spills or serialized products.
func TestAssemble(t *testing.T) {
	tool := upstream.PTXAS(t)
	kernels := map[string]*blublas.Kernel{}
	c := ir.NewContext(ptx.Dialect)
	add := func(g blublas.Gemm) {
		k, err := g.Build(ir.NewBuilder(c, nil), blublas.H200)
		require.NoError(t, err)
		kernels[k.Name] = k
		if g.SplitK > 1 {
			k, err := g.SumParts(ir.NewBuilder(c, nil), blublas.H200)
			require.NoError(t, err)
			kernels[k.Name] = k
		}
	}
	for _, check := range checkList() {
		g := with(check.g, check.layout, check.m, check.n, check.k)
		g.Epilogue = blublas.Standard(check.options)
		add(g)
	}
	for _, p := range []blublas.Precision{blublas.FP16x3, blublas.BF16x6} {
		s := blublas.Split{Precision: p, Of: []blublas.Matrix{{Name: "x", Rows: 517, Cols: 392, Pitch: 392, PlanePitch: 392, Sets: []blublas.Set{{Name: "x"}}}}, Target: ptx.SM90A}
		k, err := s.Build(ir.NewBuilder(c, nil), blublas.H200)
		require.NoError(t, err)
		kernels[k.Name] = k
	}
	for i, name := range slices.Sorted(maps.Keys(kernels)) {
		k := kernels[name]
		require.NoError(t, ir.Verify(c, k.Op), name)
		text, err := codegen.Print(k.Op)
		require.NoError(t, err)
		if i%6 != 0 { // blublas's own tests assemble one of each kind
			continue
		}
		file := filepath.Join(t.TempDir(), "k.ptx")
		require.NoError(t, os.WriteFile(file, text, 0o644))
		out, err := exec.Command(tool, "-v", "-arch="+k.Op.Attrs().Str("target"), "-o", os.DevNull, file).CombinedOutput()
		require.NoError(t, err, "%s\n%s", name, out)
		require.Contains(t, string(out), "0 bytes spill stores", name)
		require.NotContains(t, string(out), "C75", name)
		require.NotContains(t, string(out), "warning", name)
		if testing.Short() {
			break
		}
	}
}
