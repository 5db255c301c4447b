package emulate

import (
	"fmt"
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// compute does an operation without memory for every thread: results of threads that are off are never looked at.
func (r *machine) compute(op *ir.Op) error {
	switch op.Def() {
	case ptx.Const:
		bits, err := constantBits(op.Attr("value"))
		r.set(op.Result(0), r.all(bits))
		return err
	case ptx.Special:
		return r.special(op)
	case ptx.SharedBase:
		r.set(op.Result(0), r.all(0))
		return nil
	case ptx.Extract:
		i, _ := op.Attrs().Int("index")
		r.set(op.Result(0), r.values[op.Operand(0)][i])
		return nil
	case ptx.Vector:
		var regs [][]uint64
		for _, v := range op.Operands() {
			regs = append(regs, r.reg(v))
		}
		r.values[op.Result(0)] = regs
		return nil
	case ptx.Split:
		w := ptx.Width(op.Operand(0).Type()) / 2
		low, high := make([]uint64, r.threads), make([]uint64, r.threads)
		for t, x := range r.reg(op.Operand(0)) {
			low[t], high[t] = x&(1<<w-1), x>>w
		}
		r.set(op.Result(0), low)
		r.set(op.Result(1), high)
		return nil
	}
	if op.NumResults() != 1 || ptx.Registers(op.Result(0).Type()) != 1 {
		return fmt.Errorf("is not emulated")
	}
	f, err := scalar(op)
	if err != nil {
		return err
	}
	out, in := make([]uint64, r.threads), make([]uint64, op.NumOperands())
	for t := range out {
		for i, v := range op.Operands() {
			in[i] = r.reg(v)[t]
		}
		out[t] = f(in)
	}
	r.set(op.Result(0), out)
	return nil
}

func (r *machine) special(op *ir.Op) error {
	out := make([]uint64, r.threads)
	for t := range out {
		switch op.Attrs().Str("register") {
		case "tid.x":
			out[t] = uint64(t)
		case "ctaid.x":
			out[t] = uint64(r.block)
		default:
			return fmt.Errorf("register %s is not emulated", op.Attrs().Str("register"))
		}
	}
	r.set(op.Result(0), out)
	return nil
}

func constantBits(a ir.Attr) (uint64, error) {
	switch a := a.(type) {
	case *ir.IntegerAttr:
		w := ptx.Width(a.Type)
		if w == 64 {
			return uint64(a.Value), nil
		}
		return uint64(a.Value) & (1<<w - 1), nil
	case *ir.FloatAttr:
		return get(ir.EncodeElement(nil, a.Type, a.Value)), nil
	}
	return 0, fmt.Errorf("constant %v", a)
}

// number is bits as a number of a type.
func number(t ir.Type, x uint64) float64 {
	w := ptx.Width(t)
	switch w {
	case 32:
		return float64(math.Float32frombits(uint32(x)))
	case 64:
		return math.Float64frombits(x)
	}
	p := make([]byte, w/8)
	put(p, x)
	return ir.DecodeElement(t, string(p))
}

// bitsOf is a number rounded to a type.
func bitsOf(t ir.Type, x float64) uint64 {
	switch ptx.Width(t) {
	case 32:
		return uint64(math.Float32bits(float32(x)))
	case 64:
		return math.Float64bits(x)
	}
	return get(ir.EncodeElement(nil, t, x))
}

// scalar is the function of an operation on the bits of its operands.
func scalar(op *ir.Op) (func(x []uint64) uint64, error) {
	t := op.Result(0).Type()
	w := ptx.Width(t)
	mask := uint64(1)<<w - 1
	if w == 64 {
		mask = ^uint64(0)
	}
	ints := func(f func(x []uint64) uint64) (func(x []uint64) uint64, error) {
		return func(x []uint64) uint64 { return f(x) & mask }, nil
	}
	switch op.Def() {
	case ptx.And:
		return ints(func(x []uint64) uint64 { return x[0] & x[1] })
	case ptx.Or:
		return ints(func(x []uint64) uint64 { return x[0] | x[1] })
	case ptx.Xor:
		return ints(func(x []uint64) uint64 { return x[0] ^ x[1] })
	case ptx.Not:
		return ints(func(x []uint64) uint64 { return ^x[0] })
	case ptx.Shl:
		return ints(func(x []uint64) uint64 { return x[0] << x[1] })
	case ptx.Shr:
		return ints(func(x []uint64) uint64 { return x[0] >> x[1] })
	case ptx.Select:
		return func(x []uint64) uint64 {
			if x[0]&1 == 1 {
				return x[1]
			}
			return x[2]
		}, nil
	case ptx.MulWide:
		return func(x []uint64) uint64 {
			y := uint64(uint32(x[0])) * uint64(uint32(x[1]))
			if len(x) == 3 {
				y += x[2]
			}
			return y
		}, nil
	case ptx.Bitcast:
		return func(x []uint64) uint64 { return x[0] }, nil
	case ptx.Join:
		half := ptx.Width(op.Operand(0).Type())
		return func(x []uint64) uint64 { return x[0] | x[1]<<half }, nil
	case ptx.Pack:
		format := op.Operand(0).Type() // f32, rounded through the narrower type's encoding
		narrow := map[string]ir.FloatKind{"bf16": ir.BF16, "f16": ir.F16}[op.Attrs().Str("format")]
		half := ir.NewContext().Float(narrow)
		return func(x []uint64) uint64 {
			return bitsOf(half, number(format, x[0])) | bitsOf(half, number(format, x[1]))<<16
		}, nil
	case ptx.Compare:
		return comparison(op)
	case ptx.Convert:
		return conversion(op)
	}
	if ir.IsFloat(t) {
		return floatScalar(op, t)
	}
	return intScalar(op, ints, w)
}

func signed(x uint64, w int) int64 { return int64(x<<(64-w)) >> (64 - w) }

func intScalar(op *ir.Op, ints func(func([]uint64) uint64) (func([]uint64) uint64, error), w int) (func(x []uint64) uint64, error) {
	switch op.Def() {
	case ptx.Add:
		return ints(func(x []uint64) uint64 { return x[0] + x[1] })
	case ptx.Sub:
		return ints(func(x []uint64) uint64 { return x[0] - x[1] })
	case ptx.Mul:
		return ints(func(x []uint64) uint64 { return x[0] * x[1] })
	case ptx.FMA:
		return ints(func(x []uint64) uint64 { return x[0]*x[1] + x[2] })
	case ptx.Neg:
		return ints(func(x []uint64) uint64 { return -x[0] })
	case ptx.Abs:
		return ints(func(x []uint64) uint64 { return uint64(max(signed(x[0], w), -signed(x[0], w))) })
	case ptx.Min:
		return ints(func(x []uint64) uint64 { return uint64(min(signed(x[0], w), signed(x[1], w))) })
	case ptx.Max:
		return ints(func(x []uint64) uint64 { return uint64(max(signed(x[0], w), signed(x[1], w))) })
	case ptx.Div:
		return ints(func(x []uint64) uint64 {
			if x[1] == 0 {
				return math.MaxUint64
			}
			return x[0] / x[1]
		})
	case ptx.Rem:
		return ints(func(x []uint64) uint64 {
			if x[1] == 0 {
				return x[0]
			}
			return x[0] % x[1]
		})
	}
	return nil, fmt.Errorf("is not emulated on integers")
}

func floatScalar(op *ir.Op, t ir.Type) (func(x []uint64) uint64, error) {
	on := func(f func(x []float64) float64) (func(x []uint64) uint64, error) {
		in := make([]float64, op.NumOperands())
		return func(x []uint64) uint64 {
			for i := range in {
				in[i] = number(t, x[i])
			}
			return bitsOf(t, f(in))
		}, nil
	}
	switch op.Def() {
	case ptx.Add:
		return on(func(x []float64) float64 { return x[0] + x[1] })
	case ptx.Sub:
		return on(func(x []float64) float64 { return x[0] - x[1] })
	case ptx.Mul:
		return on(func(x []float64) float64 { return x[0] * x[1] })
	case ptx.Div:
		return on(func(x []float64) float64 { return x[0] / x[1] })
	case ptx.FMA:
		return on(func(x []float64) float64 { return math.FMA(x[0], x[1], x[2]) })
	case ptx.Min:
		return on(func(x []float64) float64 { return min(x[0], x[1]) })
	case ptx.Max:
		return on(func(x []float64) float64 { return max(x[0], x[1]) })
	case ptx.Neg:
		return on(func(x []float64) float64 { return -x[0] })
	case ptx.Abs:
		return on(func(x []float64) float64 { return math.Abs(x[0]) })
	case ptx.Sqrt:
		return on(func(x []float64) float64 { return math.Sqrt(x[0]) })
	case ptx.Rcp:
		return on(func(x []float64) float64 { return 1 / x[0] })
	case ptx.Exp2:
		return on(func(x []float64) float64 { return math.Exp2(x[0]) })
	case ptx.Log2:
		return on(func(x []float64) float64 { return math.Log2(x[0]) })
	}
	return nil, fmt.Errorf("is not emulated on floating-point numbers")
}

// relations by what they are for floating-point numbers, signed and unsigned integers.
var relations = map[string]struct {
	floats   func(a, b float64) bool
	signed   func(a, b int64) bool
	unsigned func(a, b uint64) bool
}{
	"eq": {floats: func(a, b float64) bool { return a == b }, signed: func(a, b int64) bool { return a == b }},
	"ne": {floats: func(a, b float64) bool { return a != b }, signed: func(a, b int64) bool { return a != b }},
	"lt": {floats: func(a, b float64) bool { return a < b }, signed: func(a, b int64) bool { return a < b }},
	"le": {floats: func(a, b float64) bool { return a <= b }, signed: func(a, b int64) bool { return a <= b }},
	"gt": {floats: func(a, b float64) bool { return a > b }, signed: func(a, b int64) bool { return a > b }},
	"ge": {floats: func(a, b float64) bool { return a >= b }, signed: func(a, b int64) bool { return a >= b }},
	"lo": {unsigned: func(a, b uint64) bool { return a < b }},
	"ls": {unsigned: func(a, b uint64) bool { return a <= b }},
	"hi": {unsigned: func(a, b uint64) bool { return a > b }},
	"hs": {unsigned: func(a, b uint64) bool { return a >= b }},
}

func comparison(op *ir.Op) (func(x []uint64) uint64, error) {
	t, is := op.Operand(0).Type(), relations[op.Attrs().Str("is")]
	w := ptx.Width(t)
	truth := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	switch {
	case ir.IsFloat(t):
		return func(x []uint64) uint64 { return truth(is.floats(number(t, x[0]), number(t, x[1]))) }, nil
	case is.unsigned != nil:
		return func(x []uint64) uint64 { return truth(is.unsigned(x[0], x[1])) }, nil
	}
	return func(x []uint64) uint64 { return truth(is.signed(signed(x[0], w), signed(x[1], w))) }, nil
}

func conversion(op *ir.Op) (func(x []uint64) uint64, error) {
	from, to := op.Operand(0).Type(), op.Result(0).Type()
	sign := op.Attrs().Bool("signed")
	wf, wt := ptx.Width(from), ptx.Width(to)
	mask := ^uint64(0)
	if wt < 64 {
		mask = 1<<wt - 1
	}
	switch fromFloat, toFloat := ir.IsFloat(from), ir.IsFloat(to); {
	case fromFloat && toFloat:
		return func(x []uint64) uint64 { return bitsOf(to, number(from, x[0])) }, nil
	case toFloat && sign:
		return func(x []uint64) uint64 { return bitsOf(to, float64(signed(x[0], wf))) }, nil
	case toFloat:
		return func(x []uint64) uint64 { return bitsOf(to, float64(x[0])) }, nil
	case fromFloat:
		return func(x []uint64) uint64 { return truncated(number(from, x[0]), wt) & mask }, nil
	case sign:
		return func(x []uint64) uint64 { return uint64(signed(x[0], wf)) & mask }, nil
	}
	return func(x []uint64) uint64 { return x[0] & mask }, nil
}

// truncated is a number as a signed integer, the nearest there is, 0 for NaN.
func truncated(x float64, w int) uint64 {
	limit := math.Ldexp(1, w-1)
	switch {
	case x != x:
		return 0
	case x >= limit:
		return uint64(1)<<(w-1) - 1
	case x < -limit:
		return -(uint64(1) << (w - 1))
	}
	return uint64(int64(x))
}
