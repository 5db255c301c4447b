package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reduceLanes is the number of partial results of a reduction: element i goes to
// partial i mod 32, whatever the width of the vectors, and the partials are combined
// by halves. So the order of operations is the same for every instruction set.
const reduceLanes = 32

// A reduction folds the elements of blocks into one float32, and may also write
// a block as it goes.
type reduction struct {
	name     string
	doc      string
	ins      []param
	outs     []param
	identity float64
	step     func(e *expression, acc *val, in []*val) (next *val, out []*val)
	combine  func(e *expression, x, y *val) *val
}

var reductions = []*reduction{
	{name: "sum", doc: "the sum of x", ins: []param{vec("x")}, combine: (*expression).add,
		step: func(e *expression, acc *val, in []*val) (*val, []*val) { return e.add(acc, in[0]), nil }},
	{name: "dot", doc: "the sum of x*y", ins: []param{vec("x"), vec("y")}, combine: (*expression).add,
		step: func(e *expression, acc *val, in []*val) (*val, []*val) { return e.fma(in[0], in[1], acc), nil }},
	{name: "maxOf", doc: "the largest of x", ins: []param{vec("x")}, identity: math.Inf(-1), combine: (*expression).maximum,
		step: func(e *expression, acc *val, in []*val) (*val, []*val) { return e.maximum(acc, in[0]), nil }},
	{name: "minOf", doc: "the smallest of x", ins: []param{vec("x")}, identity: math.Inf(1), combine: (*expression).minimum,
		step: func(e *expression, acc *val, in []*val) (*val, []*val) { return e.minimum(acc, in[0]), nil }},
	{name: "expSum", doc: "the sum of dst = exp(x*scale + shift)", outs: []param{vec("dst")},
		ins: []param{vec("x"), scalar("scale"), scalar("shift")}, combine: (*expression).add,
		step: func(e *expression, acc *val, in []*val) (*val, []*val) {
			y := e.exp(e.fma(in[0], in[1], in[2]))
			return e.add(acc, y), []*val{y}
		}},
}

func reduceUnit(a *asm) {
	laneMasks(a)
	for _, r := range reductions {
		for _, isa := range []vectorISA{avx512, avx2} {
			r.assemble(a, isa)
		}
	}
	for _, isa := range []vectorISA{avx512, avx2} {
		sumSquares(a, isa)
		columns(a, isa, false)
		columns(a, isa, true)
	}
}

func (r *reduction) loop() *loop { return &loop{name: r.name, doc: r.doc, ins: r.ins, outs: r.outs} }

func (r *reduction) signature() string { return r.loop().signature() + " float32" }

func (r *reduction) expression() (e *expression, acc *val, in []*val, next *val, out []*val) {
	e = newExpression()
	acc = e.input(floatLane)
	for _, p := range r.ins {
		in = append(in, e.input(p.kind))
	}
	next, out = r.step(e, acc, in)
	return e, acc, in, next, out
}

type reducer struct {
	*emitter
	r    *reduction
	base map[string]reg.GPVirtual
	at   reg.GPVirtual
	acc  []reg.VecVirtual

	fixedIn map[string]reg.Register
}

func (r *reduction) assemble(a *asm, isa vectorISA) {
	a.fn(r.name+isa.name, fmt.Sprintf("%s%s: %s.", r.name, isa.name, r.doc), r.signature())
	m := &reducer{emitter: newEmitter(a, isa), r: r, base: map[string]reg.GPVirtual{}, fixedIn: map[string]reg.Register{}}
	for _, p := range r.loop().params() {
		if p.scalar {
			m.fixedIn[p.name] = m.broadcastParam(p.name)
		} else {
			m.base[p.name] = a.load(p.name)
		}
	}
	n := a.load("n")
	m.at = a.GP64()
	a.XORQ(m.at, m.at)
	for range reduceLanes / isa.lanes {
		v := m.vector()
		identity := m.reg(newExpression().c(r.identity))
		a.VMOVAPS(identity, v)
		m.acc = append(m.acc, v)
	}
	top, rest, end := a.label("loop"), a.label("rest"), a.label("end")
	a.SUBQ(imm(reduceLanes), n)
	a.JLT(operand.LabelRef(rest))
	a.Label(top)
	for j := range m.acc {
		m.vectorStep(j, nil)
	}
	a.SUBQ(imm(reduceLanes), n)
	a.JGE(operand.LabelRef(top))
	a.Label(rest)
	a.ADDQ(imm(reduceLanes), n)
	for j := range m.acc { // at most lanes elements each
		a.TESTQ(n, n)
		a.JLE(operand.LabelRef(end))
		m.vectorStep(j, m.tailMask(m.atMostLanes(n)))
		a.SUBQ(imm(isa.lanes), n)
	}
	a.Label(end)
	m.finish()
}

func (m *reducer) atMostLanes(n reg.GPVirtual) reg.GPVirtual {
	c, limit := m.GP64(), m.GP64()
	m.MOVQ(n, c)
	m.MOVQ(operand.I32(int32(m.isa.lanes)), limit)
	m.CMPQ(c, limit)
	m.CMOVQGT(limit, c)
	return c
}

// vectorStep folds one vector into accumulator j and moves on.
func (m *reducer) vectorStep(j int, mask reg.Register) {
	e, acc, in, next, out := m.r.expression()
	for i, p := range m.r.ins {
		if p.scalar {
			m.regs[in[i]] = m.fixedIn[p.name]
			m.fixed[in[i]] = true
		} else {
			m.regs[in[i]] = m.loadVector(memIdx(m.base[p.name], m.at, 1, 0), mask)
		}
	}
	m.regs[acc] = m.acc[j]
	m.fixed[acc] = mask != nil // the lanes that are not in use keep it
	m.run(e, append([]*val{next}, out...))
	for i, p := range m.r.outs {
		m.storeVector(m.reg(out[i]), memIdx(m.base[p.name], m.at, 1, 0), mask)
	}
	m.ADDQ(imm(4*m.isa.lanes), m.at)
	switch res := m.reg(next); {
	case mask == nil && res != reg.Register(m.acc[j]):
		m.VMOVAPS(res, m.acc[j])
	case mask == nil:
	case m.isa.wide():
		m.VMOVAPS(res, mask, m.acc[j])
	default:
		m.VBLENDVPS(mask, res, m.acc[j], m.acc[j])
	}
}

// finish combines the partials by halves and returns the first.
func (m *reducer) finish() {
	parts := m.acc
	for len(parts) > 1 {
		half := len(parts) / 2
		for j := range half {
			parts[j] = m.combine(parts[j], parts[j+half])
		}
		parts = parts[:half]
	}
	v := parts[0]
	for w := m.isa.lanes / 2; w > 0; w /= 2 {
		v = m.combine(v, m.swapped(v, w))
	}
	m.Store(v.AsX(), m.ReturnIndex(0))
	m.ret()
}

// swapped exchanges neighbouring groups of w lanes.
func (m *reducer) swapped(v reg.VecVirtual, w int) reg.VecVirtual {
	t := m.vector()
	switch {
	case w == 1:
		m.VPERMILPS(operand.U8(0xb1), v, t)
	case w == 2:
		m.VPERMILPS(operand.U8(0x4e), v, t)
	case w == 4 && !m.isa.wide():
		m.VPERM2F128(operand.U8(0x01), v, v, t)
	case w == 4:
		m.VSHUFF32X4(operand.U8(0xb1), v, v, t)
	case w == 8:
		m.VSHUFF32X4(operand.U8(0x4e), v, v, t)
	}
	return t
}

func (m *reducer) combine(x, y reg.VecVirtual) reg.VecVirtual {
	e := newExpression()
	vx, vy := e.input(floatLane), e.input(floatLane)
	m.regs[vx], m.regs[vy] = x, y
	m.fixed[vx], m.fixed[vy] = true, true
	res := m.r.combine(e, vx, vy)
	m.run(e, []*val{res})
	return m.reg(res).(reg.VecVirtual)
}

// writeReduction writes the portable form.
func (g *goWriter) writeReduction(r *reduction) {
	e, acc, in, next, out := r.expression()
	g.names, g.vars = map[*val]string{}, 0
	g.printf("// %sGo: %s.\nfunc %sGo%s {\n", r.name, r.doc, r.name, strings.TrimPrefix(r.signature(), "func"))
	for _, p := range r.loop().params() {
		if !p.scalar {
			g.printf("\tv%s := unsafe.Slice(%s, n)\n", p.name, p.name)
		}
	}
	g.printf("\tvar acc [%d]float32\n", reduceLanes)
	if r.identity != 0 {
		g.printf("\tfor i := range acc {\n\t\tacc[i] = %s\n\t}\n", g.ref(e.c(r.identity)))
	}
	g.printf("\tfor i := range n {\n")
	g.names[acc] = fmt.Sprintf("acc[i%%%d]", reduceLanes)
	for i, p := range r.ins {
		if p.scalar {
			g.names[in[i]] = p.name
		} else {
			g.assign(in[i], "v"+p.name+"[i]")
		}
	}
	g.statements(e)
	for i, p := range r.outs {
		g.printf("\t\tv%s[i] = %s\n", p.name, g.ref(out[i]))
	}
	g.printf("\t\tacc[i%%%d] = %s\n\t}\n", reduceLanes, g.ref(next))
	g.printf("\tfor w := %d; w > 0; w /= 2 {\n\t\tfor i := range w {\n", reduceLanes/2)
	e = newExpression()
	x, y := e.input(floatLane), e.input(floatLane)
	g.names[x], g.names[y] = "acc[i]", "acc[i+w]"
	res := r.combine(e, x, y)
	g.statements(e)
	g.printf("\t\t\tacc[i] = %s\n\t\t}\n\t}\n\treturn acc[0]\n}\n\n", g.ref(res))
}

// sumSquares adds x^2 in float64: element i to partial i mod 16, by fused
// multiply-adds, and the partials by halves. n must be a multiple of 16.
func sumSquares(a *asm, isa vectorISA) {
	a.fn("sumSquares"+isa.name, "sumSquares"+isa.name+" is the sum of x*x in float64; n is a multiple of 16.",
		"func(x *float32, n int) float64")
	m := newEmitter(a, isa)
	x, n := a.load("x"), a.load("n")
	half := isa.lanes / 2
	acc := make([]reg.VecVirtual, 16/half)
	for j := range acc {
		acc[j] = m.vector()
		if isa.wide() {
			a.VPXORQ(acc[j], acc[j], acc[j])
		} else {
			a.VXORPD(acc[j], acc[j], acc[j])
		}
	}
	top, end := a.label("loop"), a.label("end")
	a.Label(top)
	a.SUBQ(imm(16), n)
	a.JLT(operand.LabelRef(end))
	for j := range acc {
		v := m.vector()
		a.VCVTPS2PD(mem(x, 4*half*j), v)
		a.VFMADD231PD(v, v, acc[j])
	}
	a.ADDQ(imm(64), x)
	a.JMP(operand.LabelRef(top))
	a.Label(end)
	for len(acc) > 1 {
		h := len(acc) / 2
		for j := range h {
			a.VADDPD(acc[j], acc[j+h], acc[j])
		}
		acc = acc[:h]
	}
	v := acc[0]
	if isa.wide() {
		t := a.YMM()
		a.VEXTRACTF64X4(operand.U8(1), v, t)
		a.VADDPD(t, v.AsY(), v.AsY())
	}
	t := a.XMM()
	a.VEXTRACTF128(operand.U8(1), v.AsY(), t)
	a.VADDPD(t, v.AsX(), v.AsX())
	a.VPERMILPD(operand.U8(1), v.AsX(), t)
	a.VADDPD(t, v.AsX(), v.AsX())
	a.Store(v.AsX(), a.ReturnIndex(0))
	a.ret()
}

// columns adds to acc[c] the sum over rows of x[r, c], or of x[r, c]*y[r, c], which it
// forms in float32 from the first row on. cols is a multiple of lanes, rows > 0.
func columns(a *asm, isa vectorISA, product bool) {
	name, args := "colSum"+isa.name, "func(acc *float64, x *float32, stride, rows, cols int)"
	what := "x[r*stride+c]"
	if product {
		name, args = "colDot"+isa.name, "func(acc *float64, x *float32, stride int, y *float32, strideY int, rows, cols int)"
		what = "x[r*stride+c]*y[r*strideY+c]"
	}
	a.fn(name, fmt.Sprintf("%s adds the sums over r < rows of %s to acc[c]; cols is a multiple of %d.", name, what, isa.lanes), args)
	c := &columnSummer{emitter: newEmitter(a, isa), product: product}
	c.acc, c.rows, c.cols = a.load("acc"), a.load("rows"), a.load("cols")
	c.base, c.stride = []reg.GPVirtual{a.load("x")}, []reg.GPVirtual{a.load("stride")}
	if product {
		c.base, c.stride = append(c.base, a.load("y")), append(c.stride, a.load("strideY"))
	}
	for _, s := range c.stride {
		a.SHLQ(imm(2), s)
	}
	four, one, end := a.label("four"), a.label("one"), a.label("end")
	a.Label(four)
	a.cmpJump(c.cols, imm(4*isa.lanes), a.JLT, one)
	c.strip(4)
	a.JMP(operand.LabelRef(four))
	a.Label(one)
	a.cmpJump(c.cols, imm(isa.lanes), a.JLT, end)
	c.strip(1)
	a.JMP(operand.LabelRef(one))
	a.Label(end)
	a.ret()
}

type columnSummer struct {
	*emitter
	product         bool
	acc, rows, cols reg.GPVirtual
	base, stride    []reg.GPVirtual
}

// strip sums some vectors of columns and moves on.
func (c *columnSummer) strip(vectors int) {
	sums := make([]reg.VecVirtual, vectors)
	for j := range sums {
		sums[j] = c.vector()
		if c.isa.wide() {
			c.VPXORD(sums[j], sums[j], sums[j])
		} else {
			c.VXORPS(sums[j], sums[j], sums[j])
		}
	}
	var row []reg.GPVirtual
	for _, b := range c.base {
		p := c.GP64()
		c.MOVQ(b, p)
		row = append(row, p)
	}
	left, top := c.GP64(), c.label("row")
	c.MOVQ(c.rows, left)
	c.Label(top)
	for j := range sums {
		at := mem(row[0], 4*c.isa.lanes*j)
		if !c.product {
			c.VADDPS(at, sums[j], sums[j])
			continue
		}
		v := c.vector()
		c.VMOVUPS(at, v)
		c.VFMADD231PS(mem(row[1], 4*c.isa.lanes*j), v, sums[j])
	}
	for i := range row {
		c.ADDQ(c.stride[i], row[i])
	}
	c.DECQ(left)
	c.JNZ(operand.LabelRef(top))
	for j := range sums {
		c.addTo(sums[j], 8*c.isa.lanes*j)
	}
	c.ADDQ(imm(8*c.isa.lanes*vectors), c.acc)
	for _, b := range c.base {
		c.ADDQ(imm(4*c.isa.lanes*vectors), b)
	}
	c.SUBQ(imm(c.isa.lanes*vectors), c.cols)
}

// addTo adds the lanes of v to the float64 at disp of acc.
func (c *columnSummer) addTo(v reg.VecVirtual, disp int) {
	half := c.vector()
	for h := range 2 {
		at := mem(c.acc, disp+4*c.isa.lanes*h)
		switch {
		case c.isa.wide() && h == 0:
			c.VCVTPS2PD(v.AsY(), half)
		case c.isa.wide():
			t := c.YMM()
			c.VEXTRACTF64X4(operand.U8(1), v, t)
			c.VCVTPS2PD(t, half)
		case h == 0:
			c.VCVTPS2PD(v.AsX(), half)
		default:
			t := c.XMM()
			c.VEXTRACTF128(operand.U8(1), v, t)
			c.VCVTPS2PD(t, half)
		}
		c.VADDPD(at, half, half)
		c.VMOVUPD(half, at)
	}
}
