package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A tileISA describes the register tile of one instruction set: rows times two
// vectors. Each row and vector has one accumulator; rows are chosen so that the
// accumulators, the vectors of B and what a broadcast needs fill the registers.
type tileISA struct {
	name  string
	rows  int
	lanes int
	v     []reg.VecPhysical
}

func (t tileISA) acc(i, j int) reg.VecPhysical { return t.v[2*i+j] }

var (
	tile512 = tileISA{"AVX512", 14, 16, physical(reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19,
		reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31)}
	tile2 = tileISA{"AVX2", 6, 8, physical(reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15)}
)

func physical(v ...reg.VecPhysical) []reg.VecPhysical { return v }

// A form of micro-kernel says where its operands lie: in panels ("packed"); in
// memory as they are ("direct"); A in a panel and B in memory, which is packed on
// the way for the kernels that follow ("packing"): the loads and stores fit between
// the multiplications, and cost less than packing by itself.
type form int

const (
	packed form = iota
	direct
	packing
)

func (f form) String() string { return [...]string{"Packed", "Direct", "Packing"}[f] }

func (f form) args() string {
	return [...]string{
		"k int, a, b, c *float32, ldc, n int, acc bool",
		"k int, a *float32, rs, cs int, b *float32, ldb int, c *float32, ldc, n int, acc bool",
		"k int, a, b *float32, ldb int, to, c *float32, ldc, n int, acc bool",
	}[f]
}

// gemmUnit writes the micro-kernels: for each number of rows one of each form. All compute
//
//	c[i, j] (+)= sum over p of a[i, p] * b[p, j]    i < rows, j < n
//
// by fused multiply-adds in the order of p, starting from zero, and then one
// addition to c if acc is set.
func gemmUnit(a *asm) {
	laneMasks(a)
	for _, t := range []tileISA{tile512, tile2} {
		for rows := 1; rows <= t.rows; rows++ {
			for _, f := range []form{packed, direct, packing} {
				microKernel(a, t, rows, f)
			}
		}
	}
}

// laneMasks is eight set lanes followed by eight clear ones: the mask of the
// first n lanes starts 8-n lanes into it.
func laneMasks(a *asm) {
	a.StaticGlobal("lanes")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		m := operand.U32(0)
		if i < 8 {
			m = ^m
		}
		a.AppendDatum(m)
	}
}

type micro struct {
	*asm
	t    tileISA
	rows int
	form form

	k, a, b, c, ldc, n reg.GPVirtual
	row                []reg.GPVirtual // direct: pointers to rows 0, 5 and 10 of A
	rs, rs3, cs        reg.GPVirtual   // direct: byte strides
	ldb                reg.GPVirtual   // direct and packing: byte stride
	to                 reg.GPVirtual   // packing: the panel
	acc                reg.GPVirtual
	mask               [2]reg.Register // the columns in use, of either vector
}

func microKernel(a *asm, t tileISA, rows int, f form) {
	m := &micro{asm: a, t: t, rows: rows, form: f}
	name := fmt.Sprintf("gemm%s%dx%d%s", f, rows, 2*t.lanes, t.name)
	doc := fmt.Sprintf("%s multiplies a %d x k panel by a k x %d panel.", name, rows, 2*t.lanes)
	a.fn(name, doc, "func("+f.args()+")")
	m.loadArgs()
	m.prefetchC()
	for i := range 2 * rows {
		m.zero(t.v[i])
	}
	m.masks()
	if f == direct && t.lanes == 8 {
		// Masked loads cost a third operation on AVX2, so the full width has its own loop.
		full, store := a.label("full"), a.label("store")
		a.cmpJump(m.n, imm(2*t.lanes), a.JGE, full)
		m.loop(true)
		a.JMP(operand.LabelRef(store))
		a.Label(full)
		m.loop(false)
		a.Label(store)
	} else {
		m.loop(f == direct)
	}
	m.storeC()
}

func (m *micro) loadArgs() {
	m.k, m.a, m.b, m.c = m.load("k"), m.load("a"), m.load("b"), m.load("c")
	m.ldc, m.n = m.load("ldc"), m.load("n")
	m.SHLQ(imm(2), m.ldc)
	if m.form == packed {
		return
	}
	m.ldb = m.load("ldb")
	m.SHLQ(imm(2), m.ldb)
	if m.form == packing {
		m.to = m.load("to")
		return
	}
	m.rs, m.cs = m.load("rs"), m.load("cs")
	m.SHLQ(imm(2), m.rs)
	m.SHLQ(imm(2), m.cs)
	m.rs3 = m.GP64()
	m.LEAQ(memIdx(m.rs, m.rs, 2, 0), m.rs3)
	m.row = []reg.GPVirtual{m.a}
	for i := 5; i < m.rows; i += 5 { // row i = row i-5 + 5 rows
		prev := m.row[len(m.row)-1]
		p := m.GP64()
		m.LEAQ(memIdx(prev, m.rs, 4, 0), p)
		m.ADDQ(m.rs, p)
		m.row = append(m.row, p)
	}
}

// prefetchC asks for the lines of C that the end of the kernel will touch.
func (m *micro) prefetchC() {
	p := m.GP64()
	m.MOVQ(m.c, p)
	for i := range m.rows {
		m.PREFETCHT0(mem(p, 0))
		if m.t.lanes == 16 {
			m.PREFETCHT0(mem(p, 64))
		}
		if i < m.rows-1 {
			m.ADDQ(m.ldc, p)
		}
	}
}

func (m *micro) zero(v reg.VecPhysical) {
	if m.t.lanes == 16 {
		m.VPXORD(v, v, v)
	} else {
		m.VPXOR(v, v, v)
	}
}

// masks sets m.mask from n for AVX-512. AVX2 loads its masks where a register
// is free, see mask2.
func (m *micro) masks() {
	if m.t.lanes != 16 {
		return
	}
	bits, k0, k1 := m.GP64(), m.K(), m.K()
	m.MOVQ(operand.I32(-1), bits)
	m.BZHIQ(m.n, bits, bits)
	m.KMOVW(bits.As32(), k0)
	m.SHRQ(imm(16), bits)
	m.KMOVW(bits.As32(), k1)
	m.mask = [2]reg.Register{k0, k1}
}

// mask2 loads the AVX2 mask of the columns in use of vector j.
func (m *micro) mask2(j int, v reg.VecPhysical) {
	n, table := m.GP64(), m.GP64()
	lo, hi := m.GP64(), m.GP64()
	m.MOVQ(m.n, n)
	m.SUBQ(imm(8*j), n)
	m.XORQ(lo, lo)
	m.MOVQ(operand.I32(8), hi)
	m.CMPQ(n, lo)
	m.CMOVQLT(lo, n)
	m.CMPQ(n, hi)
	m.CMOVQGT(hi, n)
	m.NEGQ(n)
	m.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol("lanes"), 0), table)
	m.VMOVDQU(memIdx(table, n, 4, 32), v)
}

// loop runs over p: four steps a turn where A is packed, one on direct operands,
// whose steps are longer.
func (m *micro) loop(masked bool) {
	end := m.label("end")
	if m.form != direct {
		turns := m.GP64()
		m.MOVQ(m.k, turns)
		m.SHRQ(imm(2), turns)
		m.ANDQ(imm(3), m.k)
		rest := m.label("rest")
		m.turns(turns, 4, masked, rest)
		m.Label(rest)
	}
	m.turns(m.k, 1, masked, end)
	m.Label(end)
}

// turns counts n down to zero, doing steps of the loop each time.
func (m *micro) turns(n reg.GPVirtual, steps int, masked bool, end string) {
	m.TESTQ(n, n)
	m.JZ(operand.LabelRef(end))
	top := m.label("loop")
	m.Label(top)
	for s := range steps {
		m.step(s, masked)
	}
	m.advance(steps)
	m.DECQ(n)
	m.JNZ(operand.LabelRef(top))
}

func (m *micro) advance(steps int) {
	switch m.form {
	case direct: // step does it
	case packing: // and moves b
		m.ADDQ(imm(4*m.rows*steps), m.a)
		m.ADDQ(imm(8*m.t.lanes*steps), m.to)
	case packed:
		m.ADDQ(imm(4*m.rows*steps), m.a)
		m.ADDQ(imm(8*m.t.lanes*steps), m.b)
	}
}

// step is one p: a row of B in two vectors, and each a[i, p] times both.
func (m *micro) step(s int, masked bool) {
	t := m.t
	disp := 8 * t.lanes * s
	if m.form != packed {
		disp = 0
	}
	// AVX-512 alternates between two pairs of vectors for B.
	b := t.v[2*t.rows : 2*t.rows+2]
	if t.lanes == 16 {
		b = t.v[28+2*(s&1) : 30+2*(s&1)]
	}
	for j := range 2 {
		m.loadB(j, mem(m.b, disp+4*t.lanes*j), b[j], masked)
	}
	if m.form == packing {
		m.packB(s, b)
	}
	for i := range m.rows {
		at := mem(m.a, 4*(m.rows*s+i))
		if m.form == direct {
			at = m.rowAt(i)
		}
		if t.lanes == 16 {
			m.VFMADD231PS_BCST(at, b[0], t.acc(i, 0))
			m.VFMADD231PS_BCST(at, b[1], t.acc(i, 1))
			continue
		}
		x := t.v[14+i&1]
		m.VBROADCASTSS(at, x)
		m.VFMADD231PS(x, b[0], t.acc(i, 0))
		m.VFMADD231PS(x, b[1], t.acc(i, 1))
	}
	if m.form == direct {
		m.ADDQ(m.ldb, m.b)
		for _, p := range m.row {
			m.ADDQ(m.cs, p)
		}
	}
}

// packB stores the row of B of step s of a turn in the panel, asks for a row further on, and goes to the next.
func (m *micro) packB(s int, b []reg.VecPhysical) {
	for j := range 2 {
		m.VMOVUPS(b[j], mem(m.to, 4*m.t.lanes*(2*s+j)))
	}
	m.PREFETCHT0(memIdx(m.b, m.ldb, 8, 0))
	if m.t.lanes == 16 {
		m.PREFETCHT0(memIdx(m.b, m.ldb, 8, 64))
	}
	m.ADDQ(m.ldb, m.b)
}

func (m *micro) loadB(j int, at operand.Mem, v reg.VecPhysical, masked bool) {
	switch {
	case !masked:
		m.VMOVUPS(at, v)
	case m.t.lanes == 16:
		m.VMOVUPS_Z(at, m.mask[j], v)
	default:
		x := m.t.v[14]
		m.mask2(j, x)
		m.VMASKMOVPS(at, x, v)
	}
}

// rowAt addresses row i of A from the pointers to rows 0, 5 and 10.
func (m *micro) rowAt(i int) operand.Mem {
	switch p := m.row[i/5]; i % 5 {
	case 0:
		return mem(p, 0)
	case 3:
		return memIdx(p, m.rs3, 1, 0)
	default:
		return memIdx(p, m.rs, uint8(i%5), 0)
	}
}

// storeC writes the tile, in one of four ways: all columns or some, adding or not.
func (m *micro) storeC() {
	m.acc = m.GP64()
	m.Load(m.Param("acc"), m.acc.As8())
	partial, full := m.label("partial"), m.label("full")
	m.cmpJump(m.n, imm(2*m.t.lanes), m.JLT, partial)
	m.TESTB(m.acc.As8(), m.acc.As8())
	m.JZ(operand.LabelRef(full))
	m.rowsOfC(false, true)
	m.Label(full)
	m.rowsOfC(false, false)
	m.Label(partial)
	overwrite := m.label("overwrite")
	if m.t.lanes == 8 {
		m.mask2(0, m.t.v[12])
		m.mask2(1, m.t.v[13])
	}
	m.TESTB(m.acc.As8(), m.acc.As8())
	m.JZ(operand.LabelRef(overwrite))
	m.rowsOfC(true, true)
	m.Label(overwrite)
	m.rowsOfC(true, false)
}

func (m *micro) rowsOfC(masked, add bool) {
	for i := range m.rows {
		for j := range 2 {
			at, v := mem(m.c, 4*m.t.lanes*j), m.t.acc(i, j)
			switch {
			case m.t.lanes == 16 && masked:
				if add {
					m.VADDPS(at, v, m.mask[j], v)
				}
				m.VMOVUPS(v, m.mask[j], at)
			case masked:
				if add {
					m.VMASKMOVPS(at, m.t.v[12+j], m.t.v[14])
					m.VADDPS(m.t.v[14], v, v)
				}
				m.VMASKMOVPS(v, m.t.v[12+j], at)
			default:
				if add {
					m.VADDPS(at, v, v)
				}
				m.VMOVUPS(v, at)
			}
		}
		if i < m.rows-1 {
			m.ADDQ(m.ldc, m.c)
		}
	}
	m.ret()
}
