package main

import (
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	codegen "blutrain/codegen/ptx"
	"blutrain/dialects/ptx"
	"blutrain/internal/upstream"
	"blutrain/ir"
)

// Every shape has kernels in every precision that is timed, and they can be built.
func TestShapesHaveKernels(t *testing.T) {
	b := &bench{most: math.MaxInt, gpu: &device{&gpu.GPU{Device: blublas.H200}}}
	for _, s := range shapes() {
		for _, p := range precisions {
			all := b.candidates(p.ours, s, s.layoutFor(p.ours), ir.F32)
			require.Equal(t, s.in(p.ours), len(all) > 0, "%s %s", s.name, p.ours)
			for _, g := range all {
				require.NoError(t, g.Check(blublas.H200), s.name)
				require.Equal(t, s.products(), matrices(g), s.name)
			}
		}
	}
}

// No check of odd products or of batches is left out for its tile, but where planes leave no room for it.
func TestChecksFit(t *testing.T) {
	for _, c := range slices.Concat(oddChecks(), batchChecks()) {
		if g := c.gemm(); !planes(g.Precision) {
			require.NoError(t, g.Check(blublas.H200), "%s %s", g.Name(), c.layout)
		}
	}
	kinds := map[string]bool{}
	for _, c := range checkList() {
		if c.k == 263 {
			kinds[string(c.g.Precision)+" "+c.layout] = true
		}
	}
	require.Len(t, kinds, 5*3, "an odd product of each precision and layout; tf32's are mma's but NT")
}

func TestLay(t *testing.T) {
	for _, tc := range []struct {
		layout         string
		lay            func(blublas.Gemm, string, int, int, int) blublas.Gemm
		a, b           blublas.Operand
		apartA, apartB int
	}{
		{nt, with, blublas.Operand{Pitch: 16}, blublas.Operand{Pitch: 16}, 5 * 16, 7 * 16},
		{nn, with, blublas.Operand{Pitch: 16}, blublas.Operand{MNMajor: true, Pitch: 8}, 5 * 16, 11 * 8},
		{tn, with, blublas.Operand{MNMajor: true, Pitch: 8}, blublas.Operand{MNMajor: true, Pitch: 8}, 11 * 8, 11 * 8},
		{nt, dense, blublas.Operand{Pitch: 11}, blublas.Operand{Pitch: 11}, 5 * 11, 7 * 11},
		{tn, dense, blublas.Operand{MNMajor: true, Pitch: 5}, blublas.Operand{MNMajor: true, Pitch: 7}, 11 * 5, 11 * 7},
	} {
		g := tc.lay(batched(blublas.Gemm{}, 3), tc.layout, 5, 7, 11)
		require.Equal(t, tc.a, g.A, tc.layout)
		require.Equal(t, tc.b, g.B, tc.layout)
		require.Equal(t, []blublas.Batch{{Size: 3, A: tc.apartA, B: tc.apartB}}, g.Batch, tc.layout)
		require.Empty(t, tc.lay(blublas.Gemm{}, tc.layout, 5, 7, 11).Batch)
	}
}

// What kernels are compared with is each pair's product.
func TestProductsOfABatch(t *testing.T) {
	a, bt := []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{1, 0, 0, 1, 1, 1, 10, 1, 0, 2, 1, 0}
	want := slices.Concat(product(a[:4], bt[:6], 2, 3, 2), product(a[4:], bt[6:], 2, 3, 2))
	require.Equal(t, []float64{1, 2, 3, 3, 4, 7, 56, 12, 5, 78, 16, 7}, want)
	require.Equal(t, want, product(a, bt, 2, 3, 2))
}

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
		add(check.gemm())
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
