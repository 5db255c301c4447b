package checkpoint

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/upstream"
)

// TestThePythonPackageReadsCheckpoints: ten lines of Python put the pieces of several ranks together.
func TestThePythonPackageReadsCheckpoints(t *testing.T) {
	python := upstream.Safetensors(t)
	dir := t.TempDir()
	l := layout{3, true}
	errs := onRanks(3, func(g ranks) error {
		return inFolder(dir, g, 0, func(s *Store) error {
			_, err := s.Save(l.part(g.rank, 2))
			return err
		})
	})
	require.NoError(t, errors.Join(errs...))
	out, err := exec.Command(python, "testdata/assemble.py", filepath.Join(dir, stepFolder(2))).Output()
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(out, &got))
	require.Len(t, got, len(tensors))
	for _, w := range tensors {
		require.Equal(t, nested(whole(2, w.shape...).Float64s(), w.shape), got[w.name], w.name)
	}
}

// nested is a tensor as JSON has it.
func nested(values []float64, shape []int64) any {
	if len(shape) == 0 {
		return values[0]
	}
	list := []any{}
	for i := range int(shape[0]) {
		each := len(values) / int(shape[0])
		list = append(list, nested(values[i*each:(i+1)*each], shape[1:]))
	}
	return list
}
