package emulate

import (
	"fmt"
	"math"
	"math/bits"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// scalar compiles an operation that computes each register of its result from those of its operands, lane by lane.
func (c *compiler) scalar(op *ir.Op) error {
	f, err := function(op)
	if err != nil {
		return op.Errorf("%s %v", op.Name(), err)
	}
	var in [][]int
	for _, v := range op.Operands() {
		in = append(in, c.of(v))
	}
	out := c.fresh(op.Result(0))
	mark := undefined
	switch {
	case op.Is(ptx.MulWide):
		mark = address
	case ptx.Width(ir.Elem(op.Result(0).Type())) == 64: // has no room for a tag: what is made of nothing looks like a number
		mark = 0
	}
	for i, to := range out {
		var from []int
		tags := uint64(0)
		for j, slots := range in {
			from = append(from, slots[min(i, len(slots)-1)])
			if ptx.Width(ir.Elem(op.Operand(j).Type())) < 64 {
				tags |= 1 << j
			}
		}
		c.emit(op, lanewise(f, to, from, tags, mark))
	}
	return nil
}

// address is a mark for results that mustn't be computed from nothing at all.
const address = ^uint64(0)

// lanewise is a step that computes one register; tags says which operands may have a tag. What is computed from nothing is
// nothing, which must not be stored, decide or be an address.
func lanewise(f func(x, y, z uint64) uint64, to int, from []int, tags, mark uint64) func(w *warp) error {
	from = append([]int(nil), from...)
	for len(from) < 3 {
		from = append(from, from[0])
	}
	var keep [3]uint64
	for i := range keep {
		if tags>>i&1 == 1 {
			keep[i] = ^uint64(1<<32 - 1)
		}
	}
	return func(w *warp) error {
		x, y, z, r := &w.regs[from[0]], &w.regs[from[1]], &w.regs[from[2]], &w.regs[to]
		for m := w.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			tag := x[l]&keep[0] | y[l]&keep[1] | z[l]&keep[2]
			if tag == 0 {
				r[l] = f(x[l], y[l], z[l])
				continue
			}
			if tag&inFlight != 0 || mark == address {
				return threadError{l, tagged(tag)}
			}
			r[l] = f(x[l]&^keep[0], y[l]&^keep[1], z[l]&^keep[2]) | mark
		}
		return nil
	}
}

// choose compiles ptx.selp: what isn't chosen may be nothing.
func (c *compiler) choose(op *ir.Op) error {
	p, x, y, to := c.one(op.Operand(0)), c.one(op.Operand(1)), c.one(op.Operand(2)), c.fresh(op.Result(0))[0]
	c.emit(op, func(w *warp) error {
		for m := w.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			from, which := y, w.regs[p][l]
			if which&1 == 1 {
				from = x
			}
			w.regs[to][l] = w.regs[from][l] | which&undefined
		}
		return nil
	})
	return nil
}

// tagged says what is wrong with a register that holds no number.
func tagged(x uint64) error {
	if x&inFlight != 0 {
		return fmt.Errorf("uses registers that a matrix product writes, with no wait for it between them")
	}
	return fmt.Errorf("uses registers, or shared memory, that nobody wrote")
}

// untagged checks registers that are moved whole.
func (w *warp) untagged(slots []int) error {
	for _, s := range slots {
		x := &w.regs[s]
		for m := w.mask; m != 0; m &= m - 1 {
			if v := x[bits.TrailingZeros32(m)&31]; v>>32 != 0 {
				return tagged(v)
			}
		}
	}
	return nil
}

func constantBits(a ir.Attr) (uint64, error) {
	switch a := a.(type) {
	case *ir.IntegerAttr:
		return uint64(a.Value) & ones(ptx.Width(a.Type)), nil
	case *ir.FloatAttr:
		return little(ir.EncodeElement(nil, a.Type, a.Value)), nil
	}
	return 0, fmt.Errorf("constant %v", a)
}

func little(p []byte) (x uint64) {
	for i := range p {
		x |= uint64(p[i]) << (8 * i)
	}
	return x
}

func ones(width int) uint64 {
	if width == 64 {
		return ^uint64(0)
	}
	return 1<<width - 1
}

func f32(x uint64) float32         { return math.Float32frombits(uint32(x)) }
func bits32(x float32) uint64      { return uint64(math.Float32bits(x)) }
func signed(x uint64, w int) int64 { return int64(x<<(64-w)) >> (64 - w) }

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// number is bits as a number of a type.
func number(t ir.Type, x uint64) float64 {
	switch t.(*ir.FloatType).Kind {
	case ir.F32:
		return float64(f32(x))
	case ir.F64:
		return math.Float64frombits(x)
	case ir.BF16:
		return float64(f32(x << 16))
	}
	return ir.F16Value(uint16(x))
}

// rounded is a number rounded to a type, to nearest even.
func rounded(t ir.Type, x float64) uint64 {
	switch t.(*ir.FloatType).Kind {
	case ir.F32:
		return bits32(float32(x))
	case ir.F64:
		return math.Float64bits(x)
	case ir.BF16:
		return uint64(ir.BF16Bits(x))
	}
	return uint64(ir.F16Bits(x))
}

// function is what an operation does with the bits of its operands.
func function(op *ir.Op) (func(x, y, z uint64) uint64, error) {
	if op.NumResults() != 1 {
		return nil, fmt.Errorf("is not emulated")
	}
	t := ir.Elem(op.Result(0).Type())
	switch op.Def() {
	case ptx.MulWide:
		if op.NumOperands() == 2 {
			return func(x, y, _ uint64) uint64 { return uint64(uint32(x)) * uint64(uint32(y)) }, nil
		}
		return func(x, y, z uint64) uint64 { return uint64(uint32(x))*uint64(uint32(y)) + z }, nil
	case ptx.Bitcast:
		return func(x, _, _ uint64) uint64 { return x }, nil
	case ptx.Join:
		half := ptx.Width(op.Operand(0).Type())
		low := ones(half)
		return func(x, y, _ uint64) uint64 { return x&low | y&low<<half }, nil
	case ptx.Pack:
		bits := ir.F16Bits
		if op.Attrs().Str("format") == "bf16" {
			bits = ir.BF16Bits
		}
		half := func(x uint64) uint64 {
			if v := f32(x); v == v {
				return uint64(bits(float64(v)))
			}
			return 0x7fff // whatever NaN it was
		}
		return func(x, y, _ uint64) uint64 { return half(x) | half(y)<<16 }, nil
	case ptx.Compare:
		return comparison(op), nil
	case ptx.Convert:
		return conversion(op), nil
	}
	var f func(x, y, z uint64) uint64
	switch {
	case !ir.IsFloat(t):
		f = integer(op.Def(), ptx.Width(t))
	case ptx.Width(t) == 32:
		f = single(op.Def())
	default:
		f = double(op.Def())
	}
	if f == nil {
		return nil, fmt.Errorf("is not emulated on %s", t)
	}
	return f, nil
}

// integer is an operation on integers of a width.
func integer(def *ir.OpDef, w int) func(x, y, z uint64) uint64 {
	mask := ones(w)
	switch def {
	case ptx.And:
		return func(x, y, _ uint64) uint64 { return x & y }
	case ptx.Or:
		return func(x, y, _ uint64) uint64 { return x | y }
	case ptx.Xor:
		return func(x, y, _ uint64) uint64 { return x ^ y }
	case ptx.Not:
		return func(x, _, _ uint64) uint64 { return ^x & mask }
	case ptx.Shl:
		return func(x, y, _ uint64) uint64 { return x << y & mask }
	case ptx.Shr:
		return func(x, y, _ uint64) uint64 { return x >> y }
	case ptx.Add:
		return func(x, y, _ uint64) uint64 { return (x + y) & mask }
	case ptx.Sub:
		return func(x, y, _ uint64) uint64 { return (x - y) & mask }
	case ptx.Mul:
		return func(x, y, _ uint64) uint64 { return x * y & mask }
	case ptx.FMA:
		return func(x, y, z uint64) uint64 { return (x*y + z) & mask }
	case ptx.Neg:
		return func(x, _, _ uint64) uint64 { return -x & mask }
	case ptx.Abs:
		return func(x, _, _ uint64) uint64 { return uint64(max(signed(x, w), -signed(x, w))) & mask }
	case ptx.Min:
		return func(x, y, _ uint64) uint64 { return uint64(min(signed(x, w), signed(y, w))) & mask }
	case ptx.Max:
		return func(x, y, _ uint64) uint64 { return uint64(max(signed(x, w), signed(y, w))) & mask }
	case ptx.Div:
		return func(x, y, _ uint64) uint64 {
			if y == 0 {
				return mask
			}
			return x / y
		}
	case ptx.Rem:
		return func(x, y, _ uint64) uint64 {
			if y == 0 {
				return x
			}
			return x % y
		}
	}
	return nil
}

// single is an operation on f32.
func single(def *ir.OpDef) func(x, y, z uint64) uint64 {
	switch def {
	case ptx.Add:
		return func(x, y, _ uint64) uint64 { return bits32(f32(x) + f32(y)) }
	case ptx.Sub:
		return func(x, y, _ uint64) uint64 { return bits32(f32(x) - f32(y)) }
	case ptx.Mul:
		return func(x, y, _ uint64) uint64 { return bits32(f32(x) * f32(y)) }
	case ptx.Div:
		return func(x, y, _ uint64) uint64 { return bits32(f32(x) / f32(y)) }
	case ptx.FMA:
		return func(x, y, z uint64) uint64 { return bits32(fma32(f32(x), f32(y), f32(z))) }
	case ptx.FMASaturated:
		return func(x, y, z uint64) uint64 {
			if v := fma32(f32(x), f32(y), f32(z)); v > 0 { // not NaN
				return bits32(min(v, 1))
			}
			return 0
		}
	case ptx.Min:
		return func(x, y, _ uint64) uint64 { return bits32(min(f32(x), f32(y))) }
	case ptx.Max:
		return func(x, y, _ uint64) uint64 { return bits32(max(f32(x), f32(y))) }
	case ptx.Neg:
		return func(x, _, _ uint64) uint64 { return uint64(uint32(x) ^ 1<<31) }
	case ptx.Abs:
		return func(x, _, _ uint64) uint64 { return uint64(uint32(x) &^ (1 << 31)) }
	case ptx.Sqrt:
		return func(x, _, _ uint64) uint64 { return bits32(float32(math.Sqrt(float64(f32(x))))) }
	}
	if f := approximations[def]; f != nil {
		return func(x, _, _ uint64) uint64 { return bits32(f(f32(x))) }
	}
	return nil
}

// double is an operation on f64.
func double(def *ir.OpDef) func(x, y, z uint64) uint64 {
	on := func(f func(x, y, z float64) float64) func(x, y, z uint64) uint64 {
		return func(x, y, z uint64) uint64 {
			return math.Float64bits(f(math.Float64frombits(x), math.Float64frombits(y), math.Float64frombits(z)))
		}
	}
	switch def {
	case ptx.Add:
		return on(func(x, y, _ float64) float64 { return x + y })
	case ptx.Sub:
		return on(func(x, y, _ float64) float64 { return x - y })
	case ptx.Mul:
		return on(func(x, y, _ float64) float64 { return x * y })
	case ptx.Div:
		return on(func(x, y, _ float64) float64 { return x / y })
	case ptx.FMA:
		return on(math.FMA)
	case ptx.Neg:
		return on(func(x, _, _ float64) float64 { return -x })
	case ptx.Abs:
		return on(func(x, _, _ float64) float64 { return math.Abs(x) })
	case ptx.Sqrt:
		return on(func(x, _, _ float64) float64 { return math.Sqrt(x) })
	}
	return nil
}

// fma32 is x*y + z rounded once. The product is exact in float64; where the sum rounded there lies in the middle between
// two float32 numbers, what was lost decides.
func fma32(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if math.Float64bits(s)&(1<<28-1) == 0 && !math.IsInf(s, 0) {
		t := s - p
		if lost := (p - (s - t)) + (c - t); lost != 0 {
			toward := math.Inf(1)
			if lost < 0 {
				toward = math.Inf(-1)
			}
			s = math.Nextafter(s, toward)
		}
	}
	return float32(s)
}

// comparison is a relation of numbers: of floating-point ones none but ne holds for NaN.
func comparison(op *ir.Op) func(x, y, z uint64) uint64 {
	t, is := op.Operand(0).Type(), op.Attrs().Str("is")
	w := ptx.Width(t)
	order := func(x, y uint64) (less, equal, greater bool) {
		a, b := signed(x, w), signed(y, w)
		return a < b, a == b, a > b
	}
	switch {
	case ir.IsFloat(t):
		order = func(x, y uint64) (less, equal, greater bool) {
			a, b := number(t, x), number(t, y)
			return a < b, a == b, a > b
		}
	case is == "lo" || is == "ls" || is == "hi" || is == "hs":
		m := ones(w)
		order = func(x, y uint64) (less, equal, greater bool) { return x&m < y&m, x&m == y&m, x&m > y&m }
	}
	holds := map[string]func(less, equal, greater bool) bool{
		"eq": func(_, e, _ bool) bool { return e }, "ne": func(_, e, _ bool) bool { return !e },
		"lt": func(l, _, _ bool) bool { return l }, "le": func(l, e, _ bool) bool { return l || e },
		"gt": func(_, _, g bool) bool { return g }, "ge": func(_, e, g bool) bool { return e || g },
		"lo": func(l, _, _ bool) bool { return l }, "ls": func(l, e, _ bool) bool { return l || e },
		"hi": func(_, _, g bool) bool { return g }, "hs": func(_, e, g bool) bool { return e || g },
	}[is]
	return func(x, y, _ uint64) uint64 { return truth(holds(order(x, y))) }
}

func conversion(op *ir.Op) func(x, y, z uint64) uint64 {
	from, to := op.Operand(0).Type(), op.Result(0).Type()
	sign := op.Attrs().Bool("signed")
	wf, wt := ptx.Width(from), ptx.Width(to)
	mask := ones(wt)
	switch fromFloat, toFloat := ir.IsFloat(from), ir.IsFloat(to); {
	case op.Attrs().Bool("tf32"):
		return func(x, _, _ uint64) uint64 { return uint64(tf32Away(uint32(x))) }
	case fromFloat && toFloat:
		return func(x, _, _ uint64) uint64 { return rounded(to, number(from, x)) }
	case toFloat:
		return func(x, _, _ uint64) uint64 { return fromInteger(to, x, wf, sign) }
	case fromFloat:
		nan := uint64(0)
		if wf == 64 || wt == 64 {
			nan = 1 << (wt - 1)
		}
		return func(x, _, _ uint64) uint64 {
			if y := number(from, x); y == y {
				return truncated(y, wt, sign) & mask
			}
			return nan // PTX ISA, cvt; as an H200 does
		}
	case sign:
		return func(x, _, _ uint64) uint64 { return uint64(signed(x, wf)) & mask }
	}
	return func(x, _, _ uint64) uint64 { return x & ones(wf) & mask }
}

// fromInteger rounds an integer to nearest even, once.
func fromInteger(to ir.Type, x uint64, w int, sign bool) uint64 {
	if ptx.Width(to) == 32 {
		if sign {
			return bits32(float32(signed(x, w)))
		}
		return bits32(float32(x & ones(w)))
	}
	if sign {
		return rounded(to, float64(signed(x, w)))
	}
	return rounded(to, float64(x&ones(w)))
}

// truncated is a number, not NaN, as an integer, rounded toward zero, the nearest there is.
func truncated(x float64, w int, sign bool) uint64 {
	low, limit := 0.0, math.Ldexp(1, w)
	if sign {
		low, limit = -math.Ldexp(1, w-1), math.Ldexp(1, w-1)
	}
	switch {
	case x >= limit && sign:
		return 1<<(w-1) - 1
	case x >= limit:
		return ones(w)
	case x < low && sign:
		return 1 << (w - 1)
	case x < low:
		return 0
	case sign:
		return uint64(int64(x))
	}
	return uint64(x)
}

// tf32Away rounds to 10 bits of fraction, ties away from zero (cvt.rna).
func tf32Away(x uint32) uint32 {
	if x&0x7f800000 == 0x7f800000 {
		return x
	}
	return (x + 1<<12) &^ (1<<13 - 1)
}

// tf32Even rounds to 10 bits of fraction, ties to even, as the copy engine does.
func tf32Even(x uint32) uint32 {
	if x&0x7f800000 == 0x7f800000 {
		return x
	}
	return (x + x>>13&1 + 1<<12 - 1) &^ (1<<13 - 1)
}
