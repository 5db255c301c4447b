package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A doubles writes float64 arithmetic on vectors of half as many lanes.
type doubles struct{ *emitter }

// d is a constant, broadcast into a register.
func (m doubles) d(x float64) reg.VecVirtual { return m.d64(math.Float64bits(x)) }

func (m doubles) d64(bits uint64) reg.VecVirtual {
	name := fmt.Sprintf("d%016x", bits)
	if !m.data[name] {
		m.data[name] = true
		m.pending = append(m.pending, datum{name: name, wide: bits, n: 1})
	}
	r := m.vector()
	m.VBROADCASTSD(operand.NewDataAddr(operand.NewStaticSymbol(name), 0), r)
	return r
}

func (m doubles) apply(f func(...operand.Op), x, y reg.VecVirtual) reg.VecVirtual {
	r := m.vector()
	f(y, x, r)
	return r
}

func (m doubles) add(x, y reg.VecVirtual) reg.VecVirtual { return m.apply(m.VADDPD, x, y) }
func (m doubles) sub(x, y reg.VecVirtual) reg.VecVirtual { return m.apply(m.VSUBPD, x, y) }
func (m doubles) mul(x, y reg.VecVirtual) reg.VecVirtual { return m.apply(m.VMULPD, x, y) }
func (m doubles) div(x, y reg.VecVirtual) reg.VecVirtual { return m.apply(m.VDIVPD, x, y) }

func (m doubles) addQ(x, y reg.VecVirtual) reg.VecVirtual { return m.apply(m.VPADDQ, x, y) }
func (m doubles) subQ(x, y reg.VecVirtual) reg.VecVirtual { return m.apply(m.VPSUBQ, x, y) }

func (m doubles) bitwise(wide func(...operand.Op), narrow func(a, b, c operand.Op), x, y reg.VecVirtual) reg.VecVirtual {
	if m.isa.wide() {
		return m.apply(wide, x, y)
	}
	return m.apply(three(narrow), x, y)
}

func (m doubles) or(x, y reg.VecVirtual) reg.VecVirtual  { return m.bitwise(m.VPORQ, m.VPOR, x, y) }
func (m doubles) xor(x, y reg.VecVirtual) reg.VecVirtual { return m.bitwise(m.VPXORQ, m.VPXOR, x, y) }
func (m doubles) and(x, y reg.VecVirtual) reg.VecVirtual { return m.bitwise(m.VPANDQ, m.VPAND, x, y) }

func (m doubles) shift(f func(...operand.Op), n int, x reg.VecVirtual) reg.VecVirtual {
	r := m.vector()
	f(operand.U8(n), x, r)
	return r
}

// fma is x*y + z.
func (m doubles) fma(x, y, z reg.VecVirtual) reg.VecVirtual {
	r := m.vector()
	m.VMOVAPD(z, r)
	m.VFMADD231PD(x, y, r)
	return r
}

func (m doubles) poly(x reg.VecVirtual, c []float64) reg.VecVirtual {
	p := m.d(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = m.fma(p, x, m.d(c[i]))
	}
	return p
}

// magic is 2^52: its last 52 bits take an integer, which subtraction makes a number.
const magic = 1 << 52

// fromUint32 loads unsigned integers; exact.
func (m doubles) fromUint32(from operand.Mem) reg.VecVirtual {
	v := m.vector()
	m.VPMOVZXDQ(from, v)
	return m.sub(m.or(v, m.d(magic)), m.d(magic))
}

// log of x in [2^-32, 1]: x = 2^e (1 + f), log(1+f) = 2 atanh(f / (2+f)).
func (m doubles) log(x reg.VecVirtual) reg.VecVirtual {
	const bias = 64 // keeps the exponent positive: there is no 64-bit arithmetic shift on AVX2
	offset := m.d64(bias<<52 - math.Float64bits(math.Sqrt2/2))
	k := m.shift(m.VPSRLQ, 52, m.addQ(x, offset))
	f := m.subQ(x, m.shift(m.VPSLLQ, 52, k))
	f = m.sub(m.addQ(f, m.d64(bias<<52)), m.d(1))
	e := m.sub(m.or(k, m.d(magic)), m.d(magic+bias))
	s := m.div(f, m.add(f, m.d(2)))
	z := m.mul(s, s)
	var c []float64
	for i := range 11 {
		c = append(c, 2/float64(2*i+3))
	}
	t := m.fma(m.mul(s, z), m.poly(z, c), m.add(s, s))
	return m.fma(e, m.d(math.Ln2), t)
}

// cosTurns is the cosine of x quarter turns, x in [0, 4]. The remainder after the
// nearest quarter turn is exact.
func (m doubles) cosTurns(x reg.VecVirtual) reg.VecVirtual {
	q := m.vector()
	if m.isa.wide() {
		m.VRNDSCALEPD(operand.U8(8), x, q)
	} else {
		m.VROUNDPD(operand.U8(8), x, q)
	}
	y := m.mul(m.sub(x, q), m.d(math.Pi/2))
	z := m.mul(y, y)
	var sin, cos []float64
	for i, f := 0, 1.0; i < 10; i++ { // f = (2i)!
		sign := float64(1 - i%2*2)
		cos = append(cos, sign/f)
		sin = append(sin, sign/(f*float64(2*i+1)))
		f *= float64((2*i + 1) * (2*i + 2))
	}
	c := m.poly(z, cos)
	s := m.mul(y, m.poly(z, sin))
	n := m.add(q, m.d(magic)) // the integer q in the last bits
	v := m.choosePD(m.shift(m.VPSLLQ, 63, n), s, c)
	sign := m.shift(m.VPSLLQ, 62, m.addQ(n, m.d64(1))) // cos is negative in quarters 1 and 2
	return m.xor(v, m.and(sign, m.d64(1<<63)))
}

// choosePD is yes where the highest bit of mask is set.
func (m doubles) choosePD(mask, yes, no reg.VecVirtual) reg.VecVirtual {
	r := m.vector()
	if !m.isa.wide() {
		m.VBLENDVPD(mask, yes, no, r)
		return r
	}
	k := m.K()
	m.VPMOVQ2M(mask, k)
	m.VBLENDMPD(yes, no, k, r)
	return r
}

// normalUnit writes Box and Muller's transform.
func normalUnit(a *asm) {
	for _, isa := range []vectorISA{avx512, avx2} {
		a.fn("boxMuller"+isa.name, "boxMuller"+isa.name+" writes sqrt(-2 ln u) cos(2 pi t), u = (w0+1) 2^-32, t = w1 2^-32, nearly to float64; n is a multiple of 8.",
			"func(dst *float64, w0, w1 *uint32, n int)")
		m := doubles{newEmitter(a, isa)}
		dst, w0, w1, n := a.load("dst"), a.load("w0"), a.load("w1"), a.load("n")
		at, top := a.GP64(), a.label("loop")
		a.XORQ(at, at)
		a.Label(top)
		u := m.mul(m.add(m.fromUint32(memIdx(w0, at, 4, 0)), m.d(1)), m.d(0x1p-32))
		r := m.vector()
		a.VSQRTPD(m.mul(m.log(u), m.d(-2)), r)
		cos := m.cosTurns(m.mul(m.fromUint32(memIdx(w1, at, 4, 0)), m.d(0x1p-30)))
		a.VMOVUPD(m.mul(r, cos), memIdx(dst, at, 8, 0))
		a.ADDQ(imm(isa.lanes/2), at)
		a.CMPQ(at, n)
		a.JLT(operand.LabelRef(top))
		a.ret()
	}
}

func (d datum) append(a *asm) {
	a.StaticGlobal(d.name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for range d.n {
		if d.wide != 0 {
			a.AppendDatum(operand.U64(d.wide))
		} else {
			a.AppendDatum(operand.U32(d.bits))
		}
	}
}
