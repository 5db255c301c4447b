package ref

import (
	"blutrain/ir"
)

// Change may give other values to the results of an operation that was evaluated, in place or by Set.
type Change func(f *ir.Frame, op *ir.Op, out []ir.Datum)

// Evaluate runs the body of a function of a module in float64 and returns what it gives. Values are dropped after their
// last use. change, unless nil, is called after each operation.
func Evaluate(c *ir.Context, module *ir.Op, body *ir.Block, args []ir.Datum, change Change) ([]ir.Datum, error) {
	return evaluate(c, module, body, args, lastUses(body), change)
}

func evaluate(c *ir.Context, module *ir.Op, body *ir.Block, args []ir.Datum, dead map[*ir.Op][]*ir.Value, change Change) ([]ir.Datum, error) {
	interp := &ir.Interp{Ctx: c, Module: module}
	frame := interp.NewFrame()
	interp.After = func(op *ir.Op, out []ir.Datum) error {
		if change != nil && op.Block() == body {
			change(frame, op, out)
		}
		for _, v := range dead[op] {
			frame.Set(v, nil)
		}
		return nil
	}
	return frame.Run(body, args)
}
