package ptx

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Functions that are rare, or whose float32 forms would lose digits, are computed in float64 and rounded: the hardware has
// no instructions for them, so they are polynomials after a reduction of the argument.

// wideFunction is an elementwise operation computed in float64.
func (l *lowering) wideFunction(op *ir.Op, name string, elem ir.Type) (scalarFunc, error) {
	unary := map[string]func(x *ir.Value) *ir.Value{
		"exp": l.exp64, "log": l.log64, "tanh": l.tanh64, "erf": l.erf64, "sigmoid": l.sigmoid64,
		"sin": func(x *ir.Value) *ir.Value { return l.circular(x, 3) }, "cos": func(x *ir.Value) *ir.Value { return l.circular(x, 0) },
		"silu": func(x *ir.Value) *ir.Value { return l.b.Mul(x, l.sigmoid64(x)) },
		"gelu": func(x *ir.Value) *ir.Value { return l.b.Mul(x, l.gauss(op, x)) },
	}
	if f := unary[name]; f != nil {
		return func(xs []*ir.Value) (*ir.Value, error) { return l.cast(f(l.cast(xs[0], l.c.F64())), elem), nil }, nil
	}
	binary := map[string]func(x, y *ir.Value) *ir.Value{
		"pow": l.pow64, "silu_grad": l.siluGrad64,
		"gelu_grad": func(x, dy *ir.Value) *ir.Value { return l.b.Mul(dy, l.b.FMA(x, l.gaussSlope(op, x), l.gauss(op, x))) },
	}
	if f := binary[name]; f != nil {
		return func(xs []*ir.Value) (*ir.Value, error) {
			return l.cast(f(l.cast(xs[0], l.c.F64()), l.cast(xs[1], l.c.F64())), elem), nil
		}, nil
	}
	return nil, op.Errorf("tile.%s has no lowering for GPUs", name)
}

func (l *lowering) f64(x float64) *ir.Value { return l.number(l.c.F64(), x) }

// polynomial is c[0] + c[1] x + ... by Horner's rule.
func (l *lowering) polynomial(x *ir.Value, c ...float64) *ir.Value {
	y := l.f64(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		y = l.b.FMA(y, x, l.f64(c[i]))
	}
	return y
}

// nearest is x to the nearest integer, and that integer in the low bits of an i64. |x| is below 2^51.
func (l *lowering) nearest(x *ir.Value) (n, bits *ir.Value) {
	magic := l.f64(3 << 51)
	sum := l.b.Add(x, magic)
	return l.b.Sub(sum, magic), l.b.Bitcast(sum, l.c.I64())
}

func (l *lowering) i64(n int64) *ir.Value { return l.b.I64(n) }

// exp64 is e^x for |x| to 708; below it is 0, above infinity.
func (l *lowering) exp64(x *ir.Value) *ir.Value {
	b := l.b
	y := l.minimum(l.maximum(x, l.f64(-708)), l.f64(709))
	n, bits := l.nearest(b.Mul(y, l.f64(math.Log2E)))
	const high = 0x1.62e42feep-1 // log(2) in 32 bits
	r := b.FMA(n, l.f64(-(math.Ln2 - high)), b.FMA(n, l.f64(-high), y))
	var c [14]float64
	c[0] = 1
	for i := 1; i < len(c); i++ {
		c[i] = c[i-1] / float64(i)
	}
	power := b.Bitcast(b.Create(ptx.Shl, []*ir.Value{b.Add(bits, l.i64(1023)), b.I32(52)}).Result(0), l.c.F64())
	z := b.Mul(l.polynomial(r, c[:]...), power)
	z = b.Select(b.Compare("gt", x, l.f64(709)), l.f64(math.Inf(1)), z)
	return b.Select(b.Compare("lt", x, l.f64(-708)), l.f64(0), z)
}

// log64 is the natural logarithm: of m*2^e with m around 1, by the series of atanh((m-1)/(m+1)).
func (l *lowering) log64(x *ir.Value) *ir.Value {
	b := l.b
	bits := b.Bitcast(x, l.c.I64())
	e := b.Sub(b.Create(ptx.Shr, []*ir.Value{bits, b.I32(52)}).Result(0), l.i64(1023))
	m := b.Bitcast(l.either(b.And(bits, l.i64(1<<52-1)), l.i64(1023<<52)), l.c.F64())
	large := b.Compare("gt", m, l.f64(math.Sqrt2))
	m = b.Select(large, b.Mul(m, l.f64(0.5)), m)
	e = b.Select(large, b.Add(e, l.i64(1)), e)
	s := b.Binary(ptx.Div, b.Sub(m, l.f64(1)), b.Add(m, l.f64(1)))
	var c [12]float64
	for i := range c {
		c[i] = 2 / float64(2*i+1)
	}
	y := b.FMA(b.Convert(e, l.c.F64(), true), l.f64(math.Ln2), b.Mul(s, l.polynomial(b.Mul(s, s), c[:]...)))
	zero, inf := l.f64(0), l.f64(math.Inf(1))
	y = b.Select(b.Compare("lt", x, inf), y, x) // infinity and NaN
	y = b.Select(b.Compare("lt", x, zero), l.f64(math.NaN()), y)
	return b.Select(b.Compare("eq", x, zero), l.f64(math.Inf(-1)), y)
}

// circular is cos(x + shift*pi/2).
func (l *lowering) circular(x *ir.Value, shift int64) *ir.Value {
	return l.quarter(l.reduced(x, shift))
}

// reduced is r, |r| at most pi/4, and q, of which the low bits count, such that x + shift*pi/2 is as good as r + q*pi/2.
func (l *lowering) reduced(x *ir.Value, shift int64) (r, q *ir.Value) {
	n, bits := l.nearest(l.b.Mul(x, l.f64(2/math.Pi)))
	const high = 0x1.921fb544p0 // pi/2 in 33 bits
	r = l.b.FMA(n, l.f64(-(math.Pi/2 - high)), l.b.FMA(n, l.f64(-high), x))
	return r, l.b.Add(bits, l.i64(shift))
}

// quarter is cos(r + q*pi/2), |r| at most pi/4, q in the low bits.
func (l *lowering) quarter(r, q *ir.Value) *ir.Value {
	b := l.b
	var c, s [10]float64
	c[0], s[0] = 1, 1
	for i := 1; i < len(c); i++ {
		c[i] = -c[i-1] / float64(2*i*(2*i-1))
		s[i] = -s[i-1] / float64(2*i*(2*i+1))
	}
	z := b.Mul(r, r)
	return l.turned(q, l.polynomial(z, c[:]...), b.Mul(r, l.polynomial(z, s[:]...)))
}

// turned is the cosine of what is q quarters of a turn beyond what cos and sin are of.
func (l *lowering) turned(q, cos, sin *ir.Value) *ir.Value {
	b := l.b
	odd := b.Compare("ne", b.And(q, l.i64(1)), l.i64(0))
	y := b.Select(odd, sin, cos)
	negative := b.Compare("ne", b.And(b.Add(q, l.i64(1)), l.i64(2)), l.i64(0))
	return b.Select(negative, b.Unary(ptx.Neg, y), y)
}

func (l *lowering) sigmoid64(x *ir.Value) *ir.Value {
	one := l.f64(1)
	return l.b.Binary(ptx.Div, one, l.b.Add(one, l.exp64(l.b.Unary(ptx.Neg, x))))
}

func (l *lowering) siluGrad64(x, dy *ir.Value) *ir.Value {
	b := l.b
	s, t := l.sigmoid64(x), l.sigmoid64(b.Unary(ptx.Neg, x))
	return b.Mul(dy, b.Mul(s, b.FMA(x, t, l.f64(1))))
}

// tanh64 is tanh; close to 0 it is x to the precision of float32.
func (l *lowering) tanh64(x *ir.Value) *ir.Value {
	b := l.b
	e := l.exp64(b.Mul(b.Unary(ptx.Abs, x), l.f64(-2)))
	y := b.Binary(ptx.Div, b.Sub(l.f64(1), e), b.Add(l.f64(1), e))
	y = b.Select(b.Compare("lt", x, l.f64(0)), b.Unary(ptx.Neg, y), y)
	return b.Select(b.Compare("lt", b.Unary(ptx.Abs, x), l.f64(1e-5)), x, y)
}

// erf64 is the error function by its series around 0, which in float64 is good to 1e-9 where erf is not yet 1 in float32.
func (l *lowering) erf64(x *ir.Value) *ir.Value {
	b := l.b
	const end = 4.2
	y := l.minimum(l.maximum(x, l.f64(-end)), l.f64(end))
	c := make([]float64, 70)
	fact := 1.0
	for i := range c {
		if i > 0 {
			fact *= float64(i)
		}
		c[i] = 2 / math.SqrtPi * math.Pow(-1, float64(i)) / (fact * float64(2*i+1))
	}
	z := b.Mul(y, l.polynomial(b.Mul(y, y), c...))
	z = b.Select(b.Compare("ge", x, l.f64(end)), l.f64(1), z)
	z = b.Select(b.Compare("le", x, l.f64(-end)), l.f64(-1), z)
	return b.Select(b.Compare("ne", x, x), x, z)
}

// gauss is the factor gelu gives x, gaussSlope its derivative.
func (l *lowering) gauss(op *ir.Op, x *ir.Value) *ir.Value {
	if op.Attrs().Str("approximate") == "erf" {
		return l.b.FMA(l.erf64(l.b.Mul(x, l.f64(math.Sqrt2/2))), l.f64(0.5), l.f64(0.5))
	}
	return l.sigmoid64(l.b.Mul(l.geluSlope(x, 1), x))
}

func (l *lowering) gaussSlope(op *ir.Op, x *ir.Value) *ir.Value {
	b := l.b
	if op.Attrs().Str("approximate") == "erf" {
		return b.Mul(l.exp64(b.Mul(b.Mul(x, x), l.f64(-0.5))), l.f64(1/math.Sqrt(2*math.Pi)))
	}
	u := b.Mul(l.geluSlope(x, 1), x)
	return b.Mul(b.Mul(l.sigmoid64(u), l.sigmoid64(b.Unary(ptx.Neg, u))), l.geluSlope(x, 3))
}

// geluSlope is 2*sqrt(2/pi) * (1 + k * 0.044715 x^2).
func (l *lowering) geluSlope(x *ir.Value, k float64) *ir.Value {
	a := 2 * math.Sqrt2 / math.SqrtPi
	return l.b.FMA(l.b.Mul(x, x), l.f64(k*a*geluB), l.f64(a))
}

// pow64 is IEEE 754's pow.
func (l *lowering) pow64(x, y *ir.Value) *ir.Value {
	b := l.b
	zero, one := l.f64(0), l.f64(1)
	z := l.exp64(b.Mul(y, l.log64(b.Unary(ptx.Abs, x))))
	whole := b.Compare("eq", l.floor(y), y)
	half := b.Mul(y, l.f64(0.5))
	odd := b.And(whole, b.Compare("ne", l.floor(half), half))
	negative := b.Compare("lt", x, zero)
	z = b.Select(b.And(negative, odd), b.Unary(ptx.Neg, z), z)
	z = b.Select(b.And(negative, l.not(whole)), l.f64(math.NaN()), z)
	z = b.Select(l.either(b.Compare("ne", x, x), b.Compare("ne", y, y)), b.Add(x, y), z)
	return b.Select(l.either(b.Compare("eq", y, zero), b.Compare("eq", x, one)), one, z)
}
