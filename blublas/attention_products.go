package blublas

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// factor is an operand of products, by plane and step of the depth: registers or descriptors.
type factor func(plane, step int) *ir.Value

// table makes all of an operand's registers or descriptors, before products begin.
func (w *groups) table(steps int, make func(plane, step int) *ir.Value) factor {
	all := map[[2]int]*ir.Value{}
	for p := range w.planes {
		for s := range steps {
			all[[2]int{p, s}] = make(p, s)
		}
	}
	return func(plane, step int) *ir.Value { return all[[2]int{plane, step}] }
}

// descriptors is an operand in shared memory, which starts at `start` in units of 16 bytes.
func (w *groups) descriptors(start *ir.Value, steps int, of func(plane, step int) (int, Descriptor)) factor {
	b := w.b
	return w.table(steps, func(plane, step int) *ir.Value {
		offset, d := of(plane, step)
		bits := d.Bits()
		return b.Join(b.AddI(start, offset/16+int(uint32(bits))), b.I32(int(int32(bits>>32))))
	})
}

// left is this consumer's rows of tensor i of the block, contracted along their features: planes in registers, or where they
// are.
func (w *groups) left(rows slot, i int) factor {
	b := w.b
	start := b.Add(w.start, b.Add(b.MulI(rows.index, w.bufferBytes()/16), b.MulI(w.mine, 64*rowBytes/16)))
	there := w.descriptors(b.AddI(start, i*w.rows.bytes()/16), w.Features/16, w.rows.along)
	held := w.held(rows, i)
	return w.table(w.Features/16, func(plane, step int) *ir.Value {
		if plane >= w.heldPlanes() {
			return there(plane, step)
		}
		return held(plane, step)
	})
}

// held reads this consumer's rows of tensor i of the block into registers.
func (w *groups) held(rows slot, i int) factor {
	b := w.b
	row := b.Add(w.warpRow, b.Binary(ptx.And, w.lane, b.I32(15)))
	places := w.places(b.Add(b.Add(w.shared, b.MulI(rows.index, w.bufferBytes())), b.MulI(row, rowBytes)))
	return func(plane, step int) *ir.Value {
		return b.LoadMatrix(places[step%4], 4, i*w.rows.bytes()+plane*w.rows.plane()+step/4*w.rows.column(), false)
	}
}

// places is where a lane's rows of four matrices lie, by steps of 16 of the first 64 features, given where the row starts: lanes 8 to 15 name
// rows 8 to 15, lanes 16 on the second 16 bytes. Rows from a multiple of 8 on: the swizzle depends on the lane alone.
func (w *groups) places(row *ir.Value) (all [4]*ir.Value) {
	b := w.b
	eight, high := b.Binary(ptx.And, w.lane, b.I32(7)), b.DivI(w.lane, 16)
	for s := range all {
		all[s] = b.Add(row, b.MulI(b.Binary(ptx.Xor, b.AddI(high, 2*s), eight), 16))
	}
	return all
}

// heldPlanes is how many planes of rows are held in registers: the larger of them.
func (w *groups) heldPlanes() int {
	switch {
	case w.Block.Held:
		return w.planes
	case w.Block.HeldPart:
		return 1
	}
	return 0
}

// stage is where a slot's tensor of columns starts, in units of 16 bytes.
func (w *groups) stage(s slot, i int) *ir.Value {
	b := w.b
	return b.AddI(b.Add(w.start, b.MulI(s.index, w.stageBytes()/16)), (w.ring()+i*w.columns.bytes())/16)
}

// scores is the columns of a slot's tensor, contracted along their features.
func (w *groups) scores(s slot, i int) factor {
	return w.descriptors(w.stage(s, i), w.Features/16, w.columns.along)
}

// sums is the columns of a slot's tensor themselves contracted.
func (w *groups) sums(s slot, i int) factor {
	return w.descriptors(w.stage(s, i), w.Block.Columns/16, w.columns.across)
}

// multiply begins acc + left right, or left right where nothing is added, smallest products first.
func (w *groups) multiply(left, right factor, steps int, acc, add *ir.Value, transposed bool) *ir.Value {
	b := w.b
	attrs := []any{"format", w.format()}
	if transposed {
		attrs = append(attrs, "tb", true)
	}
	for _, planes := range (Gemm{Precision: w.Precision}).products() {
		for s := range steps {
			acc = b.Do(ptx.WGMMA, []*ir.Value{left(planes[0], s), right(planes[1], s), acc, add}, attrs...).Result(0)
			add = b.True()
		}
	}
	return acc
}

// contract begins products of rows and columns along features.
func (w *groups) contract(left, right factor) *ir.Value {
	return w.multiply(left, right, w.Features/16, w.b.Undef(w.Block.Columns/2), w.b.False(), false)
}

// complete waits for products.
func (w *groups) complete(acc ...*ir.Value) []*ir.Value {
	w.b.Do(ptx.WGMMACommit, nil)
	return w.b.Do(ptx.WGMMAWait, acc, "pending", 0).Results()
}

// quarters is an accumulator's registers by blocks of 8 columns: two of row g, two of row g+8.
func (w *groups) quarters(acc *ir.Value) []*ir.Value {
	b := w.b
	x := b.Scalars(acc)
	var all []*ir.Value
	for i := 0; i < len(x); i += 4 {
		all = append(all, b.Vector(x[i:i+4]...))
	}
	return all
}

// byRow is a vector of n registers like an accumulator's, of numbers by row.
func (w *groups) byRow(n int, rows [2]*ir.Value) *ir.Value {
	var x []*ir.Value
	for i := range n {
		x = append(x, rows[i/2%2])
	}
	return w.b.Vector(x...)
}

// power is the exponential of f x + y, y in the unit of exponents. Less than 2^-126 is 0.
func (w *groups) power(x, f, y *ir.Value) *ir.Value {
	b := w.b
	z := b.FMA(x, f, y)
	if w.unit() == 1 {
		z = b.Binary(ptx.Mul, z, b.F32(math.Log2E))
	}
	return b.Unary(ptx.Exp2Flushed, z)
}

// operands makes an operand of products of numbers that products left: their columns are contracted.
func (w *groups) operands(x []*ir.Value) factor {
	b, format := w.b, w.format()
	words := make([][]*ir.Value, w.planes)
	for i := 0; i < len(x); i += 2 {
		low, high := x[i], x[i+1]
		for p := range w.planes {
			word := b.Pack(format, low, high)
			words[p] = append(words[p], word)
			if p+1 < w.planes {
				l, h := b.Split(word, b.Ctx.Int(16))
				low, high = b.Binary(ptx.Sub, low, widen(b, ir.F16, l)), b.Binary(ptx.Sub, high, widen(b, ir.F16, h))
			}
		}
	}
	return w.table(len(x)/8, func(plane, step int) *ir.Value { return b.Vector(words[plane][4*step : 4*step+4]...) })
}

// weightScale is what weights of at most 1 are multiplied by before they are split, so that small ones are no subnormal
// float16.
const weightScale = 1 << 14

// scaledOperands is operands of numbers of any magnitude: those of each row are multiplied by a power of two so that the
// greatest lies in [2^14, 2^15). down is by how much the row's results are too great.
func (w *groups) scaledOperands(x []*ir.Value) (operands factor, down [2]*ir.Value) {
	b := w.b
	var up [2]*ir.Value
	for row := range 2 {
		greatest := b.F32(0)
		for i := range x {
			if i/2%2 == row {
				greatest = b.Binary(ptx.Max, greatest, b.Unary(ptx.Abs, x[i]))
			}
		}
		field := b.Binary(ptx.Shr, b.Bitcast(w.quads(greatest, ptx.Max), b.Ctx.I32()), b.I32(23))
		field = b.Min(b.Binary(ptx.Max, field, b.I32(leastExponent)), b.I32(mostExponent))
		up[row] = b.Bitcast(b.Binary(ptx.Shl, b.Sub(b.I32(scaledExponent+127), field), b.I32(23)), b.Ctx.F32())
		down[row] = b.Bitcast(b.Binary(ptx.Shl, b.AddI(field, 127-scaledExponent), b.I32(23)), b.Ctx.F32())
	}
	scaled := make([]*ir.Value, len(x))
	for i := range x {
		scaled[i] = b.Binary(ptx.Mul, x[i], up[i/2%2])
	}
	return w.operands(scaled), down
}

// The greatest of numbers that share a scale has this exponent field after scaling; fields of greatest ones are kept within
// bounds that leave the scale and its inverse normal.
const (
	scaledExponent = 127 + 14
	leastExponent  = 15
	mostExponent   = 254
)

// scaleOf is the scale of a tensor's 64 rows of a head from a row on: of the last where there are none.
func (w *groups) scaleOf(name string, head, row *ir.Value) *ir.Value {
	b := w.b
	_, heads, positions := w.tensor(name)
	n := ceil(positions, BlockEdge)
	block := b.Min(b.DivI(row, BlockEdge), b.I32(n-1))
	index := b.Add(b.MulI(b.Add(b.MulI(w.batch, heads), head), n), block)
	return b.Load(b.MulWide(index, 4, w.args[name+".scales"]), b.Ctx.F32(), 1, ptx.Access{Space: "global", Cache: "nc"})
}

// myRow is the first row of this consumer.
func (w *groups) myRow() *ir.Value { return w.b.Add(w.first, w.b.MulI(w.mine, 64)) }
