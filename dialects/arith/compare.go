package arith

import (
	"fmt"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Predicates of Cmpi, with upstream's numbers. Unsigned ones are not used.
const (
	Eq int64 = iota
	Ne
	Slt
	Sle
	Sgt
	Sge
)

// Predicates of Cmpf, with upstream's numbers: ordered ones are false when an operand is NaN, une is true then.
const (
	Oeq int64 = iota + 1
	Ogt
	Oge
	Olt
	Ole
	One
	Une int64 = 13
)

// Cmpi compares integers.
var Cmpi = define(ir.OpDef{
	Name:        "cmpi",
	Summary:     "compares signed integers",
	Description: "Predicates: 0 eq, 1 ne, 2 slt, 3 sle, 4 sgt, 5 sge.",
	Operands:    []ir.OperandDef{{Name: "lhs", Type: kinds.IntegerLike}, {Name: "rhs", Type: kinds.IntegerLike}},
	Attrs:       []ir.AttrDef{{Name: "predicate", Kind: ir.I64Kind}},
	Results:     []ir.ResultDef{{Name: "result", Type: kinds.BoolLike}},
	Traits:      ir.Elementwise | ir.Properties,
	Infer:       inferCompare,
	Verify:      knownPredicate(func(p int64) bool { return p >= Eq && p <= Sge }),
	Fold: func(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
		x, xok := consts[0].(*ir.IntegerAttr)
		y, yok := consts[1].(*ir.IntegerAttr)
		if !xok || !yok {
			return nil
		}
		p, _ := op.Attrs().Int("predicate")
		return []ir.FoldResult{{Attr: c.Bool(compareInts(p, x.Value, y.Value))}}
	},
	Eval: func(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		return evalCompare(op, in, func(p int64, x, y float64) bool { return compareInts(p, int64(x), int64(y)) })
	},
})

// Cmpf compares floating-point numbers.
var Cmpf = define(ir.OpDef{
	Name:        "cmpf",
	Summary:     "compares floating-point numbers",
	Description: "Predicates: 1 oeq, 2 ogt, 3 oge, 4 olt, 5 ole, 6 one, 13 une. The ordered ones, o.., are false when an operand is NaN.",
	Operands:    []ir.OperandDef{{Name: "lhs", Type: kinds.FloatLike}, {Name: "rhs", Type: kinds.FloatLike}},
	Attrs:       []ir.AttrDef{{Name: "predicate", Kind: ir.I64Kind}},
	Results:     []ir.ResultDef{{Name: "result", Type: kinds.BoolLike}},
	Traits:      ir.Elementwise | ir.Properties,
	Infer:       inferCompare,
	Verify:      knownPredicate(func(p int64) bool { return p >= Oeq && p <= One || p == Une }),
	Eval: func(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		return evalCompare(op, in, compareFloats)
	},
})

func knownPredicate(known func(int64) bool) func(*ir.Op) error {
	return func(op *ir.Op) error {
		if p, _ := op.Attrs().Int("predicate"); !known(p) {
			return fmt.Errorf("unknown predicate %d", p)
		}
		return nil
	}
}

func compareInts(p, x, y int64) bool {
	switch p {
	case Eq:
		return x == y
	case Ne:
		return x != y
	case Slt:
		return x < y
	case Sle:
		return x <= y
	case Sgt:
		return x > y
	}
	return x >= y
}

func compareFloats(p int64, x, y float64) bool {
	switch p {
	case Oeq:
		return x == y
	case Ogt:
		return x > y
	case Oge:
		return x >= y
	case Olt:
		return x < y
	case Ole:
		return x <= y
	case One:
		return x != y && !math.IsNaN(x) && !math.IsNaN(y)
	}
	return x != y
}

func inferCompare(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x, y := in.Operands[0].Type(), in.Operands[1].Type()
	if x != y {
		return nil, fmt.Errorf("compares %s with %s: they must be one type", x, y)
	}
	switch t := x.(type) {
	case *ir.TensorType:
		return []ir.Type{c.Tensor(t.Shape, c.I1())}, nil
	case *ir.VectorType:
		return []ir.Type{c.Vector(t.Shape, c.I1())}, nil
	}
	return []ir.Type{c.I1()}, nil
}

func evalCompare(op *ir.Op, in []ir.Datum, f func(p int64, x, y float64) bool) ([]ir.Datum, error) {
	x, y, err := pair(in)
	if err != nil {
		return nil, err
	}
	p, _ := op.Attrs().Int("predicate")
	r := ir.NewTensor(ir.Elem(op.Result(0).Type()), x.Shape...)
	for i := range r.Data {
		if f(p, x.Data[i], y.Data[i]) {
			r.Data[i] = 1
		}
	}
	return []ir.Datum{r}, nil
}
