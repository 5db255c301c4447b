package instructions

import (
	"encoding/binary"
	"fmt"
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// tuples is how many operands an arithmetic experiment has.
const tuples = 512

// number types by name.
type numberType struct {
	name string
	typ  func(c *ir.Context) ir.Type
	size int
}

var (
	i16  = numberType{"i16", func(c *ir.Context) ir.Type { return c.Int(16) }, 2}
	i32  = numberType{"i32", func(c *ir.Context) ir.Type { return c.I32() }, 4}
	i64  = numberType{"i64", func(c *ir.Context) ir.Type { return c.I64() }, 8}
	f16  = numberType{"f16", func(c *ir.Context) ir.Type { return c.Float(ir.F16) }, 2}
	bf16 = numberType{"bf16", func(c *ir.Context) ir.Type { return c.Float(ir.BF16) }, 2}
	f32  = numberType{"f32", func(c *ir.Context) ir.Type { return c.F32() }, 4}
	f64  = numberType{"f64", func(c *ir.Context) ir.Type { return c.Float(ir.F64) }, 8}
)

func (n numberType) float() bool { return n.name[0] != 'i' }

// elem is how results of the type are compared.
func (n numberType) elem() string {
	if n.float() {
		return n.name
	}
	return fmt.Sprintf("u%d", 8*n.size)
}

// edges are bits worth trying: for floating-point numbers signed zeros, infinities, NaN, the least and the greatest numbers
// of every kind, halves; for integers the ends and what is next to them.
func (n numberType) edges() []uint64 {
	switch n.name {
	case "f32":
		return []uint64{0, 1 << 31, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F000000, 0x4B000001, 0x3FFFFFFF}
	case "f64":
		return []uint64{0, 1 << 63, math.Float64bits(1), math.Float64bits(-1), math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), math.Float64bits(math.NaN()), 1, 0x000FFFFFFFFFFFFF,
			0x0010000000000000, math.Float64bits(math.MaxFloat64), math.Float64bits(0.5), math.Float64bits(1 << 31), math.Float64bits(-1 << 31), math.Float64bits(1e300), math.Float64bits(3.4028235677973366e38)}
	case "f16":
		return []uint64{0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 1, 0x03FF, 0x0400, 0x7BFF, 0x3800, 0x3555, 0xC000, 0x5640, 0x8001}
	case "bf16":
		return []uint64{0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 1, 0x007F, 0x0080, 0x7F7F, 0x3F00, 0x4300, 0xC000, 0x3FFF, 0x8001}
	}
	w := 8 * n.size
	ones := ^uint64(0) >> (64 - w)
	return []uint64{0, 1, 2, 3, ones, ones - 1, 1 << (w - 1), 1<<(w-1) - 1, 1<<(w-1) + 1, 5, 7, 31, 32, 100, ones >> 3, 1 << (w / 2)}
}

// operands is columns of tuples: all combinations of edges first, then random ones.
func operands(types []numberType, keep func(column int, x uint64) uint64) []byte {
	r := random()
	columns := make([][]uint64, len(types))
	for i := range tuples {
		for j, n := range types {
			edges := n.edges()
			x := r.Uint64() & (^uint64(0) >> (64 - 8*n.size))
			switch {
			case len(types) == 3 && i < 343:
				x = edges[[]int{i % 7, i / 7 % 7, i / 49}[j]*2]
			case len(types) < 3 && i < 256:
				x = edges[[]int{i % 16, i / 16}[j]]
			case n.float() && i%2 == 0: // not of every size: ordinary numbers
				x = n.bits(r.NormFloat64() * 4)
			}
			if keep != nil {
				x = keep(j, x)
			}
			columns[j] = append(columns[j], x)
		}
	}
	var p []byte
	for j, n := range types {
		for _, x := range columns[j] {
			p = append(p, binary.LittleEndian.AppendUint64(nil, x)[:n.size]...)
		}
		p = append(p, make([]byte, -len(p)&15)...)
	}
	return p
}

func (n numberType) bits(x float64) uint64 {
	switch n.name {
	case "f16":
		return uint64(ir.F16Bits(x))
	case "bf16":
		return uint64(ir.BF16Bits(x))
	case "f32":
		return uint64(math.Float32bits(float32(x)))
	}
	return math.Float64bits(x)
}

// computed is an experiment: a function of one to three registers.
func computed(name string, types []numberType, to numberType, f func(b *body, x []*ir.Value) *ir.Value) experiment {
	return experiment{name: name, blocks: tuples / 128, in: operands(types, nil), out: tuples * to.size, elem: to.elem(), body: func(b *body) {
		var x []*ir.Value
		at := 0
		for _, n := range types {
			column := b.Add(b.in, b.I64(int64(at)))
			x = append(x, b.load(b.at(column, b.index, n.size), n.typ(b.Ctx), 1))
			at += (tuples*n.size + 15) &^ 15
		}
		b.store(b.at(b.out, b.index, to.size), f(b, x))
	}}
}

func arithmetic() []experiment {
	var all []experiment
	add := func(e experiment) { all = append(all, e) }
	for _, op := range []struct {
		def   *ir.OpDef
		n     int
		types []numberType
	}{
		{ptx.Add, 2, []numberType{i16, i32, i64, f32, f64}}, {ptx.Sub, 2, []numberType{i16, i32, i64, f32, f64}}, {ptx.Mul, 2, []numberType{i16, i32, i64, f32, f64}},
		{ptx.Min, 2, []numberType{i32, i64, f32}}, {ptx.Max, 2, []numberType{i32, i64, f32}}, {ptx.Div, 2, []numberType{i32, i64, f32, f64}}, {ptx.Rem, 2, []numberType{i32, i64}},
		{ptx.And, 2, []numberType{i16, i32, i64}}, {ptx.Or, 2, []numberType{i16, i32, i64}}, {ptx.Xor, 2, []numberType{i16, i32, i64}},
		{ptx.Neg, 1, []numberType{i32, i64, f32, f64}}, {ptx.Abs, 1, []numberType{i32, i64, f32, f64}}, {ptx.Not, 1, []numberType{i16, i32, i64}}, {ptx.Sqrt, 1, []numberType{f32, f64}},
		{ptx.FMA, 3, []numberType{i32, i64, f32, f64}}, {ptx.FMASaturated, 3, []numberType{f32}},
	} {
		for _, n := range op.types {
			types := []numberType{n, n, n}[:op.n]
			e := computed(op.def.Name+" "+n.name, types, n, func(b *body, x []*ir.Value) *ir.Value { return b.Create(op.def, x).Result(0) })
			if op.def == ptx.Div && !n.float() || op.def == ptx.Rem { // what dividing by 0 gives is not defined
				e.in = operands(types, func(column int, x uint64) uint64 {
					if column == 1 {
						return max(x, 1)
					}
					return x
				})
			}
			add(e)
		}
	}
	for _, def := range []*ir.OpDef{ptx.Shl, ptx.Shr} {
		for _, n := range []numberType{i32, i64} {
			e := computed(def.Name+" "+n.name, []numberType{n, i32}, n, func(b *body, x []*ir.Value) *ir.Value { return b.Create(def, x).Result(0) })
			e.in = operands([]numberType{n, i32}, func(column int, x uint64) uint64 {
				if column == 1 {
					return x % 70
				}
				return x
			})
			add(e)
		}
	}
	add(computed("mul_wide", []numberType{i32, i32}, i64, func(b *body, x []*ir.Value) *ir.Value { return b.Create(ptx.MulWide, x).Result(0) }))
	add(computed("mul_wide with a sum", []numberType{i32, i32, i64}, i64, func(b *body, x []*ir.Value) *ir.Value { return b.Create(ptx.MulWide, x).Result(0) }))
	all = append(all, approximate()...)
	all = append(all, comparisons()...)
	return append(all, conversions()...)
}

// approximate is the instructions with a documented error. The emulator is off within it, so results may be twice as far
// from each other.
func approximate() []experiment {
	ulp := func(y float64) float64 { return math.Ldexp(1, max(math.Ilogb(y), -126)-23) }
	var all []experiment
	for _, a := range []struct {
		def    *ir.OpDef
		bound  func(y float64) float64
		within float64
	}{
		{ptx.Rcp, func(y float64) float64 { return 2 * ulp(y) }, 0}, {ptx.Exp2, func(y float64) float64 { return 4 * ulp(y) }, 0},
		{ptx.RcpFlushed, func(y float64) float64 { return 2 * ulp(y) }, 0}, {ptx.Exp2Flushed, func(y float64) float64 { return 4 * ulp(y) }, 0},
		{ptx.Log2, func(y float64) float64 { return 0x1p-21 * max(1, math.Abs(y)) }, 0}, {ptx.Rsqrt, func(y float64) float64 { return math.Abs(y) * 0x1p-21 }, 0},
		{ptx.Tanh, func(y float64) float64 { return math.Abs(y) * 0x1p-10 }, 0},
		{ptx.Sin, func(float64) float64 { return math.Exp2(-19.9) }, math.Pi}, {ptx.Cos, func(float64) float64 { return math.Exp2(-19.9) }, math.Pi},
	} {
		e := computed(a.def.Name, []numberType{f32}, f32, func(b *body, x []*ir.Value) *ir.Value { return b.Create(a.def, x).Result(0) })
		e.bound = func(_ int, y float64) float64 { return a.bound(y) }
		if a.within > 0 {
			r := random()
			e.in = operands([]numberType{f32}, func(int, uint64) uint64 { return f32.bits((2*r.Float64() - 1) * a.within) })
		}
		all = append(all, e)
	}
	return all
}

func comparisons() []experiment {
	var all []experiment
	for _, n := range []numberType{i16, i32, i64, f32, f64} {
		relations := []string{"eq", "ne", "lt", "le", "gt", "ge"}
		if !n.float() {
			relations = append(relations, "lo", "ls", "hi", "hs")
		}
		for _, is := range relations {
			all = append(all, computed("setp."+is+" "+n.name, []numberType{n, n}, i32, func(b *body, x []*ir.Value) *ir.Value {
				return b.Select(b.Compare(is, x[0], x[1]), b.I32(1), b.I32(0))
			}))
		}
	}
	for _, def := range []*ir.OpDef{ptx.And, ptx.Or, ptx.Xor} {
		all = append(all, computed(def.Name+" i1", []numberType{i32, i32}, i32, func(b *body, x []*ir.Value) *ir.Value {
			return b.Select(b.Binary(def, b.Compare("lt", x[0], b.I32(3)), b.Compare("gt", x[1], b.I32(3))), b.I32(1), b.I32(0))
		}))
	}
	all = append(all, computed("not i1", []numberType{i32}, i32, func(b *body, x []*ir.Value) *ir.Value {
		return b.Select(b.Unary(ptx.Not, b.Compare("lt", x[0], b.I32(3))), b.I32(1), b.I32(0))
	}))
	for _, n := range []numberType{i16, i64, f32, f64} {
		all = append(all, computed("selp "+n.name, []numberType{i32, n, n}, n, func(b *body, x []*ir.Value) *ir.Value {
			return b.Select(b.Compare("lt", x[0], b.I32(3)), x[1], x[2])
		}))
	}
	return all
}

func conversions() []experiment {
	var all []experiment
	for _, c := range []struct {
		from numberType
		to   []numberType
	}{
		{f32, []numberType{f16, bf16, f64, i16, i32, i64}}, {f16, []numberType{f32, i32}}, {bf16, []numberType{f32}}, {f64, []numberType{f32, f16, i32, i64}},
		{i16, []numberType{i32, f32}}, {i32, []numberType{i16, i64, f32, f64, f16}}, {i64, []numberType{i32, f32, f64}},
	} {
		for _, to := range c.to {
			for _, signed := range []bool{false, true} {
				if signed && c.from.float() == to.float() && c.from.float() {
					continue
				}
				sign := map[bool]string{true: " signed"}[signed]
				all = append(all, computed(fmt.Sprintf("cvt %s %s%s", c.from.name, to.name, sign), []numberType{c.from}, to, func(b *body, x []*ir.Value) *ir.Value {
					return b.Convert(x[0], to.typ(b.Ctx), signed)
				}))
			}
		}
	}
	all = append(all, computed("cvt tf32", []numberType{f32}, f32, func(b *body, x []*ir.Value) *ir.Value { return b.TF32(x[0]) }))
	for _, format := range []string{"bf16", "f16"} {
		all = append(all, computed("pack "+format, []numberType{f32, f32}, i32, func(b *body, x []*ir.Value) *ir.Value { return b.Pack(format, x[0], x[1]) }))
	}
	all = append(all,
		computed("join i16", []numberType{i16, i16}, i32, func(b *body, x []*ir.Value) *ir.Value { return b.Join(x[0], x[1]) }),
		computed("join i32", []numberType{i32, i32}, i64, func(b *body, x []*ir.Value) *ir.Value { return b.Join(x[0], x[1]) }),
		computed("bitcast", []numberType{f32}, i32, func(b *body, x []*ir.Value) *ir.Value { return b.Bitcast(x[0], b.Ctx.I32()) }),
		computed("split i32", []numberType{i32}, i32, func(b *body, x []*ir.Value) *ir.Value {
			low, high := b.Split(x[0], b.Ctx.Int(16))
			return b.Join(high, low)
		}),
		computed("split i64", []numberType{i64}, i64, func(b *body, x []*ir.Value) *ir.Value {
			low, high := b.Split(x[0], b.Ctx.I32())
			return b.Join(high, low)
		}),
		computed("outer_fma", []numberType{f32, f32, f32}, f32, func(b *body, x []*ir.Value) *ir.Value {
			one := func(v *ir.Value) *ir.Value { return b.Create(ptx.Vector, []*ir.Value{v, v}).Result(0) }
			c := b.Do(ptx.Fill, []*ir.Value{x[2]}, "count", 4).Result(0)
			return b.Extract(b.Create(ptx.OuterFMA, []*ir.Value{one(x[0]), one(x[1]), c}).Result(0), 3)
		}),
		computed("add_scaled", []numberType{f32, f32, f32, i32}, f32, func(b *body, x []*ir.Value) *ir.Value {
			fill := func(v *ir.Value) *ir.Value { return b.Do(ptx.Fill, []*ir.Value{v}, "count", 8).Result(0) }
			return b.Extract(b.Create(ptx.AddScaled, []*ir.Value{fill(x[0]), fill(x[1]), b.F32(0), x[2], x[3]}).Result(0), 7)
		}))
	return all
}
