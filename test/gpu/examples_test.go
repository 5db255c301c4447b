package gpu

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// examples lists the models of examples/.
func examples(t *testing.T) (names []string) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.blu"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return names
}

// small is sizes of an example that the emulator runs in seconds, which blocks and tiles don't divide.
func small(t *testing.T, file string) map[string]float64 {
	sizes := map[string]map[string]float64{
		"convnet.blu": {"IN": 2, "N": 12, "CLASSES": 5, "C": 3, "M": 18, "B": 3},
		"gpt2.blu":    {"V": 37, "T": 12, "L": 1, "H": 2, "C": 32, "B": 2, "S": 11},
		"llama.blu":   {"V": 41, "L": 1, "H": 4, "K": 2, "C": 24, "F": 36, "B": 2, "S": 9},
		"mlp.blu":     {"V": 13, "W": 3, "E": 7, "M": 18, "B": 3, "S": 10},
		"vit.blu":     {"N": 12, "P": 4, "CLASSES": 5, "L": 1, "H": 2, "C": 24, "B": 2},
	}
	require.Contains(t, sizes, file, "an example without small sizes: add a line")
	return sizes[file]
}
