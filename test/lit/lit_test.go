// Package lit runs the golden tests in this folder: small files whose RUN lines are commands and whose CHECK lines say
// what these print. They also run under LLVM's lit and FileCheck, unchanged; the verdicts must be the same.
//
//	go test ./test/lit -run Golden/passes/cse.mlir
package lit

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/litrun"
	"blutrain/internal/upstream"
)

func TestGolden(t *testing.T) {
	r := newRunner(t, build(t, "blutrain/cmd/...", "blutrain/test/tools/..."))
	names, err := r.Discover()
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := r.Run(t.Context(), name)
			switch result.Verdict {
			case litrun.Pass, litrun.XFail:
			case litrun.Unsupported:
				t.Skip(result.Report)
			default:
				t.Errorf("%s\n%s", result.Verdict, result.Report)
			}
		})
	}
}

// TestUpstream compares every verdict with that of LLVM's lit, which uses LLVM's FileCheck, not, count and split-file.
func TestUpstream(t *testing.T) {
	lit := upstream.Lit(t)
	upstream.SplitFile(t) // and with it the other tools of its package

	bin := build(t, "blutrain/cmd/...", "blutrain/test/tools/...")
	ours, theirs := newRunner(t, bin), newRunner(t, bin)
	theirs.Path = []string{upstream.LLVMBin, bin}
	want, err := theirs.UpstreamVerdicts(lit)
	require.NoError(t, err)

	names, err := ours.Discover()
	require.NoError(t, err)
	require.Len(t, want, len(names), "both must find the same tests")
	for _, name := range names {
		result := ours.Run(t.Context(), name)
		if result.Verdict != want[name] {
			t.Errorf("%s: %s, with LLVM's lit %q\n%s", name, result.Verdict, want[name], result.Report)
		}
	}
}

// build compiles commands of this repository into a new folder.
func build(t *testing.T, packages ...string) string {
	dir := t.TempDir()
	cmd := exec.Command("go", append([]string{"build", "-o", dir + "/"}, packages...)...)
	cmd.Dir = upstream.Root(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return dir
}

// newRunner makes a runner for this folder. Tests find the commands in bin first, then the tools of LLVM.
func newRunner(t *testing.T, bin string) *litrun.Runner {
	root, err := os.Getwd()
	require.NoError(t, err)
	r, err := litrun.New(root, t.TempDir())
	require.NoError(t, err)
	r.Path = []string{bin}
	r.Features = []string{runtime.GOOS, runtime.GOARCH}
	for _, tool := range []string{"mlir-opt", "opt", "llc"} {
		if _, err := os.Stat(filepath.Join(upstream.LLVMBin, tool)); err == nil {
			r.Features = append(r.Features, tool)
		}
	}
	r.Path = append(r.Path, upstream.LLVMBin)
	return r
}
