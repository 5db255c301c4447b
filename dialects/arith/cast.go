package arith

import (
	"fmt"
	"math"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Conversions. The result type is given.
var (
	IndexCast = cast("index_cast", "index to integer or integer to index: sign-extends or drops high bits", kinds.IntegerLike, kinds.IntegerLike, wrapFloat)
	Extsi     = cast("extsi", "wider integer with the same sign", kinds.IntegerLike, kinds.IntegerLike, wrapFloat)
	Trunci    = cast("trunci", "narrower integer: drops high bits", kinds.IntegerLike, kinds.IntegerLike, wrapFloat)
	Extf      = cast("extf", "wider floating-point number", kinds.FloatLike, kinds.FloatLike, roundTo)
	Truncf    = cast("truncf", "narrower floating-point number, rounded to nearest even", kinds.FloatLike, kinds.FloatLike, roundTo)
	Sitofp    = cast("sitofp", "signed integer to floating-point number, rounded to nearest even", kinds.IntegerLike, kinds.FloatLike, roundTo)
	Fptosi    = cast("fptosi", "floating-point number to signed integer, rounded towards zero", kinds.FloatLike, kinds.IntegerLike,
		func(x float64, t ir.Type) float64 { return wrapFloat(math.Trunc(x), t) })
)

func wrapFloat(x float64, t ir.Type) float64 { return float64(wrap(int64(x), t)) }

func roundTo(x float64, t ir.Type) float64 {
	return ir.DecodeElement(t, string(ir.EncodeElement(nil, t, x)))
}

func cast(name, summary string, from, to ir.Constraint, f func(x float64, t ir.Type) float64) *ir.OpDef {
	return define(ir.OpDef{
		Name: name, Summary: summary,
		Operands: []ir.OperandDef{{Name: "in", Type: from}},
		Results:  []ir.ResultDef{{Name: "out", Type: to}},
		Traits:   ir.Elementwise,
		Verify:   func(op *ir.Op) error { return sameShape(op.Operand(0).Type(), op.Result(0).Type()) },
		Fold: func(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
			x, ok := consts[0].(*ir.IntegerAttr)
			t := op.Result(0).Type()
			if !ok || !ir.IsInteger(t) {
				return nil
			}
			return []ir.FoldResult{{Attr: c.Integer(wrap(x.Value, t), t)}}
		},
		Eval: func(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
			t := ir.Elem(op.Result(0).Type())
			return mapElements(in[0], op.Result(0).Type(), func(x float64) float64 { return f(x, t) })
		},
	})
}

func sameShape(x, y ir.Type) error {
	a, _ := ir.Shape(x)
	b, _ := ir.Shape(y)
	if !slices.Equal(a, b) {
		return fmt.Errorf("converts %s to %s: shapes must be equal", x, y)
	}
	return nil
}

// mapElements applies f to each element; the result has the element type of t.
func mapElements(in ir.Datum, t ir.Type, f func(float64) float64) ([]ir.Datum, error) {
	x, ok := in.(*ir.Tensor)
	if !ok {
		return nil, fmt.Errorf("the operand is %T, not a number", in)
	}
	r := ir.NewTensor(ir.Elem(t), x.Shape...)
	for i, v := range x.Data {
		r.Data[i] = f(v)
	}
	return []ir.Datum{r}, nil
}
