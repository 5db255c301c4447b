package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fewRows is the most rows of A for which B is multiplied where it lies, without panels: packing would take as long.
const fewRows = 4

// fewUnit writes the kernels for few rows, which add in the order of gemmUnit's:
//
//	c[i, j] (+)= sum over p of a[p*rows + i] * b[j, p]    across: rows of B run along p, 2 vectors of columns, k a multiple of 4
//	c[i, j] (+)= sum over p of a[p*rows + i] * b[p, j]    wide: rows of B run along j, as many columns as there are registers for
func fewUnit(a *asm) {
	for _, t := range []tileISA{tile512, tile2} {
		for rows := 1; rows <= fewRows; rows++ {
			across(a, t, rows)
		}
		for rows := 1; rows <= wideRows; rows++ {
			wide(a, t, rows)
		}
	}
}

// A fewKernel is one of them.
type fewKernel struct {
	*asm
	t       tileISA
	rows    int
	vectors int
	k, a, b reg.GPVirtual
}

func newFew(a *asm, t tileISA, name, doc, args string, rows, vectors int) *fewKernel {
	name = fmt.Sprintf("gemm%s%dx%d%s", name, rows, vectors*t.lanes, t.name)
	a.fn(name, fmt.Sprintf("%s multiplies a %d x k panel by %d columns of B %s.", name, rows, vectors*t.lanes, doc),
		"func("+args+")")
	f := &fewKernel{asm: a, t: t, rows: rows, vectors: vectors, k: a.load("k"), a: a.load("a"), b: a.load("b")}
	for i := range rows * vectors {
		f.zero(f.acc(i/vectors, i%vectors))
	}
	return f
}

func (f *fewKernel) zero(v reg.VecPhysical) {
	if f.t.lanes == 16 {
		f.VPXORD(v, v, v)
	} else {
		f.VPXOR(v, v, v)
	}
}

func (f *fewKernel) acc(i, j int) reg.VecPhysical { return f.t.v[f.vectors*i+j] }

// temp is a register that holds no sum.
func (f *fewKernel) temp(i int) reg.VecPhysical { return f.t.v[f.rows*f.vectors+i] }

// store writes or adds to the rows of C.
func (f *fewKernel) store() {
	c, ldc, acc, set := f.load("c"), f.load("ldc"), f.GP64(), f.label("set")
	f.SHLQ(imm(2), ldc)
	f.Load(f.Param("acc"), acc.As8())
	f.TESTB(acc.As8(), acc.As8())
	f.JZ(operand.LabelRef(set))
	p := f.GP64()
	f.MOVQ(c, p)
	for i := range f.rows {
		for j := range f.vectors {
			f.VADDPS(mem(p, 4*f.t.lanes*j), f.acc(i, j), f.acc(i, j))
		}
		f.ADDQ(ldc, p)
	}
	f.Label(set)
	for i := range f.rows {
		for j := range f.vectors {
			f.VMOVUPS(f.acc(i, j), mem(c, 4*f.t.lanes*j))
		}
		f.ADDQ(ldc, c)
	}
	f.ret()
}

// while counts n down by some steps a turn as long as there are so many.
func (f *fewKernel) while(steps int, turn func()) {
	top, end := f.label("loop"), f.label("end")
	f.Label(top)
	f.cmpJump(f.k, imm(steps), f.JLT, end)
	turn()
	f.ADDQ(imm(4*f.rows*steps), f.a)
	f.SUBQ(imm(steps), f.k)
	f.JMP(operand.LabelRef(top))
	f.Label(end)
}

// across transposes in registers: four steps of p at a time, for which four vectors take 4 numbers of each row. It walks along so many
// rows at once that the processor doesn't see where it goes: the lines of the rows that follow are asked for in the order of memory,
// as many a turn as are read, so that they are in the second-level cache when their turn comes.
func across(a *asm, t tileISA, rows int) {
	f := newFew(a, t, "Across", "whose rows run along k, of which 4 divides the number",
		"k int, a, b *float32, ldb int, ahead, c *float32, ldc int, acc bool", rows, 2)
	x := &crossing{fewKernel: f, ldb: a.load("ldb"), ldb3: a.GP64()}
	a.SHLQ(imm(2), x.ldb)
	a.LEAQ(memIdx(x.ldb, x.ldb, 2, 0), x.ldb3)
	x.row = []reg.GPVirtual{f.b}
	for i := 4; i < 2*t.lanes; i += 4 {
		p := a.GP64()
		a.LEAQ(memIdx(x.row[len(x.row)-1], x.ldb, 4, 0), p)
		x.row = append(x.row, p)
	}
	if t.lanes == 16 {
		for lane := range 3 {
			bits, k := a.GP64(), a.K()
			a.MOVQ(operand.I32(int32(0xf0<<(4*lane))), bits)
			a.KMOVW(bits.As32(), k)
			x.lane = append(x.lane, k)
		}
	}
	ahead := a.load("ahead")
	for _, steps := range []int{16, 4} {
		f.while(steps, func() {
			lines := 2 * t.lanes * steps / 16
			for s := 0; s < steps; s += 4 {
				for l := lines * s / steps; l < lines*(s+4)/steps; l++ {
					a.PREFETCHT1(mem(ahead, 64*l))
				}
				x.four(s)
			}
			a.ADDQ(operand.I32(int32(64*lines)), ahead)
			for _, p := range x.row {
				a.ADDQ(imm(4*steps), p)
			}
		})
	}
	f.store()
}

type crossing struct {
	*fewKernel
	ldb, ldb3 reg.GPVirtual
	row       []reg.GPVirtual // pointers to every fourth row of B
	lane      []reg.Register  // AVX-512: masks of the second to the fourth lane
}

// four does steps s to s+3 of a turn.
func (x *crossing) four(s int) {
	for v := range 2 {
		columns := x.columns(v, s)
		for p, b := range columns {
			for i := range x.rows {
				at := mem(x.a, 4*(x.rows*(s+p)+i))
				if x.t.lanes == 16 {
					x.VFMADD231PS_BCST(at, b, x.acc(i, v))
					continue
				}
				one := x.temp(4 + i%4)
				x.VBROADCASTSS(at, one)
				x.VFMADD231PS(one, b, x.acc(i, v))
			}
		}
	}
}

// columns are four columns of a vector's rows. Vector q takes rows q, q+4, ... of them, a lane each.
func (x *crossing) columns(v, s int) []reg.VecPhysical {
	var r, t [4]reg.VecPhysical
	for q := range 4 {
		r[q], t[q] = x.temp(q), x.temp(4+q)
		x.VMOVUPS(x.at(v*x.t.lanes/4, q, s), r[q].AsX())
		for lane := 1; lane < x.t.lanes/4; lane++ {
			at := x.at(v*x.t.lanes/4+lane, q, s)
			if x.t.lanes == 16 {
				x.VBROADCASTF32X4(at, x.lane[lane-1], r[q])
			} else {
				x.VINSERTF128(imm(1), at, r[q], r[q])
			}
		}
	}
	x.VUNPCKLPS(r[1], r[0], t[0])
	x.VUNPCKHPS(r[1], r[0], t[1])
	x.VUNPCKLPS(r[3], r[2], t[2])
	x.VUNPCKHPS(r[3], r[2], t[3])
	x.VUNPCKLPD(t[2], t[0], r[0])
	x.VUNPCKHPD(t[2], t[0], r[1])
	x.VUNPCKLPD(t[3], t[1], r[2])
	x.VUNPCKHPD(t[3], t[1], r[3])
	return r[:]
}

// at is where row 4*group + q of B is, at step s.
func (x *crossing) at(group, q, s int) operand.Mem {
	switch p := x.row[group]; q {
	case 0:
		return mem(p, 4*s)
	case 3:
		return memIdx(p, x.ldb3, 1, 4*s)
	default:
		return memIdx(p, x.ldb, uint8(q), 4*s)
	}
}

// wideRows is the most rows of A for which more columns than a tile's find room in registers.
const wideRows = 3

// wideVectors is the number of vectors of columns of a wide kernel.
func wideVectors(t tileISA, rows int) int {
	if t.lanes == 16 || rows == 1 {
		return 8
	}
	return 4
}

// wide goes along rows of B, so that it reads as many lines in turn as there are registers for.
func wide(a *asm, t tileISA, rows int) {
	f := newFew(a, t, "Wide", "whose rows run along them", "k int, a, b *float32, ldb int, c *float32, ldc int, acc bool", rows, wideVectors(t, rows))
	ldb := a.load("ldb")
	a.SHLQ(imm(2), ldb)
	f.while(1, func() {
		for i := range rows {
			a.VBROADCASTSS(mem(f.a, 4*i), f.temp(i))
		}
		for j := range f.vectors {
			b := operand.Op(mem(f.b, 4*t.lanes*j))
			if rows > 1 {
				a.VMOVUPS(b, f.temp(rows))
				b = f.temp(rows)
			}
			for i := range rows {
				a.VFMADD231PS(b, f.temp(i), f.acc(i, j))
			}
		}
		a.ADDQ(ldb, f.b)
	})
	f.store()
}
