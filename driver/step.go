package driver

import (
	"blutrain/dialects/builtin"
	"blutrain/ir"
	"blutrain/lower/binary"
	"blutrain/passes"
)

// keepStep copies all that is in the module into a module inside it, which later phases leave alone: the program before it
// was cut into kernels is the reference that an artifact carries.
func keepStep(s *passes.State, module *ir.Op) error {
	step := builtin.NewModule(s.Ctx, binary.Step, module.Loc())
	mapping := map[*ir.Value]*ir.Value{}
	for op := range module.Body().Ops() {
		s.Visit(op)
		step.Body().Append(op.Clone(s.Ctx, mapping))
	}
	module.Body().Append(step)
	return nil
}
