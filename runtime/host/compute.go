package host

import (
	"blutrain/dialects/host"
	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// compute decodes an instruction on blocks. r holds the registers of its operands.
func (d *decoder) compute(op *ir.Op) (instr, error) {
	if !op.Is(host.Copy) && !op.Is(host.Transpose) {
		if err := checkColumns(op); err != nil {
			return nil, err
		}
	}
	r := make([]int, op.NumOperands())
	for i, v := range op.Operands() {
		r[i] = d.regs[v]
	}
	switch op.Def() {
	case host.Unary:
		return unary(op, r)
	case host.Binary:
		return binary(op, r)
	case host.Fma:
		return fma(op, r)
	case host.Adamw:
		return adamW(op, r)
	case host.Compare:
		return compare(op, r)
	case host.Select:
		return selects(op, r)
	case host.Cast:
		return cast(op, r)
	case host.Fill:
		return fill(op, r)
	case host.Iota:
		return iotas(op, r)
	case host.Copy:
		return copies(op, r)
	case host.Transpose:
		return transpose(op, r)
	case host.Reduce:
		return reduce(op, r)
	case host.Inner:
		return inner(op, r)
	case host.Dot:
		return dot(op, r)
	case host.Random:
		return random(op, r)
	case host.Gather:
		return d.gather(op, r)
	case host.Pick:
		return d.pick(op, r)
	case host.ScatterAdd:
		return d.scatterAdd(op, r)
	}
	return nil, op.Errorf("%s has no instruction on this device", op.Name())
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

var integerBinaries = map[string]prim.IntOp{"add": prim.AddI, "sub": prim.SubI, "mul": prim.MulI, "max": prim.MaxI, "min": prim.MinI}

var maskBinaries = map[string]prim.IntOp{"and": prim.AndI, "or": prim.OrI}

var predicates = map[string]prim.CompareOp{
	"eq": prim.Eq, "ne": prim.Ne, "lt": prim.Lt, "le": prim.Le, "gt": prim.Gt, "ge": prim.Ge,
}

// same stops the kernel unless the operands fit the destination, and reports whether there is anything to do.
func same(f *frame, d *block, xs ...*block) bool {
	for _, x := range xs {
		if !x.fits(d) {
			f.fail("an operand of %v for a destination of %v", x, d)
			return false
		}
	}
	return !d.empty()
}

func unary(op *ir.Op, r []int) (instr, error) {
	name, ks := op.Attrs().Str("fn"), kinds(op)
	fn, ok := unaries[name]
	switch {
	case name == "not" && all(ks, kindMask):
		return func(f *frame) { mapElements(f, r, func(x uint32) uint32 { return ^x }) }, nil
	case name == "not" && are(ks, kindByte, kindMask):
		return func(f *frame) { mapElements(f, r, func(x byte) uint32 { return mask(x == 0) }) }, nil
	case all(ks, kindI32):
		return integerUnary(op, name, r)
	case !ok || !all(ks, kindF32):
		return nil, unsupported(op)
	}
	return func(f *frame) {
		x, d := &f.blocks[r[0]], &f.blocks[r[1]]
		if same(f, d, x) {
			f.k.UnaryRows(fn, d.rows, d.cols, target[float32](d), operand[float32](x, d))
		}
	}, nil
}

// mapElements applies a function to all elements of block r[0] into r[1], repeating as needed.
func mapElements[T, U any](f *frame, r []int, fn func(x T) U) {
	x, d := &f.blocks[r[0]], &f.blocks[r[1]]
	if !same(f, d, x) {
		return
	}
	for i := range d.rows {
		for c := range d.cols {
			*at[U](d, i, c) = fn(*at[T](x, min(i, x.rows-1), min(c, x.cols-1)))
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
	var fn func(x int32) int32
	switch name {
	case "neg":
		fn = func(x int32) int32 { return -x }
	case "abs":
		fn = func(x int32) int32 { return max(x, -x) }
	case "sign":
		fn = func(x int32) int32 { return min(max(x, -1), 1) }
	default:
		return nil, unsupported(op)
	}
	return func(f *frame) { mapElements(f, r, fn) }, nil
}

func binary(op *ir.Op, r []int) (instr, error) {
	name, ks := op.Attrs().Str("fn"), kinds(op)
	if fn, ok := binaries[name]; ok && all(ks, kindF32) {
		return func(f *frame) {
			x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
			if same(f, d, x, y) {
				f.k.BinaryRows(fn, d.rows, d.cols, target[float32](d), operand[float32](x, d), operand[float32](y, d))
			}
		}, nil
	}
	if fn, ok := maskBinaries[name]; ok && all(ks, kindMask) {
		return integerBinary(fn, r), nil
	}
	if fn, ok := integerBinaries[name]; ok && all(ks, kindI32) {
		return integerBinary(fn, r), nil
	}
	if name == "div" && all(ks, kindI32) {
		return integerDivision(r), nil
	}
	return nil, unsupported(op)
}

func integerBinary(fn prim.IntOp, r []int) instr {
	return func(f *frame) {
		x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
		if same(f, d, x, y) {
			f.k.BinaryI32Rows(fn, d.rows, d.cols, target[int32](d), operand[int32](x, d), operand[int32](y, d))
		}
	}
}

func integerDivision(r []int) instr {
	return func(f *frame) {
		x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
		if !same(f, d, x, y) {
			return
		}
		for i := range d.rows {
			for c := range d.cols {
				by := *at[int32](y, min(i, y.rows-1), min(c, y.cols-1))
				if by == 0 {
					f.fail("division of an integer by zero")
					return
				}
				*at[int32](d, i, c) = *at[int32](x, min(i, x.rows-1), min(c, x.cols-1)) / by
			}
		}
	}
}

func compare(op *ir.Op, r []int) (instr, error) {
	fn, ok := predicates[op.Attrs().Str("fn")]
	ks := kinds(op)
	switch {
	case ok && are(ks, kindF32, kindF32, kindMask):
		return func(f *frame) {
			x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
			if same(f, d, x, y) {
				f.k.CompareRows(fn, d.rows, d.cols, target[uint32](d), operand[float32](x, d), operand[float32](y, d))
			}
		}, nil
	case ok && are(ks, kindI32, kindI32, kindMask):
		return func(f *frame) {
			x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]]
			if same(f, d, x, y) {
				f.k.CompareI32Rows(fn, d.rows, d.cols, target[uint32](d), operand[int32](x, d), operand[int32](y, d))
			}
		}, nil
	}
	return nil, unsupported(op)
}

// selects decodes a choice; lanes of four bytes of any type pass through unchanged.
func selects(op *ir.Op, r []int) (instr, error) {
	ks := kinds(op)
	if ks[0] != kindMask || !all(ks[1:], kindF32) && !all(ks[1:], kindI32) && !all(ks[1:], kindMask) {
		return nil, unsupported(op)
	}
	return func(f *frame) {
		m, x, y, d := &f.blocks[r[0]], &f.blocks[r[1]], &f.blocks[r[2]], &f.blocks[r[3]]
		if same(f, d, m, x, y) {
			f.k.SelectRows(d.rows, d.cols, target[float32](d), operand[uint32](m, d), operand[float32](x, d), operand[float32](y, d))
		}
	}, nil
}
