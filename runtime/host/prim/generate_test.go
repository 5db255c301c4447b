package prim

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The generated files are what the generator writes.
func TestGeneratedFilesAreFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator")
	}
	dir := t.TempDir()
	out, err := exec.Command("go", "run", "./internal/asmgen", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		got, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "%s is stale: run go generate", f.Name())
	}
}
