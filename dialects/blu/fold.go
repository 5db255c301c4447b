package blu

import (
	"math"
	"slices"
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

// splat is a constant whose elements are all equal.
func splat(a ir.Attr) (d *ir.DenseAttr, ok bool) {
	d, ok = a.(*ir.DenseAttr)
	return d, ok && d.Splat
}

// isSplat reports whether a constant is v everywhere.
func isSplat(a ir.Attr, v float64) bool {
	d, ok := splat(a)
	return ok && ir.DecodeElement(ir.Elem(d.Type), d.Raw) == v
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

// foldConstants evaluates an operation whose operands are all constants: all of them where they are small, one element where
// the operation is elementwise and its operands are splats. An evaluation that fails is left for run time, where its
// error is reported.
func foldConstants(c *ir.Context, op *ir.Op, eval ir.EvalFunc, consts []ir.Attr) []ir.FoldResult {
	splats := op.Has(ir.Elementwise)
	small := len(consts) > 0 && !slices.ContainsFunc(op.ResultTypes(), func(t ir.Type) bool { return !smallType(t) })
	for _, a := range consts {
		d, ok := a.(*ir.DenseAttr)
		if !ok {
			return nil
		}
		splats = splats && d.Splat
		small = small && smallType(d.Type)
	}
	if !splats && !small {
		return nil
	}
	in := make([]ir.Datum, len(consts))
	for i, a := range consts {
		t := constantTensor(a.(*ir.DenseAttr), splats)
		if !exact(t) {
			return nil
		}
		in[i] = t
	}
	out, err := eval(nil, op, in)
	if err != nil {
		return nil
	}
	folded := make([]ir.FoldResult, len(out))
	for i, d := range out {
		t := d.(*ir.Tensor)
		if !exact(t) {
			return nil
		}
		if splats {
			folded[i].Attr = c.Splat(op.Result(i).Type(), t.Data[0])
		} else {
			folded[i].Attr = DenseOf(c, t)
		}
	}
	return folded
}

// constantTensor is a constant's value, or only the one element of a splat, as a scalar.
func constantTensor(d *ir.DenseAttr, one bool) *ir.Tensor {
	if !one {
		return TensorOf(d)
	}
	elem := ir.Elem(d.Type)
	return &ir.Tensor{Elem: elem, Data: []float64{ir.DecodeElement(elem, d.Raw)}}
}

// exact reports whether the float64s that hold integers hold them exactly.
func exact(t *ir.Tensor) bool {
	return ir.IsFloat(t.Elem) || !slices.ContainsFunc(t.Data, func(v float64) bool { return math.Abs(v) >= 1<<53 })
}

func smallType(t ir.Type) bool {
	shape, _ := ir.Shape(t)
	return ir.NumElements(shape) <= foldLimit
}

func itoa(i int) string { return strconv.Itoa(i) }
