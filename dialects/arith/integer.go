package arith

import (
	"fmt"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Arithmetic on integers and indices. Signed operations read the bits as two's complement.
var (
	Addi = integer("addi", "sum of integers", ir.Commutative, func(x, y int64) (int64, error) { return x + y, nil }, isZero)
	Subi = integer("subi", "difference of integers", 0, func(x, y int64) (int64, error) { return x - y, nil }, isZero)
	Muli = integer("muli", "product of integers", ir.Commutative, func(x, y int64) (int64, error) { return x * y, nil }, isOne)

	Divsi      = integer("divsi", "quotient of signed integers, rounded towards zero", 0, divide(quotient), isOne)
	Remsi      = integer("remsi", "remainder of divsi, with the sign of the first operand", 0, divide(func(x, y int64) int64 { return x % y }), nil)
	Ceildivsi  = integer("ceildivsi", "quotient of signed integers, rounded up", 0, divide(ceilDiv), isOne)
	Floordivsi = integer("floordivsi", "quotient of signed integers, rounded down", 0, divide(func(x, y int64) int64 { return -ceilDiv(-x, y) }), isOne)

	Minsi = integer("minsi", "smaller of two signed integers", ir.Commutative, func(x, y int64) (int64, error) { return min(x, y), nil }, nil)
	Maxsi = integer("maxsi", "larger of two signed integers", ir.Commutative, func(x, y int64) (int64, error) { return max(x, y), nil }, nil)
	Andi  = integer("andi", "bitwise and", ir.Commutative, func(x, y int64) (int64, error) { return x & y, nil }, nil)
	Ori   = integer("ori", "bitwise or", ir.Commutative, func(x, y int64) (int64, error) { return x | y, nil }, isZero)
	Xori  = integer("xori", "bitwise exclusive or", ir.Commutative, func(x, y int64) (int64, error) { return x ^ y, nil }, isZero)
)

func quotient(x, y int64) int64 { return x / y }

func ceilDiv(x, y int64) int64 {
	q := x / y
	if x%y != 0 && (x < 0) == (y < 0) {
		q++
	}
	return q
}

// divide refuses a divisor of zero.
func divide(f func(x, y int64) int64) func(x, y int64) (int64, error) {
	return func(x, y int64) (int64, error) {
		if y == 0 {
			return 0, fmt.Errorf("division by zero")
		}
		return f(x, y), nil
	}
}

// integer defines a binary operation; neutral says which right operand changes nothing, and may be nil.
func integer(name, summary string, traits ir.Traits, f func(x, y int64) (int64, error), neutral func(ir.Attr) bool) *ir.OpDef {
	return define(ir.OpDef{
		Name: name, Summary: summary,
		Operands: []ir.OperandDef{{Name: "lhs", Type: kinds.IntegerLike}, {Name: "rhs", Type: kinds.IntegerLike}},
		Results:  []ir.ResultDef{{Name: "result", Type: kinds.IntegerLike}},
		Traits:   ir.Elementwise | ir.SameTypes | traits,
		Infer:    inferFirst,
		Fold: func(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
			x, xok := consts[0].(*ir.IntegerAttr)
			y, yok := consts[1].(*ir.IntegerAttr)
			if xok && yok {
				if v, err := f(x.Value, y.Value); err == nil {
					return []ir.FoldResult{{Attr: c.Integer(wrap(v, x.Type), x.Type)}}
				}
				return nil
			}
			if neutral == nil {
				return nil
			}
			if neutral(consts[1]) {
				return []ir.FoldResult{{Value: op.Operand(0)}}
			}
			if traits&ir.Commutative != 0 && neutral(consts[0]) {
				return []ir.FoldResult{{Value: op.Operand(1)}}
			}
			return nil
		},
		Eval: func(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
			x, y, err := pair(in)
			if err != nil {
				return nil, err
			}
			r := ir.NewTensor(x.Elem, x.Shape...)
			for i := range r.Data {
				v, err := f(int64(x.Data[i]), int64(y.Data[i]))
				if err != nil {
					return nil, err
				}
				r.Data[i] = float64(wrap(v, x.Elem))
			}
			return []ir.Datum{r}, nil
		},
	})
}

// wrap reduces v to the bits of integer type t, as the value an attribute of that type has: sign-extended, or 0 or 1.
func wrap(v int64, t ir.Type) int64 {
	i, ok := t.(*ir.IntegerType)
	if !ok {
		return v
	}
	if i.Width == 1 {
		return v & 1
	}
	shift := 64 - i.Width
	return v << shift >> shift
}

func isZero(y ir.Attr) bool { return isInt(y, 0) }
func isOne(y ir.Attr) bool  { return isInt(y, 1) }

func isInt(a ir.Attr, v int64) bool {
	i, ok := a.(*ir.IntegerAttr)
	return ok && i.Value == v
}

func inferFirst(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	return []ir.Type{in.Operands[0].Type()}, nil
}
