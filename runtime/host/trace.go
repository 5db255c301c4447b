package host

import (
	"fmt"

	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/collective"
)

// visit shows a step to a visitor, which runs it.
func (d *device) visit(s *step, visit runtime.Visitor) error {
	t := &runtime.Step{
		Location: location(s.loc), Flops: s.flops, Inputs: 1, Outputs: 1,
		Read: func(i int) runtime.Array { return d.read(s, i) },
	}
	if s.begin != nil || s.wait != nil {
		t.Inputs, t.Outputs, t.Collective = 0, 0, s.collective()
	}
	if k := s.kernel; k != nil {
		t.Kernel, t.Reference, t.Inputs, t.Outputs = k.name, k.reference, k.args-k.outs, k.outs
	}
	ran := false
	run := func() error {
		if ran {
			return fmt.Errorf("a step is run twice")
		}
		ran = true
		return d.count(s, t)
	}
	err := visit(t, run)
	if err == nil && !ran {
		return fmt.Errorf("a step was not run")
	}
	return err
}

// count executes a step and counts what its windows move.
func (d *device) count(s *step, t *runtime.Step) error {
	traffic := make([]runtime.Traffic, len(d.frames))
	for w := range d.frames {
		d.frames[w].traffic = &traffic[w]
	}
	var flight *collective.Flight
	if s.wait != nil {
		flight = d.flights[s.wait.ID]
	}
	err := d.step(s)
	if flight != nil {
		t.Collective.Began, t.Collective.Ended = flight.Times()
	}
	for w := range d.frames {
		d.frames[w].traffic = nil
		t.Traffic.Add(traffic[w])
	}
	if s.kernel == nil && t.Collective == nil {
		n := s.types[0].elements() * s.types[0].elemBytes
		t.Traffic = runtime.Traffic{Read: n, Written: n}
	}
	return err
}

// read copies what one of a step's references holds.
func (d *device) read(s *step, i int) runtime.Array {
	r := s.types[i]
	a := runtime.Array{DType: storedType(r.elem), Shape: r.shape, Data: aligned(r.elements() * r.elemBytes)}
	if len(a.Data) > 0 {
		dense := r
		dense.strides = ir.RowMajor(r.shape)
		from, to := collapse(r, dense)
		copyStrided(d.frames[0].refs[i], pointer(a.Data), from, to)
	}
	return a
}

// location is a place in the source as file:line:col, or "" where it is not known.
func location(l *ir.Location) string {
	src := l.Source()
	if src == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", src.File, src.Line, src.Col)
}
