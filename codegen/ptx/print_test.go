package ptx

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/builtin"
	"blutrain/dialects/ptx"
	"blutrain/internal/upstream"
	"blutrain/ir"
)

var update = flag.Bool("update", false, "write the golden PTX files anew")

func kernel(t *testing.T, source string) (*ir.Context, *ir.Op) {
	t.Helper()
	c := ir.NewContext(builtin.Dialect, ptx.Dialect)
	m, err := ir.Parse(c, "kernel.mlir", []byte(source))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, m))
	var found *ir.Op
	ir.Walk(m, func(op *ir.Op) ir.WalkResult {
		if op.Is(ptx.Kernel) {
			found = op
		}
		return ir.Advance
	})
	require.NotNil(t, found)
	return c, found
}

func text(t *testing.T, source string) string {
	t.Helper()
	_, k := kernel(t, source)
	out, err := Print(k)
	require.NoError(t, err)
	return string(out)
}

// The golden files show each kernel beside its PTX, and ptxas assembles them.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.mlir")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			source, err := os.ReadFile(name)
			require.NoError(t, err)
			got := text(t, string(source))
			golden := strings.TrimSuffix(name, ".mlir") + ".ptx"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)

			target := regexp.MustCompile(`\.target (\S+)`).FindStringSubmatch(got)[1]
			out, err := exec.Command(upstream.PTXAS(t), "-arch="+target, "-o", os.DevNull, golden).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// What is printed reads back, and the generic form is one that upstream's tools read.
func TestRoundTrip(t *testing.T) {
	names, err := filepath.Glob("testdata/*.mlir")
	require.NoError(t, err)
	for _, name := range names {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		_, k := kernel(t, string(source))
		short := string(ir.Print(k, ir.PrintOptions{}))
		_, again := kernel(t, short)
		require.Equal(t, short, string(ir.Print(again, ir.PrintOptions{})))

		cmd := exec.Command(upstream.MLIROpt(t), "--allow-unregistered-dialect")
		cmd.Stdin = strings.NewReader(string(ir.Print(k, ir.PrintOptions{Generic: true, Locations: true})))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", name, out)
	}
}

func body(lines string) string {
	return "ptx.kernel @k attributes {target = \"sm_80\", threads = 32 : i64} (%p: i64, %n: i32, %x: f32) {\n" + lines + "\n  ptx.return\n}\n"
}

// Carried values that swap places don't overwrite each other.
func TestSwap(t *testing.T) {
	got := text(t, body(`
  %0 = ptx.const {value = 0 : i32} : () -> i32
  %1 = ptx.const {value = 1 : i32} : () -> i32
  %a = ptx.add %n, %1 : (i32, i32) -> i32
  %b = ptx.add %n, %n : (i32, i32) -> i32
  %r:2 = ptx.for %0, %n, %1, %a, %b : (i32, i32, i32, i32, i32) -> (i32, i32) (%i: i32, %c: i32, %d: i32) {
    ptx.yield %d, %c : (i32, i32) -> ()
  }
  ptx.st %p, %r#0 {space = "global"} : (i64, i32) -> ()`))
	moves := regexp.MustCompile(`mov\.b32 (\S+), (\S+);`).FindAllStringSubmatch(got[strings.Index(got, "$loop"):], -1)
	require.Len(t, moves, 3, got)
	values := map[string]string{moves[1][1]: "c", moves[2][1]: "d"} // what the two registers hold before
	for _, m := range moves {
		values[m[1]] = values[m[2]]
	}
	require.Equal(t, "d", values[moves[1][1]])
	require.Equal(t, "c", values[moves[2][1]])
}

// A vector that is needed afterwards is copied before it is worked on; one that isn't is worked on in place.
func TestInPlace(t *testing.T) {
	const load = `
  %v = ptx.ld %p {space = "global"} : (i64) -> vector<4xf32>
  %w = ptx.add %v, %v : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
`
	got := text(t, body(load+`  ptx.st %p, %w {space = "global"} : (i64, vector<4xf32>) -> ()`))
	require.Equal(t, 4, strings.Count(got, "mov.f32"), got)

	got = text(t, body(`
  %v = ptx.ld %p {space = "global"} : (i64) -> vector<4xf32>
  %u = ptx.ld %p {space = "global", offset = 16 : i64} : (i64) -> vector<4xf32>
  %w = ptx.add %v, %u : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  ptx.st %p, %w {space = "global"} : (i64, vector<4xf32>) -> ()`))
	require.NotContains(t, got, "mov.f32")
	require.Contains(t, got, "add.rn.f32 %v0_3, %v0_3, %v1_3;")
}

// A predicated load leaves zeros where it doesn't read.
func TestPredicatedLoad(t *testing.T) {
	got := text(t, body(`
  %0 = ptx.const {value = 0 : i32} : () -> i32
  %in = ptx.setp %n, %0 {is = "gt"} : (i32, i32) -> i1
  %v = ptx.ld %p, %in {space = "global"} : (i64, i1) -> vector<2xf32>
  ptx.st %p, %v, %in {space = "global"} : (i64, vector<2xf32>, i1) -> ()`))
	require.Regexp(t, `mov\.f32 %v2_0, 0f00000000;\n\s+mov\.f32 %v2_1, 0f00000000;\n\s+@%p1 ld\.global\.v2\.f32 \{%v2_0, %v2_1\}, \[%la0\];\n\s+//.*\n\s+@%p1 st\.global\.v2\.f32`, got)
}

// Where operations come from is told when it changes.
func TestLocations(t *testing.T) {
	got := text(t, body(`
  %a = ptx.add %n, %n : (i32, i32) -> i32 loc("gpt2.blu":12:7)
  %b = ptx.add %a, %n : (i32, i32) -> i32 loc("gpt2.blu":12:7)
  %c = ptx.add %b, %n : (i32, i32) -> i32 loc("gpt2.blu":13:9)`))
	require.Equal(t, 1, strings.Count(got, "// gpt2.blu:12:7\n"))
	require.Equal(t, 1, strings.Count(got, "// gpt2.blu:13:9\n"))
}

func TestNotAKernel(t *testing.T) {
	_, k := kernel(t, body(""))
	_, err := Print(k.Body().Last())
	require.ErrorContains(t, err, "ptx.return is no ptx.kernel")
}
