package blu

import (
	"strconv"

	"blutrain/ir"
)

type foldFunc = func(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult

// foldLimit is the most elements a constant made by folding may have, unless all are equal: folding is for scalars and
// small tables, and must not blow up the program.
const foldLimit = 1024

func toValue(vs ...*ir.Value) []ir.FoldResult {
	out := make([]ir.FoldResult, len(vs))
	for i, v := range vs {
		out[i].Value = v
	}
	return out
}

func toAttr(as ...ir.Attr) []ir.FoldResult {
	out := make([]ir.FoldResult, len(as))
	for i, a := range as {
		out[i].Attr = a
	}
	return out
}

// toSplat folds the only result to a constant that is v everywhere.
func toSplat(c *ir.Context, op *ir.Op, v float64) []ir.FoldResult {
	return toAttr(c.Splat(op.Result(0).Type(), v))
}

// splatValue is the value of a constant whose elements are all equal.
func splatValue(a ir.Attr) (v float64, ok bool) {
	d, ok := a.(*ir.DenseAttr)
	if !ok || !d.Splat {
		return 0, false
	}
	return ir.DecodeElement(ir.Elem(d.Type), d.Raw), true
}

// isSplat reports whether a constant is v everywhere.
func isSplat(a ir.Attr, v float64) bool {
	s, ok := splatValue(a)
	return ok && s == v
}

// withConstantFolding is the operation's own folder and, where that has nothing to say, its evaluation on constants.
func withConstantFolding(def ir.OpDef) foldFunc {
	if def.Eval == nil || def.Traits&ir.Pure == 0 || len(def.Operands) == 0 {
		return def.Fold
	}
	return func(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
		if def.Fold != nil {
			if folded := def.Fold(c, op, consts); folded != nil {
				return folded
			}
		}
		return foldConstants(c, op, def.Eval, consts)
	}
}

// foldConstants evaluates an operation whose operands are all constants. An evaluation that fails is left for run time,
// where its error is reported.
func foldConstants(c *ir.Context, op *ir.Op, eval ir.EvalFunc, consts []ir.Attr) []ir.FoldResult {
	splat := op.Has(ir.Elementwise)
	small := true
	for _, a := range consts {
		d, ok := a.(*ir.DenseAttr)
		if !ok {
			return nil
		}
		splat = splat && d.Splat
		small = small && smallType(d.Type)
	}
	for _, t := range op.ResultTypes() {
		small = small && smallType(t)
	}
	if !splat && !small || len(consts) == 0 {
		return nil
	}
	in := make([]ir.Datum, len(consts))
	for i, a := range consts {
		d := a.(*ir.DenseAttr)
		if splat {
			in[i] = &ir.Tensor{Elem: ir.Elem(d.Type), Data: []float64{ir.DecodeElement(ir.Elem(d.Type), d.Raw)}}
		} else {
			in[i] = TensorOf(d)
		}
	}
	out, err := eval(nil, op, in)
	if err != nil {
		return nil
	}
	folded := make([]ir.FoldResult, len(out))
	for i, d := range out {
		t := d.(*ir.Tensor)
		if splat {
			folded[i].Attr = c.Splat(op.Result(i).Type(), t.Data[0])
		} else {
			folded[i].Attr = DenseOf(c, t)
		}
	}
	return folded
}

func smallType(t ir.Type) bool {
	shape, _ := ir.Shape(t)
	return ir.NumElements(shape) <= foldLimit
}

func itoa(i int) string { return strconv.Itoa(i) }
