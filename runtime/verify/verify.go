// Package verify holds a device to the reference of the artifact it runs: function by function (Compare), and, where the
// device shows its launches, kernel by kernel (Kernels), on random inputs. It knows programs by their interface only.
package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/synthetic"
)

// Row is the comparison of one output of a function, or of one state that it changes.
type Row struct {
	Function string
	Name     string // of the output or state
	Elements int
	Relative float64 // norm(difference) / norm(reference); +Inf where one has a number and the other none
	Largest  float64 // largest difference of an element
}

// Compare calls every function of both programs with the same inputs from the same state (the reference's, so that errors do
// not add up) and compares what comes out: init, accumulate twice, apply, eval, then the functions of the model.
func Compare(device, reference runtime.Program, seed uint64) ([]Row, error) {
	c := &comparison{device: device, reference: reference, manifest: device.Manifest(), random: rand.New(rand.NewPCG(seed, 0))}
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
	random            *rand.Rand
	accumulated       bool
	rows              []Row
}

// order is the functions to call, in order.
func order(m *artifact.Manifest) []string {
	names := []string{"init"}
	if m.Train != nil {
		names = append(names, "accumulate", "accumulate", "apply", "eval")
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
	for _, v := range f.Outputs {
		c.add(f.Name, v, got[v.Name].Data, want[v.Name].Data)
	}
	c.accumulated = c.accumulated || f.Name == "accumulate"
	return c.compareStates(f.Name, before)
}

// copyStates gives both programs the reference's states, rounded to their types.
func (c *comparison) copyStates() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, s := range c.manifest.States {
		all[s.Name] = make([]byte, s.Bytes())
		if err := c.reference.ReadState(s.Name, all[s.Name]); err != nil {
			return nil, err
		}
		for _, p := range []runtime.Program{c.reference, c.device} {
			if err := p.WriteState(s.Name, all[s.Name]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// compareStates compares the states that either program has changed.
func (c *comparison) compareStates(function string, before map[string][]byte) error {
	for _, s := range c.manifest.States {
		if function == "init" && !s.Persist {
			continue // written by the first accumulation
		}
		got, want := make([]byte, s.Bytes()), make([]byte, s.Bytes())
		if err := c.device.ReadState(s.Name, got); err != nil {
			return err
		}
		if err := c.reference.ReadState(s.Name, want); err != nil {
			return err
		}
		if !slices.Equal(got, before[s.Name]) || !slices.Equal(want, before[s.Name]) {
			c.add(function, s.Value, got, want)
		}
	}
	return nil
}

func (c *comparison) add(function string, v artifact.Value, got, want []byte) {
	row := Row{Function: function, Name: v.Name}
	x := formats.Tensor{DType: v.DType, Shape: v.Shape, Data: got}.Float64s()
	y := formats.Tensor{DType: v.DType, Shape: v.Shape, Data: want}.Float64s()
	row.Elements, row.Relative, row.Largest = len(y), relative(x, y), largest(x, y)
	c.rows = append(c.rows, row)
}

// relative is norm(x - y) / norm(y), 0 where both are 0. Equal infinities and NaN in both places are no difference.
func relative(x, y []float64) float64 { return ratio(distances(x, y)) }

// distances is norm(x - y) and norm(y), of the elements of y that are finite.
func distances(x, y []float64) (difference, norm float64) {
	for i := range y {
		d := distance(x[i], y[i])
		difference += d * d
		if !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) {
			norm += y[i] * y[i]
		}
	}
	return math.Sqrt(difference), math.Sqrt(norm)
}

// ratio is x / y, 0 where x is.
func ratio(x, y float64) float64 {
	if x == 0 {
		return 0
	}
	return x / y
}

func largest(x, y []float64) float64 {
	most := 0.0
	for i := range y {
		most = math.Max(most, distance(x[i], y[i]))
	}
	return most
}

func distance(x, y float64) float64 {
	switch {
	case x == y, math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x), math.IsNaN(y):
		return math.Inf(1)
	}
	return math.Abs(x - y)
}
