package binary

import (
	"cmp"

	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// countFlops counts the floating-point operations of matrix products in each function: what is compared to a machine's peak
// as model FLOPs utilization. What is only computed again, to save memory, doesn't count.
func countFlops(module *ir.Op) map[string]float64 {
	from := module
	if step := nested(module, Step); step != nil {
		from = step
	}
	return flopsOf(from, func(op *ir.Op) bool { return op.Attr(blu.RecomputedAttr) == nil })
}

// flopsOf sums, for each function of a module, the operations that count.
func flopsOf(module *ir.Op, counts func(op *ir.Op) bool) map[string]float64 {
	sums := map[string]float64{}
	for f := range module.Body().Ops() {
		if !f.Is(fn.Func) {
			continue
		}
		n := 0.0
		ir.Walk(f, func(op *ir.Op) ir.WalkResult {
			if counts(op) {
				n += blu.Flops(op)
			}
			return ir.Advance
		})
		sums[ir.SymName(f)] = n
	}
	return sums
}

// setFlops tells every launch how many floating-point operations the function has that its kernel implements. Here
// everything counts, since the processor does it.
func setFlops(c *ir.Context, module *ir.Op) {
	kernels := nested(module, Reference)
	if kernels == nil {
		return
	}
	flops := flopsOf(kernels, func(*ir.Op) bool { return true })
	ir.Walk(module, func(op *ir.Op) ir.WalkResult {
		if !op.Is(exec.Launch) {
			return ir.Advance
		}
		name := op.Attrs().Sym("kernel")
		if k := ir.LookupSymbol(module, name); k != nil {
			name = cmp.Or(k.Attrs().Str("reference"), name)
		}
		if n := flops[name]; n > 0 {
			op.SetAttr("flops", c.Int64(int64(n)))
		}
		return ir.Advance
	})
}
