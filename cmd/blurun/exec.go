package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/internal/near"
	"blutrain/runtime"
)

type execCmd struct {
	Model  string             `arg:"" help:"Compiled model, NAME.blx."`
	Fn     string             `required:"" placeholder:"NAME" help:"Function to call."`
	In     []string           `sep:"none" placeholder:"NAME=FILE" help:"Input from a .npy file, or from a .safetensors file's tensor NAME. FILE.safetensors alone: all inputs."`
	Out    []string           `sep:"none" placeholder:"[NAME=]FILE" help:"Output to a .npy file; to FILE.safetensors: all outputs."`
	Scalar map[string]float64 `placeholder:"NAME=VALUE" help:"Run-time scalar."`
	Params string             `placeholder:"PATH" help:"Checkpoint, folder of checkpoints, or .safetensors file. Default: the initializers."`
	Seed   uint64             `placeholder:"N" help:"Seed of the initializers (0)."`
	Grad   bool               `help:"Give the gradients of the loss, summed over its targets, as outputs, too. FN must be the function that training minimizes."`
	deviceFlags
}

// Validate implements kong's interface: it refuses flags that cannot be meant.
func (c *execCmd) Validate() error { return errors.Join(checkSeed(c.Seed), c.deviceFlags.Validate()) }

// Run implements the command.
func (c *execCmd) Run(e *env) (err error) {
	_, p, err := e.open(c.Model, c.deviceFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	f, ok := p.Manifest().Function(c.Fn)
	if !ok {
		return noFunction(p.Manifest(), c.Fn)
	}
	if m := p.Manifest(); c.Grad && (m.Train == nil || m.Train.Minimize != c.Fn) {
		return usagef("--grad: training does not minimize %s", c.Fn)
	}
	if err := checkFiles(c.Model, c.In, c.Out); err != nil {
		return err
	}
	in, err := readInputs(c.In, f.Inputs)
	if err != nil {
		return err
	}
	scalars, err := c.scalars(f)
	if err != nil {
		return err
	}
	if err := e.restore(p, c.Params, c.Seed); err != nil {
		return err
	}
	out, err := c.call(p, in, scalars)
	if err != nil {
		return err
	}
	if len(c.Out) == 0 {
		return printOutputs(e.stdout, out)
	}
	return writeOutputs(c.Out, out)
}

// call runs the function, and with --grad one accumulation on the same inputs.
func (c *execCmd) call(p runtime.Program, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	out, err := p.Call(c.Fn, in, s)
	if err != nil || !c.Grad {
		return out, err
	}
	m := p.Manifest()
	s = maps.Clone(s)
	s["first"], s["seed"] = 1, float64(c.Seed)
	if _, err := p.Call("accumulate", in, s); err != nil {
		return nil, err
	}
	out = maps.Clone(out)
	for _, state := range m.States {
		if state.Role != artifact.Gradient {
			continue
		}
		array := runtime.Array{DType: state.DType, Shape: state.Shape, Data: make([]byte, state.Bytes())}
		if err := p.ReadState(state.Name, array.Data); err != nil {
			return nil, err
		}
		out[state.Name] = array
	}
	return out, nil
}

// scalars are the ones given, and a seed where the function wants one.
func (c *execCmd) scalars(f *artifact.Function) (runtime.Scalars, error) {
	s := runtime.Scalars{}
	var known []string
	for _, v := range f.Scalars {
		known = append(known, v.Name)
		if v.Name == "seed" {
			s["seed"] = float64(c.Seed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Scalar)) {
		if !slices.Contains(known, name) {
			return nil, usagef("function %s has no scalar %q%s", f.Name, name, near.Suggest(name, known))
		}
		s[name] = c.Scalar[name]
	}
	return s, nil
}

func noFunction(m *artifact.Manifest, name string) error {
	var known []string
	for _, f := range m.Functions {
		known = append(known, f.Name)
	}
	return fmt.Errorf("model %s has no function %q (it has %s)%s", m.Model, name, strings.Join(known, ", "), near.Suggest(name, known))
}
