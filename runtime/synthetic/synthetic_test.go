package synthetic

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

func TestInputsOfEveryType(t *testing.T) {
	m, r := &artifact.Manifest{Args: map[string]float64{"V": 7}}, rand.New(rand.NewPCG(1, 1))
	for d := formats.Bool; d.Valid(); d++ {
		f := artifact.Function{Inputs: []artifact.Value{{Name: "x", DType: d, Shape: []int64{500}}}}
		x := formats.Tensor(Inputs(m, &f, r)["x"])
		require.NoError(t, x.Check())
		sum, squares, most := 0.0, 0.0, 0.0
		for _, v := range x.Float64s() {
			sum += v
			squares += v * v
			most = math.Max(most, v)
		}
		switch {
		case d.IsFloat():
			require.InDelta(t, 0, sum/500, 0.25)
			require.InDelta(t, 1, squares/500, 0.4)
		case d == formats.Bool:
			require.Equal(t, 1.0, most)
		default:
			require.Equal(t, 6.0, most)
		}
	}
}

func TestWork(t *testing.T) {
	m := &artifact.Manifest{
		Model: "m", Train: &artifact.Train{Batch: artifact.Batch{B: 2, S: 8, Accumulate: 3}},
		Functions: []artifact.Function{{Name: "accumulate", Flops: 10}, {Name: "apply", Flops: 1}, {Name: "logits", Flops: 5}},
	}
	w, err := NewWork(m, "", 1)
	require.NoError(t, err)
	require.Equal(t, int64(48), w.Tokens)
	require.Equal(t, 31.0, w.Flops)
	var calls []string
	var firsts []float64
	require.NoError(t, w.Run(func(c Call) error {
		calls, firsts = append(calls, c.Function), append(firsts, c.Scalars["first"])
		return nil
	}))
	require.Equal(t, []string{"accumulate", "accumulate", "accumulate", "apply"}, calls)
	require.Equal(t, []float64{1, 0, 0, 0}, firsts)
	require.ErrorContains(t, w.Run(func(Call) error { return errors.New("lost") }), "lost")

	w, err = NewWork(m, "logits", 1)
	require.NoError(t, err)
	require.Equal(t, 5.0, w.Flops)
	_, err = NewWork(m, "probs", 1)
	require.EqualError(t, err, `model m has no function "probs"`)
	m.Train = nil
	_, err = NewWork(m, "", 1)
	require.EqualError(t, err, "model m has no train block")
}

// memory is the states of a program, and nothing else of it.
type memory struct {
	runtime.Program
	manifest artifact.Manifest
	states   map[string][]byte
}

func (m memory) Manifest() *artifact.Manifest             { return &m.manifest }
func (m memory) ReadState(name string, dst []byte) error  { copy(dst, m.states[name]); return nil }
func (m memory) WriteState(name string, src []byte) error { copy(m.states[name], src); return nil }

func TestShake(t *testing.T) {
	m := memory{states: map[string][]byte{}}
	for name, role := range map[string]artifact.Role{"w": artifact.Param, "v": artifact.Optimizer, "g": artifact.Gradient} {
		v := artifact.Value{Name: name, DType: formats.F32, Shape: []int64{400}}
		m.manifest.States = append(m.manifest.States, artifact.State{Value: v, Role: role, Persist: role != artifact.Gradient})
		m.states[name] = make([]byte, v.Bytes())
	}
	require.NoError(t, Shake(m, rand.New(rand.NewPCG(1, 2))))
	squares := func(name string) (sum float64) {
		for _, x := range (formats.Tensor{DType: formats.F32, Data: m.states[name]}).Float64s() {
			sum += x * x
			require.True(t, name != "v" || x > 0)
		}
		return sum
	}
	require.InDelta(t, 400*0.02*0.02, squares("w"), 0.05)
	require.InDelta(t, 400*0.02*0.02, squares("v"), 0.05)
	require.Zero(t, squares("g"))
}
