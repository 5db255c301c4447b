package driver

import (
	"blutrain/dialects/builtin"
	"blutrain/ir"
	"blutrain/lower/binary"
	"blutrain/passes"
)

// keepStep copies all that is in the module into a module inside it, which later phases leave alone: the program before it
// was cut into kernels is the reference that an artifact carries.
func keepStep(s *passes.State, module *ir.Op) error { return keep(s, module, binary.Step) }

// keepWhole does the same before the program becomes that of one rank of many: what all ranks compute together is compared with it.
func keepWhole(s *passes.State, module *ir.Op) error { return keep(s, module, binary.Whole) }

func keep(s *passes.State, module *ir.Op, name string) error {
	inner := builtin.NewModule(s.Ctx, name, module.Loc())
	mapping := map[*ir.Value]*ir.Value{}
	for op := range module.Body().Ops() {
		s.Visit(op)
		inner.Body().Append(op.Clone(s.Ctx, mapping))
	}
	module.Body().Append(inner)
	return nil
}
