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
		_, err := CheckCall(m, "f", nil, s)
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
	_, err := CheckCall(m, "f", nil, Scalars{"seed": 1})
	require.ErrorContains(t, err, `scalar "first" is missing`)
}
