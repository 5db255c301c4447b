package blublas

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	codegen "blutrain/codegen/ptx"
	"blutrain/dialects/ptx"
	"blutrain/internal/upstream"
	"blutrain/ir"
)

var update = flag.Bool("update", false, "write the golden table of what the assembler says of each kernel")

const table = "testdata/ptxas.txt"

// templates is one kernel of every kind: layouts, precisions, tile shapes, epilogues, targets.
func templates() []Gemm {
	plain, full := Standard(Options{Out: ir.BF16}), Standard(Options{Out: ir.BF16, Scale: 0.5, Bias: true, Gelu: true, Keep: true, SumColumns: true})
	backward := Standard(Options{Out: ir.F32, GeluGrad: true, Residual: true, SumColumns: true})
	var all []Gemm
	add := func(g Gemm, a, b bool, e Epilogue) {
		g.A, g.B, g.Epilogue = Operand{a, 16384}, Operand{b, 16384}, e
		all = append(all, g)
	}
	wgmma := func(p Precision, depth, bm, bn, stages, cluster, split int, pingpong bool) Gemm {
		return Gemm{M: 4096, N: 2304, K: 16384, Precision: p, Unit: WGMMA, Target: ptx.SM90A, BM: bm, BN: bn, BK: depth, Stages: stages, Consumers: 2,
			Cluster: cluster, SplitK: split, Pingpong: pingpong}
	}
	for _, l := range [][2]bool{{false, false}, {false, true}, {true, true}} {
		add(wgmma(BF16, 64, 128, 128, 6, 1, 1, true), l[0], l[1], plain)
		add(wgmma(BF16, 64, 128, 256, 4, 2, 1, false), l[0], l[1], full)
		add(wgmma(BF16, 64, 128, 192, 4, 1, 1, true), l[0], l[1], backward)
		add(wgmma(BF16, 64, 192, 128, 4, 1, 1, true), l[0], l[1], plain)
		add(wgmma(FP16x3, 64, 128, 192, 2, 1, 1, false), l[0], l[1], full)
		add(wgmma(FP16x3, 64, 128, 128, 3, 1, 4, false), l[0], l[1], plain)
	}
	beside := Standard(Options{Out: ir.BF16, GeluGrad: true, GeluBeside: true, SumColumns: true})
	gelu := Options{Out: ir.BF16, Bias: true, Gelu: true, Keep: true}
	add(wgmma(BF16, 64, 128, 128, 5, 1, 1, true), false, true, beside)
	add(wgmma(BF16, 64, 128, 192, 4, 1, 1, true), false, false, Standard(gelu))
	add(wgmma(BF16, 64, 192, 192, 4, 1, 2, false).by(3), true, true, Standard(Options{Out: ir.F32, Accumulate: true}))
	add(wgmma(BF16x6, 64, 128, 128, 2, 1, 1, false), false, true, backward)
	add(wgmma(TF32, 32, 128, 128, 6, 1, 1, true), false, false, full)
	add(wgmma(TF32, 32, 128, 256, 4, 1, 2, false), false, false, Standard(Options{Out: ir.F32, Residual: true}))
	for _, target := range ptx.Targets {
		for _, l := range [][2]bool{{false, false}, {false, true}, {true, true}} {
			add(Gemm{M: 4096, N: 2305, K: 16384, Precision: FP32Strict, Unit: SIMT, Target: target, BM: 128, BN: 128, BK: 8, Consumers: 2, SplitK: 1}, l[0], l[1], full)
			add(Gemm{M: 4096, N: 2304, K: 16384, Precision: FP32Strict, Unit: SIMT, Target: target, BM: 128, BN: 256, BK: 16, Consumers: 2, SplitK: 3}, l[0], l[1], Standard(Options{Out: ir.F32, Accumulate: true}))
			for _, depth := range []int{8, 16} {
				add(Gemm{M: 4096, N: 2305, K: 16384, Precision: FP32Strict, Unit: SIMT, Target: target, BM: 128, BN: 128, BK: depth, Consumers: 1, SplitK: 1}, l[0], l[1], Standard(Options{Out: ir.F32, GeluGrad: true, SumColumns: true}))
			}
			add(Gemm{M: 4096, N: 2304, K: 16384, Precision: BF16, Unit: MMA, Target: target, BM: 128, BN: 128, BK: 64, Stages: 3, SplitK: 1}, l[0], l[1], full)
			add(Gemm{M: 4096, N: 2305, K: 16384, Precision: TF32, Unit: MMA, Target: target, BM: 128, BN: 128, BK: 32, Stages: 3, SplitK: 1}, l[0], l[1], backward)
		}
	}
	return all
}

// Every template is assembled for its target as the golden table says: registers, spills (none in products) and warnings, of which the
// serialized matrix products (C75xx) would cost most. Registers are those of the assembler that the table names; another
// version is held to the rest.
func TestPTXAS(t *testing.T) {
	tool := upstream.PTXAS(t)
	version, err := exec.Command(tool, "--version").Output()
	require.NoError(t, err)
	release := regexp.MustCompile(`V[\d.]+`).FindString(string(version))
	c := ir.NewContext(ptx.Dialect)
	lines := []string{"ptxas " + release}
	for i, g := range templates() {
		if testing.Short() && i%8 != 0 {
			continue
		}
		k, err := g.Build(ir.NewBuilder(c, nil), H200)
		require.NoError(t, err)
		require.NoError(t, ir.Verify(c, k.Op), k.Name)
		lines = append(lines, g.Target+" "+k.Name+": "+assemble(t, tool, k.Op, g.Target))
	}
	if testing.Short() {
		return
	}
	lines = append(lines, assembleAttentions(t, tool)...)
	lines = append(lines, assembleSIMTAttentions(t, tool)...)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(table, []byte(got), 0o644))
	}
	want, err := os.ReadFile(table)
	require.NoError(t, err)
	if !strings.HasPrefix(string(want), lines[0]+"\n") {
		registers := regexp.MustCompile(`\d+ registers`)
		_, got, _ = strings.Cut(registers.ReplaceAllString(got, ""), "\n")
		_, rest, _ := strings.Cut(registers.ReplaceAllString(string(want), ""), "\n")
		want = []byte(rest)
	}
	require.Equal(t, string(want), got, "go test ./blublas -run PTXAS -update writes the table anew")
}

// assembleAttentions assembles the kernels of GPT-2's attention, and of one with more features.
func assembleAttentions(t *testing.T, tool string) (lines []string) {
	c := ir.NewContext(ptx.Dialect)
	for _, target := range ptx.Targets {
		for _, p := range []Precision{BF16, TF32, TF32x3, FP16, FP16x3} {
			for _, features := range []int{64, 128} {
				qkv, o := packed(3, 12, 1024, features), packed(1, 12, 1024, features)
				a := Attention{Batch: 16, Heads: 12, KeyHeads: 12, Queries: 1024, Keys: 1024, Features: features, Causal: true, Scale: 0.125, Precision: p, Target: target,
					Q: qkv, K: qkv, V: qkv, DQ: qkv, DK: qkv, DV: qkv, O: o, DO: o}
				for kernel, build := range []func(Attention, *ir.Builder, Device) (*Kernel, error){Attention.Forward, Attention.GradQueries, Attention.GradKeys} {
					best, err := a.Best(AttentionKernel(kernel), H200)
					if a.scaled() && (target != ptx.SM90A || features > 64 && (kernel == 2 || kernel == 1 && p == FP16x3)) {
						require.Error(t, err)
						continue
					}
					require.NoError(t, err)
					k, err := build(best, ir.NewBuilder(c, nil), H200)
					require.NoError(t, err)
					require.NoError(t, ir.Verify(c, k.Op), k.Name)
					lines = append(lines, target+" "+k.Name+": "+assemble(t, tool, k.Op, target))
				}
				if a.scaled() && target == ptx.SM90A {
					split, err := AttentionSplit{a, []string{"q", "k", "v", "do"}}.Build(ir.NewBuilder(c, nil))
					require.NoError(t, err)
					lines = append(lines, target+" "+split.Name+": "+assemble(t, tool, split.Op, target))
				}
			}
		}
	}
	return lines
}

// assembleSIMTAttentions assembles the same on float32 units.
func assembleSIMTAttentions(t *testing.T, tool string) (lines []string) {
	c := ir.NewContext(ptx.Dialect)
	for _, target := range ptx.Targets {
		for _, features := range []int{64, 128} {
			qkv, o := packed(3, 12, 1024, features), packed(1, 12, 1024, features)
			a := Attention{Batch: 16, Heads: 12, KeyHeads: 12, Queries: 1024, Keys: 1024, Features: features, Causal: true, Scale: 0.125, Precision: FP32Strict, Target: target,
				Q: qkv, K: qkv, V: qkv, DQ: qkv, DK: qkv, DV: qkv, O: o, DO: o}
			for kernel, build := range map[AttentionKernel]func(Attention, *ir.Builder, Device) (*Kernel, error){AttentionForward: Attention.SIMTForward, AttentionGradKeys: Attention.SIMTGrad} {
				best, err := a.SIMTBest(kernel, DeviceFor(target))
				if features > 64 && target == ptx.SM89 {
					require.ErrorContains(t, err, "bytes of shared memory")
					continue
				}
				require.NoError(t, err)
				k, err := build(best, ir.NewBuilder(c, nil), DeviceFor(target))
				require.NoError(t, err)
				require.NoError(t, ir.Verify(c, k.Op), k.Name)
				lines = append(lines, target+" "+k.Name+": "+assemble(t, tool, k.Op, target))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// assemble gives "168 registers, 0 bytes spilled" and the warnings.
func assemble(t *testing.T, tool string, kernel *ir.Op, target string) string {
	text, err := codegen.Print(kernel)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "kernel.ptx")
	require.NoError(t, os.WriteFile(file, text, 0o644))
	out, err := exec.Command(tool, "-v", "-arch="+target, "-o", os.DevNull, file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", ir.SymName(kernel), out)
	find := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(string(out))
		require.NotNil(t, m, "%s\n%s", pattern, out)
		return m[1]
	}
	s := fmt.Sprintf("%s registers, %s bytes spilled", find(`Used (\d+) registers`), find(`(\d+) bytes spill stores`))
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "warning") || strings.Contains(line, "C75") {
			s += "; " + strings.TrimSpace(line)
		}
	}
	return s
}

// The same kernel prints as the same text, and its dump reads back as the same kernel.
func TestDeterministic(t *testing.T) {
	g := hopper()
	g.Epilogue = Standard(Options{Out: ir.BF16, Bias: true, Gelu: true, Keep: true, SumColumns: true})
	var texts, dumps [2]string
	for i := range texts {
		c := ir.NewContext(ptx.Dialect)
		k, err := g.Build(ir.NewBuilder(c, nil), H200)
		require.NoError(t, err)
		text, err := codegen.Print(k.Op)
		require.NoError(t, err)
		texts[i], dumps[i] = string(text), k.Op.String()
	}
	require.Equal(t, texts[0], texts[1])
	require.Equal(t, dumps[0], dumps[1])
}

// Kernels that make planes have registers for four blocks on a multiprocessor, and products that look at their flags spill nothing.
func TestPlanesAssemble(t *testing.T) {
	tool := upstream.PTXAS(t)
	c := ir.NewContext(ptx.Dialect)
	none := regexp.MustCompile(`^\d+ registers, 0 bytes spilled$`)
	of := &Function{Name: "gelu", Apply: func(b *ptx.Builder, x *ir.Value) *ir.Value { return Gelu(b, x) }}
	for _, of := range [][]Matrix{
		{{Name: "a", Rows: 16384, Cols: 3072, Pitch: 3072, PlanePitch: 3072, Of: of, Sets: []Set{{"a", true}}}, {Name: "b", Rows: 768, Cols: 3072, Pitch: 3072, PlanePitch: 3072, Of: of, Sets: []Set{{"b", true}, {"u", false}}}},
		{{Name: "a", Rows: 16384, Cols: 768, Pitch: 768, PlanePitch: 768, Sets: []Set{{"a", false}}}, {Name: "b", Rows: 768, Cols: 3072, Pitch: 3072, PlanePitch: 3072, Sets: []Set{{"b", true}}}},
		{{Name: "a", Rows: 2048, Cols: 50257, Pitch: 50257, PlanePitch: 50264, Sets: []Set{{"a", true}}}, {Name: "b", Rows: 2048, Cols: 768, Pitch: 768, PlanePitch: 768, Unaligned: true, Sets: []Set{{"b", true}}}},
		{{Name: "a", Rows: 16384, Cols: 3072, Pitch: 3072, PlanePitch: 3072, Sets: []Set{{"a", false}, {"t", true}}}, {Name: "b", Rows: 768, Cols: 3072, Pitch: 3072, PlanePitch: 3072, Sets: []Set{{"b", true}, {"u", false}}}},
	} {
		for _, p := range []Precision{FP16x3, BF16x6} {
			k, err := Split{Precision: p, Of: of, Target: ptx.SM90A}.Build(ir.NewBuilder(c, nil), H200)
			require.NoError(t, err)
			require.NoError(t, ir.Verify(c, k.Op), k.Name)
			require.Regexp(t, none, assemble(t, tool, k.Op, ptx.SM90A), k.Name)
		}
	}
	g := Gemm{M: 16384, N: 3072, K: 768, Precision: FP16x3, Unit: WGMMA, Target: ptx.SM90A, BM: 128, BN: 192, BK: 64, Stages: 2, Consumers: 2, Cluster: 1, SplitK: 1}
	g.A, g.B, g.Epilogue = Operand{Pitch: 768}, Operand{MNMajor: true, Pitch: 3072}, Standard(Options{Out: ir.F32, GeluGrad: true, SumColumns: true})
	g.Flags, g.Refuge = [2]int{528, 528}, g.refugeOf(Operand{Pitch: 768}, Operand{MNMajor: true, Pitch: 3072})
	for range 2 {
		k, err := g.Build(ir.NewBuilder(c, nil), H200)
		require.NoError(t, err)
		require.Regexp(t, none, assemble(t, tool, k.Op, ptx.SM90A), k.Name)
		g.Refuge.Of[1] = of
	}
}
