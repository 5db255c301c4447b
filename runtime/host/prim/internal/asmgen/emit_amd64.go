package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A vectorISA writes expressions for one instruction set.
type vectorISA struct {
	name  string
	lanes int
}

var (
	avx512 = vectorISA{"AVX512", 16}
	avx2   = vectorISA{"AVX2", 8}
)

func (t vectorISA) wide() bool { return t.lanes == 16 }

// An emitter keeps the registers of one evaluation of an expression.
type emitter struct {
	*asm
	isa   vectorISA
	regs  map[*val]reg.Register
	left  map[*val]int  // uses to come
	fixed map[*val]bool // registers that outlive the evaluation
}

func newEmitter(a *asm, isa vectorISA) *emitter {
	return &emitter{asm: a, isa: isa, regs: map[*val]reg.Register{}, left: map[*val]int{}, fixed: map[*val]bool{}}
}

func (m *emitter) vector() reg.VecVirtual {
	if m.isa.wide() {
		return m.ZMM()
	}
	return m.YMM()
}

// constant is the address of a constant: one lane for AVX-512, which broadcasts,
// and a whole vector for AVX2.
func (m *emitter) constant(bits uint32) operand.Mem {
	n := 1
	if !m.isa.wide() {
		n = 8
	}
	name := fmt.Sprintf("c%dx%08x", n, bits)
	if !m.data[name] {
		m.data[name] = true
		m.pending = append(m.pending, datum{name: name, bits: bits, n: n})
	}
	return operand.NewDataAddr(operand.NewStaticSymbol(name), 0)
}

// constants writes the data that the functions so far refer to.
func (a *asm) constants() {
	for _, d := range a.pending {
		d.append(a)
	}
	a.pending = nil
}

// root follows conversions that change no bit.
func root(v *val) *val {
	for v.op == opAsFloat || v.op == opAsInt {
		v = v.args[0]
	}
	return v
}

// reg is the register of v, into which a constant is loaded first.
func (m *emitter) reg(v *val) reg.Register {
	if v = root(v); v.op != opConst {
		return m.regs[v]
	}
	r := m.vector()
	if m.isa.wide() {
		m.VBROADCASTSS(m.constant(v.bits), r)
	} else {
		m.VMOVUPS(m.constant(v.bits), r)
	}
	return r
}

// source is the operand for v in the position that may be memory, and whether it
// must be broadcast.
func (m *emitter) source(v *val) (operand.Op, bool) {
	if v = root(v); v.op == opConst {
		return m.constant(v.bits), m.isa.wide()
	}
	return m.regs[v], false
}

// dies reports whether v's register is free after the operation that is being emitted.
func (m *emitter) dies(v *val) bool {
	v = root(v)
	return v.op != opConst && !m.fixed[v] && m.left[v] == 1
}

// run emits all of e, whose inputs have registers. The results outlive it.
func (m *emitter) run(e *expression, results []*val) {
	clear(m.left)
	for _, v := range results {
		m.left[root(v)]++
	}
	for _, v := range e.vals {
		if v == root(v) {
			for _, a := range v.args {
				m.left[root(a)]++
			}
		}
	}
	for _, v := range e.vals {
		if v.op == opInput || v != root(v) {
			continue
		}
		m.regs[v] = m.one(v)
		for _, a := range v.args {
			m.left[root(a)]--
		}
	}
}

func (m *emitter) one(v *val) reg.Register {
	switch v.op {
	case opFMA, opFNMA:
		return m.fused(v)
	case opScale:
		return m.scaled(v)
	case opCmp, opCmpI:
		return m.compare(v)
	case opSelect:
		return m.choose(v)
	case opMaskAnd:
		return m.masks(v)
	case opMaskBits, opBitsMask:
		return m.convertMask(v)
	case opMulHi:
		return m.mulHi(v)
	}
	if len(v.args) == 2 {
		return m.binary(v)
	}
	return m.unary(v)
}

func (m *emitter) binary(v *val) reg.Register {
	x, y := v.args[0], v.args[1]
	commutes := v.op != opSub && v.op != opDiv && v.op != opSubI && v.op != opAndNot && v.op != opMin && v.op != opMax
	if x.op == opConst && y.op != opConst && commutes {
		x, y = y, x
	}
	rx := m.reg(x)
	src, bcst := m.source(y)
	dst := m.vector()
	ins := m.instruction(v.op)
	if bcst {
		ins.bcst(src, rx, dst)
	} else {
		ins.plain(src, rx, dst)
	}
	return dst
}

type instruction struct {
	plain func(...operand.Op)
	bcst  func(...operand.Op)
}

// three adapts a function of three operands.
func three(f func(a, b, c operand.Op)) func(...operand.Op) {
	return func(o ...operand.Op) { f(o[0], o[1], o[2]) }
}

func (m *emitter) instruction(op opcode) instruction {
	wide := m.isa.wide()
	switch op {
	case opAdd:
		return instruction{m.VADDPS, m.VADDPS_BCST}
	case opSub:
		return instruction{m.VSUBPS, m.VSUBPS_BCST}
	case opMul:
		return instruction{m.VMULPS, m.VMULPS_BCST}
	case opDiv:
		return instruction{m.VDIVPS, m.VDIVPS_BCST}
	case opMin:
		return instruction{m.VMINPS, m.VMINPS_BCST}
	case opMax:
		return instruction{m.VMAXPS, m.VMAXPS_BCST}
	case opAddI:
		return instruction{m.VPADDD, m.VPADDD_BCST}
	case opSubI:
		return instruction{m.VPSUBD, m.VPSUBD_BCST}
	case opMulI:
		return instruction{m.VPMULLD, m.VPMULLD_BCST}
	case opMinI:
		return instruction{m.VPMINSD, m.VPMINSD_BCST}
	case opMaxI:
		return instruction{m.VPMAXSD, m.VPMAXSD_BCST}
	case opAnd:
		if wide {
			return instruction{m.VPANDD, m.VPANDD_BCST}
		}
		return instruction{three(m.VPAND), nil}
	case opOr:
		if wide {
			return instruction{m.VPORD, m.VPORD_BCST}
		}
		return instruction{three(m.VPOR), nil}
	case opXor:
		if wide {
			return instruction{m.VPXORD, m.VPXORD_BCST}
		}
		return instruction{three(m.VPXOR), nil}
	case opAndNot:
		if wide {
			return instruction{m.VPANDND, m.VPANDND_BCST}
		}
		return instruction{three(m.VPANDN), nil}
	}
	panic(fmt.Sprintf("asmgen: opcode %d is not a binary instruction", op))
}

func (m *emitter) unary(v *val) reg.Register {
	x, dst := m.reg(v.args[0]), m.vector()
	switch v.op {
	case opSqrt:
		m.VSQRTPS(x, dst)
	case opRound:
		mode := operand.U8(v.imm | 8) // no inexact exception
		if m.isa.wide() {
			m.VRNDSCALEPS(mode, x, dst)
		} else {
			m.VROUNDPS(mode, x, dst)
		}
	case opShl:
		m.VPSLLD(operand.U8(v.imm), x, dst)
	case opShr:
		m.VPSRLD(operand.U8(v.imm), x, dst)
	case opSar:
		m.VPSRAD(operand.U8(v.imm), x, dst)
	case opToInt:
		m.VCVTPS2DQ(x, dst)
	case opTruncInt:
		m.VCVTTPS2DQ(x, dst)
	case opToFloat:
		m.VCVTDQ2PS(x, dst)
	default:
		panic(fmt.Sprintf("asmgen: opcode %d is not a unary instruction", v.op))
	}
	return dst
}

// fused writes the form of a fused multiply-add that overwrites an operand which
// dies here: 231 that of z, 213 or 132 that of x. If none dies, it works on a copy of z.
func (m *emitter) fused(v *val) reg.Register {
	f := m.fusedForms(v.op)
	x, y, z := v.args[0], v.args[1], v.args[2]
	if x.op == opConst || !m.dies(x) && m.dies(y) {
		x, y = y, x
	}
	var form instruction
	var dst reg.Register
	var second, third *val // the third may be in memory
	switch {
	case m.dies(z) || !m.dies(x):
		form, dst, second, third = f[231], m.into(z), x, y
	case y.op == opConst:
		form, dst, second, third = f[132], m.into(x), z, y
	default:
		form, dst, second, third = f[213], m.into(x), y, z
	}
	src, bcst := m.source(third)
	if bcst {
		form.bcst(src, m.reg(second), dst)
	} else {
		form.plain(src, m.reg(second), dst)
	}
	return dst
}

func (m *emitter) fusedForms(op opcode) map[int]instruction {
	if op == opFMA {
		return map[int]instruction{
			132: {m.VFMADD132PS, m.VFMADD132PS_BCST},
			213: {m.VFMADD213PS, m.VFMADD213PS_BCST},
			231: {m.VFMADD231PS, m.VFMADD231PS_BCST},
		}
	}
	return map[int]instruction{
		132: {m.VFNMADD132PS, m.VFNMADD132PS_BCST},
		213: {m.VFNMADD213PS, m.VFNMADD213PS_BCST},
		231: {m.VFNMADD231PS, m.VFNMADD231PS_BCST},
	}
}

// into is a register that holds v and may be overwritten: v's own if it dies here,
// else a copy.
func (m *emitter) into(v *val) reg.Register {
	if v.op == opConst || m.dies(v) {
		return m.reg(v)
	}
	r := m.vector()
	m.VMOVAPS(m.reg(v), r)
	return r
}

// scaled multiplies by a power of two. Without VSCALEFPS it does so in two steps, of
// which the first is exact.
func (m *emitter) scaled(v *val) reg.Register {
	x, n, dst := m.reg(v.args[0]), m.reg(v.args[1]), m.vector()
	if m.isa.wide() {
		m.VSCALEFPS(n, x, dst)
		return dst
	}
	i, h := m.vector(), m.vector()
	m.VCVTPS2DQ(n, i)
	m.VPSRAD(operand.U8(1), i, h)
	m.VPSUBD(h, i, i)
	for _, r := range []reg.Register{h, i} {
		m.VPADDD(m.constant(127), r, r)
		m.VPSLLD(operand.U8(23), r, r)
	}
	m.VMULPS(h, x, dst)
	m.VMULPS(i, dst, dst)
	return dst
}

func (m *emitter) compare(v *val) reg.Register {
	x := m.reg(v.args[0])
	y, bcst := m.source(v.args[1])
	p := operand.U8(v.imm)
	if !m.isa.wide() {
		dst := m.vector()
		switch {
		case v.op == opCmp:
			m.VCMPPS(p, y, x, dst)
		case v.imm == cmpEq:
			m.VPCMPEQD(y, x, dst)
		default:
			m.VPCMPGTD(y, x, dst)
		}
		return dst
	}
	dst := m.K()
	switch {
	case v.op == opCmp && bcst:
		m.VCMPPS_BCST(p, y, x, dst)
	case v.op == opCmp:
		m.VCMPPS(p, y, x, dst)
	case v.imm == cmpEq && bcst:
		m.VPCMPEQD_BCST(y, x, dst)
	case v.imm == cmpEq:
		m.VPCMPEQD(y, x, dst)
	case bcst:
		m.VPCMPGTD_BCST(y, x, dst)
	default:
		m.VPCMPGTD(y, x, dst)
	}
	return dst
}

func (m *emitter) choose(v *val) reg.Register {
	mask, no := m.reg(v.args[0]), m.reg(v.args[2])
	yes, bcst := m.source(v.args[1])
	dst := m.vector()
	switch {
	case !m.isa.wide():
		m.VBLENDVPS(mask, yes, no, dst)
	case bcst:
		m.VBLENDMPS_BCST(yes, no, mask, dst)
	default:
		m.VBLENDMPS(yes, no, mask, dst)
	}
	return dst
}

func (m *emitter) masks(v *val) reg.Register {
	x, y := m.reg(v.args[0]), m.reg(v.args[1])
	if !m.isa.wide() {
		dst := m.vector()
		m.VANDPS(x, y, dst)
		return dst
	}
	dst := m.K()
	m.KANDW(x, y, dst)
	return dst
}

func (m *emitter) convertMask(v *val) reg.Register {
	x := m.reg(v.args[0])
	if !m.isa.wide() {
		return x
	}
	if v.op == opMaskBits {
		dst := m.vector()
		m.VPMOVM2D(x, dst)
		return dst
	}
	dst := m.K()
	m.VPTESTMD(x, x, dst)
	return dst
}

// mulHi takes the high halves of the products of the even and of the odd lanes.
func (m *emitter) mulHi(v *val) reg.Register {
	x, y := m.reg(v.args[0]), m.reg(v.args[1])
	even, odd, oddY := m.vector(), m.vector(), m.vector()
	m.VPMULUDQ(y, x, even)
	m.VPSRLQ(operand.U8(32), x, odd)
	m.VPSRLQ(operand.U8(32), y, oddY)
	m.VPMULUDQ(oddY, odd, odd)
	m.VPSRLQ(operand.U8(32), even, even)
	m.VPSRLQ(operand.U8(32), odd, odd)
	m.VPSLLQ(operand.U8(32), odd, odd)
	if m.isa.wide() {
		m.VPORD(even, odd, odd)
	} else {
		m.VPOR(even, odd, odd)
	}
	return odd
}
