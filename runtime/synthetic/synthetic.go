// Package synthetic makes up what a program is called with, where any values do: to measure it, or to compare it with
// another. It knows manifests and nothing of devices.
package synthetic

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
)

// Inputs of a function: indices that there are, other integers below the model's argument V (or 2, without one), numbers from a standard
// normal distribution. The same for the same state of the source.
func Inputs(m *artifact.Manifest, f *artifact.Function, r *rand.Rand) map[string]runtime.Array {
	below := 2
	if v := m.Args["V"]; v >= 1 {
		below = int(v)
	}
	in := map[string]runtime.Array{}
	for _, v := range f.Inputs {
		below := below
		if v.Below > 0 {
			below = int(v.Below)
		}
		data := make([]byte, 0, v.Bytes())
		for int64(len(data)) < v.Bytes() {
			data = appendValue(data, v.DType, r.NormFloat64(), r.IntN(below))
		}
		in[v.Name] = runtime.Array{DType: v.DType, Shape: v.Shape, Data: data}
	}
	return in
}

// appendValue appends x as a float or n as an integer; a boolean is n's last bit.
func appendValue(b []byte, d formats.DType, x float64, n int) []byte {
	le := binary.LittleEndian
	switch d {
	case formats.F16:
		return le.AppendUint16(b, ir.F16Bits(x))
	case formats.BF16:
		return le.AppendUint16(b, ir.BF16Bits(x))
	case formats.F32:
		return le.AppendUint32(b, math.Float32bits(float32(x)))
	case formats.F64:
		return le.AppendUint64(b, math.Float64bits(x))
	case formats.Bool:
		return append(b, byte(n&1))
	}
	return append(b, le.AppendUint64(nil, uint64(n))[:d.Size()]...)
}

// Scalars of any function, at the first step of a training. Those of the first micro-batch have first set.
func Scalars(first bool) runtime.Scalars {
	s := runtime.Scalars{"seed": 1, "first": 0, "lr": 1e-3, "step": 1}
	if first {
		s["first"] = 1
	}
	return s
}

// A Call is one call of a function.
type Call struct {
	Function string
	In       map[string]runtime.Array
	Scalars  runtime.Scalars
}

// Work is the calls that a measurement repeats, and how many tokens they are about.
type Work struct {
	Calls  []Call
	Tokens int64
	Flops  float64 // of matrix products, by the manifest
}

// NewWork is the calls of one step of training on random tokens, or, where fn names a function, of that one.
func NewWork(m *artifact.Manifest, fn string, seed uint64) (*Work, error) {
	w, r := &Work{}, rand.New(rand.NewPCG(seed, 0))
	add := func(name string, first bool) error {
		f, ok := m.Function(name)
		if !ok {
			return fmt.Errorf("model %s has no function %q", m.Model, name)
		}
		w.Calls = append(w.Calls, Call{name, Inputs(m, f, r), Scalars(first)})
		w.Flops += f.Flops
		return nil
	}
	if fn != "" {
		return w, add(fn, true)
	}
	if m.Train == nil {
		return nil, fmt.Errorf("model %s has no train block", m.Model)
	}
	b := m.Train.Batch
	w.Tokens = b.B * b.S * b.Accumulate
	for i := range b.Accumulate {
		name := artifact.Accumulate
		if i == b.Accumulate-1 {
			name = m.LastAccumulate()
		}
		if err := add(name, i == 0); err != nil {
			return nil, err
		}
	}
	return w, add("apply", false)
}

// Run makes the calls, one after the other.
func (w *Work) Run(call func(c Call) error) error {
	for _, c := range w.Calls {
		if err := call(c); err != nil {
			return err
		}
	}
	return nil
}
