package ptx

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// scalarFunc computes one element from those of the operands.
type scalarFunc func(xs []*ir.Value) (*ir.Value, error)

// function is what an elementwise operation does with elements. Arithmetic is that of the element type, rounded to nearest
// and not contracted; functions are within a few units in the last place of float32.
func (l *lowering) function(op *ir.Op) (scalarFunc, error) {
	name, elem := op.Def().Name, op.Operand(0).Elem()
	if f := l.rounded(op); f != nil {
		return f, nil
	}
	one := func(f func(x *ir.Value) *ir.Value) (scalarFunc, error) {
		return func(xs []*ir.Value) (*ir.Value, error) { return f(xs[0]), nil }, nil
	}
	two := func(f func(x, y *ir.Value) *ir.Value) (scalarFunc, error) {
		return func(xs []*ir.Value) (*ir.Value, error) { return f(xs[0], xs[1]), nil }, nil
	}
	switch name {
	case "cast":
		return one(func(x *ir.Value) *ir.Value { return l.cast(x, op.Result(0).Elem()) })
	case "compare":
		return two(func(x, y *ir.Value) *ir.Value { return l.compare(op.Attrs().Str("predicate"), x, y) })
	case "select":
		if l.masksRows(op) {
			return func(xs []*ir.Value) (*ir.Value, error) { return l.masked32(xs[0], xs[1]), nil }, nil
		}
		return func(xs []*ir.Value) (*ir.Value, error) { return l.choose(xs[0], xs[1], xs[2]), nil }, nil
	case "and":
		return two(func(x, y *ir.Value) *ir.Value { return l.b.Binary(ptx.And, x, y) })
	case "or":
		return two(func(x, y *ir.Value) *ir.Value { return l.either(x, y) })
	case "not":
		return one(l.not)
	}
	if w := ptx.Width(elem); w < 32 {
		return nil, op.Errorf("tile.%s of %s has no lowering for GPUs: it is computed in f32", name, elem)
	}
	switch name {
	case "add":
		return two(func(x, y *ir.Value) *ir.Value { return l.b.Binary(ptx.Add, x, y) })
	case "sub":
		return two(func(x, y *ir.Value) *ir.Value { return l.b.Binary(ptx.Sub, x, y) })
	case "mul":
		return two(func(x, y *ir.Value) *ir.Value { return l.b.Binary(ptx.Mul, x, y) })
	case "max":
		return two(l.maximum)
	case "min":
		return two(l.minimum)
	case "neg":
		return one(func(x *ir.Value) *ir.Value { return l.b.Unary(ptx.Neg, x) })
	case "abs":
		return one(func(x *ir.Value) *ir.Value { return l.b.Unary(ptx.Abs, x) })
	case "sign":
		return one(func(x *ir.Value) *ir.Value {
			zero := l.number(elem, 0)
			return l.b.Select(l.b.Compare("gt", x, zero), l.number(elem, 1), l.b.Select(l.b.Compare("lt", x, zero), l.number(elem, -1), x))
		})
	}
	if ir.IsInteger(elem) {
		return nil, op.Errorf("tile.%s of %s has no lowering for GPUs", name, elem)
	}
	switch name {
	case "div":
		return two(func(x, y *ir.Value) *ir.Value { return l.b.Binary(ptx.Div, x, y) })
	case "sqrt":
		return one(func(x *ir.Value) *ir.Value { return l.b.Unary(ptx.Sqrt, x) })
	case "rsqrt":
		return one(func(x *ir.Value) *ir.Value {
			return l.b.Binary(ptx.Div, l.number(elem, 1), l.b.Unary(ptx.Sqrt, x))
		})
	case "floor":
		return one(l.floor)
	}
	if f := l.quick(op, name); f != nil && elem == ir.Type(l.c.F32()) {
		return f, nil
	}
	return l.wideFunction(op, name, elem)
}

// quick is a function of float32 in float32, by the special units' exponentials or by polynomials; nil where there is none.
func (l *lowering) quick(op *ir.Op, name string) scalarFunc {
	one := func(f func(x *ir.Value) *ir.Value) scalarFunc {
		return func(xs []*ir.Value) (*ir.Value, error) { return f(xs[0]), nil }
	}
	two := func(f func(x, y *ir.Value) *ir.Value) scalarFunc {
		return func(xs []*ir.Value) (*ir.Value, error) { return f(xs[0], xs[1]), nil }
	}
	byTanh := op.Attrs().Str("approximate") == "tanh"
	switch {
	case name == "exp":
		return one(l.exp)
	case name == "sigmoid":
		return one(l.sigmoid)
	case name == "silu":
		return one(func(x *ir.Value) *ir.Value { return l.b.Mul(x, l.sigmoid(x)) })
	case name == "silu_grad":
		return two(l.siluGrad)
	case name == "gelu" && byTanh:
		return one(func(x *ir.Value) *ir.Value { return l.b.Mul(x, l.sigmoid(l.geluArgument(x))) })
	case name == "gelu_grad" && byTanh:
		return two(l.geluGrad)
	case name == "gelu":
		return one(l.geluErf)
	case name == "gelu_grad":
		return two(l.geluErfGrad)
	case name == "erf":
		return one(l.erf)
	case name == "tanh":
		return one(l.tanh)
	case name == "sin":
		return one(func(x *ir.Value) *ir.Value { return l.circular32(x, 3) })
	case name == "cos":
		return one(func(x *ir.Value) *ir.Value { return l.circular32(x, 0) })
	}
	return nil
}

// masksRows reports whether an operation is select(p, x, 0) with one p for many float32.
func (l *lowering) masksRows(op *ir.Op) bool {
	return op.Name() == "tile.select" && op.Operand(0).Shape()[1] == 1 && op.Result(0).Shape()[1] > 1 && op.Result(0).Elem() == ir.Type(l.c.F32()) && isZero(op.Operand(2))
}

// masked32 is x where p holds, else 0, for one p and many x.
func (l *lowering) masked32(p, x *ir.Value) *ir.Value {
	return l.b.Bitcast(l.b.And(l.b.Bitcast(x, l.c.I32()), l.mask(p)), l.c.F32())
}

// mask is all bits where p holds, else none.
func (l *lowering) mask(p *ir.Value) *ir.Value {
	return l.remember(placeKey{"mask", p, 0, 0}, func() *ir.Value { return l.b.Select(p, l.b.I32(-1), l.b.I32(0)) })
}

func (l *lowering) not(p *ir.Value) *ir.Value {
	return l.remember(placeKey{"not", p, 0, 0}, func() *ir.Value { return l.b.Unary(ptx.Not, p) })
}

func (l *lowering) either(p, q *ir.Value) *ir.Value { return l.b.Binary(ptx.Or, p, q) }

func (l *lowering) compare(is string, x, y *ir.Value) *ir.Value {
	if isTruth(x.Type()) {
		xi, yi := l.cast(x, l.c.I32()), l.cast(y, l.c.I32())
		return l.b.Compare(is, xi, yi)
	}
	if ptx.Width(x.Type()) == 16 {
		x, y = l.cast(x, l.c.F32()), l.cast(y, l.c.F32())
	}
	if x.Type() == ir.Type(l.c.I32()) && (is == "eq" || is == "ne") {
		if base, n := offsetOf(x); n != nil { // what is counted is compared with constants
			type key struct{ y, base *ir.Value }
			from := l.remember(key{y, base}, func() *ir.Value { return l.b.Sub(y, base) })
			x, y = from, n
		}
	}
	return l.b.Compare(is, x, y)
}

// offsetOf takes apart a sum of something and a constant; the constant is nil for anything else.
func offsetOf(v *ir.Value) (base, n *ir.Value) {
	if v.DefinedBy(ptx.Add) {
		if _, ok := ptx.ConstInt(v.Op().Operand(1)); ok {
			return v.Op().Operand(0), v.Op().Operand(1)
		}
	}
	return v, nil
}

func (l *lowering) maximum(x, y *ir.Value) *ir.Value { return l.extreme(ptx.Max, "gt", x, y) }
func (l *lowering) minimum(x, y *ir.Value) *ir.Value { return l.extreme(ptx.Min, "lt", x, y) }

// extreme is the greater or smaller of two numbers; a NaN is both.
func (l *lowering) extreme(def *ir.OpDef, is string, x, y *ir.Value) *ir.Value {
	if x.Type() != l.c.F64() {
		return l.b.Binary(def, x, y)
	}
	take := l.either(l.b.Compare(is, x, y), l.b.Compare("ne", x, x))
	return l.b.Select(take, x, y)
}

// cast converts a number: to integers toward zero, to narrower floating point to the nearest, truth values to 0 and 1, and
// to them what is not 0.
func (l *lowering) cast(x *ir.Value, to ir.Type) *ir.Value {
	from := x.Type()
	switch {
	case from == to:
		return x
	case isTruth(from):
		return l.b.Select(x, l.number(to, 1), l.number(to, 0))
	case isTruth(to):
		if ptx.Width(from) == 16 {
			x = l.cast(x, l.c.F32())
		}
		return l.b.Compare("ne", x, l.number(x.Type(), 0))
	case isHalf(from):
		return l.cast(l.widen(x), to)
	case isHalf(to):
		y := l.cast(x, l.c.F32())
		low, _ := l.b.Split(l.b.Pack(to.String(), y, l.b.F32(0)), to)
		return low
	}
	return l.b.Convert(x, to, ir.IsInteger(from) || ir.IsInteger(to))
}

func isHalf(t ir.Type) bool { return ir.IsFloat(t) && ptx.Width(t) == 16 }

// widen is a 16-bit number as f32. bf16 is the upper half of one.
func (l *lowering) widen(x *ir.Value) *ir.Value {
	if x.Type().String() != "bf16" {
		return l.b.Convert(x, l.c.F32(), false)
	}
	zero := l.b.Const(l.c.Integer(0, l.c.Int(16)))
	return l.b.Bitcast(l.b.Join(zero, l.b.Bitcast(x, l.c.Int(16))), l.c.F32())
}

// exp is e^x: 2^n * 2^r, n being the integer next to x/log(2), of which log2(e) in two parts (Cody and Waite) keeps what
// float32 would lose. n goes from -126 to 126; beyond, r grows or falls, to 0, infinity or NaN as x does. Adding a number
// whose last bit is worth 1 rounds, and leaves n + 127 in the low bits: 2^n, once they are where exponents are.
func (l *lowering) exp(x *ir.Value) *ir.Value {
	const (
		magic   = 3<<22 + 1
		most    = 126
		log2e   = 0x1.715476p0 // in float32
		log2Low = math.Log2E - log2e
	)
	b := l.b
	within := b.Create(ptx.FMASaturated, []*ir.Value{x, b.F32(log2e / (2 * most)), b.F32(0.5)}).Result(0) // 0 is -most, 1 is most
	n := b.FMA(within, b.F32(2*most), b.F32(magic))
	r := b.FMA(x, b.F32(log2e), b.Sub(b.F32(magic+most), n))
	r = b.FMA(x, b.F32(log2Low), r)
	power := b.Bitcast(b.Create(ptx.Shl, []*ir.Value{b.Bitcast(n, l.c.I32()), b.I32(23)}).Result(0), l.c.F32())
	return b.Mul(b.Unary(ptx.Exp2Flushed, r), power)
}

// roughExp is e^x as 2^(x log2(e)): the exponent is rounded, so that the result is off by up to |x| units in the last place of
// float32. That is less than 2^-9 of it as long as it is no subnormal number, which becomes 0; and less than a unit of 1 in a
// sum that has a term of 1, since |x| e^x is below 1/2 for all others.
func (l *lowering) roughExp(x *ir.Value) *ir.Value {
	return l.b.Unary(ptx.Exp2Flushed, l.b.Mul(x, l.b.F32(math.Log2E)))
}

// sigmoid is 1/(1 + e^-x).
func (l *lowering) sigmoid(x *ir.Value) *ir.Value {
	return l.b.Unary(ptx.RcpFlushed, l.b.Add(l.exp(l.b.Unary(ptx.Neg, x)), l.b.F32(1)))
}

// siluGrad is dy * s * (1 + x * (1 - s)).
func (l *lowering) siluGrad(x, dy *ir.Value) *ir.Value {
	b := l.b
	s := l.sigmoid(x)
	return b.Mul(dy, b.Mul(s, b.FMA(x, b.Sub(b.F32(1), s), b.F32(1))))
}

const geluB = 0.044715

// geluArgument is 2*sqrt(2/pi) * (x + 0.044715 x^3): gelu is x times its sigmoid.
func (l *lowering) geluArgument(x *ir.Value) *ir.Value {
	b := l.b
	a := 2 * math.Sqrt2 / math.SqrtPi
	return b.Mul(x, b.FMA(b.Mul(x, x), b.F32(a*geluB), b.F32(a)))
}

// geluGrad is dy * (s + x s (1 - s) u'), s being the sigmoid of u.
func (l *lowering) geluGrad(x, dy *ir.Value) *ir.Value {
	return l.b.Mul(dy, l.geluSlopeOf(x, l.sigmoid(l.geluArgument(x))))
}

func (l *lowering) geluSlopeOf(x, s *ir.Value) *ir.Value {
	b := l.b
	a := 2 * math.Sqrt2 / math.SqrtPi
	slope := b.FMA(b.Mul(x, x), b.F32(3*a*geluB), b.F32(a))
	return b.FMA(b.Mul(x, b.FMA(b.Unary(ptx.Neg, s), s, s)), slope, s)
}

// roundedGate is the sigmoid of geluArgument, exact enough for a result in bfloat16: 1/(1 + 2^v), v without a second part.
func (l *lowering) roundedGate(x *ir.Value) *ir.Value {
	b := l.b
	a := -2 * math.Sqrt2 / math.SqrtPi * math.Log2E
	v := b.Mul(x, b.FMA(b.Mul(x, x), b.F32(a*geluB), b.F32(a)))
	return b.Unary(ptx.RcpFlushed, b.Add(b.Unary(ptx.Exp2Flushed, v), b.F32(1)))
}

// rounded is the form of an operation whose results are rounded to bfloat16 wherever they go; nil where it has none.
func (l *lowering) rounded(op *ir.Op) scalarFunc {
	if op.Def().Name == "exp" && op.Operand(0).Elem() == ir.Type(l.c.F32()) && (l.rough[op] || op.Result(0).Shape()[1] > 1 && roundedSoon(op.Result(0))) {
		return func(xs []*ir.Value) (*ir.Value, error) { return l.roughExp(xs[0]), nil }
	}
	if op.Attrs().Str("approximate") != "tanh" || op.Operand(0).Elem() != ir.Type(l.c.F32()) || !onlyRounded(op.Result(0)) {
		return nil
	}
	switch op.Def().Name {
	case "gelu":
		return func(xs []*ir.Value) (*ir.Value, error) { return l.b.Mul(xs[0], l.roundedGate(xs[0])), nil }
	case "gelu_grad":
		return func(xs []*ir.Value) (*ir.Value, error) {
			return l.b.Mul(xs[1], l.geluSlopeOf(xs[0], l.roundedGate(xs[0]))), nil
		}
	}
	return nil
}

// roundedSoon reports whether everything that is computed of a value is rounded to bfloat16 after few operations that do little
// to relative errors, or nothing to absolute ones.
func roundedSoon(v *ir.Value) bool {
	for u := range v.Uses() {
		switch op := u.Owner(); op.Name() {
		case "tile.cast":
			if op.Result(0).Elem().String() != "bf16" {
				return false
			}
		case "tile.add", "tile.sub", "tile.mul", "tile.select":
			if !roundedSoon(op.Result(0)) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// floor is the greatest integer that is not above x.
func (l *lowering) floor(x *ir.Value) *ir.Value {
	b := l.b
	t, limit, integer := x.Type(), float64(1<<23), ir.Type(l.c.I32())
	if ptx.Width(t) == 64 {
		limit, integer = 1<<52, l.c.I64()
	}
	near := b.Convert(b.Convert(x, integer, true), t, true)
	down := b.Select(b.Compare("gt", near, x), b.Sub(near, l.number(t, 1)), near)
	// Zeros keep their sign, and what has no fraction, infinity and NaN stay.
	plain := b.And(b.Compare("lt", b.Unary(ptx.Abs, x), l.number(t, limit)), b.Compare("ne", x, l.number(t, 0)))
	return b.Select(plain, down, x)
}
