package host

import (
	"unsafe"

	"blutrain/dtms"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/collective"
)

// decodeCollective decodes the beginning of a collective. That its places have the sizes and layouts it needs is what the
// operation's verifier says, that they lie within their storage what slots are made with.
func (d *device) decodeCollective(op *ir.Op, slots map[*ir.Value]slot) (step, error) {
	s := step{loc: op.Loc()}
	spec, err := collective.Decode(op, d.options)
	if err != nil {
		return s, err
	}
	s.begin = &spec
	return s, s.references(op, slots)
}

// begin begins a collective on the memory of a step whose references are placed.
func (d *device) begin(s *step) error {
	memories := make([]dtms.Memory, len(s.refs))
	for i, r := range s.types {
		at := d.frames[0].refs[i]
		bytes := unsafe.Slice((*byte)(at), r.elements()*r.elemBytes)
		memories[i] = dtms.Host(storedType(r.elem), bytes)
	}
	n := len(memories) / 2
	d.flights[s.begin.ID] = collective.Start(d.options.CallContext(), d.options.Communicator(s.begin.Group), *s.begin, memories[:n], memories[n:])
	return nil
}

// collective is what a visitor is told of a step that begins or ends one.
func (s *step) collective() *runtime.Collective {
	spec := s.begin
	if spec == nil {
		spec = s.wait
	}
	c := &runtime.Collective{ID: spec.ID, Op: spec.Op, Group: spec.Group, Bytes: spec.Bytes, Waits: s.wait != nil}
	return c
}
