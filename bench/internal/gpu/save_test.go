package gpu

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	broken := errors.New("broken off")
	require.ErrorIs(t, Save(file, []int{}, broken), broken)
	require.NoFileExists(t, file)
	require.ErrorIs(t, Save(file, []int{1, 2}, broken), broken)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, "[1, 2]", string(data))
	require.NoError(t, Save("", []int{1}, nil))
	require.Error(t, Save(filepath.Join(file, "below"), []int{1}, nil))
}
