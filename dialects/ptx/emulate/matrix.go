package emulate

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// matrices is what ldmatrix and stmatrix have in common: lanes 8i to 8i+7 give the rows of matrix i.
type matrices struct {
	address int
	offset  uint32
	data    []int
	trans   bool
}

// rows finds the rows of all matrices, noting the access.
func (m *matrices) rows(w *warp, note func(place, *actor) error) ([]place, error) {
	var rows []place
	for l := range 8 * len(m.data) {
		p, err := w.shared(uint32(w.regs[m.address][l])+m.offset, 16)
		if err == nil {
			a := w.actor(l)
			err = note(p, &a)
		}
		if err != nil {
			return nil, threadError{l, err}
		}
		rows = append(rows, p)
	}
	return rows, nil
}

// at is the row of matrix i and the byte in it of the half h of lane l's register.
func (m *matrices) at(i, l, h int) (row, byte int) {
	if m.trans {
		return 8*i + l%4*2 + h, l / 4 * 2
	}
	return 8*i + l/4, l%4*4 + 2*h
}

func (c *compiler) loadMatrix(op *ir.Op) error {
	m := &matrices{c.one(op.Operand(0)), uint32(op.Attrs().IntOr("offset", 0)), c.fresh(op.Result(0)), op.Attrs().Bool("trans")}
	c.emit(op, func(w *warp) error {
		if err := w.complete(); err != nil {
			return err
		}
		rows, err := m.rows(w, place.order)
		if err != nil {
			return err
		}
		for i, r := range m.data {
			for l := range 32 {
				row, at := m.at(i, l, 0)
				low := rows[row].load(at, 2)
				row, at = m.at(i, l, 1)
				high := rows[row].load(at, 2)
				w.regs[r][l] = low&0xFFFF | high&0xFFFF<<16 | (low|high)&undefined
			}
		}
		return nil
	})
	return nil
}

func (c *compiler) storeMatrix(op *ir.Op) error {
	m := &matrices{c.one(op.Operand(0)), uint32(op.Attrs().IntOr("offset", 0)), c.of(op.Operand(1)), op.Attrs().Bool("trans")}
	c.emit(op, func(w *warp) error {
		if err := w.complete(); err != nil {
			return err
		}
		rows, err := m.rows(w, place.write)
		if err != nil {
			return err
		}
		for i, r := range m.data {
			for l, x := range w.regs[r] {
				for h := range 2 {
					row, at := m.at(i, l, h)
					if err := rows[row].store(at, x>>(16*h)&0xFFFF|x&(undefined|inFlight), 2); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	return nil
}

// operand16 is the number that 16 bits are in a format.
func operand16(format string, x uint16) float64 {
	if format == "bf16" {
		return float64(f32(uint64(x) << 16))
	}
	return ir.F16Value(x)
}

// operand32 is the number that the matrix units take 32 bits for: the low 13 are ignored.
func operand32(x uint32) float64 { return float64(math.Float32frombits(x &^ (1<<13 - 1))) }

// accumulated is a sum as the matrix units leave it: rounded toward zero to float32. PTX promises no more than float32's
// precision; that Hopper truncates is measured (Fasi et al., PeerJ CS 2021; MMA-Sim, arXiv 2511.10909).
func accumulated(x float64) float32 {
	y := float32(x)
	if math.Abs(float64(y)) > math.Abs(x) && !math.IsInf(x, 0) {
		return math.Nextafter32(y, 0)
	}
	return y
}

func (c *compiler) mma(op *ir.Op) error {
	format := op.Attrs().Str("format")
	a, b := c.of(op.Operand(0)), c.of(op.Operand(1))
	d := c.inPlace(op.Result(0), op, 2)
	c.emit(op, func(w *warp) error {
		if err := w.complete(); err != nil {
			return err
		}
		var f fragments
		if err := f.take(w, format, a, b, d); err != nil {
			return err
		}
		for l := range 32 {
			g, t := l/4, l%4
			for i, r := range d {
				row, col := g+i/2*8, 2*t+i%2
				sum := float64(f32(w.regs[r][l]))
				for k := range f.depth {
					sum += f.a[row][k] * f.b[col][k]
				}
				w.regs[r][l] = bits32(accumulated(sum)) | w.regs[r][l]&undefined | f.tagA[row] | f.tagB[col]
			}
		}
		return nil
	})
	return nil
}

// fragments is the numbers of a warp's a [16][depth] and b [8][depth], and which rows of them hold nothing.
type fragments struct {
	a     [16][16]float64
	b     [8][16]float64
	tagA  [16]uint64
	tagB  [8]uint64
	depth int
}

// take takes them from the lanes' registers.
func (f *fragments) take(w *warp, format string, a, b, d []int) error {
	f.depth = int(ptx.Depth(format))
	tags := uint64(0)
	for l := range 32 {
		g, t := l/4, l%4
		for i, r := range a {
			row, v := g+i%2*8, w.regs[r][l]
			f.tagA[row] |= v & undefined
			tags |= v
			unpack(format, uint32(v), f.a[row][:], t, i/2)
		}
		for i, r := range b {
			v := w.regs[r][l]
			f.tagB[g] |= v & undefined
			tags |= v
			unpack(format, uint32(v), f.b[g][:], t, i)
		}
		for _, r := range d {
			tags |= w.regs[r][l]
		}
	}
	if tags&inFlight != 0 {
		return tagged(tags)
	}
	return nil
}

// unpack puts a register of a fragment where its numbers are in a row: part t of four, of half h of the row.
func unpack(format string, x uint32, row []float64, t, h int) {
	if format == "tf32" {
		row[t+4*h] = operand32(x)
		return
	}
	row[2*t+8*h], row[2*t+8*h+1] = operand16(format, uint16(x)), operand16(format, uint16(x>>16))
}

func (c *compiler) outerFMA(op *ir.Op) error {
	a, b := c.of(op.Operand(0)), c.of(op.Operand(1))
	d := c.inPlace(op.Result(0), op, 2)
	for i, r := range d {
		c.emit(op, multiplyAdd(r, a[i/len(b)], b[i%len(b)], r))
	}
	return nil
}

func (c *compiler) addScaled(op *ir.Op) error {
	x, words := c.of(op.Operand(1)), op.Operands()[4:]
	rows := [2]int{c.one(op.Operand(2)), c.one(op.Operand(3))}
	d := c.inPlace(op.Result(0), op, 0)
	factor, scaled := c.newSlots(1)[0], c.newSlots(1)[0]
	for column := range 4 * len(words) {
		byteOf := func(w, _, _ uint64) uint64 { return w >> (8 * (column % 4)) & 0xFF << 24 }
		c.emit(op, lanewise(byteOf, factor, []int{c.one(words[column/4])}, 7, undefined))
		for half, row := range rows {
			i := column/2*4 + 2*half + column%2
			c.emit(op, lanewise(single(ptx.Mul), scaled, []int{x[i], factor}, 7, undefined))
			c.emit(op, multiplyAdd(d[i], scaled, row, d[i]))
		}
	}
	return nil
}

// multiplyAdd is a step: d = a b + c in f32.
func multiplyAdd(d, a, b, c int) func(w *warp) error {
	general := lanewise(single(ptx.FMA), d, []int{a, b, c}, 7, undefined)
	return func(w *warp) error {
		if w.mask != ^uint32(0) {
			return general(w)
		}
		x, y, z, r := &w.regs[a], &w.regs[b], &w.regs[c], &w.regs[d]
		found := uint64(0)
		for l := range 32 {
			found |= x[l] | y[l] | z[l]
		}
		if found>>32 != 0 {
			return general(w)
		}
		for l := range 32 {
			r[l] = bits32(fma32(f32(x[l]), f32(y[l]), f32(z[l])))
		}
		return nil
	}
}
