package numbers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every stored file opens and says what made it.
func TestFiles(t *testing.T) {
	files, err := testdata.ReadDir("testdata")
	require.NoError(t, err)
	require.Len(t, files, 24)
	for _, f := range files {
		v := Golden(t, f.Name()[:len(f.Name())-len(".safetensors")])
		require.NotEmpty(t, v.Names(""), f.Name())
		require.Regexp(t, `^test/numbers/scripts/\w+\.py$`, v.Notes["script"])
		require.NotEmpty(t, v.Notes["torch"])
	}
}

// Each model stores an exact gradient, a float32 gradient and the error between them for every parameter.
func TestModels(t *testing.T) {
	for model, inputs := range map[string][]string{
		"gpt2-small":    {"tokens", "targets"},
		"llama-small":   {"tokens", "targets"},
		"mlp-small":     {"x", "targets"},
		"convnet-small": {"images", "labels"},
		"vit-small":     {"images", "labels"},
	} {
		in, exact, single := Golden(t, model+".inputs"), Golden(t, model+".float64"), Golden(t, model+".torch32")
		require.Len(t, in.Names(""), len(exact.Names("grad."))+len(inputs), model)
		for _, p := range exact.Names("grad.") {
			require.Equal(t, in.Tensor(t, p).Shape, exact.Tensor(t, "grad."+p).Shape, p)
			e := RelativeError(single.Float64s(t, "grad."+p), exact.Float64s(t, "grad."+p))
			require.InEpsilon(t, e, single.Scalar(t, "error.grad."+p), 1e-6, p)
			require.Less(t, e, 2e-6, p)
		}
	}
}

// The spread of the float32 runs encloses nothing absurd: all within 1e-5 of the float64 losses.
func TestTraining(t *testing.T) {
	for _, name := range []string{"train-adamw", "train-sgd"} {
		v := Golden(t, name)
		exact, runs := v.Float64s(t, "losses"), v.Float64s(t, "torch32.losses")
		require.Len(t, exact, 20)
		require.Len(t, runs, 9*20)
		for i, loss := range runs {
			require.InDelta(t, exact[i%20], loss, 1e-5)
		}
		require.Less(t, exact[19], exact[0]-0.5)
	}
}

func TestRelativeError(t *testing.T) {
	for _, c := range []struct {
		got, want []float64
		e         float64
	}{
		{[]float64{3, 4}, []float64{3, 4}, 0},
		{[]float64{3, 5}, []float64{3, 4}, 0.2},
		{[]float64{0, 3e-200}, []float64{0, 0}, 3e-200},
		{[]float64{1e200}, []float64{2e200}, 0.5},
		{[]float64{math.NaN()}, []float64{1}, math.Inf(1)},
		{[]float64{1}, []float64{1, 2}, math.Inf(1)},
		{[]float64{math.Inf(1)}, []float64{math.Inf(1)}, 0},
		{[]float64{1}, []float64{math.Inf(1)}, math.Inf(1)},
	} {
		require.Equal(t, c.e, RelativeError(c.got, c.want), "%v %v", c.got, c.want)
	}
}
