package ref

import (
	"slices"

	"blutrain/ir"
)

// Change is what an evaluation does otherwise than its function says: it gives other tensors in the place of some.
type Change interface {
	// Result stands in for what an operation resulted in, or for an argument, when op is nil.
	Result(op *ir.Op, x *ir.Tensor) *ir.Tensor
	// Operand stands in for what an operation reads, there alone.
	Operand(op *ir.Op, i int, x *ir.Tensor) *ir.Tensor
}

// Evaluate runs the body of a function of a module in float64 and returns what it gives. Values are dropped after their
// last use. change may be nil.
func Evaluate(c *ir.Context, module *ir.Op, body *ir.Block, args []ir.Datum, change Change) ([]ir.Datum, error) {
	return evaluate(&ir.Interp{Ctx: c, Module: module}, body, args, lastUses(body), change)
}

func evaluate(interp *ir.Interp, body *ir.Block, args []ir.Datum, dead map[*ir.Op][]*ir.Value, change Change) ([]ir.Datum, error) {
	frame := interp.NewFrame()
	if change != nil {
		interp.Before = func(op *ir.Op, in []ir.Datum) error {
			if op.Block() == body {
				for i, d := range in {
					if x, ok := d.(*ir.Tensor); ok {
						in[i] = change.Operand(op, i, x)
					}
				}
			}
			return nil
		}
	}
	interp.After = func(op *ir.Op, out []ir.Datum) error {
		if change != nil && op.Block() == body {
			for i, d := range out {
				if x, ok := d.(*ir.Tensor); ok {
					frame.Set(op.Result(i), change.Result(op, x))
				}
			}
		}
		for _, v := range dead[op] {
			frame.Set(v, nil)
		}
		return nil
	}
	if change != nil {
		args = slices.Clone(args)
		for i, d := range args {
			args[i] = change.Result(nil, d.(*ir.Tensor))
		}
	}
	return frame.Run(body, args)
}
