package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats/safetensors"
	"blutrain/internal/bars"
	"blutrain/train"
	"blutrain/train/data"
)

// pictures is a file of pictures of bars.
func pictures(t *testing.T, seed uint64, n int64) data.Source {
	var entries []safetensors.Entry
	for name, x := range bars.Pictures(rand.New(rand.NewPCG(seed, 0)), n) {
		entries = append(entries, safetensors.Of(name, x))
	}
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, entries, nil))
	path := filepath.Join(t.TempDir(), fmt.Sprintf("bars-%d.safetensors", seed))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	s, err := data.Open([]string{path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// The models of images learn, from ln 4 = 1.39 nats an image, that of a guess, to less than this; what they were seen to reach is
// in brackets. The loss is that of pictures they have not learned from, without dropout. They end in the same bytes on two workers,
// and when they are stopped and resumed.
func TestImagesAreLearned(t *testing.T) {
	for _, x := range []struct {
		file string
		set  map[string]float64
		loss float64
	}{
		{"convnet.blu", map[string]float64{"N": bars.Size, "CLASSES": bars.Classes, "C": 6, "M": 24, "B": 16, "LR": 8e-3, "STEPS": 250}, 0.1}, // (0.07)
		{"vit.blu", map[string]float64{
			"IN": 1, "N": bars.Size, "P": 2, "CLASSES": bars.Classes, "L": 2, "H": 2, "C": 32, "DROP": 0, "B": 16, "LR": 4e-3, "WARMUP": 20, "STEPS": 400,
		}, 0.3}, // (0.17)
	} {
		t.Run(x.file, func(t *testing.T) {
			a, images, held := example(t, x.file, x.set), pictures(t, 1, 2000), pictures(t, 2, 128)
			start := func(threads int) *run {
				return &run{t: t, a: a, data: images, val: held, steps: int64(x.set["STEPS"]), dir: t.TempDir(), threads: threads}
			}
			whole := start(1)
			require.NoError(t, whole.train(whole.steps))
			require.InDelta(t, 1.39, float64(whole.losses[0]), 0.1, "a guess")
			require.Less(t, float64(whole.held), x.loss)

			parts := start(2)
			require.ErrorIs(t, parts.train(whole.steps/3), train.ErrInterrupted)
			require.NoError(t, parts.train(whole.steps))
			require.Equal(t, whole.losses, parts.losses)
			require.Equal(t, whole.held, parts.held)
			require.Equal(t, whole.saved(), parts.saved())
		})
	}
}
