package ptx

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Functions in float32 of few instructions and fewer registers, so that a product which ends with one has room for it: the error
// function and what is made of it take an exponential, a reciprocal and a polynomial. Polynomials are minimax ones in relative error, by Lawson's iteration of least
// squares on Chebyshev nodes, in float64.

// millsScale is p in t = 1/(1 + p a), of which the tail of the normal distribution beyond a, over exp(-a*a/2), is t times a polynomial to 3.2e-8 of
// it for a to 15 (the form is that of Abramowitz and Stegun 7.1.26; the tail is Mills' ratio over sqrt(2 pi)).
const millsScale = 0.35

var millsTail = [...]float64{0.139621258, 0.139864326, 0.119815566, 0.105574526, -0.0232631546, 0.15939188, -0.255900919, 0.144060329, -0.0291638281}

// farthest is where exp(-a*a/2) is 0 in float32, subnormal numbers included.
const farthest = 15

// bell is exp(-a*a/2), of a*a in two parts: what rounding the square loses would be up to a*a/2 units in the last place of the result.
func (l *lowering) bell(a *ir.Value) *ir.Value {
	b := l.b
	square := b.Mul(a, a)
	lost := b.FMA(a, a, b.Unary(ptx.Neg, square))
	e := l.exp(b.Mul(square, b.F32(-0.5)))
	return b.FMA(e, b.Mul(lost, b.F32(-0.5)), e)
}

// tail is the part of the normal distribution beyond a, from 0 to farthest, bell being bell(a).
func (l *lowering) tail(a, bell *ir.Value) *ir.Value {
	b := l.b
	t := b.Unary(ptx.RcpFlushed, b.FMA(a, b.F32(millsScale), b.F32(1)))
	return b.Mul(b.Mul(l.polynomial32(t, millsTail[:]...), t), bell)
}

// upTo is the normal distribution up to x, and bell(x).
func (l *lowering) upTo(x *ir.Value) (below, bell *ir.Value) {
	b := l.b
	a := l.minimum(b.Unary(ptx.Abs, x), b.F32(farthest))
	bell = l.bell(a)
	beyond := l.tail(a, bell)
	return b.Select(b.Compare("lt", x, b.F32(0)), beyond, b.Sub(b.F32(1), beyond)), bell
}

// geluErf is x times the normal distribution up to x.
func (l *lowering) geluErf(x *ir.Value) *ir.Value {
	below, _ := l.upTo(x)
	return l.b.Mul(x, below)
}

// geluErfGrad is dy times the distribution and x times its density.
func (l *lowering) geluErfGrad(x, dy *ir.Value) *ir.Value {
	b := l.b
	below, bell := l.upTo(x)
	return b.Mul(dy, b.FMA(b.Mul(x, b.F32(1/math.Sqrt(2*math.Pi))), bell, below))
}

// erf is a polynomial around 0, to 1.4e-9 of it, and 1 less two tails beyond.
func (l *lowering) erf(x *ir.Value) *ir.Value {
	b := l.b
	a := l.minimum(b.Mul(b.Unary(ptx.Abs, x), b.F32(math.Sqrt2)), b.F32(farthest))
	large := b.FMA(l.tail(a, l.bell(a)), b.F32(-2), b.F32(1))
	return l.odd(x, large, 1.12837911, -0.376126081, 0.112828225, -0.0267571844, 0.00471798982)
}

// tanh is a polynomial around 0, to 3.2e-10 of it, and 1 - 2/(exp(2|x|) + 1) beyond.
func (l *lowering) tanh(x *ir.Value) *ir.Value {
	b := l.b
	twice := b.Mul(b.Unary(ptx.Abs, x), b.F32(2))
	large := b.FMA(b.Unary(ptx.RcpFlushed, b.Add(l.exp(twice), b.F32(1))), b.F32(-2), b.F32(1))
	return l.odd(x, large, 1, -0.333333254, 0.133329019, -0.0538934171, 0.0212747082, -0.00661342777)
}

// circular32 is cos(x + shift*pi/2), of an argument that is reduced in float64 by polynomials in float32.
func (l *lowering) circular32(x *ir.Value, shift int64) *ir.Value {
	b := l.b
	wide, q := l.reduced(l.cast(x, l.c.F64()), shift)
	r := l.cast(wide, l.c.F32())
	z := b.Mul(r, r)
	cos := l.polynomial32(z, 1, -0.5, 0.0416666418, -0.00138871034, 2.44070925e-5)
	sin := b.FMA(b.Mul(r, z), l.polynomial32(z, -0.166666672, 0.00833337475, -0.000198505848, 2.8026418e-6), r)
	return l.turned(q, cos, sin)
}

// odd is an odd function: x times a polynomial of its square for |x| to 1/2, and large with the sign of x beyond. A NaN stays one.
func (l *lowering) odd(x, large *ir.Value, c ...float64) *ir.Value {
	b := l.b
	small := b.Mul(x, l.polynomial32(b.Mul(x, x), c...))
	signed := b.Select(b.Compare("lt", x, b.F32(0)), b.Unary(ptx.Neg, large), large)
	return b.Select(b.Compare("gt", b.Unary(ptx.Abs, x), b.F32(0.5)), signed, small)
}

// polynomial32 is c[0] + c[1] x + ... by Horner's rule.
func (l *lowering) polynomial32(x *ir.Value, c ...float64) *ir.Value {
	y := l.b.F32(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		y = l.b.FMA(y, x, l.b.F32(c[i]))
	}
	return y
}
