// Package numbers gives tests the reference values under testdata: float64 results, and PyTorch's float32 results on the
// same inputs, each made by a script under scripts. They anchor every number the project computes; none of them was
// computed by the project's own code.
//
// Run the scripts with Python 3.11 and torch 2.7.1 (any processor; the GPU is not used):
//
//	cd test/numbers/scripts && for f in gpt2_small llama_small mlp_small ops training; do python $f.py; done
//
// The same versions on the same machine give the same bytes.
package numbers

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/formats/safetensors"
)

//go:embed testdata/*.safetensors
var testdata embed.FS

// Values is the tensors of one stored file.
type Values struct {
	File    string
	Notes   map[string]string // what made the file, and what its cases are
	tensors map[string]formats.Tensor
}

// Golden reads testdata/NAME.safetensors: "gpt2-small.inputs", "gpt2-small.float64", "gpt2-small.torch32", the same of
// "llama-small" and "mlp-small", "ops.inputs", ..., "train-adamw", "train-sgd".
func Golden(t testing.TB, name string) *Values {
	t.Helper()
	v, err := read(name)
	require.NoError(t, err)
	return v
}

func read(name string) (*Values, error) {
	raw, err := testdata.ReadFile("testdata/" + name + ".safetensors")
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	v := &Values{File: name, Notes: f.Metadata, tensors: map[string]formats.Tensor{}}
	for _, info := range f.Tensors {
		if v.tensors[info.Name], err = f.Read(info.Name); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Names lists the tensors whose names begin with prefix, sorted, without the prefix.
func (v *Values) Names(prefix string) []string {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(v.tensors)) {
		if rest, ok := strings.CutPrefix(n, prefix); ok {
			names = append(names, rest)
		}
	}
	return names
}

// Has reports whether there is a tensor of that name.
func (v *Values) Has(name string) bool { _, ok := v.tensors[name]; return ok }

// Tensor is the tensor of that name, as stored.
func (v *Values) Tensor(t testing.TB, name string) formats.Tensor {
	t.Helper()
	x, ok := v.tensors[name]
	require.True(t, ok, "%s holds no tensor %q", v.File, name)
	return x
}

// Float64s is the elements of the tensor of that name.
func (v *Values) Float64s(t testing.TB, name string) []float64 {
	t.Helper()
	return v.Tensor(t, name).Float64s()
}

// Scalar is the only element of the tensor of that name.
func (v *Values) Scalar(t testing.TB, name string) float64 {
	t.Helper()
	x := v.Float64s(t, name)
	require.Len(t, x, 1, "%s %q", v.File, name)
	return x[0]
}

// RelativeError is norm(got - want) / norm(want); norm(got) where want is zero; +Inf where got holds a NaN or the lengths
// differ. No square overflows or is lost.
func RelativeError(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	difference := make([]float64, len(got))
	for i := range got {
		if got[i] != want[i] { // equal infinities differ by nothing
			difference[i] = got[i] - want[i]
		}
	}
	d, w := norm(difference), norm(want)
	switch {
	case math.IsNaN(d), math.IsInf(d, 0):
		return math.Inf(1)
	case w == 0:
		return d
	}
	return d / w
}

// norm is the Euclidean norm, scaled by the largest element.
func norm(x []float64) float64 {
	largest := 0.0
	for _, v := range x {
		if math.IsNaN(v) {
			return v
		}
		largest = max(largest, math.Abs(v))
	}
	if largest == 0 || math.IsInf(largest, 0) {
		return largest
	}
	sum := 0.0
	for _, v := range x {
		sum += (v / largest) * (v / largest)
	}
	return largest * math.Sqrt(sum)
}

// RequireClose fails unless got equals the tensor of that name to a relative error of at most bound.
func (v *Values) RequireClose(t testing.TB, name string, got []float64, bound float64) {
	t.Helper()
	e := RelativeError(got, v.Float64s(t, name))
	require.LessOrEqual(t, e, bound, fmt.Sprintf("%s %s", v.File, name))
}
