package arith

import (
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Arithmetic on floating-point numbers. maximumf and minimumf give NaN when either operand is NaN, and order -0 below +0.
var (
	Addf     = float("addf", "sum", ir.Commutative, func(x, y float64) float64 { return x + y })
	Subf     = float("subf", "difference", 0, func(x, y float64) float64 { return x - y })
	Mulf     = float("mulf", "product", ir.Commutative, func(x, y float64) float64 { return x * y })
	Divf     = float("divf", "quotient", 0, func(x, y float64) float64 { return x / y })
	Maximumf = float("maximumf", "larger number, NaN if either is", ir.Commutative, math.Max)
	Minimumf = float("minimumf", "smaller number, NaN if either is", ir.Commutative, math.Min)
)

// Negf changes the sign.
var Negf = define(ir.OpDef{
	Name: "negf", Summary: "opposite sign",
	Operands: []ir.OperandDef{{Name: "operand", Type: kinds.FloatLike}},
	Results:  []ir.ResultDef{{Name: "result", Type: kinds.FloatLike}},
	Traits:   ir.Elementwise | ir.SameTypes,
	Infer:    inferFirst,
	Eval: func(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		return mapElements(in[0], op.Result(0).Type(), func(x float64) float64 { return -x })
	},
})

// float defines a binary operation.
func float(name, summary string, traits ir.Traits, f func(x, y float64) float64) *ir.OpDef {
	return define(ir.OpDef{
		Name: name, Summary: summary,
		Operands: []ir.OperandDef{{Name: "lhs", Type: kinds.FloatLike}, {Name: "rhs", Type: kinds.FloatLike}},
		Results:  []ir.ResultDef{{Name: "result", Type: kinds.FloatLike}},
		Traits:   ir.Elementwise | ir.SameTypes | traits,
		Infer:    inferFirst,
		Fold: func(c *ir.Context, _ *ir.Op, consts []ir.Attr) []ir.FoldResult {
			x, xok := consts[0].(*ir.FloatAttr)
			y, yok := consts[1].(*ir.FloatAttr)
			if !xok || !yok {
				return nil
			}
			return []ir.FoldResult{{Attr: c.FloatAttr(f(x.Value, y.Value), x.Type)}}
		},
		Eval: func(_ *ir.Frame, _ *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
			x, y, err := pair(in)
			if err != nil {
				return nil, err
			}
			r := ir.NewTensor(x.Elem, x.Shape...)
			for i := range r.Data {
				r.Data[i] = f(x.Data[i], y.Data[i])
			}
			return []ir.Datum{r}, nil
		},
	})
}
