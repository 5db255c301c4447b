package driver_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes"
)

const example = "../examples/mlp.blu"

func source(t *testing.T) []byte {
	t.Helper()
	src, err := os.ReadFile(example)
	require.NoError(t, err)
	return src
}

// The rows fit together: every target's phases have names of their own, and their passes exist and are in an allowed order.
func TestTables(t *testing.T) {
	require.NoError(t, passes.Check(driver.Passes()))
	for _, p := range driver.Phases {
		require.NotEmpty(t, p.Summary, p.Name)
		require.True(t, p.Passes != "" || p.Run != nil, "phase %s does nothing", p.Name)
		for _, target := range p.Targets {
			require.Contains(t, driver.TargetNames(), target)
		}
	}
	for _, target := range driver.Targets {
		o := driver.Options{Target: target.Name, Precision: target.Precisions[0]}
		if len(target.Archs) > 0 {
			o.Arch = target.Archs[0]
		}
		seen := map[string]bool{}
		var all []string
		for _, p := range driver.Phases {
			if p.Targets != nil && !slices.Contains(p.Targets, target.Name) {
				continue
			}
			require.False(t, seen[p.Name], "%s: %s", target.Name, p.Name)
			seen[p.Name] = true
			if p.Passes != "" {
				all = append(all, o.Pipeline(p))
			}
		}
		_, err := passes.ParsePipeline(driver.Passes(), "builtin.module("+strings.Join(all, ",")+")")
		require.NoError(t, err, target.Name)
	}
}

// Each phase's dump is accepted as input again, and what comes of it is the same as without the stop.
func TestEveryDumpContinues(t *testing.T) {
	for _, target := range driver.TargetNames() {
		dir := t.TempDir()
		whole, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: target, DumpDir: dir})
		require.NoError(t, err)
		program, ok := whole.Artifact.File("program.mlir")
		require.True(t, ok)
		dumps, err := filepath.Glob(filepath.Join(dir, "mlp.*.mlir"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(dumps), 3)
		require.Equal(t, "mlp.1.input.mlir", filepath.Base(dumps[0]))
		for _, dump := range dumps {
			text, err := os.ReadFile(dump)
			require.NoError(t, err)
			again := t.TempDir()
			r, err := driver.Compile(dump, text, driver.Options{Target: target, DumpDir: again})
			require.NoError(t, err, dump)
			got, _ := r.Artifact.File("program.mlir")
			require.True(t, bytes.Equal(program, got), "%s continues differently", dump)
			for _, later := range dumps { // what is dumped on the way has the same names and text
				if b, err := os.ReadFile(filepath.Join(again, filepath.Base(later))); err == nil {
					want, err := os.ReadFile(later)
					require.NoError(t, err)
					require.True(t, bytes.Equal(want, b), "%s from %s", later, dump)
				}
			}
		}
	}
}

func TestCompileTo(t *testing.T) {
	for _, p := range driver.Phases {
		r, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: "cpu", CompileTo: p.Name})
		require.NoError(t, err)
		require.Equal(t, p.Name, r.Phase)
		require.Equal(t, p.Name == "binary", r.Artifact != nil)
	}
}

// A program that no device could open is no artifact: the error names the kernel.
func TestProgramsThatNobodyCanOpen(t *testing.T) {
	r, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: "cuda", Precision: "bf16", CompileTo: "target"})
	require.NoError(t, err)
	text := driver.Text(r.Module, false)
	stride := regexp.MustCompile(`strides = array<i64: \d+`)
	require.Regexp(t, stride, string(text))
	_, err = driver.Compile("mlp.mlir", stride.ReplaceAll(text, []byte("strides = array<i64: 0")), driver.Options{})
	require.ErrorContains(t, err, "error: exec.kernel @gemm_")
	require.ErrorContains(t, err, "a stride of 0 bytes; a multiple of 16")
}

func TestSet(t *testing.T) {
	r, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: "ref", Set: map[string]float64{"M": 64, "B": 2}})
	require.NoError(t, err)
	require.Equal(t, 64.0, r.Artifact.Manifest.Args["M"])
	require.Equal(t, int64(2), r.Artifact.Manifest.Train.Batch.B)
}

// What a module was compiled for, it is compiled on for.
func TestModulesRememberChoices(t *testing.T) {
	for _, o := range []driver.Options{{Target: "cpu", Precision: "bf16"}, {Target: "ref", Precision: "bf16"}, {Target: "cuda", Arch: "sm_80"}} {
		o.DumpDir = t.TempDir()
		_, err := driver.Compile("mlp.blu", source(t), o)
		require.NoError(t, err)
		dumps, err := filepath.Glob(filepath.Join(o.DumpDir, "mlp.*.mlir"))
		require.NoError(t, err)
		last := dumps[len(dumps)-1]
		text, err := os.ReadFile(last)
		require.NoError(t, err)
		r, err := driver.Compile(last, text, driver.Options{})
		require.NoError(t, err)
		m := r.Artifact.Manifest
		require.Equal(t, o.Target, m.Target)
		require.Equal(t, o.Arch, m.Arch)
		if o.Precision != "" {
			require.Equal(t, o.Precision, m.Precision)
		}
	}
}

// The order of independent operations changes nothing about what is declared and called.
func TestShuffledCompilation(t *testing.T) {
	plain, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: "ref"})
	require.NoError(t, err)
	for seed := range uint64(5) {
		shuffled, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: "ref", Passes: passes.Config{Shuffle: true, Seed: seed}})
		require.NoError(t, err)
		require.Equal(t, plain.Artifact.Manifest.Functions, shuffled.Artifact.Manifest.Functions)
		require.Equal(t, plain.Artifact.Manifest.States, shuffled.Artifact.Manifest.States)
	}
}

func TestErrors(t *testing.T) {
	module := func(attrs string) string { return "builtin.module " + attrs + "{\n}\n" }
	for _, tc := range []struct {
		name, file, src string
		o               driver.Options
		want            string
	}{
		{"target", "a.blu", "", driver.Options{Target: "reff"}, `no target "reff"; did you mean ref?`},
		{"another name of a target", "a.blu", "", driver.Options{Target: "gpu"}, `no target "gpu"; did you mean cuda?`},
		{"f64 on a CPU", "a.blu", "model m {\n  fn y(x: f64[B]) -> f64[B] { return x + x }\n}\n", driver.Options{Set: map[string]float64{"B": 2}},
			"a.blu:2:40: error: target cpu does not compute with f64 here: cast to f32, or compile with --target ref"},
		{"i64 on a CPU", "a.blu", "model m {\n  fn y(x: i64[B]) -> i64[B] { return x + x }\n}\n", driver.Options{Set: map[string]float64{"B": 2}},
			"a.blu:2:40: error: target cpu does not compute with i64 here: cast to i32, or compile with --target ref"},
		{"a product of f64 on a GPU", "a.blu", "model m {\n  fn y(x: f64[B, B]) -> f64[B, B] { return matmul(x, x) }\n}\n", driver.Options{Target: "cuda", Set: map[string]float64{"B": 2}},
			"a.blu:2:44: error: target cuda does not compute with f64 here: cast to f32, or compile with --target ref"},
		{"precision", "a.blu", "", driver.Options{Target: "ref", Precision: "fp8"}, `target ref has no precision "fp8"; it has fp32, fp32-strict`},
		{"phase", "a.blu", "", driver.Options{Target: "ref", CompileTo: "grpah"}, `no phase "grpah" for target ref; did you mean graph?`},
		{"pass", "a.blu", "", driver.Options{Target: "ref", Passes: passes.Config{PrintAfter: []string{"cs"}}}, "no pass cs; did you mean cse or dce?"},
		{"extension", "a.txt", "", driver.Options{Target: "ref"}, "a.txt: expected a model (.blu) or a module (.mlir)"},
		{"no phase attribute", "a.mlir", module(""), driver.Options{Target: "ref"}, "a.mlir:1:1: error: the module has no attribute blu.phase"},
		{"unknown phase attribute", "a.mlir", module(`attributes {blu.phase = "trian"} `), driver.Options{Target: "ref"}, `did you mean train?`},
		{"past the phase", "a.mlir", module(`attributes {blu.phase = "graph"} `), driver.Options{Target: "ref", CompileTo: "input"}, "a.mlir is past the phase input: it is the result of graph"},
		{"syntax", "a.mlir", "builtin.modul", driver.Options{Target: "ref"}, "a.mlir:1:1: error: unknown operation builtin.modul; did you mean builtin.module?"},
		{"invalid", "a.mlir", "arith.constant : () -> i32", driver.Options{Target: "ref"}, "a.mlir:1:1: error: arith.constant: attribute value is missing"},
		{"another target", "a.mlir", module(`attributes {blu.phase = "kernels", blu.target = "cuda"} `), driver.Options{Target: "cpu"}, "a.mlir was compiled with --target cuda: that can't become cpu any more"},
		{"another precision", "a.mlir", module(`attributes {blu.phase = "graph", blu.precision = "bf16"} `), driver.Options{Precision: "fp32"}, "a.mlir was compiled with --precision bf16: that can't become fp32 any more"},
		{"set a module", "a.mlir", module(`attributes {blu.phase = "train"} `), driver.Options{Set: map[string]float64{"M": 2}}, "a.mlir is a module: only the arguments of a model (.blu) can be set"},
		{"late stores", "a.mlir", module(`attributes {blu.phase = "target", blu.target = "cuda", blu.arch = "sm_90a"} `), driver.Options{ThreadStores: true}, "a.mlir is past the phase target, in which kernels are chosen and made"},
		{"late recomputation", "a.mlir", module(`attributes {blu.phase = "graph"} `), driver.Options{Recompute: "full"}, "a.mlir is past the phase graph, in which it is chosen what is recomputed"},
		{"model", "a.blu", "model x(", driver.Options{Target: "ref"}, "a.blu:1:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := driver.Compile(tc.file, []byte(tc.src), tc.o)
			require.ErrorContains(t, err, tc.want)
			require.NotEmpty(t, driver.Diagnostics(err))
		})
	}
}

// Constants survive a dump whole, whatever printing elides.
func TestDumpsAreComplete(t *testing.T) {
	dir := t.TempDir()
	_, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: "ref", DumpDir: dir, Passes: passes.Config{Print: ir.PrintOptions{ElideAbove: 1}}})
	require.NoError(t, err)
	dumps, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, d := range dumps {
		text, err := os.ReadFile(d)
		require.NoError(t, err)
		require.NotContains(t, string(text), "__elided__", d)
	}
}

func TestPrintAfterAll(t *testing.T) {
	var log bytes.Buffer
	_, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: "ref", Passes: passes.Config{PrintAfterAll: true, Log: &log}})
	require.NoError(t, err)
	for _, pass := range []string{"train", "canonicalize", "cse", "dce"} {
		require.Contains(t, log.String(), fmt.Sprintf("// IR after %s\n", pass))
	}
}

// The same input and flags give the same bytes.
func TestDeterministic(t *testing.T) {
	for _, target := range driver.TargetNames() {
		var first []byte
		for range 3 {
			r, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: target})
			require.NoError(t, err)
			b, err := r.Artifact.Encode()
			require.NoError(t, err)
			if first == nil {
				first = b
			}
			require.True(t, bytes.Equal(first, b))
		}
	}
}
