package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// panel is rows of features in shared memory. A row takes a power of two of bytes, at least 64; its 16-byte columns are
// exclusive-ored with the row, so that eight rows' equal columns, and eight columns of a row, lie in different banks.
type panel struct{ rows, features, size int }

// width is the bytes of a row.
func (p panel) width() int {
	w := 64
	for w < p.features*p.size {
		w *= 2
	}
	return w
}

// bytes is the size of the panel.
func (p panel) bytes() int { return p.rows * p.width() }

// turn is what a row's columns are exclusive-ored with.
func (p panel) turn(b *ptx.Builder, row *ir.Value) *ir.Value {
	if p.width() == 64 { // two rows share the 128 bytes of all banks
		return b.Binary(ptx.And, b.DivI(row, 2), b.I32(3))
	}
	return b.Binary(ptx.And, row, b.I32(7))
}

// place is where a 16-byte column of a row lies.
func (p panel) place(b *ptx.Builder, row, column *ir.Value) *ir.Value {
	return b.Add(b.MulI(row, p.width()), b.MulI(b.Binary(ptx.Xor, column, p.turn(b, row)), 16))
}

// steps is how many matrix instructions' depths a row of features has: 32 bytes each.
func (p panel) steps() int { return p.features * p.size / 32 }

// fragment is an operand of a matrix instruction in registers: one for each plane, the largest part first.
type fragment []*ir.Value

// reads is how a warp reads fragments of panels. Offsets that depend on the lane are computed once. They are relative to a
// row that is a multiple of 8, so that the swizzle depends on the lane alone.
type reads struct {
	w       *attention
	panel   panel
	rowsA   []*ir.Value // by step modulo 4: rows of A
	rowsB   []*ir.Value // rows of B
	columns []*ir.Value // 16-bit: by 16 features modulo 64, transposed. 32-bit: by 8 features modulo 32
	odd     *ir.Value   // 32-bit: the distance from an even row's place to the next row's
}

func newReads(w *attention, p panel) *reads {
	r := &reads{w: w, panel: p}
	b := w.b
	low, high := b.Binary(ptx.And, b.DivI(w.lane, 8), b.I32(1)), b.DivI(w.lane, 16)
	eight := b.Binary(ptx.And, w.lane, b.I32(7))
	around := min(p.width()/32, 4)
	for s := range around {
		// A: lanes 8 to 15 name rows 8 to 15, lanes 16 on the second 16 bytes. B: the other way around.
		r.rowsA = append(r.rowsA, p.place(b, b.Add(b.MulI(low, 8), eight), b.AddI(high, 2*s)))
		r.rowsB = append(r.rowsB, p.place(b, b.Add(b.MulI(high, 8), eight), b.AddI(low, 2*s)))
		if p.size == 2 {
			r.columns = append(r.columns, p.place(b, b.Add(b.MulI(low, 8), eight), b.AddI(high, 2*s)))
		}
	}
	if p.size == 4 {
		// Rows 2*quad and the next, feature `group` of 8: what a thread holds of a product is columns 2*quad and the next.
		row, word := b.MulI(w.quad, 2), b.MulI(b.Binary(ptx.And, w.group, b.I32(3)), 4)
		for s := range around {
			column := b.AddI(b.DivI(w.group, 4), 2*s)
			r.columns = append(r.columns, b.Add(p.place(b, row, column), word))
			r.columns = append(r.columns, b.Add(p.place(b, b.AddI(row, 1), column), word))
		}
	}
	return r
}

// beyond is the bytes to steps that lie after the first 128 bytes of a row, and the step within those.
func (r *reads) beyond(step, around int) (int, int) {
	return step / around * around * 32, step % around
}

// a reads 16 rows and the 32 bytes of a step as an operand A.
func (r *reads) a(at *ir.Value, row, step int) fragment {
	bytes, s := r.beyond(step, len(r.rowsA))
	b := r.w.b
	return r.w.planes(b.Scalars(b.LoadMatrix(b.Add(at, r.rowsA[s]), 4, row*r.panel.width()+bytes, false)))
}

// b reads 16 rows and the 32 bytes of a step as two operands B: rows are columns of the product.
func (r *reads) b(at *ir.Value, row, step int) [2]fragment {
	bytes, s := r.beyond(step, len(r.rowsB))
	b := r.w.b
	x := b.Scalars(b.LoadMatrix(b.Add(at, r.rowsB[s]), 4, row*r.panel.width()+bytes, false))
	return [2]fragment{r.w.planes(x[:2]), r.w.planes(x[2:])}
}

// transposed reads 16 features of the rows of one instruction's depth (16, or 8 of 32 bits) as two operands B: features are
// columns of the product. Of 32-bit rows, 2t and 2t+1 come where t and t+4 would: as operands A made of products have them.
func (r *reads) transposed(at *ir.Value, row, feature int) [2]fragment {
	b, w := r.w.b, r.w
	if r.panel.size == 2 {
		bytes, s := r.beyond(feature/16, len(r.columns))
		x := b.Scalars(b.LoadMatrix(b.Add(at, r.columns[s]), 4, row*r.panel.width()+bytes, true))
		return [2]fragment{w.planes(x[:2]), w.planes(x[2:])}
	}
	var out [2]fragment
	for i := range out {
		bytes, s := r.beyond(feature/8+i, len(r.columns)/2)
		var x []*ir.Value
		for e := range 2 {
			y := b.Load(b.Add(at, r.columns[2*s+e]), b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: row*r.panel.width() + bytes})
			x = append(x, b.Bitcast(y, b.Ctx.I32()))
		}
		out[i] = w.planes(x)
	}
	return out
}

// planes makes a fragment of registers as they are in memory.
func (w *attention) planes(x []*ir.Value) fragment {
	b := w.b
	if w.Precision == BF16 {
		return fragment{b.Vector(x...)}
	}
	var large, small []*ir.Value
	for _, v := range x {
		f := b.Bitcast(v, b.Ctx.F32())
		big := b.TF32(f)
		large = append(large, b.Bitcast(big, b.Ctx.I32()))
		if w.Precision == TF32x3 {
			small = append(small, b.Bitcast(b.TF32(b.Binary(ptx.Sub, f, big)), b.Ctx.I32()))
		}
	}
	if small == nil {
		return fragment{b.Vector(large...)}
	}
	return fragment{b.Vector(large...), b.Vector(small...)}
}

// multiply is c + a b. What tensor cores add to they round toward zero, which goes one way along a chain of sums: products of
// three are added up by themselves, the small ones first, and their sums as float32 adds (Ootomo and Yokota).
func (w *attention) multiply(a, x fragment, c *ir.Value) *ir.Value {
	b := w.b
	mma := func(i, j int, c *ir.Value) *ir.Value {
		format := "bf16"
		if w.Precision != BF16 {
			format = "tf32"
		}
		return b.Do(ptx.MMA, []*ir.Value{a[i], x[j], c}, "format", format).Result(0)
	}
	if len(a) == 1 {
		return mma(0, 0, c)
	}
	step := mma(0, 0, mma(0, 1, mma(1, 0, b.Do(ptx.Fill, []*ir.Value{b.F32(0)}, "count", 4).Result(0))))
	sum := b.Scalars(c)
	for i, y := range b.Scalars(step) {
		sum[i] = b.Binary(ptx.Add, sum[i], y)
	}
	return b.Vector(sum...)
}

// operands makes operands A of 16 x n numbers that a product left: one for each instruction's depth of n.
func (w *attention) operands(c []*ir.Value) []fragment {
	b := w.b
	var out []fragment
	if w.Precision == BF16 {
		for i := 0; i < len(c); i += 2 {
			x, y := b.Scalars(c[i]), b.Scalars(c[i+1])
			out = append(out, fragment{b.Vector(b.Pack("bf16", x[0], x[1]), b.Pack("bf16", x[2], x[3]), b.Pack("bf16", y[0], y[1]), b.Pack("bf16", y[2], y[3]))})
		}
		return out
	}
	for _, v := range c {
		x := b.Scalars(v)
		out = append(out, w.planes(each([]*ir.Value{x[0], x[2], x[1], x[3]}, func(v *ir.Value) *ir.Value { return b.Bitcast(v, b.Ctx.I32()) })))
	}
	return out
}

// product contracts the features of the warp's rows, given as operands by tile and step, with those of the rows of a panel:
// 16 x columns numbers for each tile.
func (w *attention) product(rows [][]fragment, at *ir.Value, columns int) []*ir.Value {
	acc := w.zeros(columns)
	for n := 0; n < columns; n += 16 {
		for step := range w.panel(1).steps() {
			x := w.reads.b(at, n, step)
			for t := range w.Block.Tiles {
				for i := range 2 {
					c := &acc[t*columns/8+n/8+i]
					*c = w.multiply(rows[t][step], x[i], *c)
				}
			}
		}
	}
	return acc
}

// gather adds to 16 x Features numbers for each tile: the product of 16 x columns numbers and the rows of a panel.
func (w *attention) gather(x []*ir.Value, at *ir.Value, columns int, acc []*ir.Value) []*ir.Value {
	depth, perTile := 32/w.size(), w.Features/8
	left := make([][]fragment, w.Block.Tiles)
	for t := range left {
		left[t] = w.operands(x[t*columns/8 : (t+1)*columns/8])
	}
	for k := 0; k < columns; k += depth {
		for f := 0; f < w.Features; f += 16 {
			right := w.reads.transposed(at, k, f)
			for t := range w.Block.Tiles {
				for i := range min(2, (w.Features-f)/8) {
					c := &acc[t*perTile+f/8+i]
					*c = w.multiply(left[t][k/depth], right[i], *c)
				}
			}
		}
	}
	return acc
}

// rowOperands reads the warp's rows of a panel as operands A, by tile and step.
func (w *attention) rowOperands(at *ir.Value) [][]fragment {
	rows := make([][]fragment, w.Block.Tiles)
	from := w.b.Add(at, w.b.MulI(w.warpRow, w.panel(1).width()))
	for t := range rows {
		for step := range w.panel(1).steps() {
			rows[t] = append(rows[t], w.reads.a(from, 16*t, step))
		}
	}
	return rows
}
