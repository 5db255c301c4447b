package main

import "math"

// The mathematical functions. Polynomials come from minimax.py, which says how
// far they are from the function; what the whole is off by is tested in package
// prim, where the bounds are written down.

const (
	even = iota // rounding modes of round
	down
	up
	toZero
)

// ln2Hi + ln2Lo is ln 2 to 48 bits.
const ln2Hi = 0x1.62e43p-01

var ln2Lo = math.Ln2 - ln2Hi

// atMost and atLeast let NaN pass.
func (e *expression) atMost(x *val, c float64) *val  { return e.min(e.c(c), x) }
func (e *expression) atLeast(x *val, c float64) *val { return e.max(e.c(c), x) }

// expParts reduces x to exp(x) = 2^n exp(r), |r| <= ln2 / 2.
func (e *expression) expParts(x *val) (n, r *val) {
	n = e.round(e.mul(x, e.c(math.Log2E)), even)
	r = e.fnma(n, e.c(ln2Hi), x)
	return n, e.fnma(n, e.c(ln2Lo), r)
}

// exp is 2^n (1 + (r + r^2 q(r))). The bounds are beyond overflow and underflow.
func (e *expression) exp(x *val) *val {
	n, r := e.expParts(e.atLeast(e.atMost(x, 89), -105))
	q := e.poly(r, 0.49999994, 0.166665167, 0.0416681021, 0.00836919248, 0.00138389005)
	t := e.fma(q, e.mul(r, r), r)
	return e.scale(e.add(t, e.c(1)), n)
}

// expm1 is 2^n t + (2^n - 1), t = exp(r) - 1, at half its size so that 2^n stays finite.
func (e *expression) expm1(x *val) *val {
	n, r := e.expParts(e.atLeast(e.atMost(x, 89), -105))
	q := e.poly(r, 0.5, 0.16666761, 0.0416666158, 0.00830822159, 0.00139168149, 0.000346349872)
	t := e.fma(q, e.mul(r, r), r)
	half := e.scale(e.c(0.5), n)
	y := e.fma(t, half, e.sub(half, e.c(0.5)))
	return e.copySign(e.add(y, y), x)
}

// log splits x = 2^n (1 + f), 1/sqrt 2 <= 1 + f < sqrt 2; log(1+f) = f - f^2/2 + f^3 p(f).
func (e *expression) log(x *val) *val {
	small := e.cmp(cmpLt, x, e.c(0x1p-126))
	bits := e.asInt(e.sel(small, e.mul(x, e.c(0x1p23)), x))
	k := e.sar(e.intOp(opSubI, bits, e.i(0x3f3504f3)), 23)
	f := e.sub(e.asFloat(e.intOp(opSubI, bits, e.shl(k, 23))), e.c(1))
	n := e.add(e.toFloat(k), e.sel(small, e.c(-23), e.c(0)))
	z := e.mul(f, f)
	p := e.poly(f, 0.333333343, -0.249999538, 0.199998364, -0.166700795, 0.14294824,
		-0.124172971, 0.108937696, -0.107627161, 0.114070259, -0.0697770789)
	y := e.fma(n, e.c(ln2Lo), e.mul(e.mul(f, z), p))
	y = e.fma(z, e.c(-0.5), y)
	y = e.fma(n, e.c(ln2Hi), e.add(f, y))
	y = e.sel(e.cmp(cmpGe, x, e.c(0)), y, e.c(math.NaN()))
	y = e.sel(e.cmp(cmpEq, x, e.c(0)), e.c(math.Inf(-1)), y)
	return e.sel(e.cmp(cmpEq, x, e.c(math.Inf(1))), x, y)
}

// log1p is log(u) + c/u, where u + c = 1 + x exactly.
func (e *expression) log1p(x *val) *val {
	u := e.add(x, e.c(1))
	c := e.sel(e.cmp(cmpLt, x, e.c(1)),
		e.sub(x, e.sub(u, e.c(1))),
		e.sub(e.c(1), e.sub(u, x)))
	finite := e.and(e.cmp(cmpGt, u, e.c(0)), e.cmp(cmpLt, u, e.c(math.Inf(1))))
	return e.add(e.log(u), e.sel(finite, e.div(c, u), e.c(0)))
}

// tanh is t / (t + 2), t = exp(2|x|) - 1, with the sign of x; it is 1 from 9.01 on.
func (e *expression) tanh(x *val) *val {
	a := e.atMost(e.abs(x), 10)
	t := e.expm1(e.add(a, a))
	return e.copySign(e.div(t, e.add(t, e.c(2))), x)
}

// sigmoid is 1 / (1 + exp(-x)), written with exp(-|x|) so that it keeps its
// relative accuracy down to the denormals.
func (e *expression) sigmoid(x *val) *val {
	t := e.exp(e.neg(e.abs(x)))
	return e.div(e.sel(e.cmp(cmpLt, x, e.c(0)), t, e.c(1)), e.add(t, e.c(1)))
}

// erfSmall is erf(x) for |x| <= 1.
func (e *expression) erfSmall(x *val) *val {
	p := e.poly(e.mul(x, x), 0.128379166, -0.376126289, 0.112836279, -0.0268560778,
		0.00519415271, -0.00080881, 8.37594416e-5, -1.3860838e-6)
	return e.fma(x, p, x)
}

// erf is x + x p(x^2) below 1 and 1 - exp(-q(|x|)) above; from 3.92 on it is 1.
func (e *expression) erf(x *val) *val {
	a := e.abs(x)
	q := e.poly(e.atMost(a, 4), 0.000353752257, 1.12703991, 0.638225853, 0.103037253,
		-0.0218052808, 0.00293960189, -0.000185573357)
	large := e.copySign(e.sub(e.c(1), e.exp(e.neg(q))), x)
	return e.sel(e.cmp(cmpLt, a, e.c(1)), e.erfSmall(x), large)
}

// normalCDF is (1 + erf(x / sqrt 2)) / 2. Its lower tail comes from erfc, so that
// nothing cancels there.
func (e *expression) normalCDF(x *val) *val {
	z := e.mul(x, e.c(math.Sqrt2/2))
	a := e.abs(z)
	q := e.poly(e.atMost(a, 10.1), -0.000468876417, 1.13097775, 0.630231619, 0.111999512,
		-0.0278550591, 0.00545237307, -0.000815417094, 9.03902474e-5, -7.14075895e-6,
		3.78263053e-7, -1.20001218e-8, 1.71898704e-10)
	tail := e.mul(e.exp(e.neg(q)), e.c(0.5))
	large := e.sel(e.cmp(cmpLt, z, e.c(0)), tail, e.sub(e.c(1), tail))
	return e.sel(e.cmp(cmpLt, a, e.c(1)), e.fma(e.erfSmall(z), e.c(0.5), e.c(0.5)), large)
}

func (e *expression) geluErf(x *val) *val { return e.mul(x, e.normalCDF(x)) }

// clamp keeps the derivatives below from inf * 0 where they are 0 or 1 anyway.
func (e *expression) clamp(x *val, c float64) *val { return e.atLeast(e.atMost(x, c), -c) }

// dGeluErf is cdf(x) + x pdf(x).
func (e *expression) dGeluErf(x *val) *val {
	x = e.clamp(x, 20)
	pdf := e.mul(e.exp(e.mul(e.mul(x, x), e.c(-0.5))), e.c(0.3989422804014327))
	return e.fma(x, pdf, e.normalCDF(x))
}

const (
	geluScale = 1.5957691216057308 // 2 sqrt(2/pi)
	geluCubic = 0.044715
)

// logistic is y / (1 + exp(-x)).
func (e *expression) logistic(y, x *val) *val { return e.div(y, e.add(e.exp(e.neg(x)), e.c(1))) }

// geluInner is 2 sqrt(2/pi) (x + 0.044715 x^3), for (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)).
func (e *expression) geluInner(x *val) *val {
	return e.mul(x, e.fma(e.mul(x, x), e.c(geluScale*geluCubic), e.c(geluScale)))
}

func (e *expression) geluTanh(x *val) *val { return e.logistic(x, e.geluInner(x)) }

// logisticAndSlope are s = 1 / (1 + exp(-u)) and its derivative s (1 - s), of which
// neither cancels.
func (e *expression) logisticAndSlope(u *val) (s, slope *val) {
	t := e.exp(e.neg(e.abs(u)))
	r := e.div(e.c(1), e.add(t, e.c(1)))
	tr := e.mul(t, r)
	return e.sel(e.cmp(cmpLt, u, e.c(0)), tr, r), e.mul(tr, r)
}

// dGeluTanh is s + x s (1 - s) u', s = 1 / (1 + exp(-u)), u = geluInner(x).
func (e *expression) dGeluTanh(x *val) *val {
	x = e.clamp(x, 20)
	s, slope := e.logisticAndSlope(e.geluInner(x))
	du := e.fma(e.mul(x, x), e.c(3*geluScale*geluCubic), e.c(geluScale))
	return e.fma(e.mul(x, slope), du, s)
}

func (e *expression) silu(x *val) *val { return e.logistic(x, x) }

// dSilu is s + x s (1 - s).
func (e *expression) dSilu(x *val) *val {
	x = e.clamp(x, 100)
	s, slope := e.logisticAndSlope(x)
	return e.fma(x, slope, s)
}

// trig is the sine of x + shift quarter turns, for |x| <= 2^17 (package prim
// takes another way beyond). pi/2 is taken in three
// parts; the first two steps are exact or nearly so, because they are fused.
func (e *expression) trig(x *val, shift int) *val {
	a := x
	if shift == 0 {
		a = e.abs(x) // an odd function: the sign comes back at the end
	}
	n := e.round(e.mul(a, e.c(2/math.Pi)), even)
	const p1 = 0x1.921fb6p+00
	const p2 = -0x1.777a5cp-25
	const p3 = -0x1.ee59dap-50
	r := e.fnma(n, e.c(p3), e.fnma(n, e.c(p2), e.fnma(n, e.c(p1), a)))
	q := e.toInt(n)
	if shift != 0 {
		q = e.intOp(opAddI, q, e.i(shift))
	}
	t := e.mul(r, r)
	sin := e.fma(e.mul(r, t), e.poly(t, -0.166666672, 0.00833337475, -0.000198505848, 2.8026418e-6), r)
	cos := e.fma(e.mul(t, t), e.poly(t, 0.0416666418, -0.00138871034, 2.44070925e-5), e.fma(t, e.c(-0.5), e.c(1)))
	odd := e.bitsMask(e.shl(q, 31))
	y := e.asInt(e.sel(odd, cos, sin))
	sign := e.shl(e.intOp(opAnd, q, e.i(2)), 30)
	if shift == 0 {
		sign = e.intOp(opXor, sign, e.intOp(opAnd, e.asInt(x), e.i(0x80000000)))
	}
	return e.asFloat(e.intOp(opXor, y, sign))
}

// maximum and minimum propagate NaN.
func (e *expression) maximum(x, y *val) *val { return e.sel(e.isNaN(x), x, e.max(x, y)) }
func (e *expression) minimum(x, y *val) *val { return e.sel(e.isNaN(x), x, e.min(x, y)) }

func (e *expression) sign(x *val) *val {
	one := e.asFloat(e.intOp(opOr, e.intOp(opAnd, e.asInt(x), e.i(0x80000000)), e.i(0x3f800000)))
	return e.sel(e.cmp(cmpGt, e.abs(x), e.c(0)), one, x)
}

// roundBF16 rounds to bfloat16, to nearest even, in the upper half of the lanes.
func (e *expression) roundBF16(x *val) *val {
	bits := e.asInt(x)
	odd := e.intOp(opAnd, e.shr(bits, 16), e.i(1))
	up := e.intOp(opAddI, e.intOp(opAddI, bits, e.i(0x7fff)), odd)
	quiet := e.intOp(opOr, bits, e.i(0x00400000))
	return e.asFloat(e.intOp(opAnd, e.sel(e.isNaN(x), quiet, up), e.i(0xffff0000)))
}
