package ptx

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

var (
	ints    = isInt(16, 32, 64)
	floats  = isFloat(ir.F32, ir.F64)
	numbers = either(ints, floats)
)

// Arithmetic. Integers wrap; floating-point results are rounded to nearest even and never contracted. On vectors an
// operation is done register by register, in place of the first operand where that is not used again.
var (
	Add = binary("add", "sum", numbers)
	Sub = binary("sub", "difference", numbers)
	Mul = binary("mul", "product (the low half for integers)", numbers)
	Min = binary("min", "smaller (signed); a NaN operand gives NaN", either(isInt(32, 64), isFloat(ir.F32)))
	Max = binary("max", "larger (signed); a NaN operand gives NaN", either(isInt(32, 64), isFloat(ir.F32)))
	Div = binary("div", "quotient; integers are unsigned, f32 correctly rounded", either(isInt(32, 64), floats))
	Rem = binary("rem", "remainder of unsigned integers", isInt(32, 64))
	And = binary("and", "bits set in both", isInt(1, 16, 32, 64))
	Or  = binary("or", "bits set in either", isInt(1, 16, 32, 64))
	Xor = binary("xor", "bits set in one", isInt(1, 16, 32, 64))

	Neg  = unary("neg", "negation", numbers)
	Abs  = unary("abs", "absolute value", numbers)
	Not  = unary("not", "complement", isInt(1, 16, 32, 64))
	Sqrt = unary("sqrt", "square root, correctly rounded", floats)
	Rcp  = unary("rcp", "1/x, within 1 unit in the last place", isFloat(ir.F32))

	Exp2  = unary("ex2", "2 to the power x, within 2 units in the last place", isFloat(ir.F32))
	Log2  = unary("lg2", "logarithm to base 2, approximate", isFloat(ir.F32))
	Rsqrt = unary("rsqrt", "1/sqrt(x), approximate", isFloat(ir.F32))
	Tanh  = unary("tanh", "hyperbolic tangent, about 11 bits", isFloat(ir.F32))
	Sin   = unary("sin", "sine, approximate", isFloat(ir.F32))
	Cos   = unary("cos", "cosine, approximate", isFloat(ir.F32))

	// Without subnormal numbers each is one instruction of the machine.
	RcpFlushed  = unary("rcp_ftz", "1/x, within 1 unit in the last place; subnormal operands and results are 0", isFloat(ir.F32))
	Exp2Flushed = unary("ex2_ftz", "2 to the power x, within 2 units in the last place; subnormal operands and results are 0", isFloat(ir.F32))

	FMA = define(ir.OpDef{
		Name:     "fma",
		Summary:  "x*y + z, rounded once (integers: the low half)",
		Operands: []ir.OperandDef{{Name: "x", Type: lanes("number", numbers)}, {Name: "y", Type: lanes("number", numbers)}, {Name: "z", Type: lanes("number", numbers)}},
		Results:  []ir.ResultDef{{Name: "r", Type: lanes("number", numbers)}},
		Traits:   ir.Pure | ir.SameTypes,
		Infer:    likeFirst,
	})
	FMASaturated = define(ir.OpDef{
		Name:     "fma_sat",
		Summary:  "x*y + z, rounded once, 0 if it is less than 0 or NaN, 1 if it is more than 1",
		Operands: []ir.OperandDef{{Name: "x", Type: f32Lanes}, {Name: "y", Type: f32Lanes}, {Name: "z", Type: f32Lanes}},
		Results:  []ir.ResultDef{{Name: "r", Type: f32Lanes}},
		Traits:   ir.Pure | ir.SameTypes,
		Infer:    likeFirst,
	})
	Shl = define(ir.OpDef{
		Name: "shl", Summary: "shift left",
		Operands: []ir.OperandDef{{Name: "x", Type: integer}, {Name: "by", Type: word}},
		Results:  []ir.ResultDef{{Name: "r", Type: integer}}, Traits: ir.Pure, Infer: likeFirst,
	})
	Shr = define(ir.OpDef{
		Name: "shr", Summary: "shift right, zeros in",
		Operands: []ir.OperandDef{{Name: "x", Type: integer}, {Name: "by", Type: word}},
		Results:  []ir.ResultDef{{Name: "r", Type: integer}}, Traits: ir.Pure, Infer: likeFirst,
	})
	MulWide = define(ir.OpDef{
		Name: "mul_wide", Summary: "all 64 bits of a product of unsigned 32-bit integers, plus z",
		Operands: []ir.OperandDef{{Name: "x", Type: word}, {Name: "y", Type: word}, {Name: "z", Type: long, Arity: ir.Optional}},
		Results:  []ir.ResultDef{{Name: "r", Type: long}}, Traits: ir.Pure,
		Infer: func(c *ir.Context, _ ir.InferInput) ([]ir.Type, error) { return []ir.Type{c.I64()}, nil },
	})
	Compare = define(ir.OpDef{
		Name: "setp", Summary: "compares two numbers",
		Operands: []ir.OperandDef{{Name: "x", Type: comparable}, {Name: "y", Type: comparable}},
		Attrs: []ir.AttrDef{{Name: "is", Kind: ir.StringKind,
			Doc: "eq, ne, lt, le, gt, ge (signed; false for NaN but ne), lo, ls, hi, hs (unsigned)"}},
		Results: []ir.ResultDef{{Name: "p", Type: predicate}}, Traits: ir.Pure, Infer: inferCompare,
	})
	Select = define(ir.OpDef{
		Name: "selp", Summary: "x where p holds, else y",
		Operands: []ir.OperandDef{{Name: "p", Type: predicate}, {Name: "x", Type: scalarOf}, {Name: "y", Type: scalarOf}},
		Results:  []ir.ResultDef{{Name: "r", Type: scalarOf}}, Traits: ir.Pure, Infer: inferSelect,
	})

	arithmetic = []*ir.OpDef{
		Add, Sub, Mul, Min, Max, Div, Rem, And, Or, Xor, Neg, Abs, Not, Sqrt, Rcp, Exp2, Log2, Rsqrt, Tanh, Sin, Cos,
		RcpFlushed, Exp2Flushed, FMA, FMASaturated, Shl, Shr, MulWide, Compare, Select,
	}
)

var (
	f32Lanes   = lanes("number", isFloat(ir.F32))
	integer    = ir.Constraint{Doc: "integer", OK: ints}
	comparable = ir.Constraint{Doc: "number", OK: numbers}
	scalarOf   = ir.Constraint{Doc: "register that is no predicate", OK: func(t ir.Type) bool { return Width(t) > 1 }}
	relations  = []string{"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}
)

func lanes(doc string, ok func(ir.Type) bool) ir.Constraint {
	return ir.Constraint{Doc: doc + " this instruction has, or a vector of them", OK: lanesOf(ok)}
}

func binary(name, summary string, ok func(ir.Type) bool) *ir.OpDef {
	c := lanes("number", ok)
	return define(ir.OpDef{
		Name: name, Summary: summary,
		Operands: []ir.OperandDef{{Name: "x", Type: c}, {Name: "y", Type: c}},
		Results:  []ir.ResultDef{{Name: "r", Type: c}},
		Traits:   ir.Pure | ir.SameTypes, Infer: likeFirst,
	})
}

func unary(name, summary string, ok func(ir.Type) bool) *ir.OpDef {
	c := lanes("number", ok)
	return define(ir.OpDef{
		Name: name, Summary: summary,
		Operands: []ir.OperandDef{{Name: "x", Type: c}},
		Results:  []ir.ResultDef{{Name: "r", Type: c}},
		Traits:   ir.Pure | ir.SameTypes, Infer: likeFirst,
	})
}

func likeFirst(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	return []ir.Type{in.Operands[0].Type()}, nil
}

func inferCompare(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	t := in.Operands[0].Type()
	if in.Operands[1].Type() != t {
		return nil, fmt.Errorf("compares %s with %s", t, in.Operands[1].Type())
	}
	i := slices.Index(relations, in.Attrs.Str("is"))
	if i < 0 {
		return nil, fmt.Errorf("no relation %q; there are %v", in.Attrs.Str("is"), relations)
	}
	if i > 5 && ir.IsFloat(t) {
		return nil, fmt.Errorf("relation %s is for unsigned integers", relations[i])
	}
	return []ir.Type{c.I1()}, nil
}

func inferSelect(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	if x, y := in.Operands[1].Type(), in.Operands[2].Type(); x != y {
		return nil, fmt.Errorf("chooses between %s and %s", x, y)
	}
	return []ir.Type{in.Operands[1].Type()}, nil
}
