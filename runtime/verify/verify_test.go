package verify

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

// line is a program y = w x in plain Go, with faults to be found.
type line struct {
	manifest artifact.Manifest
	w, sum   float32
	fault    string // function whose results are off by a thousandth
	fail     string // function that fails
	calls    []string
	firsts   []float64
}

func newLine(fault string) *line {
	scalar := func(name string) artifact.Value { return artifact.Value{Name: name, DType: formats.F32} }
	x := artifact.Value{Name: "x", DType: formats.F32, Shape: []int64{3}}
	indices := artifact.Value{Name: "i", DType: formats.I32, Shape: []int64{100}}
	return &line{fault: fault, w: float32(math.NaN()), sum: float32(math.NaN()), manifest: artifact.Manifest{
		Args:  map[string]float64{"V": 7},
		Train: &artifact.Train{},
		States: []artifact.State{
			{Value: scalar("w"), Role: artifact.Param, Persist: true},
			{Value: scalar("sum"), Role: artifact.Accumulator},
		},
		Functions: []artifact.Function{
			{Name: "init"}, {Name: "accumulate", Inputs: []artifact.Value{x}}, {Name: "apply"},
			{Name: "eval", Inputs: []artifact.Value{x}, Outputs: []artifact.Value{x}},
			{Name: "pick", Inputs: []artifact.Value{indices}, Outputs: []artifact.Value{scalar("most")}},
		},
	}}
}

func (l *line) Manifest() *artifact.Manifest { return &l.manifest }
func (l *line) MemoryInUse() int64           { return 0 }
func (l *line) Close() error                 { return nil }

func (l *line) place(name string) *float32 {
	if name == "w" {
		return &l.w
	}
	return &l.sum
}

func (l *line) ReadState(name string, dst []byte) error {
	binary.LittleEndian.PutUint32(dst, math.Float32bits(*l.place(name)))
	return nil
}

func (l *line) WriteState(name string, src []byte) error {
	*l.place(name) = math.Float32frombits(binary.LittleEndian.Uint32(src))
	return nil
}

func (l *line) Call(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	if fn == l.fail {
		return nil, errors.New("device lost")
	}
	l.calls = append(l.calls, fn)
	off := float32(1)
	if fn == l.fault {
		off = 1.001
	}
	x := formats.Tensor(in["x"]).Float32s
	switch fn {
	case "init":
		l.w = 2 * off
	case "accumulate":
		l.firsts = append(l.firsts, s["first"])
		if s["first"] == 1 {
			l.sum = 0
		}
		for _, v := range x() {
			l.sum += v * off
		}
	case "apply":
		l.w -= float32(s["lr"]) * l.sum * off
	case "eval":
		y := x()
		for i := range y {
			y[i] *= l.w * off
		}
		return map[string]runtime.Array{"x": runtime.Array(formats.FromFloat32s(y, 3))}, nil
	case "pick":
		most := 0.0
		for _, v := range formats.Tensor(in["i"]).Float64s() {
			most = math.Max(most, v)
		}
		return map[string]runtime.Array{"most": runtime.Array(formats.FromFloat32s([]float32{float32(most) * off}))}, nil
	}
	return nil, nil
}

// TestFaultsAreFound: each function's fault shows in what that function gives, and nowhere else, because each starts from
// the reference's state.
func TestFaultsAreFound(t *testing.T) {
	for _, fault := range []string{"", "init", "accumulate", "apply", "eval", "pick"} {
		device, reference := newLine(fault), newLine("")
		rows, err := Compare(device, reference, 1e-4, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"init", "accumulate", "accumulate", "apply", "eval", "pick"}, device.calls)
		require.Equal(t, []float64{1, 0}, device.firsts)
		var names []string
		for _, r := range rows {
			names = append(names, r.Function+" "+r.Name)
			if r.Function == fault {
				require.True(t, r.Relative() > 1e-8 && r.Relative() < 0.1, "%s with a fault in %s: %g", r.Name, fault, r.Relative())
				require.True(t, r.Off() == (r.Relative() > 1e-4))
			} else {
				require.Zero(t, r.Relative(), "%s of %s with a fault in %q", r.Name, r.Function, fault)
			}
		}
		require.Equal(t, []string{"init w", "accumulate sum", "accumulate sum", "apply w", "eval x", "pick most"}, names)
		require.Equal(t, 3, rows[4].Elements)
	}
}

func TestErrorsSayWhose(t *testing.T) {
	device, reference := newLine(""), newLine("")
	device.fail = "apply"
	_, err := Compare(device, reference, 1e-4, 1)
	require.EqualError(t, err, "apply: device lost")
	reference.fail = "eval"
	device.fail = ""
	_, err = Compare(device, reference, 1e-4, 1)
	require.EqualError(t, err, "eval: reference: device lost")
	device.manifest.Functions = device.manifest.Functions[:3]
	_, err = Compare(device, newLine(""), 1e-4, 1)
	require.EqualError(t, err, "the program has no function eval")
}

func TestDistances(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x, y              []float64
		relative, largest float64
	}{
		{[]float64{3, 4}, []float64{3, 4}, 0, 0},
		{[]float64{3, 5}, []float64{3, 4}, 0.2, 1},
		{[]float64{0, 0}, []float64{0, 0}, 0, 0},
		{[]float64{1e-9}, []float64{0}, inf, 1e-9},
		{[]float64{nan, 1}, []float64{nan, 1}, 0, 0},
		{[]float64{nan, 1}, []float64{0, 1}, inf, inf},
		{[]float64{0, 1}, []float64{nan, 1}, inf, inf},
		{[]float64{inf, 1}, []float64{inf, 1}, 0, 0},
		{[]float64{-inf, 1}, []float64{inf, 1}, inf, inf},
		{nil, nil, 0, 0},
	} {
		require.InDelta(t, c.relative, (&expected{value: c.y}).of(c.x).Relative(), 1e-15, "%v %v", c.x, c.y)
		require.Equal(t, c.largest, largest(c.x, c.y), "%v %v", c.x, c.y)
	}
}
