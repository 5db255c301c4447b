package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// bluc runs a command line as the program would.
func bluc(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(args, &streams{strings.NewReader(in), &o, &e})
	return o.String(), e.String(), code
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

const module = `func.func @f(%x: i32) -> i32 {
  %a = arith.addi %x, %x : (i32, i32) -> i32
  %b = arith.addi %x, %x : (i32, i32) -> i32
  %c = arith.muli %a, %b : (i32, i32) -> i32
  func.return %c : (i32) -> ()
}
`

func TestHelp(t *testing.T) {
	out, _, code := bluc(t, "")
	require.Zero(t, code)
	require.Contains(t, out, "compile")
	out, _, code = bluc(t, "", "compile", "--help")
	require.Zero(t, code)
	require.Contains(t, out, "--dump-phases-to")
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"bogus"}, {"opt", "--bogus"}, {"compile"}, {"ops", "arith.adi"}, {"opt", "--pass-pipeline=builtin.module(cs)"},
		{"opt", "--print-ir-after=cs"}, {"compile", "x.mlir", "--target=cup"}, {"inspect"},
		{"compile", "x.mlir", "--set"}, {"compile", "x.mlir", "--set=V"}, {"compile", "x.mlir", "--set=V="}, {"compile", "x.mlir", "--set==3"}, {"compile", "x.mlir", "--set=V=many"},
		{"compile", "x.mlir", "--set=V=1,"}, {"compile", "x.mlir", "--set=V=1e400"}, {"compile", "x.mlir", "--set=V=nan"}, {"compile", "x.mlir", "--set=V=true,V=1"}, {"compile", "x.mlir", "--set=V=1,V=2"}, {"compile", "x.mlir", "--set=V=1", "--set=V=1"},
		{"compile", "x.mlir", "--memory-budget=NaN"}, {"compile", "x.mlir", "--memory-budget=-1"}, {"compile", "x.mlir", "--memory-budget=0.5B"}, {"compile", "x.mlir", "--shuffle-ops=x"},
	} {
		in := file(t, "x.mlir", module)
		for i := range args {
			if args[i] == "x.mlir" {
				args[i] = in
			}
		}
		out, errs, code := bluc(t, module, args...)
		require.Equal(t, usage, code, "%v", args)
		require.Empty(t, out)
		require.Regexp(t, `^bluc: error: .+\n$`, errs, "one line")
	}
}

func TestOpt(t *testing.T) {
	out, errs, code := bluc(t, module, "opt", "--pass-pipeline=builtin.module(func.func(cse))")
	require.Zero(t, code, errs)
	require.Equal(t, 1, strings.Count(out, "arith.addi"))
	again, _, _ := bluc(t, out, "opt", "-")
	require.Equal(t, out, again)
	generic, _, code := bluc(t, out, "opt", "--print-generic", "--print-locations")
	require.Zero(t, code)
	require.Contains(t, generic, `"arith.muli"(%0, %0) : (i32, i32) -> i32 loc("<stdin>":4:10)`)
}

func TestOptErrors(t *testing.T) {
	path := file(t, "bad.mlir", "func.func @f() {\n  %a = arith.constant : () -> i32\n  arith.constnt\n}\n")
	out, errs, code := bluc(t, "", "opt", path)
	require.Equal(t, failed, code)
	require.Empty(t, out)
	require.Equal(t, path+":3:3: error: unknown operation arith.constnt; did you mean arith.constant?\n    3 |   arith.constnt\n      |   ^\n", errs)
	_, errs, code = bluc(t, "", "opt", filepath.Join(t.TempDir(), "missing.mlir"))
	require.Equal(t, failed, code)
	require.Contains(t, errs, "missing.mlir: no such file or directory")
}

func TestSplitAndVerifyDiagnostics(t *testing.T) {
	src := "arith.constant {value = 1 : i32} : () -> i32\n// -----\n// expected-error@+1 {{attribute value is missing}}\narith.constant : () -> i32\n// -----\nfunc.func @f() {\n  // expected-error@+1 {{unknown operation arith.x}}\n  arith.x\n}\n"
	path := file(t, "split.mlir", src)
	_, errs, code := bluc(t, "", "opt", path, "--split-input-file", "--verify-diagnostics")
	require.Zero(t, code, errs)
	_, errs, code = bluc(t, "", "opt", file(t, "split.mlir", strings.Replace(src, "is missing", "is lost", 1)), "--split-input-file", "--verify-diagnostics")
	require.Equal(t, failed, code)
	require.Contains(t, errs, ":4:1: error: unexpected error: arith.constant: attribute value is missing")
	require.Contains(t, errs, ":3:4: error: expected error was not produced: attribute value is lost")
	out, _, code := bluc(t, module+"// -----\n"+module, "opt", "--split-input-file")
	require.Zero(t, code)
	require.Equal(t, 2, strings.Count(out, "func.func @f"))
	require.Contains(t, out, "\n// -----\n")
	_, errs, code = bluc(t, module, "opt", "--pass-pipeline=builtin.module(canonicalize,cse)", "--print-ir-after-all")
	require.Zero(t, code, errs)
	out, errs, code = bluc(t, errs, "opt", "--split-input-file")
	require.Zero(t, code, "what is printed between passes is read again: %s", errs)
	require.Equal(t, 2, strings.Count(out, "func.func @f"))
}

func TestReproducerIsReplayed(t *testing.T) {
	out, errs, code := bluc(t, "// A comment.\n// pipeline: builtin.module(cse)\n"+module, "opt")
	require.Zero(t, code, errs)
	require.Equal(t, 1, strings.Count(out, "arith.addi"))
}

func TestCompile(t *testing.T) {
	dir := t.TempDir()
	blx := filepath.Join(dir, "mlp.blx")
	_, errs, code := bluc(t, "", "compile", "../../examples/mlp.blu", "-o", blx, "--target=ref", "--set=M=32,B=2", "--set=E=8", "--timing")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "(phase input)")
	out, _, code := bluc(t, "", "inspect", blx)
	require.Zero(t, code)
	require.Contains(t, out, "accumulate(tokens: i32[2, 64]")
	out, _, code = bluc(t, "", "inspect", blx, "--params", "--memory")
	require.Zero(t, code)
	require.Contains(t, out, "32x32 f32")
	require.Regexp(t, `\n\nbytes +tensors`, out, "an empty line between two parts")
	require.Contains(t, out, "optimizer state")
	out, _, code = bluc(t, "", "compile", "../../examples/mlp.blu", "--compile-to=input")
	require.Zero(t, code)
	require.True(t, strings.HasPrefix(out, "builtin.module @mlp"))
}

// TestOutputsAndInputs: nothing that is read is written over, but a module, which may be changed in place; "-" is the standard output.
func TestOutputsAndInputs(t *testing.T) {
	good, err := os.ReadFile("../../examples/mlp.blu")
	require.NoError(t, err)
	model := file(t, "mlp.blu", string(good))
	dir := filepath.Dir(model)
	link, out := filepath.Join(dir, "link.blx"), filepath.Join(dir, "out")
	require.NoError(t, os.Symlink("mlp.blu", link))
	for _, args := range [][]string{
		{"-o", model}, {"-o", link}, {"-o", out, "--dump-html", model}, {"-o", out, "--crash-reproducer", model}, {"-o", out, "--dump-html", out},
		{"--compile-to=graph", "-o", model},
	} {
		_, errs, code := bluc(t, "", append([]string{"compile", model, "--target=ref", "--set=M=8,E=4,B=1,S=8"}, args...)...)
		require.Equal(t, usage, code, "%v: %s", args, errs)
		text, _ := os.ReadFile(model)
		require.Equal(t, string(good), string(text))
		require.NoFileExists(t, out)
	}
	artifact, errs, code := bluc(t, "", "compile", model, "--target=ref", "--set=M=8,E=4,B=1,S=8", "-o", "-")
	require.Zero(t, code, errs)
	require.True(t, strings.HasPrefix(artifact, "PK"))
	path := file(t, "x.mlir", module)
	_, errs, code = bluc(t, "", "opt", path, "--pass-pipeline=builtin.module(cse)", "-o", path)
	require.Zero(t, code, errs)
	_, errs, code = bluc(t, "", "opt", path, "-o", out, "--dump-html", path)
	require.Equal(t, usage, code, errs)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestPrintingToAFullDisk(t *testing.T) {
	blx := filepath.Join(t.TempDir(), "x.blx")
	_, errs, code := bluc(t, "", "compile", "../../examples/mlp.blu", "-o", blx, "--set=M=8,E=4,B=1,S=8")
	require.Zero(t, code, errs)
	for _, args := range [][]string{
		{"--help"}, {"ops"}, {"ops", "blu.add"}, {"passes"}, {"version"}, {"opt", "-"}, {"fmt", "-"}, {"inspect", blx}, {"inspect", blx, "--memory", "--kernels", "--params"},
		{"compile", "../../examples/mlp.blu", "--compile-to=input"}, {"compile", "../../examples/mlp.blu", "--set=M=8,E=4,B=1,S=8", "-o", "-"},
	} {
		in := ""
		if args[0] == "fmt" {
			in = "model m() {}\n"
		}
		var e bytes.Buffer
		require.Equal(t, failed, run(args, &streams{strings.NewReader(in), fullDisk{}, &e}), "%v", args)
		require.Contains(t, e.String(), "no space left on device", "%v", args)
	}
}

// endless is a device such as /dev/zero.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestEndlessInput(t *testing.T) {
	var o, e bytes.Buffer
	require.Equal(t, failed, run([]string{"check", "-"}, &streams{endless{}, &o, &e}))
	require.Equal(t, "bluc: error: <stdin>: longer than 64 MiB\n", e.String())
}

func TestCompileErrors(t *testing.T) {
	path := file(t, "bad.blu", "model m() {\n  fn f(x: f32[2]) -> f32[3] {\n    return x\n  }\n}\n")
	blx := filepath.Join(t.TempDir(), "bad.blx")
	_, errs, code := bluc(t, "", "compile", path, "-o", blx)
	require.Equal(t, failed, code)
	require.Contains(t, errs, path+":3:")
	require.Contains(t, errs, "^")
	require.NoFileExists(t, blx)
	_, errs, code = bluc(t, "", "inspect", path)
	require.Equal(t, failed, code)
	require.NotEmpty(t, errs)
	_, errs, code = bluc(t, "", "inspect", "none.blx")
	require.Equal(t, failed, code)
	require.Equal(t, "bluc: error: open none.blx: no such file or directory\n", errs)
	_, errs, code = bluc(t, "", "inspect", t.TempDir())
	require.Equal(t, failed, code)
	require.Contains(t, errs, ": is a directory")
}

func TestCheckAndFmt(t *testing.T) {
	good, err := os.ReadFile("../../examples/mlp.blu")
	require.NoError(t, err)
	bad := "model m() {\n  fn f(x: f32[2]) -> f32[3] {\n    return x // expected-error {{}}\n  }\n}\n"
	_, errs, code := bluc(t, "", "check", file(t, "bad.blu", bad), "../../examples/mlp.blu", "no.blu")
	require.Equal(t, failed, code)
	require.Contains(t, errs, "bad.blu:3:")
	require.Contains(t, errs, "no.blu: no such file")
	_, errs, code = bluc(t, "", "check", "--verify-diagnostics", file(t, "bad.blu", bad))
	require.Zero(t, code, errs)

	messy := strings.ReplaceAll(string(good), " = ", "   =  ")
	path := file(t, "messy.blu", messy)
	out, _, code := bluc(t, "", "fmt", "--check", path, "../../examples/mlp.blu")
	require.Equal(t, failed, code)
	require.Equal(t, path+"\n", out)
	_, errs, code = bluc(t, "", "fmt", path)
	require.Zero(t, code, errs)
	formatted, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(good), string(formatted))
	out, _, code = bluc(t, messy, "fmt", "-")
	require.Zero(t, code)
	require.Equal(t, string(good), out)
	broken := file(t, "broken.blu", "model (")
	_, errs, code = bluc(t, "", "fmt", broken)
	require.Equal(t, failed, code)
	require.Contains(t, errs, "broken.blu:1:")
	text, _ := os.ReadFile(broken)
	require.Equal(t, "model (", string(text))
}

func TestLists(t *testing.T) {
	out, _, code := bluc(t, "", "passes")
	require.Zero(t, code)
	require.Contains(t, out, "after canonicalize: equal operations look equal only in canonical form")
	out, _, code = bluc(t, "", "ops")
	require.Zero(t, code)
	require.Contains(t, out, "blu.softmax")
	out, _, code = bluc(t, "", "ops", "gelu")
	require.Zero(t, code)
	require.Contains(t, out, "blu.gelu: ")
	require.Contains(t, out, "tile.gelu: ")
	_, errs, code := bluc(t, "", "ops", "gleu")
	require.Equal(t, usage, code)
	require.Contains(t, errs, "no operation or dialect gleu; did you mean gelu")
	out, _, code = bluc(t, "", "ops", "blu.softmax", "scf")
	require.Zero(t, code)
	require.Contains(t, out, "attribute axis")
	require.Contains(t, out, "scf.for")
	out, _, code = bluc(t, "", "version")
	require.Zero(t, code)
	require.Contains(t, out, "bluc 0.")
}
