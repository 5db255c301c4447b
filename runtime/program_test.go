package runtime

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
)

// TestScalarsFitTheirTypes: a seed of 1.5 is an error and not a seed of 1.
func TestScalarsFitTheirTypes(t *testing.T) {
	scalar := func(name string, d formats.DType) artifact.Value { return artifact.Value{Name: name, DType: d} }
	m := &artifact.Manifest{Functions: []artifact.Function{{Name: "f", Scalars: []artifact.Value{
		scalar("seed", formats.I64), scalar("first", formats.Bool), scalar("n", formats.I32), scalar("lr", formats.F32),
	}}}}
	call := func(name string, x float64) error {
		s := Scalars{"seed": 1, "first": 1, "n": 1, "lr": 1}
		s[name] = x
		_, err := Options{}.CheckCall(m, "f", nil, s)
		return err
	}
	for _, c := range []struct {
		name   string
		good   []float64
		bad    []float64
		reason string
	}{
		{"seed", []float64{0, -3, 1 << 53}, []float64{1.5, math.NaN(), math.Inf(1), 1e30}, "wants a whole number up to 2^53"},
		{"first", []float64{0, 1}, []float64{2, -1, 0.5, math.NaN()}, "wants 0 or 1"},
		{"n", []float64{math.MaxInt32}, []float64{1 << 31, 0.5}, "wants a whole number that fits i32"},
		{"lr", []float64{0.1, math.NaN(), math.Inf(-1)}, nil, ""},
	} {
		for _, x := range c.good {
			require.NoError(t, call(c.name, x), "%s = %v", c.name, x)
		}
		for _, x := range c.bad {
			require.ErrorContains(t, call(c.name, x), c.reason, "%s = %v", c.name, x)
		}
	}
	_, err := Options{}.CheckCall(m, "f", nil, Scalars{"seed": 1})
	require.ErrorContains(t, err, `scalar "first" is missing`)
}

// TestFunctionsApart: of a program of several ranks that is opened on one, what a rank computes by itself can be called, and only where
// that is asked for.
func TestFunctionsApart(t *testing.T) {
	value := func(name string) []artifact.Value { return []artifact.Value{{Name: name, DType: formats.I32}} }
	program := func(mesh *artifact.Mesh) *artifact.Manifest {
		return &artifact.Manifest{Mesh: mesh, Functions: []artifact.Function{
			{Name: "logits"},
			{Name: "apply", Collectives: []artifact.Collective{{Op: "all_reduce"}}},
			{Name: "accumulate", Scalars: value(artifact.CPRank)}, // a part of the sequence, nothing to exchange
		}}
	}
	for _, c := range []struct {
		mesh     *artifact.Mesh
		together string // what is said of functions of all ranks; "": they can be called
	}{
		{&artifact.Mesh{CP: 1}, ""},
		{&artifact.Mesh{DP: 1, CP: 1}, ""},
		{&artifact.Mesh{DP: 4, CP: 1}, "the 4 ranks of a mesh of dp = 4, cp = 1 compute it together, and there is one here"},
		{&artifact.Mesh{DP: 2, CP: 2}, "the 4 ranks of a mesh of dp = 2, cp = 2 compute it together, and there is one here"},
		{&artifact.Mesh{CP: 2}, "the ranks of a mesh of dp = any, cp = 2 compute it together, and there is one here"},
	} {
		m := program(c.mesh)
		require.NoError(t, Options{Apart: true}.CheckMesh(m))
		if c.together != "" {
			require.ErrorContains(t, Options{}.CheckMesh(m), "start ")
		}
		for _, f := range m.Functions {
			_, err := Options{Apart: true}.CheckCall(m, f.Name, nil, nil)
			if f.Name == "logits" || c.together == "" {
				require.NoError(t, err, "%s of %v", f.Name, c.mesh)
				continue
			}
			require.ErrorContains(t, err, f.Name+": "+c.together)
		}
	}
}
