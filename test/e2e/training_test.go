package e2e

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/test/numbers"
	"blutrain/train/schedule"
)

// curves is optimizers with stored runs of PyTorch: twenty steps of gpt2-small, each two micro-batches of a row with unequal numbers of
// ignored targets.
var curves = []struct {
	golden, optimizer string
	lr                float64
}{
	{"train-adamw", "", 6e-3}, // the example's own
	{"train-sgd", "sgd(lr: cosine(max: LR, min: LR / 10, warmup: WARMUP, steps: STEPS), momentum: 0.9, weight_decay: 0.1 where rank >= 2)", 6e-2},
}

// The curves of the loss and of the gradient's norm are within the spread of PyTorch's float32 runs, which start from weights that
// differ by one unit in the last place: over all steps no farther from float64's than the farthest of nine, and at no step
// more than 1.5 times as far as any of them at any.
func TestTrainingAgainstPyTorch(t *testing.T) {
	for _, c := range curves {
		t.Run(c.golden, func(t *testing.T) {
			p := Open(t, curveModel(t, c.optimizer, c.lr), 2)
			want := numbers.Golden(t, c.golden)
			load(t, p, numbers.Golden(t, "gpt2-small.inputs"))
			losses, norms := steps(t, p, want)
			checkCurve(t, "losses", losses, want)
			checkCurve(t, "grad_norms", norms, want)
		})
	}
}

func checkCurve(t *testing.T, name string, got []float64, want *numbers.Values) {
	t.Helper()
	exact, runs := want.Float64s(t, name), want.Float64s(t, "torch32."+name)
	require.Len(t, got, len(exact))
	overall, anywhere := 0.0, 0.0
	for run := range slices.Chunk(runs, len(exact)) {
		overall = max(overall, numbers.RelativeError(run, exact))
		anywhere = max(anywhere, farthest(run, exact))
	}
	require.LessOrEqual(t, numbers.RelativeError(got, exact), overall, name)
	require.LessOrEqual(t, farthest(got, exact), 1.5*anywhere, name)
}

// farthest is the largest difference.
func farthest(x, y []float64) float64 {
	d := 0.0
	for i := range x {
		d = max(d, math.Abs(x[i]-y[i]))
	}
	return d
}

// curveModel is gpt2.blu at the stored size, with micro-batches of a row and the optimizer, or its own.
func curveModel(t *testing.T, optimizer string, lr float64) *artifact.Artifact {
	file := filepath.Join("..", "..", "examples", "gpt2.blu")
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	if optimizer != "" {
		clause := regexp.MustCompile(`(?s)optimizer adamw\(.*?\n  clip`)
		require.Len(t, clause.FindAll(src, -1), 1)
		src = clause.ReplaceAll(src, []byte("optimizer "+optimizer+"\n  clip"))
	}
	r, err := driver.Compile(file, src, driver.Options{Target: "cpu", Set: map[string]float64{
		"V": 97, "T": 32, "L": 2, "H": 2, "C": 32, "B": 1, "S": 24, "accumulate": 2, "LR": lr, "WARMUP": 5, "STEPS": 20,
	}})
	require.NoError(t, err)
	return r.Artifact
}

// steps trains on the stored batches and gives the loss and the norm of the gradient of each step.
func steps(t *testing.T, p runtime.Program, want *numbers.Values) (losses, norms []float64) {
	s, err := schedule.New(p.Manifest().Train.Schedule)
	require.NoError(t, err)
	for step, lr := range want.Float64s(t, "learning_rates") {
		require.InEpsilon(t, lr, s.LR(int64(step)+1), 1e-12)
		for micro, first := range []float64{1, 0} {
			in := map[string]runtime.Array{
				"tokens":  row(want.Tensor(t, "tokens"), 2*step+micro),
				"targets": row(want.Tensor(t, "targets"), 2*step+micro),
			}
			_, err := p.Call("accumulate", in, runtime.Scalars{"first": first})
			require.NoError(t, err)
		}
		out, err := p.Call("apply", nil, runtime.Scalars{"lr": lr, "step": float64(step + 1)})
		require.NoError(t, err)
		losses, norms = append(losses, Floats(out["loss"])[0]), append(norms, Floats(out["grad_norm"])[0])
	}
	return losses, norms
}

// row is the row number i of batches [steps, rows, S].
func row(x formats.Tensor, i int) runtime.Array {
	columns := x.Shape[2]
	size := int(columns) * int(x.DType.Size())
	return runtime.Array{DType: x.DType, Shape: []int64{1, columns}, Data: x.Data[i*size : (i+1)*size]}
}
