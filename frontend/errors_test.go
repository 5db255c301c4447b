package frontend

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/verifydiag"
)

// TestWrongPrograms holds every wrong program of the golden tests to the exact line, column and text of its errors.
func TestWrongPrograms(t *testing.T) {
	const root = "../test/lit/errors"
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blu" {
			return err
		}
		count++
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			_, diags := Check(name, src, Options{})
			require.NotEmpty(t, diags, "a wrong program was accepted")
			require.Empty(t, verifydiag.Verify(name, src, diags, verifydiag.Options{Exact: true}))
		})
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, count, 60)
}
