package e2e

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/runtime"
)

// bars is a batch of noisy pictures of 8 by 8 pixels with a bright bar: lying high or low, standing left or right.
func bars(r *rand.Rand, n int64) map[string]runtime.Array {
	pixels, labels := make([]float32, n*64), make([]int32, n)
	for i := range labels {
		labels[i] = int32(r.IntN(4))
		at := int(labels[i]%2)*4 + r.IntN(4)
		for k := range 64 {
			row, col := k/8, k%8
			if labels[i] >= 2 {
				row, col = col, row
			}
			pixels[64*i+k] = 0.5 * float32(r.NormFloat64())
			if row == at {
				pixels[64*i+k]++
			}
		}
	}
	return map[string]runtime.Array{
		"images": runtime.Array(formats.FromFloat32s(pixels, n, 1, 8, 8)),
		"labels": runtime.Array(formats.FromInt32s(labels, n)),
	}
}

// The models of images learn, from ln 4 = 1.39 nats an image, that of a guess, to less than this; what they were seen to reach is
// in brackets. Pictures are never shown twice, and the loss is that of pictures they have not learned from, without dropout.
func TestImagesAreLearned(t *testing.T) {
	for _, x := range []struct {
		file  string
		set   map[string]float64
		steps int
		loss  float64
	}{
		{"convnet.blu", map[string]float64{"N": 8, "CLASSES": 4, "C": 6, "M": 24, "B": 16}, 150, 0.1},                                 // (0.03)
		{"vit.blu", map[string]float64{"IN": 1, "N": 8, "P": 2, "CLASSES": 4, "L": 2, "H": 2, "C": 32, "DROP": 0, "B": 16}, 400, 0.3}, // (0.14)
	} {
		t.Run(x.file, func(t *testing.T) {
			a := example(t, x.file, x.set)
			one := learn(t, Open(t, a, 1), x.steps)
			require.InDelta(t, 1.39, one[0], 0.1, "a guess")
			require.Less(t, one[1], x.loss)
			require.Equal(t, one, learn(t, Open(t, a, 2), x.steps), "threads change nothing")
		})
	}
}

// learn gives the loss before and after a number of steps.
func learn(t *testing.T, p runtime.Program, steps int) (losses []float64) {
	r := rand.New(rand.NewPCG(3, 5))
	evaluate := func() {
		sum, count := 0.0, 0.0
		held := rand.New(rand.NewPCG(4, 4))
		for range 8 {
			out, err := p.Call("eval", bars(held, 16), nil)
			require.NoError(t, err)
			sum, count = sum+Floats(out["loss_sum"])[0], count+Floats(out["count"])[0]
		}
		losses = append(losses, sum/count)
	}
	_, err := p.Call("init", nil, runtime.Scalars{"seed": 1})
	require.NoError(t, err)
	evaluate()
	for step := range steps {
		_, err := p.Call("accumulate", bars(r, 16), runtime.Scalars{"first": 1, "seed": float64(step)})
		require.NoError(t, err)
		_, err = p.Call("apply", nil, runtime.Scalars{"lr": 4e-3, "step": float64(step + 1)})
		require.NoError(t, err)
	}
	evaluate()
	return losses
}
