// Package cases holds one test for each situation that is known to break tools of this kind, and random programs. They are
// small models, compiled for the CPU and for the reference, whose numbers are known.
package cases

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/device"
)

// Model is a model compiled for the CPU and for the reference.
type Model struct {
	t        testing.TB
	Programs map[string]runtime.Program // by target
}

// Targets that every case is shown on.
var Targets = [...]string{"cpu", "ref"}

// Compile compiles a model for both targets, and initializes its parameters.
func Compile(t testing.TB, source string, set map[string]float64) *Model {
	t.Helper()
	m := &Model{t, map[string]runtime.Program{}}
	for _, target := range Targets {
		r, err := driver.Compile("case.blu", []byte(source), driver.Options{Target: target, Set: set})
		require.NoError(t, err)
		m.Programs[target] = open(t, r.Artifact)
		_, err = m.Programs[target].Call("init", nil, runtime.Scalars{"seed": 1})
		require.NoError(t, err)
	}
	return m
}

// open runs an artifact with poisoned memory.
func open(t testing.TB, a *artifact.Artifact) runtime.Program {
	t.Helper()
	p, err := device.Open(a, "", runtime.Options{Threads: 2, Poison: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// Set gives a parameter its elements.
func (m *Model) Set(name string, values ...float64) {
	m.t.Helper()
	for _, p := range m.Programs {
		require.NoError(m.t, p.WriteState(name, floats(values).Data))
	}
}

// Each runs a test of each target.
func (m *Model) Each(test func(target string, p runtime.Program)) {
	for _, target := range Targets {
		test(target, m.Programs[target])
	}
}

// Call calls a function on each target, and hands its outputs to a test.
func (m *Model) Call(fn string, in map[string]runtime.Array, s runtime.Scalars, test func(target string, out map[string][]float64)) {
	m.t.Helper()
	m.Each(func(target string, p runtime.Program) {
		raw, err := p.Call(fn, in, s)
		require.NoError(m.t, err, target)
		out := map[string][]float64{}
		for name, a := range raw {
			out[name] = formats.Tensor(a).Float64s()
		}
		test(target, out)
	})
}

// Gradients accumulates one micro-batch and hands the gradients, and the sums of the loss, to a test.
func (m *Model) Gradients(in map[string]runtime.Array, test func(target string, state func(name string) []float64)) {
	m.t.Helper()
	m.Each(func(target string, p runtime.Program) {
		_, err := p.Call("accumulate", in, runtime.Scalars{"first": 1, "seed": 3})
		require.NoError(m.t, err, target)
		test(target, func(name string) []float64 { return read(m.t, p, name) })
	})
}

// Error is what each target says of a call that must fail.
func (m *Model) Error(fn string, in map[string]runtime.Array, reasons ...string) {
	m.t.Helper()
	m.Each(func(target string, p runtime.Program) {
		_, err := p.Call(fn, in, runtime.Scalars{"first": 1, "seed": 3})
		for _, reason := range reasons {
			require.ErrorContains(m.t, err, reason, target)
		}
	})
}

func read(t testing.TB, p runtime.Program, name string) []float64 {
	t.Helper()
	s, ok := p.Manifest().State(name)
	require.True(t, ok, name)
	x := formats.Tensor{DType: s.DType, Shape: s.Shape, Data: make([]byte, s.Bytes())}
	require.NoError(t, p.ReadState(name, x.Data))
	return x.Float64s()
}

// floats is a tensor of float32.
func floats(values []float64, shape ...int64) runtime.Array {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
	}
	return runtime.Array{DType: formats.F32, Shape: shape, Data: data}
}

// ints is a tensor of int32.
func ints(values []int32, shape ...int64) runtime.Array {
	return runtime.Array(formats.FromInt32s(values, shape...))
}
