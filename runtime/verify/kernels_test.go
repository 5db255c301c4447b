package verify

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

const sums = `builtin.module {
  builtin.module @reference {
    func.func @sum(%x: tensor<2x1000xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %s = blu.reduce_sum %x {axes = array<i64: 1>} : (tensor<2x1000xf32>) -> tensor<2xf32>
      %d = blu.sub %s, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %s, %d : (tensor<2xf32>, tensor<2xf32>) -> ()
    }
  }
}
`

// adder is a program of one kernel, whose sums are in float32 and off by a relative error.
type adder struct {
	runtime.Program
	manifest artifact.Manifest
	x, y     []float32
	error    float64
}

func (a *adder) Manifest() *artifact.Manifest { return &a.manifest }

func (a *adder) Trace(_ string, _ map[string]runtime.Array, _ runtime.Scalars, visit runtime.Visitor) (map[string]runtime.Array, error) {
	refs := []formats.Tensor{formats.FromFloat32s(a.x, 2, 1000), formats.FromFloat32s(a.y, 2), {}, {}}
	step := &runtime.Step{Kernel: "sum.s1", Reference: "sum", Location: "m.blu:3:4", Inputs: 2, Outputs: 2, Read: func(i int) runtime.Array { return runtime.Array(refs[i]) }}
	for range 3 {
		err := visit(step, func() error {
			s, d := make([]float32, 2), make([]float32, 2)
			for i, v := range a.x {
				s[i/1000] += v
			}
			for i := range s {
				s[i] *= float32(1 + a.error)
				d[i] = s[i] - a.y[i]
			}
			refs[2], refs[3] = formats.FromFloat32s(s, 2), formats.FromFloat32s(d, 2)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func newAdder(relative float64) *adder {
	a := &adder{error: relative, manifest: artifact.Manifest{Functions: []artifact.Function{{Name: "init"}}}}
	r := rand.New(rand.NewPCG(1, 2))
	sums := [2]float64{}
	for i := range 2000 {
		a.x = append(a.x, r.Float32())
		sums[i/1000] += float64(a.x[i])
	}
	a.y = []float32{float32(sums[0]), float32(sums[1])} // what is left is rounding alone
	return a
}

func sumArtifact(text string) *artifact.Artifact {
	return &artifact.Artifact{Files: []artifact.File{{Name: artifact.ReferenceName, Data: []byte(text)}}}
}

// A sum in float32 is within bounds, and so is what is left of it after cancellation, whose relative error is large; an error of
// a thousandth is beyond them.
func TestBoundsOfASum(t *testing.T) {
	rows, err := Kernels(newAdder(0), sumArtifact(sums), 1)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	r := rows[0]
	require.Equal(t, "sum.s1", r.Kernel)
	require.Equal(t, "m.blu:3:4", r.Location)
	require.Equal(t, 3, r.Launches)
	require.Equal(t, 1, r.Checked)
	require.False(t, r.Off())
	require.Less(t, r.Outputs[0].Relative(), 1e-5)
	require.Greater(t, r.Outputs[1].Relative(), 0.1, "nothing but rounding is left")
	for _, o := range r.Outputs {
		require.Equal(t, 2, o.Elements)
		require.Less(t, o.Error, o.Bound)
	}
	require.Less(t, r.Outputs[0].Bound, 1e-4*r.Outputs[0].Norm)

	rows, err = Kernels(newAdder(1e-3), sumArtifact(sums), 1)
	require.NoError(t, err)
	require.True(t, rows[0].Off())
	rows, err = Kernels(newAdder(math.NaN()), sumArtifact(sums), 1)
	require.NoError(t, err)
	require.True(t, rows[0].Off())
}

const ends = `builtin.module {
  builtin.module @reference {
    func.func @sum(%x: tensor<2x1000xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %s = blu.reduce_sum %x {axes = array<i64: 1>} : (tensor<2x1000xf32>) -> tensor<2xf32>
      %d = blu.sub %y, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %q = blu.sqrt %d : (tensor<2xf32>) -> tensor<2xf32>
      func.return %s, %q : (tensor<2xf32>, tensor<2xf32>) -> ()
    }
  }
}
`

// An element that roundings turn into no number has no bound, and is counted instead of being let pass.
func TestLooseElements(t *testing.T) {
	e := &expected{value: []float64{3, 0, 4, math.Inf(1)}, growth: 1}
	e.add([]float64{3 + 3e-7, math.NaN(), 4, math.Inf(1)})
	got := e.of([]float64{3, 7, 4, math.Inf(1)})
	require.InDelta(t, 3e-7, got.Bound, 1e-12)
	got.Bound = 0
	require.Equal(t, Error{Elements: 4, Loose: 1, Norm: 5}, got)
	require.True(t, e.of([]float64{3, 0, 4.1, math.Inf(1)}).Off())
	require.True(t, e.of([]float64{3, 0, 4, 1e30}).Off(), "an infinity is held to")
	require.True(t, e.of([]float64{3, 0, math.NaN(), math.Inf(1)}).Off())

	rows, err := Kernels(newAdder(0), sumArtifact(ends), 1)
	require.NoError(t, err)
	for _, o := range rows[0].Outputs {
		require.False(t, math.IsInf(o.Bound, 0) || math.IsNaN(o.Bound), "%+v", o)
	}
}

func TestKernelsNeedTheirReference(t *testing.T) {
	_, err := Kernels(newAdder(0), &artifact.Artifact{}, 1)
	require.EqualError(t, err, "the artifact has no reference.mlir")
	_, err = Kernels(newAdder(0), sumArtifact("builtin.module {\n}\n"), 1)
	require.EqualError(t, err, "reference.mlir has no module @reference with the kernels' functions")
	_, err = Kernels(newAdder(0), sumArtifact("builtin.module {\n  builtin.module @reference {\n  }\n}\n"), 1)
	require.EqualError(t, err, "kernel sum.s1: reference.mlir has no function sum")
}
