package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packUnit writes the routines that bring operands into panels, which are
// [k][width]: transposing ones for operands whose rows run along k, copying ones
// for operands whose rows run across it.
func packUnit(a *asm) {
	laneMasks(a)
	for _, t := range []tileISA{tile512, tile2} {
		transpose(a, t)
		copyPanels(a, t, 1)
		copyPanels(a, t, 2)
	}
}

// transpose writes dst[p*ldd + i] = src[i*lds + p] for i < rows <= lanes and p < k.
func transpose(a *asm, t tileISA) {
	name := "transpose" + t.name
	a.fn(name, fmt.Sprintf("%s writes dst[p*ldd+i] = src[i*lds+p] for i < rows <= %d and p < k.", name, t.lanes),
		"func(dst *float32, ldd int, src *float32, lds, rows, k int)")
	x := &transposer{asm: a, t: t}
	x.dst, x.ldd, x.src, x.lds = a.load("dst"), a.load("ldd"), a.load("src"), a.load("lds")
	x.rows, x.k = a.load("rows"), a.load("k")
	a.SHLQ(imm(2), x.ldd)
	a.SHLQ(imm(2), x.lds)
	x.rowMask = x.maskOf(x.rows, 15)
	full, tail, end := a.label("full"), a.label("tail"), a.label("end")
	if t.lanes == 8 {
		x.overTiles()
	}
	a.Label(full)
	a.cmpJump(x.k, imm(t.lanes), a.JLT, tail)
	x.tile(false, false)
	x.nextTile(full)
	a.Label(tail)
	a.TESTQ(x.k, x.k)
	a.JZ(operand.LabelRef(end))
	x.tile(true, false)
	a.Label(end)
	a.ret()
}

type transposer struct {
	*asm
	t                           tileISA
	dst, ldd, src, lds, rows, k reg.GPVirtual
	rowMask, colMask            reg.Register
}

func (x *transposer) nextTile(loop string) {
	x.ADDQ(imm(4*x.t.lanes), x.src)
	x.SUBQ(imm(x.t.lanes), x.k)
	x.JMP(operand.LabelRef(loop))
}

// overTiles does tiles whose columns may be stored in whole vectors, which masked stores are
// slow beside: those with all rows; and, where columns follow each other and have 4 rows or
// more, all but what the last two columns need, since what reaches into the next columns
// is overwritten.
func (x *transposer) overTiles() {
	need, ldd := x.GP64(), x.GP64()
	loop, done := x.label("over"), x.label("overDone")
	x.MOVQ(operand.I32(8), need)
	x.cmpJump(x.rows, imm(8), x.JEQ, loop)
	x.MOVQ(operand.I32(10), need)
	x.MOVQ(x.rows, ldd)
	x.SHLQ(imm(2), ldd)
	x.cmpJump(ldd, x.ldd, x.JNE, done)
	x.cmpJump(x.rows, imm(4), x.JLT, done)
	x.Label(loop)
	x.cmpJump(x.k, need, x.JLT, done)
	x.tile(false, true)
	x.nextTile(loop)
	x.Label(done)
}

// maskOf makes the mask of the first n lanes; on AVX2 in register v.
func (x *transposer) maskOf(n reg.GPVirtual, v int) reg.Register {
	if x.t.lanes == 16 {
		return x.kmask(n)
	}
	x.vmask(n, x.t.v[v])
	return x.t.v[v]
}

// kmask makes an opmask of the first n lanes, n <= 16.
func (a *asm) kmask(n reg.GPVirtual) reg.Register {
	bits, k := a.GP64(), a.K()
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	a.KMOVW(bits.As32(), k)
	return k
}

// vmask fills v with the mask of the first n lanes, n <= 8.
func (a *asm) vmask(n reg.GPVirtual, v reg.Register) {
	table, neg := a.GP64(), a.GP64()
	a.MOVQ(n, neg)
	a.NEGQ(neg)
	a.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol("lanes"), 0), table)
	a.VMOVDQU(memIdx(table, neg, 4, 32), v)
}

// tile transposes lanes rows by lanes columns. Rows that don't exist are not
// loaded: what the registers hold then goes to lanes that the mask drops, or that
// the next column overwrites.
func (x *transposer) tile(tail, over bool) {
	n := x.t.lanes
	if tail {
		x.colMask = x.maskOf(x.k, 14)
	}
	p, loaded := x.GP64(), x.label("loaded")
	x.MOVQ(x.src, p)
	for i := range n {
		if i > 0 {
			x.cmpJump(x.rows, imm(i), x.JLE, loaded)
			x.ADDQ(x.lds, p)
		}
		switch {
		case tail && n == 16:
			x.VMOVUPS_Z(mem(p, 0), x.colMask, x.t.v[i])
		case tail:
			x.VMASKMOVPS(mem(p, 0), x.colMask, x.t.v[i])
		default:
			x.VMOVUPS(mem(p, 0), x.t.v[i])
		}
	}
	x.Label(loaded)
	out := x.shuffle16
	if n == 8 {
		out = x.shuffle8
	}
	stored := x.label("stored")
	for c, v := range out() {
		if tail && c > 0 {
			x.cmpJump(x.k, imm(c), x.JLE, stored)
		}
		switch {
		case over:
			x.VMOVUPS(v, mem(x.dst, 0))
		case n == 16:
			x.VMOVUPS(v, x.rowMask, mem(x.dst, 0))
		default:
			x.VMASKMOVPS(v, x.rowMask, mem(x.dst, 0))
		}
		x.ADDQ(x.ldd, x.dst)
	}
	x.Label(stored)
}

// shuffle16 transposes Z0..Z15, through Z16..Z31, and returns the columns in order.
func (x *transposer) shuffle16() []reg.VecPhysical {
	r, s := x.t.v[:16], x.t.v[16:]
	for i := 0; i < 16; i += 2 { // pairs of rows
		x.VUNPCKLPS(r[i+1], r[i], s[i])
		x.VUNPCKHPS(r[i+1], r[i], s[i+1])
	}
	for i := 0; i < 16; i += 4 { // fours of rows: r[i+c] holds columns c, c+4, c+8, c+12
		x.VUNPCKLPD(s[i+2], s[i], r[i])
		x.VUNPCKHPD(s[i+2], s[i], r[i+1])
		x.VUNPCKLPD(s[i+3], s[i+1], r[i+2])
		x.VUNPCKHPD(s[i+3], s[i+1], r[i+3])
	}
	for c := range 4 { // eights of rows
		for h := 0; h < 2; h++ {
			lo, hi := r[8*h+c], r[8*h+4+c]
			x.VSHUFF32X4(operand.U8(0x88), hi, lo, s[8*h+c])   // columns c, c+8
			x.VSHUFF32X4(operand.U8(0xdd), hi, lo, s[8*h+4+c]) // columns c+4, c+12
		}
	}
	out := make([]reg.VecPhysical, 16)
	for c := range 4 {
		for q := range 2 { // columns c+4q and c+4q+8
			lo, hi := s[4*q+c], s[8+4*q+c]
			x.VSHUFF32X4(operand.U8(0x88), hi, lo, r[4*q+c])
			x.VSHUFF32X4(operand.U8(0xdd), hi, lo, r[8+4*q+c])
			out[4*q+c], out[4*q+c+8] = r[4*q+c], r[8+4*q+c]
		}
	}
	return out
}

// shuffle8 transposes Y0..Y7 through Y8..Y13 and itself.
func (x *transposer) shuffle8() []reg.VecPhysical {
	r := x.t.v
	fours := func(r0, r1, r2, r3, t0, t1 reg.VecPhysical) { // in place; r_c holds columns c and c+4
		x.VUNPCKLPS(r1, r0, t0)
		x.VUNPCKHPS(r1, r0, t1)
		x.VUNPCKLPS(r3, r2, r0)
		x.VUNPCKHPS(r3, r2, r2)
		x.VUNPCKHPD(r0, t0, r1)
		x.VUNPCKLPD(r0, t0, r0)
		x.VUNPCKHPD(r2, t1, r3)
		x.VUNPCKLPD(r2, t1, r2)
	}
	fours(r[0], r[1], r[2], r[3], r[8], r[9])
	fours(r[4], r[5], r[6], r[7], r[8], r[9])
	for c := range 4 {
		x.VPERM2F128(operand.U8(0x20), r[4+c], r[c], r[8+c])
		x.VPERM2F128(operand.U8(0x31), r[4+c], r[c], r[4+c])
	}
	return append(append([]reg.VecPhysical{}, r[8:12]...), r[4:8]...)
}

// copyPanels writes dst[q*stride + p*pw + c] = src[p*lds + q*pw + c] for p < k,
// c < pw and q*pw + c < width: panels of pw columns, which is at most vectors
// vectors, and is just that when vectors is two.
func copyPanels(a *asm, t tileISA, vectors int) {
	name := fmt.Sprintf("copyPanels%d%s", vectors, t.name)
	a.fn(name, fmt.Sprintf("%s writes dst[q*stride+p*pw+c] = src[p*lds+q*pw+c] for p < k, c < pw <= %d, q*pw+c < width.",
		name, vectors*t.lanes), "func(dst *float32, stride int, src *float32, lds, k, width, pw int)")
	c := &panelCopier{asm: a, t: t, vectors: vectors}
	c.dst, c.stride, c.src, c.lds = a.load("dst"), a.load("stride"), a.load("src"), a.load("lds")
	k := a.load("k")
	c.width, c.pw = a.load("width"), a.load("pw")
	a.SHLQ(imm(2), c.stride)
	a.SHLQ(imm(2), c.lds)
	c.full = c.masks(c.pw, 2)
	left := a.GP64() // width of the last panel, 1..pw
	c.remainder(c.width, c.pw, left)
	c.part = c.masks(left, 4)
	c.step = a.GP64()
	a.MOVQ(c.pw, c.step)
	a.SHLQ(imm(2), c.step)
	if vectors == 1 && t.lanes == 8 {
		// Masked stores are slow here. Rows but the last may be stored in whole vectors, which
		// reach into the next rows and are overwritten, and not beyond them if pw >= 4.
		masked := a.label("masked")
		a.cmpJump(c.pw, imm(4), a.JLT, masked)
		a.DECQ(k)
		c.rows(k, true)
		a.XORQ(k, k)
		a.INCQ(k)
		a.Label(masked)
	}
	c.rows(k, false)
	a.ret()
}

type panelCopier struct {
	*asm
	t                                      tileISA
	vectors                                int
	full, part                             []reg.Register
	dst, stride, src, lds, width, pw, step reg.GPVirtual
}

// rows copies n rows, each to all panels.
func (c *panelCopier) rows(n reg.GPVirtual, over bool) {
	row, panel, more, end := c.label("row"), c.label("panel"), c.label("more"), c.label("end")
	from, to, w := c.GP64(), c.GP64(), c.GP64()
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef(end))
	c.Label(row)
	c.MOVQ(c.src, from)
	c.MOVQ(c.dst, to)
	c.MOVQ(c.width, w)
	c.JMP(operand.LabelRef(more))
	c.Label(panel)
	c.copy(from, to, c.full, over || c.vectors == 2)
	c.ADDQ(c.step, from)
	c.ADDQ(c.stride, to)
	c.SUBQ(c.pw, w)
	c.Label(more)
	c.cmpJump(w, c.pw, c.JGT, panel)
	c.copy(from, to, c.part, over)
	c.ADDQ(c.lds, c.src)
	c.ADDQ(c.step, c.dst)
	c.DECQ(n)
	c.JNZ(operand.LabelRef(row))
	c.Label(end)
}

// remainder sets left to width - pw*(panels-1).
func (c *panelCopier) remainder(width, pw, left reg.GPVirtual) {
	loop, done := c.label("sub"), c.label("subbed")
	c.MOVQ(width, left)
	c.Label(loop)
	c.cmpJump(left, pw, c.JLE, done)
	c.SUBQ(pw, left)
	c.JMP(operand.LabelRef(loop))
	c.Label(done)
}

// masks makes the masks of the first n columns; on AVX2 in registers from v on.
func (c *panelCopier) masks(n reg.GPVirtual, v int) []reg.Register {
	var out []reg.Register
	for j := range c.vectors {
		part, zero, lanes := c.GP64(), c.GP64(), c.GP64()
		c.MOVQ(n, part)
		c.SUBQ(imm(j*c.t.lanes), part)
		c.XORQ(zero, zero)
		c.CMPQ(part, zero)
		c.CMOVQLT(zero, part)
		c.MOVQ(operand.I32(int32(c.t.lanes)), lanes)
		c.CMPQ(part, lanes)
		c.CMOVQGT(lanes, part)
		if c.t.lanes == 16 {
			out = append(out, c.kmask(part))
		} else {
			c.vmask(part, c.t.v[v+j])
			out = append(out, c.t.v[v+j])
		}
	}
	return out
}

// copy moves one row of a panel: the lanes of the masks, but stores whole vectors if
// over is set.
func (c *panelCopier) copy(from, to reg.GPVirtual, masks []reg.Register, over bool) {
	c.PREFETCHT0(memIdx(from, c.lds, 8, 0)) // rows are pages apart, where the processor doesn't look ahead by itself
	if c.vectors == 2 && c.t.lanes == 16 {
		c.PREFETCHT0(memIdx(from, c.lds, 8, 64))
	}
	for j, m := range masks {
		v, src, dst := c.t.v[j], mem(from, 4*c.t.lanes*j), mem(to, 4*c.t.lanes*j)
		if c.t.lanes == 16 {
			c.VMOVUPS_Z(src, m, v)
		} else {
			c.VMASKMOVPS(src, m, v)
		}
		switch {
		case over:
			c.VMOVUPS(v, dst)
		case c.t.lanes == 16:
			c.VMOVUPS(v, m, dst)
		default:
			c.VMASKMOVPS(v, m, dst)
		}
	}
}
