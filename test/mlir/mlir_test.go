// Package mlir gives the dumps of the compiler's phases to MLIR's own tool, which reads and verifies them.
package mlir

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/upstream"
)

// TestPhases compiles every example and has every phase verified.
func TestPhases(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles every example")
	}
	mlirOpt := upstream.MLIROpt(t)
	root := upstream.Root(t)
	models := findModels(t, filepath.Join(root, "examples"))
	bluc := buildCompiler(t, root)
	for _, model := range models {
		name, err := filepath.Rel(root, model)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			dumps := filepath.Join(dir, "phases")
			run(t, bluc, "compile", model, "-o", filepath.Join(dir, "model.blx"), "--dump-phases-to", dumps, "--print-generic")
			files, err := filepath.Glob(filepath.Join(dumps, "*.mlir"))
			require.NoError(t, err)
			require.NotEmpty(t, files, "bluc dumped no phases")
			for _, file := range files {
				verify(t, mlirOpt, file)
			}
		})
	}
}

func findModels(t *testing.T, folder string) []string {
	var models []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".blu" {
			models = append(models, path)
		}
		return err
	})
	if err != nil || len(models) == 0 {
		upstream.Missing(t, "no models in %s: %v", folder, err)
	}
	return models
}

func buildCompiler(t *testing.T, root string) string {
	if _, err := os.Stat(filepath.Join(root, "cmd", "bluc")); err != nil {
		upstream.Missing(t, "no compiler: %v", err)
	}
	bluc := filepath.Join(t.TempDir(), "bluc")
	cmd := exec.Command("go", "build", "-o", bluc, "blutrain/cmd/bluc")
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return bluc
}

// verify fails the test if MLIR rejects the file.
func verify(t *testing.T, mlirOpt, file string) {
	t.Helper()
	output, err := exec.Command(mlirOpt, "--allow-unregistered-dialect", file, "-o", os.DevNull).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%.2000s", filepath.Base(file), err, output)
	}
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	output, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", filepath.Base(program), strings.Join(args, " "), output)
}
