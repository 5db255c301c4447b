package passes

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// FlopsAttr is the attribute of a module with the floating-point operations of one call of each function.
const FlopsAttr = "blu.flops"

// flops counts, for each function of a module, the multiplications and additions of its matrix products: 2*M*N*K for one
// of MxK by KxN. Everything else is left out, as is usual where utilization is reported. Functions that call others are
// counted after inlining only.
func flops(s *State, module *ir.Op) error {
	var entries []ir.NamedAttr
	for f := range module.Body().Ops() {
		if !f.Is(fn.Func) || f.Body() == nil {
			continue
		}
		n := 0.0
		s.Walk(f, func(op *ir.Op) ir.WalkResult {
			n += flopsOf(op)
			return ir.Advance
		})
		entries = append(entries, ir.NamedAttr{Name: ir.SymName(f), Value: s.Ctx.FloatAttr(n, s.Ctx.F64())})
	}
	module.SetAttr(FlopsAttr, s.Ctx.Dict(entries...))
	return nil
}

func flopsOf(op *ir.Op) float64 {
	switch op.Def() {
	case blu.Dot:
		n := 2.0
		for _, d := range op.Result(0).Shape() {
			n *= float64(d)
		}
		lhs := op.Operand(0).Shape()
		for _, axis := range op.Attrs().Ints("lhs_contract") {
			n *= float64(lhs[axis])
		}
		return n
	case blu.Attention: // q k^T, and the weights times v
		d, e, pairs := attentionSizes(op)
		return 2 * pairs * (d + e)
	case blu.AttentionGrad: // the scores again, dq and dk; dv and the gradient of the weights
		d, e, pairs := attentionSizes(op)
		return 2 * pairs * (3*d + 2*e)
	}
	return 0
}

// attentionSizes is the sizes of a key and of a value, and how many pairs of a query and a key there are that it sees.
func attentionSizes(op *ir.Op) (d, e, pairs float64) {
	q, k, v := op.Operand(0).Shape(), op.Operand(1).Shape(), op.Operand(2).Shape()
	seen := q[2] * k[2]
	if op.Attrs().Bool("causal") {
		seen = 0
		for s := range q[2] {
			seen += max(0, s+k[2]-q[2]+1)
		}
	}
	return float64(q[3]), float64(v[3]), float64(q[0]*q[1]) * float64(seen)
}
