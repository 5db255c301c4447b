package ranks

import (
	"crypto/sha256"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/ranks"
)

// sizes of the smallest models that have all that the large ones have.
var sizes = map[string]map[string]float64{
	"gpt2":  {"V": 61, "T": 16, "L": 2, "H": 2, "C": 16, "B": 4, "S": 16},
	"llama": {"V": 61, "L": 2, "H": 4, "K": 2, "C": 16, "F": 48, "B": 4, "S": 16},
}

// rows are token sequences of a step's whole batch, of which some targets don't count.
func rows(step, first, n, s int, vocabulary int32) (tokens, targets runtime.Array) {
	var x, y []int32
	for row := first; row < first+n; row++ {
		for i := range s {
			x = append(x, int32(step*31+row*17+i*i+row*i)%vocabulary)
			y = append(y, int32(step*31+row*17+(i+1)*(i+1)+row*(i+1))%vocabulary)
			if (row*5+i)%7 < row%4 {
				y[len(y)-1] = -1
			}
		}
	}
	shape := []int64{int64(n), int64(s)}
	return runtime.Array(formats.FromInt32s(x, shape...)), runtime.Array(formats.FromInt32s(y, shape...))
}

// losses trains some steps of a batch of 4 rows and gives the loss of each, and the norm of the gradient.
func losses(t *testing.T, target, model string, steps, dp, cp int, o driver.Sharding) (out [][2]float64) {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + model + ".blu")
	require.NoError(t, err)
	set := map[string]float64{}
	for k, v := range sizes[model] {
		set[k] = v
	}
	set["B"] /= float64(dp)
	r, err := driver.Compile(model+".blu", text, driver.Options{Target: target, Set: set, Sharding: o})
	require.NoError(t, err)
	require.NoError(t, run(t, r.Artifact, dp, cp, func(r *ranks.Rank) error {
		all, err := train(r, steps, int(set["B"]), int(set["S"]), int32(set["V"]))
		if r.Mesh.Rank() == 0 {
			out = all
		}
		return err
	}))
	return out
}

func train(r *ranks.Rank, steps, b, s int, vocabulary int32) (out [][2]float64, err error) {
	if _, err := r.Call("init", nil, runtime.Scalars{"seed": 7}); err != nil {
		return nil, err
	}
	last := r.Manifest().LastAccumulate()
	for step := range steps {
		tokens, targets := rows(step, b*r.Mesh.DPRank(), b, s, vocabulary)
		if _, err := r.Call(last, map[string]runtime.Array{"tokens": tokens, "targets": targets}, runtime.Scalars{"first": 1, "seed": 1}); err != nil {
			return nil, err
		}
		got, err := r.Call("apply", nil, runtime.Scalars{"lr": 1e-2, "step": float64(step + 1)})
		if err != nil {
			return nil, err
		}
		value := func(name string) float64 { return formats.Tensor(got[name]).Float64s()[0] }
		out = append(out, [2]float64{value("loss"), value("grad_norm")})
	}
	return out, nil
}

// A batch gives the same losses and gradients however it is divided among ranks.
func TestModels(t *testing.T) {
	const steps = 3
	for _, target := range targets {
		for model := range sizes {
			want := losses(t, target, model, steps, 1, 1, driver.Sharding{})
			for _, c := range []struct {
				dp, cp int
				driver.Sharding
			}{
				{2, 1, driver.Sharding{Mesh: "dp"}}, {2, 1, driver.Sharding{Mesh: "dp=2", Zero: 1}}, {4, 1, driver.Sharding{Mesh: "dp=4", Zero: 1}},
				{1, 2, driver.Sharding{Mesh: "cp=2"}}, {1, 2, driver.Sharding{Mesh: "cp=2", Context: "ulysses"}}, {2, 2, driver.Sharding{Mesh: "dp=2,cp=2", Zero: 1}},
			} {
				got := losses(t, target, model, steps, c.dp, c.cp, c.Sharding)
				loose := map[string]float64{"cpu": 1, "ref": 0.1}[target] // whose outputs are float32, too
				for i, w := range want {
					for k, tolerance := range []float64{2e-6 * loose, 2e-5 * loose} {
						if math.Abs(got[i][k]-w[k]) > tolerance*math.Abs(w[k]) {
							t.Errorf("%s on %s, %+v: step %d gives loss and gradient's norm %v, one rank %v", model, target, c.Sharding, i, got[i], w)
							break
						}
					}
				}
			}
		}
	}
}

// A run gives the same bits again, on every rank and for any number of threads, and all ranks have the same parameters.
func TestModelsBitForBit(t *testing.T) {
	text, err := os.ReadFile("../../examples/gpt2.blu")
	require.NoError(t, err)
	set := sizes["gpt2"]
	for _, o := range []driver.Sharding{{Mesh: "dp=2,cp=2", Bucket: 4 << 10}, {Mesh: "dp=2,cp=2", Zero: 1, Context: "ulysses"}} {
		r, err := driver.Compile("gpt2.blu", text, driver.Options{Target: "cpu", Set: set, Sharding: o})
		require.NoError(t, err)
		var hashes [3][4][32]byte
		for i, threads := range []int{1, 1, 3} {
			require.NoError(t, runThreads(t, r.Artifact, 2, 2, threads, func(r *ranks.Rank) error {
				if _, err := train(r, 2, int(set["B"]), int(set["S"]), int32(set["V"])); err != nil {
					return err
				}
				h := sha256.New()
				for _, s := range r.Manifest().States {
					if s.Role == artifact.Param {
						b := make([]byte, s.Bytes())
						if err := r.ReadState(s.Name, b); err != nil {
							return err
						}
						h.Write(b)
					}
				}
				h.Sum(hashes[i][r.Mesh.Rank()][:0])
				return nil
			}))
		}
		for _, run := range hashes {
			for _, hash := range run {
				require.Equal(t, hashes[0][0], hash)
			}
		}
		require.NotZero(t, hashes[0][0])
	}
}
