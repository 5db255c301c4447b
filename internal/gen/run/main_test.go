package main

import (
	"os"
	"path/filepath"
	"testing"

	"blutrain/internal/gen"
	"github.com/stretchr/testify/require"
)

// Generated files say what the tables say.
func TestGeneratedFilesAreFresh(t *testing.T) {
	files, err := gen.Files(packages())
	require.NoError(t, err)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", "..", name))
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "%s is stale: go run ./internal/gen/run", name)
	}
}
