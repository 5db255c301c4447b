package ref

import (
	"errors"
	"slices"

	names "blutrain/dialects/dtms"
	"blutrain/dtms"
	"blutrain/ir"
	"blutrain/runtime/collective"
)

// collectives reads those of a function, numbered in their order.
func (d *device) collectives(body *ir.Block) (map[*ir.Op]collective.Spec, error) {
	specs := map[*ir.Op]collective.Spec{}
	for op := range body.Ops() {
		if !names.IsCollective(op) && !op.Is(names.Start) {
			continue
		}
		s, err := collective.Decode(op, d.options)
		if err != nil {
			return nil, err
		}
		s.ID = int64(len(specs))
		specs[op] = s
	}
	return specs, nil
}

// exchange is how a function's collectives are evaluated: by the mesh's communicators, in float64; nil where the program runs on
// one rank, where they are evaluated as any other operation is. A collective in two halves is done in the first. What goes wrong is kept
// in lost, too.
func (d *device) exchange(f *function, lost *error) func(op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	if d.options.Mesh == nil {
		return nil
	}
	return func(op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		spec, known := f.specs[op]
		if !known {
			return nil, errors.New("a collective that is not in the function's body")
		}
		var from, to []dtms.Memory
		var out []ir.Datum
		for i, x := range in {
			y := ir.NewTensor(op.Result(i).Elem(), slices.Clone(op.Result(i).Shape())...)
			from, to, out = append(from, dtms.Of(x.(*ir.Tensor).Data)), append(to, dtms.Of(y.Data)), append(out, y)
		}
		c := d.options.Communicator(spec.Group)
		*lost = collective.Start(d.options.CallContext(), c, spec, from, to).Wait()
		return out, *lost
	}
}
