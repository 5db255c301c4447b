package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The multipliers of Philox4x32 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011).
const (
	philoxM0 = 0xd2511f53
	philoxM1 = 0xcd9e8d57
)

// philoxUnit writes Philox4x32-10 for consecutive counters, one to a lane.
func philoxUnit(a *asm) {
	for _, isa := range []vectorISA{avx512, avx2} {
		a.StaticGlobal("lane" + isa.name)
		a.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range isa.lanes {
			a.AppendDatum(operand.U32(i))
		}
		philox(a, isa)
	}
}

func philox(a *asm, isa vectorISA) {
	a.fn("philox"+isa.name, "philox"+isa.name+" writes words 0 and, if w1 is not nil, 1 of n counters from c0 on, which must not wrap around; n is a multiple of 16.",
		"func(w0, w1, keys *uint32, c0, c1, c2, c3 uint32, n int)")
	m := newEmitter(a, isa)
	w0, w1, keys, n := a.load("w0"), a.load("w1"), a.load("keys"), a.load("n")
	first := m.broadcastParam("c0")
	add := m.instruction(opAddI).plain
	add(operand.NewDataAddr(operand.NewStaticSymbol("lane"+isa.name), 0), first, first)
	at := a.GP64()
	a.XORQ(at, at)
	top, next := a.label("loop"), a.label("next")
	a.Label(top)
	c := [4]reg.Register{first, m.broadcastParam("c1"), m.broadcastParam("c2"), m.broadcastParam("c3")}
	for round := range 10 {
		c = m.philoxRound(c, keys, 8*round)
	}
	a.VMOVUPS(c[0], memIdx(w0, at, 1, 0))
	a.TESTQ(w1, w1)
	a.JZ(operand.LabelRef(next))
	a.VMOVUPS(c[1], memIdx(w1, at, 1, 0))
	a.Label(next)
	add(m.reg(newExpression().i(isa.lanes)), first, first)
	a.ADDQ(imm(4*isa.lanes), at)
	a.SUBQ(imm(isa.lanes), n)
	a.JNZ(operand.LabelRef(top))
	a.ret()
}

// philoxRound is one round, with the two keys at disp.
func (m *emitter) philoxRound(c [4]reg.Register, keys reg.GPVirtual, disp int) [4]reg.Register {
	e := newExpression()
	var in [4]*val
	for i := range in {
		in[i] = e.input(intLane)
		m.regs[in[i]] = c[i]
	}
	var k [2]*val
	for i := range k {
		k[i] = e.input(intLane)
		r := m.vector()
		m.VPBROADCASTD(mem(keys, disp+4*i), r)
		m.regs[k[i]] = r
	}
	m0, m1 := e.i(philoxM0), e.i(philoxM1)
	out := []*val{
		e.intOp(opXor, e.intOp(opXor, e.intOp(opMulHi, in[2], m1), in[1]), k[0]),
		e.intOp(opMulI, in[2], m1),
		e.intOp(opXor, e.intOp(opXor, e.intOp(opMulHi, in[0], m0), in[3]), k[1]),
		e.intOp(opMulI, in[0], m0),
	}
	m.run(e, out)
	for i := range c {
		c[i] = m.reg(out[i])
	}
	return c
}
