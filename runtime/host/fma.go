package host

import "blutrain/ir"

// fma decodes a multiply-add: d = x*y + z, or z - x*y where y has one column.
func fma(op *ir.Op, r []int) (instr, error) {
	negate := op.Attrs().Bool("negate")
	if !all(kinds(op), kindF32) || negate && op.Operand(1).Shape()[1] != 1 {
		return nil, unsupported(op)
	}
	sign := float32(1)
	if negate {
		sign = -1
	}
	return func(f *frame) {
		x, y, z, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]], &f.blocks[r[3]]
		if x.rows != d.rows || x.cols != d.cols {
			f.fail("an operand of %v for a destination of %v", x, d)
			return
		}
		if same(f, d, y, z) {
			multiplyAdd(f, x, y, z, d, sign)
		}
	}, nil
}

// multiplyAdd computes d = sign*x*y + z, the sign being 1 unless y has one column: as one long row where the blocks have no
// gaps and no operand repeats but a scalar, and else row by row.
func multiplyAdd(f *frame, x, y, z, d *block, sign float32) {
	flat := func(b *block) bool { return b.cols == d.cols && b.rows == d.rows && b.rowStride == b.cols }
	scalar := func(b *block) bool { return b.rows*b.cols == 1 }
	signed := y.cols == 1 && (d.cols > 1 || scalar(y)) // y is one number a row
	if flat(d) && flat(x) && (flat(y) && !signed && sign == 1 || scalar(y)) && (flat(z) || scalar(z)) {
		whole := func(b *block) []float32 {
			if flat(b) {
				return elements[float32](b)
			}
			return elements[float32](b)[:1]
		}
		multiplyAddRow(f, whole(d), whole(x), whole(y), whole(z), sign)
		return
	}
	for i := range d.rows {
		multiplyAddRow(f, row[float32](d, i), row[float32](x, i), row[float32](y, min(i, y.rows-1)), row[float32](z, min(i, z.rows-1)), sign)
	}
}

// multiplyAddRow is one row: y and z have as many elements as it or one.
func multiplyAddRow(f *frame, d, x, y, z []float32, sign float32) {
	wideY, wideZ := len(y) == len(d) && len(d) > 1, len(z) == len(d)
	switch {
	case wideY && wideZ:
		f.k.FMA(d, x, y, z)
	case wideY:
		f.k.FMAVVS(d, x, y, z[0])
	case wideZ:
		f.k.FMAVSV(d, x, sign*y[0], z)
	default:
		f.k.FMAVSS(d, x, sign*y[0], z[0])
	}
}
