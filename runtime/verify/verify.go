// Package verify holds a device to the reference of the artifact it runs: function by function (Compare), and, where the
// device shows its launches, kernel by kernel (Kernels), on random inputs. It knows programs by their interface only.
package verify

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/ref"
	"blutrain/runtime/synthetic"
)

// Row is the comparison of one output of a function, or of one state that it changes.
type Row struct {
	Function string
	Name     string // of the output or state
	Error
	Largest float64 // largest difference of an element
}

// Compare calls every function of both programs with the same inputs from the same state (the reference's, so that errors do
// not add up) and compares what comes out: init, accumulate twice, apply, eval, then the functions of the model. A result's bound is
// its norm times tolerance, or what roundings make of it, where the reference is a ref.Program and that is more: a gradient that is
// exactly zero is a sum whose terms cancel. Where products round, so does that reference if the exact one doesn't fit: see settle.
func Compare(device, reference runtime.Program, tolerance float64, seed uint64) ([]Row, error) {
	c := &comparison{device: device, reference: reference, manifest: device.Manifest(), tolerance: tolerance, random: rand.New(rand.NewPCG(seed, 0))}
	for _, name := range order(c.manifest) {
		f, ok := c.manifest.Function(name)
		if !ok {
			return nil, fmt.Errorf("the program has no function %s", name)
		}
		if err := c.compare(f, c.accumulated); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if name == "init" {
			if err := synthetic.Shake(c.reference, c.random); err != nil {
				return nil, err
			}
		}
	}
	return c.rows, nil
}

type comparison struct {
	device, reference runtime.Program
	manifest          *artifact.Manifest
	tolerance         float64
	random            *rand.Rand
	accumulated       bool
	rows              []Row
}

// order is the functions to call, in order.
func order(m *artifact.Manifest) []string {
	names := []string{"init"}
	if m.Train != nil {
		names = append(names, "accumulate", m.LastAccumulate(), "apply", "eval")
	}
	for _, f := range m.Functions {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// compare calls one function of both.
func (c *comparison) compare(f *artifact.Function, again bool) error {
	in, scalars := synthetic.Inputs(c.manifest, f, c.random), synthetic.Scalars(!again)
	before := map[string][]byte{}
	if f.Name != "init" { // before it, states hold nothing
		var err error
		if before, err = c.copyStates(); err != nil {
			return err
		}
	}
	want, err := c.reference.Call(f.Name, in, scalars)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	got, err := c.device.Call(f.Name, in, scalars)
	if err != nil {
		return err
	}
	results := []result{}
	for _, v := range f.Outputs {
		results = append(results, newResult(v, got[v.Name].Data, want[v.Name].Data, c.tolerance))
	}
	states, err := c.changedStates(f.Name, before)
	if err != nil {
		return err
	}
	c.accumulated = c.accumulated || strings.HasPrefix(f.Name, "accumulate")
	results = append(results, states...)
	if err := c.round(f.Name, in, scalars, before, results); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	for _, r := range results {
		c.rows = append(c.rows, Row{f.Name, r.name, r.want.of(r.got), largest(r.got, r.want.value)})
	}
	if f.Name == artifact.Refresh || writesParams(c.manifest, results) {
		rows, err := copies(c.device, f.Name)
		c.rows = append(c.rows, rows...)
		return err
	}
	return nil
}

// copyStates gives both programs the reference's states, rounded to their types.
func (c *comparison) copyStates() (map[string][]byte, error) {
	all, err := c.readStates()
	if err != nil {
		return nil, err
	}
	return all, errors.Join(write(c.reference, all), write(c.device, all))
}

// readStates is the reference's states.
func (c *comparison) readStates() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, s := range c.manifest.Own() {
		all[s.Name] = make([]byte, s.Bytes())
		if err := c.reference.ReadState(s.Name, all[s.Name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// result is an output of a function, or a state that it changed.
type result struct {
	name  string
	state bool
	got   []float64
	want  *expected
}

func newResult(v artifact.Value, got, want []byte, tolerance float64) result {
	numbers := func(data []byte) []float64 {
		return formats.Tensor{DType: v.DType, Shape: v.Shape, Data: data}.Float64s()
	}
	return result{name: v.Name, got: numbers(got), want: &expected{value: numbers(want), tolerance: tolerance}}
}

// changedStates is the states that either program has changed.
func (c *comparison) changedStates(function string, before map[string][]byte) (list []result, err error) {
	for _, s := range c.manifest.Own() {
		if function == "init" && !s.Persist {
			continue // written by the first accumulation
		}
		got, want := make([]byte, s.Bytes()), make([]byte, s.Bytes())
		if err := c.device.ReadState(s.Name, got); err != nil {
			return nil, err
		}
		if err := c.reference.ReadState(s.Name, want); err != nil {
			return nil, err
		}
		if !slices.Equal(got, before[s.Name]) || !slices.Equal(want, before[s.Name]) {
			r := newResult(s.Value, got, want, c.tolerance)
			r.state = true
			list = append(list, r)
		}
	}
	return list, nil
}

// round settles results that are off: it evaluates the function with changes, from the states before.
func (c *comparison) round(function string, in map[string]runtime.Array, s runtime.Scalars, before map[string][]byte, results []result) error {
	reference, ok := c.reference.(ref.Program)
	if !ok || countOff(results) == 0 {
		return nil
	}
	after, err := c.readStates()
	if err != nil {
		return err
	}
	if err := write(reference, before); err != nil {
		return err
	}
	err = settle(results, c.random, func(change ref.Change) ([][]float64, error) {
		out, states, err := reference.CallChanged(function, in, s, change)
		if err != nil {
			return nil, err
		}
		values := make([][]float64, len(results))
		for i, r := range results {
			x := out[r.name]
			if r.state {
				x = states[r.name]
			}
			if x != nil {
				values[i] = x.Data
			}
		}
		return values, nil
	})
	return errors.Join(err, write(reference, after))
}

func write(p runtime.Program, states map[string][]byte) error {
	for name, data := range states {
		if err := p.WriteState(name, data); err != nil {
			return err
		}
	}
	return nil
}

func largest(x, y []float64) float64 {
	most := 0.0
	for i := range y {
		most = math.Max(most, distance(x[i], y[i]))
	}
	return most
}
