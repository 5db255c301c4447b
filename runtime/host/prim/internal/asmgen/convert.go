package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// convertUnit writes conversions between float32 and 16-bit formats, 16 elements a
// turn: n is a multiple of 16, the caller does the rest in Go.
func convertUnit(a *asm) {
	for _, isa := range []vectorISA{avx512, avx2} {
		narrow(a, isa, "toBF16", "bfloat16, to nearest even", (*emitter).narrowBF16)
		narrow(a, isa, "toF16", "float16, to nearest even", (*emitter).narrowF16)
		widen(a, isa, "fromBF16", "bfloat16", (*emitter).widenBF16)
		widen(a, isa, "fromF16", "float16", (*emitter).widenF16)
	}
}

// turns16 calls body for every 16 elements.
func (m *emitter) turns16(n reg.GPVirtual, body func()) {
	top, end := m.label("loop"), m.label("end")
	m.Label(top)
	m.SUBQ(imm(16), n)
	m.JLT(operand.LabelRef(end))
	body()
	m.JMP(operand.LabelRef(top))
	m.Label(end)
	m.ret()
}

func narrow(a *asm, isa vectorISA, name, doc string, f func(m *emitter, x, dst reg.GPVirtual)) {
	a.fn(name+isa.name, name+isa.name+": dst = x as "+doc+"; n is a multiple of 16.", "func(dst *uint16, x *float32, n int)")
	m := newEmitter(a, isa)
	dst, x, n := a.load("dst"), a.load("x"), a.load("n")
	m.turns16(n, func() {
		f(m, x, dst)
		m.ADDQ(imm(64), x)
		m.ADDQ(imm(32), dst)
	})
}

func widen(a *asm, isa vectorISA, name, doc string, f func(m *emitter, from operand.Mem, to reg.VecVirtual)) {
	a.fn(name+isa.name, name+isa.name+": dst = x, which is "+doc+"; n is a multiple of 16.", "func(dst *float32, x *uint16, n int)")
	m := newEmitter(a, isa)
	dst, x, n := a.load("dst"), a.load("x"), a.load("n")
	m.turns16(n, func() {
		for j := 0; j < 16; j += isa.lanes {
			v := m.vector()
			f(m, mem(x, 2*j), v)
			m.VMOVUPS(v, mem(dst, 4*j))
		}
		m.ADDQ(imm(32), x)
		m.ADDQ(imm(64), dst)
	})
}

func (m *emitter) widenBF16(from operand.Mem, to reg.VecVirtual) {
	m.VPMOVZXWD(from, to)
	m.VPSLLD(operand.U8(16), to, to)
}

func (m *emitter) widenF16(from operand.Mem, to reg.VecVirtual) { m.VCVTPH2PS(from, to) }

func (m *emitter) narrowF16(x, dst reg.GPVirtual) {
	for j := 0; j < 16; j += m.isa.lanes {
		v := m.vector()
		m.VMOVUPS(mem(x, 4*j), v)
		m.VCVTPS2PH(operand.U8(0), v, mem(dst, 2*j))
	}
}

func (m *emitter) narrowBF16(x, dst reg.GPVirtual) {
	var half []reg.VecVirtual
	for j := 0; j < 16; j += m.isa.lanes {
		e := newExpression()
		in := e.input(floatLane)
		out := e.shr(e.asInt(e.roundBF16(in)), 16)
		m.regs[in] = m.loadVector(mem(x, 4*j), nil)
		m.run(e, []*val{out})
		half = append(half, m.reg(out).(reg.VecVirtual))
	}
	if m.isa.wide() {
		m.VPMOVDW(half[0], mem(dst, 0))
		return
	}
	v := m.YMM()
	m.VPACKUSDW(half[1], half[0], v)
	m.VPERMQ(operand.U8(0xd8), v, v)
	m.VMOVDQU(v, mem(dst, 0))
}
