// Package mlir gives the dumps of the compiler's phases to MLIR's own tool, which reads and verifies them.
package mlir

import (
	"bytes"
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
		t.Run(name, func(t *testing.T) { phases(t, bluc, mlirOpt, model) })
	}
}

// TestMeshes has what is compiled for many ranks verified: with every kind of collective, whole and in halves.
func TestMeshes(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles models")
	}
	mlirOpt := upstream.MLIROpt(t)
	root := upstream.Root(t)
	bluc := buildCompiler(t, root)
	const small = "V=64,L=2,C=32,H=4,B=2,S=16"
	for _, c := range []struct {
		model string
		flags []string
	}{
		{"gpt2", []string{"--mesh", "dp", "--set", small + ",T=16", "--bucket-size", "4KiB"}},
		{"gpt2", []string{"--mesh", "dp=3", "--zero", "1", "--set", small + ",T=16"}},
		{"llama", []string{"--mesh", "dp=2,cp=2", "--zero", "1", "--set", small + ",K=2,F=48"}},
		{"llama", []string{"--mesh", "cp=2", "--context", "ulysses", "--set", small + ",K=2,F=48"}},
		{"llama", []string{"--mesh", "cp=2", "--context", "gather", "--target", "cuda", "--set", small + ",K=2,F=48"}},
	} {
		t.Run(c.model+" "+strings.Join(c.flags[:4], " "), func(t *testing.T) {
			phases(t, bluc, mlirOpt, filepath.Join(root, "examples", c.model+".blu"), c.flags...)
		})
	}
}

// TestEveryPass has the module after each pass verified, all in the one text that is printed.
func TestEveryPass(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a model")
	}
	mlirOpt := upstream.MLIROpt(t)
	root := upstream.Root(t)
	bluc := buildCompiler(t, root)
	dir := t.TempDir()
	var printed bytes.Buffer
	cmd := exec.Command(bluc, "compile", filepath.Join(root, "examples", "mlp.blu"), "-o", filepath.Join(dir, "mlp.blx"), "--target", "cuda", "--print-ir-after-all", "--print-generic")
	cmd.Stderr = &printed
	require.NoError(t, cmd.Run(), "%.2000s", &printed)
	require.Greater(t, strings.Count(printed.String(), "// IR after "), 10)
	file := filepath.Join(dir, "passes.mlir")
	require.NoError(t, os.WriteFile(file, printed.Bytes(), 0o644))
	verify(t, mlirOpt, file, "--split-input-file")
}

// phases compiles a model and has every phase verified.
func phases(t *testing.T, bluc, mlirOpt, model string, flags ...string) {
	dir := t.TempDir()
	dumps := filepath.Join(dir, "phases")
	run(t, bluc, append([]string{"compile", model, "-o", filepath.Join(dir, "model.blx"), "--dump-phases-to", dumps, "--print-generic"}, flags...)...)
	files, err := filepath.Glob(filepath.Join(dumps, "*.mlir"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "bluc dumped no phases")
	for _, file := range files {
		verify(t, mlirOpt, file)
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
func verify(t *testing.T, mlirOpt, file string, flags ...string) {
	t.Helper()
	output, err := exec.Command(mlirOpt, append(flags, "--allow-unregistered-dialect", file, "-o", os.DevNull)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%.2000s", filepath.Base(file), err, output)
	}
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	output, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", filepath.Base(program), strings.Join(args, " "), output)
}
