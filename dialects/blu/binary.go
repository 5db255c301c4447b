package blu

import (
	"errors"
	"math"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// binary describes an elementwise operation of two operands of one type, which is the result's too.
func binary(name, summary, description string, kind ir.Constraint, traits ir.Traits, fold foldFunc, fn func(a, b float64) float64) *ir.OpDef {
	return define(ir.OpDef{
		Name: name, Summary: summary, Description: description,
		Operands: []ir.OperandDef{{Name: "a", Type: kind}, {Name: "b", Type: kind}},
		Results:  []ir.ResultDef{{Name: "y", Type: kind}},
		Traits:   ir.Pure | ir.Elementwise | ir.SameTypes | traits,
		Infer:    sameTypes("a", "b"),
		Fold:     fold,
		Eval: eval(func(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
			out := like(in[0], op, 0)
			a, b := in[0].Data, in[1].Data
			if ir.IsInteger(out.Elem) {
				if err := integerDivision(name, b); err != nil {
					return nil, err
				}
			}
			for i := range a {
				out.Data[i] = fn(a[i], b[i])
			}
			wrap(out)
			return out, nil
		}),
	})
}

// Elementwise operations of two operands.
var (
	Add = binary("add", "sum", "y = a + b. Integers wrap around.", kinds.NumberTensor, ir.Commutative|ir.Differentiable, foldAdd,
		func(a, b float64) float64 { return a + b })
	Sub = binary("sub", "difference", "y = a - b. Integers wrap around.", kinds.NumberTensor, ir.Differentiable, foldSub,
		func(a, b float64) float64 { return a - b })
	Mul = binary("mul", "product", "y = a * b. Integers wrap around.", kinds.NumberTensor, ir.Commutative|ir.Differentiable, foldMul,
		func(a, b float64) float64 { return a * b })
	Div = binary("div", "quotient", "y = a / b. Integers round toward zero; dividing an integer by zero is a run-time error.",
		kinds.NumberTensor, ir.Differentiable, foldDiv, func(a, b float64) float64 { return a / b })
	Pow = binary("pow", "power", "y = a^b, as IEEE 754's pow: a^0 and 1^b are 1 whatever the other is, a negative base with a fractional exponent gives NaN.",
		kinds.FloatTensor, ir.Differentiable, foldPow, math.Pow)
	Max = binary("max", "the greater", "y = max(a, b); NaN where either is NaN.", kinds.NumberTensor, ir.Commutative|ir.Differentiable, foldSame,
		func(a, b float64) float64 { return max(a, b) })
	Min = binary("min", "the lesser", "y = min(a, b); NaN where either is NaN.", kinds.NumberTensor, ir.Commutative|ir.Differentiable, foldSame,
		func(a, b float64) float64 { return min(a, b) })
	And = binary("and", "logical conjunction", "y = a and b.", kinds.BoolTensor, ir.Commutative, foldAnd,
		func(a, b float64) float64 { return a * b })
	Or = binary("or", "logical disjunction", "y = a or b.", kinds.BoolTensor, ir.Commutative, foldOr,
		func(a, b float64) float64 { return max(a, b) })
)

func integerDivision(op string, divisor []float64) error {
	if op != "div" {
		return nil
	}
	for i, d := range divisor {
		if d == 0 {
			return errors.New("integer division by zero at element " + itoa(i))
		}
	}
	return nil
}

// wrap brings the results of integer arithmetic back to their type: whole, and modulo 2^width. Beyond 2^53 the float64 that
// holds an i64 is rounded already.
func wrap(t *ir.Tensor) {
	it, ok := t.Elem.(*ir.IntegerType)
	if !ok || it.Width == 1 {
		return
	}
	limit := math.Ldexp(1, it.Width-1)
	for i, v := range t.Data {
		v = math.Trunc(v)
		if v >= limit || v < -limit {
			v -= math.Floor((v+limit)/(2*limit)) * 2 * limit
		}
		t.Data[i] = v + 0 // not -0
	}
}

// Identities of floating-point arithmetic are only used where they hold for every value, NaN, infinities and signed zeros
// included: x + 0 may turn -0 into 0, which is let pass; x * 0 may be NaN, which is not.

// foldAdd: x + 0 = x.
func foldAdd(_ *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	switch {
	case isSplat(consts[1], 0):
		return toValue(op.Operand(0))
	case isSplat(consts[0], 0):
		return toValue(op.Operand(1))
	}
	return nil
}

// foldSub: x - 0 = x; integers: x - x = 0.
func foldSub(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	switch {
	case isSplat(consts[1], 0):
		return toValue(op.Operand(0))
	case op.Operand(0) == op.Operand(1) && ir.IsInteger(op.Result(0).Type()):
		return toSplat(c, op, 0)
	}
	return nil
}

// foldMul: x * 1 = x; integers: x * 0 = 0.
func foldMul(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	for i := range 2 {
		switch {
		case isSplat(consts[i], 1):
			return toValue(op.Operand(1 - i))
		case isSplat(consts[i], 0) && ir.IsInteger(op.Result(0).Type()):
			return toSplat(c, op, 0)
		}
	}
	return nil
}

// foldDiv: x / 1 = x.
func foldDiv(_ *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	if isSplat(consts[1], 1) {
		return toValue(op.Operand(0))
	}
	return nil
}

// foldPow: x^1 = x, x^0 = 1.
func foldPow(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	switch {
	case isSplat(consts[1], 1):
		return toValue(op.Operand(0))
	case isSplat(consts[1], 0):
		return toSplat(c, op, 1)
	}
	return nil
}

// foldSame: f(x, x) = x.
func foldSame(_ *ir.Context, op *ir.Op, _ []ir.Attr) []ir.FoldResult {
	if op.Operand(0) == op.Operand(1) {
		return toValue(op.Operand(0))
	}
	return nil
}

// foldAnd: x and true = x, x and false = false, x and x = x.
func foldAnd(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	for i := range 2 {
		switch {
		case isSplat(consts[i], 1):
			return toValue(op.Operand(1 - i))
		case isSplat(consts[i], 0):
			return toSplat(c, op, 0)
		}
	}
	return foldSame(c, op, consts)
}

// foldOr: x or false = x, x or true = true, x or x = x.
func foldOr(c *ir.Context, op *ir.Op, consts []ir.Attr) []ir.FoldResult {
	for i := range 2 {
		switch {
		case isSplat(consts[i], 0):
			return toValue(op.Operand(1 - i))
		case isSplat(consts[i], 1):
			return toSplat(c, op, 1)
		}
	}
	return foldSame(c, op, consts)
}
