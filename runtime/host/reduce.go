package host

import (
	"math"

	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// temp is a worker's memory for sums in float64 and for packing.
type temp struct {
	sums []float64
	pack []float32
}

// zeroed is n sums of zero.
func (t *temp) zeroed(n int) []float64 {
	if cap(t.sums) < n {
		t.sums = make([]float64, n)
	}
	t.sums = t.sums[:n]
	clear(t.sums)
	return t.sums
}

// floats is n float32 of any value.
func (t *temp) floats(n int) []float32 {
	if cap(t.pack) < n {
		t.pack = make([]float32, n)
	}
	return t.pack[:n]
}

func reduce(op *ir.Op, r []int) (instr, error) {
	fn, axis, ks := op.Attrs().Str("fn"), op.Attrs().IntOr("axis", 0), kinds(op)
	switch {
	case axis != 0 && axis != 1:
		return nil, op.Errorf("host.reduce along axis %d", axis)
	case all(ks, kindI32) && fn != "argmax":
		return reduceIntegers(fn, axis, r), nil
	case fn == "argmax" && !are(ks, kindF32, kindI32), fn != "argmax" && !all(ks, kindF32):
		return nil, unsupported(op)
	}
	if axis == 1 {
		return reduceRows(fn, r), nil
	}
	return reduceColumns(fn, r), nil
}

// reduceRows leaves one column.
func reduceRows(fn string, r []int) instr {
	of := map[string]func(f *frame, x []float32, to *uint32){
		"sum":    func(f *frame, x []float32, to *uint32) { *to = math.Float32bits(float32(f.k.Sum(x))) },
		"max":    func(f *frame, x []float32, to *uint32) { *to = math.Float32bits(f.k.Max(x)) },
		"min":    func(f *frame, x []float32, to *uint32) { *to = math.Float32bits(f.k.Min(x)) },
		"argmax": func(f *frame, x []float32, to *uint32) { *to = uint32(f.k.ArgMax(x)) },
	}[fn]
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if x.rows != d.rows || d.cols != 1 {
			f.fail("reduction of the rows of %v into %v", x, d)
			return
		}
		for i := range x.rows {
			of(f, row[float32](x, i), at[uint32](d, i, 0))
		}
	}
}

// reduceColumns leaves one row.
func reduceColumns(fn string, r []int) instr {
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if x.cols != d.cols || d.rows != 1 {
			f.fail("reduction of the columns of %v into %v", x, d)
			return
		}
		if x.cols == 0 {
			return
		}
		switch fn {
		case "sum":
			sumColumns(f, x, d)
		case "argmax":
			argmaxColumns(x, d)
		default:
			extremeColumns(f, fn, x, d)
		}
	}
}

func sumColumns(f *frame, x, d *block) {
	sums := f.temp.zeroed(x.cols)
	if x.rows > 0 {
		f.k.ColSum(sums, elements[float32](x), x.rows, x.cols, x.rowStride)
	}
	out := row[float32](d, 0)
	for c, s := range sums {
		out[c] = float32(s)
	}
}

// extremeColumns folds the rows with max or min, which propagate NaN.
func extremeColumns(f *frame, fn string, x, d *block) {
	op := binaries[fn]
	out := row[float32](d, 0)
	if x.rows == 0 {
		start := float32(math.Inf(-1))
		if fn == "min" {
			start = float32(math.Inf(1))
		}
		for c := range out {
			out[c] = start
		}
		return
	}
	copy(out, row[float32](x, 0))
	for i := 1; i < x.rows; i++ {
		f.k.Binary(op, out, out, row[float32](x, i))
	}
}

// argmaxColumns is the first row of each column's greatest element, NaN being greater than all.
func argmaxColumns(x, d *block) {
	for c := range x.cols {
		best := 0
		for i := 1; i < x.rows; i++ {
			v, b := *at[float32](x, i, c), *at[float32](x, best, c)
			if v > b || v != v && b == b {
				best = i
			}
		}
		*at[int32](d, 0, c) = int32(best)
	}
}

// inner decodes a sum of products along an axis.
func inner(op *ir.Op, r []int) (instr, error) {
	axis := op.Attrs().IntOr("axis", 0)
	if axis != 0 && axis != 1 || !all(kinds(op), kindF32) {
		return nil, unsupported(op)
	}
	return func(f *frame) {
		x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
		rows, cols := x.rows, 1
		if axis == 0 {
			rows, cols = 1, x.cols
		}
		if x.rows != y.rows || x.cols != y.cols || d.rows != rows || d.cols != cols {
			f.fail("sum along axis %d of %v times %v into %v", axis, x, y, d)
			return
		}
		if axis == 0 {
			innerColumns(f, x, y, d)
			return
		}
		for i := range rows {
			*at[float32](d, i, 0) = float32(f.k.Dot(row[float32](x, i), row[float32](y, i)))
		}
	}, nil
}

func innerColumns(f *frame, x, y, d *block) {
	if d.empty() {
		return
	}
	sums := f.temp.zeroed(x.cols)
	if x.rows > 0 {
		f.k.ColDot(sums, elements[float32](x), elements[float32](y), x.rows, x.cols, x.rowStride, y.rowStride)
	}
	for c, s := range sums {
		*at[float32](d, 0, c) = float32(s)
	}
}

// reduceIntegers reduces int32 blocks.
func reduceIntegers(fn string, axis int64, r []int) instr {
	fold := map[string]func(a, x int32) int32{
		"sum": func(a, x int32) int32 { return a + x },
		"max": func(a, x int32) int32 { return max(a, x) },
		"min": func(a, x int32) int32 { return min(a, x) },
	}[fn]
	start := map[string]int32{"max": math.MinInt32, "min": math.MaxInt32}[fn]
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if axis == 0 && (d.rows != 1 || x.cols != d.cols) || axis == 1 && (d.cols != 1 || x.rows != d.rows) {
			f.fail("reduction of %v into %v", x, d)
			return
		}
		for i := range d.rows {
			for c := range d.cols {
				*at[int32](d, i, c) = start
			}
		}
		for i := range x.rows {
			for c := range x.cols {
				p := at[int32](d, min(i, d.rows-1), min(c, d.cols-1))
				*p = fold(*p, *at[int32](x, i, c))
			}
		}
	}
}

// dot decodes a product of small blocks.
func dot(op *ir.Op, r []int) (instr, error) {
	ta, tb, accumulate := op.Attrs().Bool("ta"), op.Attrs().Bool("tb"), op.Attrs().Bool("accumulate")
	if !all(kinds(op), kindF32) {
		return nil, unsupported(op)
	}
	if ta && tb {
		return nil, op.Errorf("host.dot with both operands transposed has no instruction on this device")
	}
	return func(f *frame) {
		a, b, c := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
		m, k, kb, n := a.rows, a.cols, b.rows, b.cols
		if ta {
			m, k = k, m
		}
		if tb {
			kb, n = n, kb
		}
		if k != kb || m != c.rows || n != c.cols || c.rows > 1 && c.rowStride < c.cols {
			f.fail("product of %v and %v (transposed: %v, %v) into %v", a, b, ta, tb, c)
			return
		}
		if c.empty() {
			return
		}
		x, y, out := elements[float32](a), elements[float32](b), elements[float32](c)
		switch {
		case ta:
			f.k.DotTN(m, n, k, x, leading(a), y, leading(b), out, leading(c), accumulate)
		case tb:
			f.k.DotNT(m, n, k, x, leading(a), y, leading(b), out, leading(c), accumulate, f.temp.floats(prim.DotScratch))
		default:
			f.k.DotNN(m, n, k, x, leading(a), y, leading(b), out, leading(c), accumulate)
		}
	}, nil
}
