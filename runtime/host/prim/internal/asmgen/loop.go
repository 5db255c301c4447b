package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A loop is a function that evaluates an expression on every element of blocks.
type loop struct {
	name string // without the instruction set
	doc  string
	ins  []param
	outs []param
	body func(e *expression, in []*val) []*val
}

// A param is a block of 32-bit elements, or one element that is the same for all.
type param struct {
	name   string
	scalar bool
	kind   kind
}

func vec(name string) param     { return param{name: name} }
func ivec(name string) param    { return param{name: name, kind: intLane} }
func scalar(name string) param  { return param{name: name, scalar: true} }
func iscalar(name string) param { return param{name: name, scalar: true, kind: intLane} }

func (p param) goType() string {
	t := "float32"
	if p.kind == intLane {
		t = "uint32"
	}
	if !p.scalar {
		t = "*" + t
	}
	return t
}

// params are the parameters, of which one that is both read and written is one.
func (l *loop) params() []param {
	var all []param
	seen := map[string]bool{}
	for _, p := range append(append([]param{}, l.outs...), l.ins...) {
		if !seen[p.name] {
			seen[p.name] = true
			all = append(all, p)
		}
	}
	return all
}

func (l *loop) signature() string {
	var s []string
	for _, p := range l.params() {
		s = append(s, p.name+" "+p.goType())
	}
	return "func(" + strings.Join(append(s, "n int"), ", ") + ")"
}

// expression builds the body.
func (l *loop) expression() (e *expression, in, out []*val) {
	e = newExpression()
	for _, p := range l.ins {
		in = append(in, e.input(p.kind))
	}
	return e, in, l.body(e, in)
}

// assemble writes the loop for one instruction set: whole vectors, then one
// masked vector for the rest.
func (l *loop) assemble(a *asm, isa vectorISA) {
	a.fn(l.name+isa.name, fmt.Sprintf("%s%s: %s.", l.name, isa.name, l.doc), l.signature())
	e, in, out := l.expression()
	m := newEmitter(a, isa)
	base := map[string]reg.GPVirtual{}
	for _, p := range l.params() {
		if !p.scalar {
			base[p.name] = a.load(p.name)
		}
	}
	n := a.load("n")
	for i, p := range l.ins {
		if p.scalar {
			m.regs[in[i]] = m.broadcastParam(p.name)
			m.fixed[in[i]] = true
		}
	}
	at := a.GP64()
	a.XORQ(at, at)
	top, rest, end := a.label("loop"), a.label("rest"), a.label("end")
	a.SUBQ(imm(isa.lanes), n)
	a.JLT(operand.LabelRef(rest))
	a.Label(top)
	l.turn(m, e, in, out, base, at, nil)
	a.ADDQ(imm(4*isa.lanes), at)
	a.SUBQ(imm(isa.lanes), n)
	a.JGE(operand.LabelRef(top))
	a.Label(rest)
	a.ADDQ(imm(isa.lanes), n)
	a.JZ(operand.LabelRef(end))
	l.turn(m, e, in, out, base, at, m.tailMask(n))
	a.Label(end)
	a.ret()
}

func (m *emitter) broadcastParam(name string) reg.Register {
	c, err := m.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := m.vector()
	m.VBROADCASTSS(c.Addr, r)
	return r
}

func (m *emitter) tailMask(n reg.GPVirtual) reg.Register {
	if m.isa.wide() {
		return m.kmask(n)
	}
	r := m.YMM()
	m.vmask(n, r)
	return r
}

// turn evaluates one vector at byte offset at.
func (l *loop) turn(m *emitter, e *expression, in, out []*val, base map[string]reg.GPVirtual, at reg.GPVirtual, mask reg.Register) {
	for i, p := range l.ins {
		if !p.scalar {
			m.regs[in[i]] = m.loadVector(memIdx(base[p.name], at, 1, 0), mask)
		}
	}
	m.run(e, out)
	for i, p := range l.outs {
		m.storeVector(m.reg(out[i]), memIdx(base[p.name], at, 1, 0), mask)
	}
}

func (m *emitter) loadVector(from operand.Mem, mask reg.Register) reg.Register {
	r := m.vector()
	switch {
	case mask == nil:
		m.VMOVUPS(from, r)
	case m.isa.wide():
		m.VMOVUPS_Z(from, mask, r)
	default:
		m.VMASKMOVPS(from, mask, r)
	}
	return r
}

func (m *emitter) storeVector(r reg.Register, to operand.Mem, mask reg.Register) {
	switch {
	case mask == nil:
		m.VMOVUPS(r, to)
	case m.isa.wide():
		m.VMOVUPS(r, mask, to)
	default:
		m.VMASKMOVPS(r, mask, to)
	}
}
