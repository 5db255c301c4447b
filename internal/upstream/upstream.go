// Package upstream finds the tools of other projects that tests compare this project with. A tool that isn't installed
// makes the test that needs it skip, or fail where BLUTRAIN_REQUIRE_TOOLS=1 says that all of them must be there.
//
// The room knows where tools are installed. It doesn't know what they are used for.
package upstream

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RequireVariable names the environment variable that turns skipping into failing.
const RequireVariable = "BLUTRAIN_REQUIRE_TOOLS"

// LLVMBin is where the Debian packages of LLVM 22 put their tools under the names without a version.
const LLVMBin = "/usr/lib/llvm-22/bin"

// A tool is a program and where it may be: names for PATH, and patterns for filepath.Glob, relative to the root of the
// repository where they aren't absolute.
type tool struct {
	names    []string
	patterns []string
	from     string // where a person gets it
}

// MLIROpt is MLIR's optimizer driver, which verifies the IR it reads.
func MLIROpt(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"mlir-opt-22"}, []string{LLVMBin + "/mlir-opt"}, "Debian package mlir-22-tools"})
}

// FileCheck is LLVM's FileCheck.
func FileCheck(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"FileCheck-22"}, []string{LLVMBin + "/FileCheck"}, "Debian package llvm-22-tools"})
}

// SplitFile is LLVM's split-file.
func SplitFile(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"split-file-22"}, []string{LLVMBin + "/split-file"}, "Debian package llvm-22-tools"})
}

// Opt is LLVM's optimizer driver.
func Opt(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"opt-22"}, []string{LLVMBin + "/opt"}, "Debian package llvm-22"})
}

// LLC is LLVM's code generator.
func LLC(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"llc-22"}, []string{LLVMBin + "/llc"}, "Debian package llvm-22"})
}

// Lit is LLVM's test runner.
func Lit(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"lit"}, []string{".venv/bin/lit"}, "PyPI package lit, in .venv"})
}

// Chromium is the web browser.
func Chromium(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"chromium"}, nil, "Debian package chromium"})
}

// ChromeDriver drives Chromium by the WebDriver protocol.
func ChromeDriver(t testing.TB) string {
	t.Helper()
	return find(t, tool{[]string{"chromedriver"}, nil, "Debian package chromium-driver"})
}

// PTXAS is NVIDIA's PTX assembler.
func PTXAS(t testing.TB) string {
	t.Helper()
	patterns := []string{".venv/lib/python3*/site-packages/nvidia/*/bin/ptxas", "/usr/local/cuda/bin/ptxas"}
	return find(t, tool{[]string{"ptxas"}, patterns, "PyPI package nvidia-cuda-nvcc, in .venv"})
}

// Safetensors is a Python interpreter that has the package safetensors, with NumPy.
func Safetensors(t testing.TB) string {
	t.Helper()
	for _, python := range []string{filepath.Join(Root(t), ".venv/bin/python"), "python3"} {
		if exec.Command(python, "-c", "import safetensors.numpy").Run() == nil {
			return python
		}
	}
	Missing(t, "safetensors is not installed (PyPI packages safetensors and numpy, in .venv)")
	return ""
}

// find looks in the repository's own folders first, so that a version pinned there is the one used.
func find(t testing.TB, want tool) string {
	t.Helper()
	root := Root(t)
	for _, pattern := range want.patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(root, pattern)
		}
		matches, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatalf("pattern %s: %v", pattern, err)
		}
		if len(matches) > 0 {
			return matches[0]
		}
	}
	for _, name := range want.names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, "%s is not installed (%s)", want.names[0], want.from)
	return ""
}

// Missing skips the test, or fails it where everything must be there. The test ends here.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(RequireVariable) == "1" {
		t.Fatalf(format+"; "+RequireVariable+"=1 requires it", args...)
	}
	t.Skipf(format, args...)
}

// Root is the folder of the repository: the one above the test's package that has the go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}
