// Package ref is the reference device: it evaluates a program of the blu dialect operation by operation in float64, as the
// dialect's table defines it, and so is the oracle for every other device. State is kept in float64 between calls too and is
// rounded only where it is read out. It is slow, and needs eight bytes for each element of every live value.
package ref

import (
	"fmt"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/declared"
)

// Program is what Open gives: a program whose functions can be called with changes, to see how much comes of them.
type Program interface {
	runtime.Program
	// CallChanged evaluates a function with changed arguments and results of operations. It gives the outputs and the states
	// as a call would, but leaves the states as they are.
	CallChanged(fn string, in map[string]runtime.Array, s runtime.Scalars, change Change) (out, states map[string]*ir.Tensor, err error)
}

// device is a program opened for evaluation.
type device struct {
	manifest  *artifact.Manifest
	options   runtime.Options
	ctx       *ir.Context
	module    *ir.Op
	functions map[string]*function
	states    map[string]*ir.Tensor
	refresher runtime.Refresher
}

// Open prepares an artifact for evaluation. For an artifact of another target it is the artifact's reference that is
// evaluated.
func Open(a *artifact.Artifact, opts runtime.Options) (runtime.Program, error) {
	if err := opts.CheckMesh(&a.Manifest); err != nil {
		return nil, err
	}
	file := artifact.ReferenceName
	if a.Manifest.Target == "ref" {
		file = artifact.ProgramName
	}
	text, ok := a.File(file)
	if !ok {
		return nil, fmt.Errorf("the artifact has no %s to evaluate", file)
	}
	d := &device{manifest: &a.Manifest, options: opts, ctx: dialects.NewContext(), functions: map[string]*function{}, states: map[string]*ir.Tensor{}}
	var err error
	if d.module, err = ir.Parse(d.ctx, file, text); err != nil {
		return nil, err
	}
	if err := ir.Verify(d.ctx, d.module); err != nil {
		return nil, err
	}
	if err := declared.Check(d.manifest, d.module); err != nil {
		return nil, err
	}
	for _, s := range d.manifest.States {
		elem, err := elemType(d.ctx, s.DType)
		if err != nil {
			return nil, fmt.Errorf("state %q: %w", s.Name, err)
		}
		d.states[s.Name] = ir.NewTensor(elem, s.Shape...)
	}
	for i := range d.manifest.Functions {
		f := &d.manifest.Functions[i]
		if d.functions[f.Name], err = d.bind(f); err != nil {
			return nil, fmt.Errorf("%s: function %q: %w", file, f.Name, err)
		}
	}
	return d, nil
}

// Manifest is the artifact's manifest.
func (d *device) Manifest() *artifact.Manifest { return d.manifest }

// MemoryInUse is the bytes of the states, in float64.
func (d *device) MemoryInUse() int64 {
	n := int64(0)
	for _, s := range d.states {
		n += 8 * int64(len(s.Data))
	}
	return n
}

// Close forgets the state.
func (d *device) Close() error {
	d.states, d.functions = nil, nil
	return nil
}

// ReadState rounds a state to its type.
func (d *device) ReadState(name string, dst []byte) error {
	s, err := d.state(name, len(dst))
	if err != nil {
		return err
	}
	encode(dst[:0], s)
	return nil
}

// WriteState sets a state.
func (d *device) WriteState(name string, src []byte) error {
	s, err := d.state(name, len(src))
	if err != nil {
		return err
	}
	if err := d.refresher.Writes(d.manifest, name); err != nil {
		return err
	}
	state, _ := d.manifest.State(name)
	// A new tensor: values of earlier calls may share the old one's elements.
	d.states[name] = decode(s.Elem, runtime.Array{DType: state.DType, Shape: state.Shape, Data: src})
	return nil
}

// state finds a state whose size in bytes is n.
func (d *device) state(name string, n int) (*ir.Tensor, error) {
	s, ok := d.states[name]
	if !ok {
		return nil, fmt.Errorf("there is no state %q", name)
	}
	if want := len(s.Data) * int(ir.ByteSize(s.Elem)); n != want {
		return nil, fmt.Errorf("state %q has %d bytes, not %d", name, want, n)
	}
	return s, nil
}

// elemType is the IR's element type of a stored one.
func elemType(c *ir.Context, d formats.DType) (ir.Type, error) {
	switch d {
	case formats.Bool:
		return c.I1(), nil
	case formats.I32:
		return c.I32(), nil
	case formats.I64:
		return c.I64(), nil
	case formats.F16:
		return c.Float(ir.F16), nil
	case formats.BF16:
		return c.Float(ir.BF16), nil
	case formats.F32:
		return c.F32(), nil
	case formats.F64:
		return c.F64(), nil
	}
	return nil, fmt.Errorf("programs have no elements of type %s", d)
}

// decode widens an array's elements.
func decode(elem ir.Type, a runtime.Array) *ir.Tensor {
	return &ir.Tensor{Shape: a.Shape, Elem: elem, Data: formats.Tensor{DType: a.DType, Shape: a.Shape, Data: a.Data}.Float64s()}
}

// encode appends a tensor's elements, rounded to their type.
func encode(b []byte, t *ir.Tensor) []byte {
	for _, v := range t.Data {
		b = ir.EncodeElement(b, t.Elem, v)
	}
	return b
}
