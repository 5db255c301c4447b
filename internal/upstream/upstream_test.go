package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that records how a test ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}
func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome runs find apart, because it may end its goroutine.
func outcome(want tool) (r recorder, path string) {
	done := make(chan bool)
	go func() {
		defer close(done)
		path = find(&r, want)
	}()
	<-done
	return r, path
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	pinned := filepath.Join(dir, "python3.12", "nosuchtool")
	require.NoError(t, os.MkdirAll(filepath.Dir(pinned), 0o755))
	require.NoError(t, os.WriteFile(pinned, nil, 0o755))
	absent := tool{names: []string{"nosuchtool"}, from: "nowhere"}

	t.Setenv(RequireVariable, "")
	r, _ := outcome(absent)
	require.Equal(t, "nosuchtool is not installed (nowhere)", r.skipped)
	require.Empty(t, r.failed)

	t.Setenv(RequireVariable, "1")
	r, _ = outcome(absent)
	require.Empty(t, r.skipped)
	require.Contains(t, r.failed, "nosuchtool is not installed (nowhere); BLUTRAIN_REQUIRE_TOOLS=1 requires it")

	_, path := outcome(tool{names: []string{"nosuchtool"}, patterns: []string{dir + "/python3*/nosuchtool"}})
	require.Equal(t, pinned, path)

	t.Setenv("PATH", filepath.Dir(pinned))
	_, path = outcome(absent)
	require.Equal(t, pinned, path)
}

// TestTools: each tool runs, where it is installed.
func TestTools(t *testing.T) {
	tools := map[string]func(testing.TB) string{
		"mlir-opt": MLIROpt, "FileCheck": FileCheck, "split-file": SplitFile, "opt": Opt, "llc": LLC, "lit": Lit, "ptxas": PTXAS,
		"chromium": Chromium, "chromedriver": ChromeDriver,
	}
	for name, find := range tools {
		t.Run(name, func(t *testing.T) {
			output, err := exec.Command(find(t), "--version").CombinedOutput()
			require.NoError(t, err, "%s", output)
		})
	}
}

func TestRoot(t *testing.T) {
	require.FileExists(t, filepath.Join(Root(t), "internal", "upstream", "upstream.go"))
}
