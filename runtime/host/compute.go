package host

import (
	"blutrain/dialects/host"
	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// compute decodes an instruction on blocks.
func (d *decoder) compute(op *ir.Op) (instr, error) {
	r := d.operands(op)
	switch op.Def() {
	case host.Unary:
		return d.unary(op, r)
	case host.Binary:
		return d.binary(op, r)
	case host.Compare:
		return d.compare(op, r)
	case host.Select:
		return d.selects(op, r)
	case host.Cast:
		return d.cast(op, r)
	case host.Fill:
		return d.fill(op, r)
	case host.Iota:
		return d.iota(op, r)
	case host.Copy:
		return d.copies(op, r)
	case host.Transpose:
		return d.transpose(op, r)
	case host.Reduce:
		return d.reduce(op, r)
	case host.Dot:
		return d.dot(op, r)
	case host.Gather:
		return d.gather(op, r)
	case host.Pick:
		return d.pick(op, r)
	case host.ScatterAdd:
		return d.scatterAdd(op, r)
	case host.Random:
		return d.random(op, r)
	}
	return nil, op.Errorf("%s has no instruction on this device", op.Name())
}

// kind is how the elements of a block are held.
type kind uint8

const (
	kindF32 kind = iota
	kindI32
	kindMask // i1 in scratch memory: a uint32 of all bits or none
	kindByte // i1 in tensors
	kindI64
	kindBF16
	kindF16
	kindNone
)

// kindOf is how a block operand's elements are held; a window of truth values holds bytes.
func kindOf(v *ir.Value) kind {
	switch t := v.Elem().(type) {
	case *ir.FloatType:
		switch t.Kind {
		case ir.F32:
			return kindF32
		case ir.BF16:
			return kindBF16
		case ir.F16:
			return kindF16
		}
	case *ir.IntegerType:
		switch {
		case t.Width == 1 && v.Op().Is(host.Window):
			return kindByte
		case t.Width == 1:
			return kindMask
		case t.Width == 32:
			return kindI32
		case t.Width == 64:
			return kindI64
		}
	}
	return kindNone
}

// unsupported is the error for element types an instruction does not have.
func unsupported(op *ir.Op) error {
	return op.Errorf("%s on %s has no instruction on this device", op.Name(), op.Operand(0).Type())
}

var unaries = map[string]prim.UnaryOp{
	"neg": prim.Neg, "abs": prim.Abs, "exp": prim.Exp, "log": prim.Log, "sqrt": prim.Sqrt, "rsqrt": prim.Rsqrt, "tanh": prim.Tanh, "erf": prim.Erf,
	"sigmoid": prim.Sigmoid, "sin": prim.Sin, "cos": prim.Cos, "sign": prim.Sign, "floor": prim.Floor, "relu": prim.Relu, "silu": prim.Silu,
	"gelu_tanh": prim.GeluTanh, "gelu_erf": prim.GeluErf, "silu_grad": prim.DSilu, "gelu_tanh_grad": prim.DGeluTanh, "gelu_erf_grad": prim.DGeluErf,
	"square": prim.Square, "recip": prim.Recip,
}

var binaries = map[string]prim.BinaryOp{
	"add": prim.Add, "sub": prim.Sub, "mul": prim.Mul, "div": prim.Div, "pow": prim.Pow, "max": prim.Max, "min": prim.Min,
}

var predicates = map[string]prim.CompareOp{
	"eq": prim.Eq, "ne": prim.Ne, "lt": prim.Lt, "le": prim.Le, "gt": prim.Gt, "ge": prim.Ge,
}

// same stops the kernel unless the operands fit the destination.
func same(f *frame, d *block, xs ...*block) bool {
	for _, x := range xs {
		if !x.fits(d) {
			f.fail("operand of %v for a destination of %v", x, d)
			return false
		}
	}
	return !d.empty()
}

func (d *decoder) unary(op *ir.Op, r []int) (instr, error) {
	name := op.Attrs().Str("fn")
	fn, ok := unaries[name]
	k := kindOf(op.Operand(0))
	switch {
	case name == "not" && k == kindMask:
		return func(f *frame) { mapRows(f, r, func(d, x uint32) uint32 { return ^x }) }, nil
	case name == "not" && k == kindByte:
		return func(f *frame) { bytesNot(f, r) }, nil
	case k == kindI32:
		return integerUnary(op, name, r)
	case !ok || k != kindF32:
		return nil, unsupported(op)
	}
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if !same(f, d, x) {
			return
		}
		if x.dense() && d.dense() && x.rows == d.rows && x.cols == d.cols {
			f.k.Unary(fn, elements[float32](d), elements[float32](x))
			return
		}
		for i := range d.rows {
			src := row[float32](x, min(i, x.rows-1))
			f.k.Unary(fn, row[float32](d, i)[:len(src)], src)
		}
		repeatColumns[float32](x, d)
	}, nil
}

// repeatColumns finishes a result that was computed for the first column alone.
func repeatColumns[T any](x, d *block) {
	if x.cols == d.cols {
		return
	}
	for i := range d.rows {
		out := row[T](d, i)
		for c := 1; c < len(out); c++ {
			out[c] = out[0]
		}
	}
}

// mapRows applies a function to all elements of blocks r[0] into r[1], repeating as needed.
func mapRows[T any](f *frame, r []int, fn func(d, x T) T) {
	x, d := &f.blocks[r[0]], &f.blocks[r[1]]
	if !same(f, d, x) {
		return
	}
	for i := range d.rows {
		for c := range d.cols {
			p := at[T](d, i, c)
			*p = fn(*p, *at[T](x, min(i, x.rows-1), min(c, x.cols-1)))
		}
	}
}

// bytesNot inverts truth values held as bytes into a mask.
func bytesNot(f *frame, r []int) {
	x, d := &f.blocks[r[0]], &f.blocks[r[1]]
	if !same(f, d, x) {
		return
	}
	for i := range d.rows {
		for c := range d.cols {
			*at[uint32](d, i, c) = mask(*at[byte](x, min(i, x.rows-1), min(c, x.cols-1)) == 0)
		}
	}
}

func mask(b bool) uint32 {
	if b {
		return ^uint32(0)
	}
	return 0
}

func integerUnary(op *ir.Op, name string, r []int) (instr, error) {
	var fn func(_, x int32) int32
	switch name {
	case "neg":
		fn = func(_, x int32) int32 { return -x }
	case "abs":
		fn = func(_, x int32) int32 { return max(x, -x) }
	case "sign":
		fn = func(_, x int32) int32 { return min(max(x, -1), 1) }
	default:
		return nil, unsupported(op)
	}
	return func(f *frame) { mapRows(f, r, fn) }, nil
}

func (d *decoder) binary(op *ir.Op, r []int) (instr, error) {
	name := op.Attrs().Str("fn")
	fn, ok := binaries[name]
	switch k := kindOf(op.Operand(0)); {
	case k == kindF32 && ok:
		return func(f *frame) { binaryFloat(f, fn, &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]) }, nil
	case k == kindMask && name == "and":
		return func(f *frame) { zipRows(f, r, func(x, y uint32) uint32 { return x & y }) }, nil
	case k == kindMask && name == "or":
		return func(f *frame) { zipRows(f, r, func(x, y uint32) uint32 { return x | y }) }, nil
	case k == kindI32:
		return integerBinary(op, name, r)
	}
	return nil, unsupported(op)
}

// binaryFloat computes d = fn(x, y), row by row where the blocks have gaps or an operand is repeated.
func binaryFloat(f *frame, fn prim.BinaryOp, x, y, d *block) {
	if !same(f, d, x, y) {
		return
	}
	wholeX, wholeY := x.rows == d.rows && x.cols == d.cols, y.rows == d.rows && y.cols == d.cols
	if d.dense() && (!wholeX || x.dense()) && (!wholeY || y.dense()) {
		switch {
		case wholeX && wholeY:
			f.k.Binary(fn, elements[float32](d), elements[float32](x), elements[float32](y))
			return
		case wholeX && y.rows*y.cols == 1:
			f.k.BinaryVS(fn, elements[float32](d), elements[float32](x), *at[float32](y, 0, 0))
			return
		case wholeY && x.rows*x.cols == 1:
			f.k.BinarySV(fn, elements[float32](d), *at[float32](x, 0, 0), elements[float32](y))
			return
		}
	}
	for i := range d.rows {
		xr, yr := row[float32](x, min(i, x.rows-1)), row[float32](y, min(i, y.rows-1))
		out := row[float32](d, i)
		switch {
		case len(xr) == len(out) && len(yr) == len(out):
			f.k.Binary(fn, out, xr, yr)
		case len(yr) == 1 && len(xr) == len(out):
			f.k.BinaryVS(fn, out, xr, yr[0])
		case len(xr) == 1 && len(yr) == len(out):
			f.k.BinarySV(fn, out, xr[0], yr)
		default: // both are repeated: one element, then copies
			f.k.Binary(fn, out[:1], xr, yr)
			for c := range out {
				out[c] = out[0]
			}
		}
	}
}

// zipRows combines blocks r[0] and r[1] into r[2], repeating as needed.
func zipRows[T, U any](f *frame, r []int, fn func(x, y T) U) {
	x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
	if !same(f, d, x, y) {
		return
	}
	for i := range d.rows {
		for c := range d.cols {
			*at[U](d, i, c) = fn(*at[T](x, min(i, x.rows-1), min(c, x.cols-1)), *at[T](y, min(i, y.rows-1), min(c, y.cols-1)))
		}
	}
}

func integerBinary(op *ir.Op, name string, r []int) (instr, error) {
	fn := map[string]func(x, y int32) int32{
		"add": func(x, y int32) int32 { return x + y }, "sub": func(x, y int32) int32 { return x - y }, "mul": func(x, y int32) int32 { return x * y },
		"max": func(x, y int32) int32 { return max(x, y) }, "min": func(x, y int32) int32 { return min(x, y) },
	}[name]
	if name == "div" {
		return func(f *frame) {
			zipRows(f, r, func(x, y int32) int32 {
				if y == 0 {
					f.fail("division of an integer by zero")
					return 0
				}
				return x / y
			})
		}, nil
	}
	if fn == nil {
		return nil, unsupported(op)
	}
	return func(f *frame) { zipRows(f, r, fn) }, nil
}

func (d *decoder) compare(op *ir.Op, r []int) (instr, error) {
	fn, ok := predicates[op.Attrs().Str("fn")]
	k := kindOf(op.Operand(0))
	if !ok || k != kindF32 && k != kindI32 || kindOf(op.Operand(2)) != kindMask {
		return nil, unsupported(op)
	}
	if k == kindI32 {
		return func(f *frame) {
			compareRows(f, r, fn, func(m []uint32, x, y []int32) { f.k.CompareI32(fn, m, x, y) },
				func(m []uint32, x []int32, s int32) { f.k.CompareI32VS(fn, m, x, s) },
				func(m []uint32, y []int32, s int32) { f.k.CompareI32VS(mirrored(fn), m, y, s) })
		}, nil
	}
	return func(f *frame) {
		compareRows(f, r, fn, func(m []uint32, x, y []float32) { f.k.Compare(fn, m, x, y) },
			func(m []uint32, x []float32, s float32) { f.k.CompareVS(fn, m, x, s) },
			func(m []uint32, y []float32, s float32) { f.k.CompareVS(mirrored(fn), m, y, s) })
	}, nil
}

// mirrored is the predicate with its operands exchanged.
func mirrored(fn prim.CompareOp) prim.CompareOp {
	return map[prim.CompareOp]prim.CompareOp{prim.Lt: prim.Gt, prim.Gt: prim.Lt, prim.Le: prim.Ge, prim.Ge: prim.Le, prim.Eq: prim.Eq, prim.Ne: prim.Ne}[fn]
}

func compareRows[T any](f *frame, r []int, fn prim.CompareOp, vv func(m []uint32, x, y []T), vs, sv func(m []uint32, v []T, s T)) {
	x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
	if !same(f, d, x, y) {
		return
	}
	for i := range d.rows {
		xr, yr, out := row[T](x, min(i, x.rows-1)), row[T](y, min(i, y.rows-1)), row[uint32](d, i)
		switch {
		case len(xr) == len(out) && len(yr) == len(out):
			vv(out, xr, yr)
		case len(yr) == 1 && len(xr) == len(out):
			vs(out, xr, yr[0])
		case len(xr) == 1 && len(yr) == len(out):
			sv(out, yr, xr[0])
		default:
			vv(out[:1], xr, yr)
			for c := range out {
				out[c] = out[0]
			}
		}
	}
}

func (d *decoder) selects(op *ir.Op, r []int) (instr, error) {
	m, k := kindOf(op.Operand(0)), kindOf(op.Operand(1))
	if m != kindMask || k != kindF32 && k != kindI32 {
		return nil, unsupported(op)
	}
	return func(f *frame) {
		m, x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]], &f.blocks[r[3]]
		if !same(f, d, m, x, y) {
			return
		}
		for i := range d.rows {
			selectRow(f, row[float32](d, i), row[uint32](m, min(i, m.rows-1)), row[float32](x, min(i, x.rows-1)), row[float32](y, min(i, y.rows-1)))
		}
	}, nil
}

// selectRow chooses within one row; lanes of four bytes of any type pass through unchanged.
func selectRow(f *frame, out []float32, m []uint32, x, y []float32) {
	n := len(out)
	switch {
	case len(m) == 1 && n > 1:
		src := y
		if m[0] != 0 {
			src = x
		}
		if len(src) == n {
			copy(out, src)
			return
		}
		for c := range out {
			out[c] = src[0]
		}
	case len(x) == n && len(y) == n:
		f.k.Select(out, m, x, y)
	case len(x) == n:
		f.k.SelectVS(out, m, x, y[0])
	case len(y) == n:
		f.k.SelectSV(out, m, x[0], y)
	default:
		for c := range out {
			if m[c] != 0 {
				out[c] = x[0]
			} else {
				out[c] = y[0]
			}
		}
	}
}
