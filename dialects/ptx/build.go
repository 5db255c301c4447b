package ptx

import (
	"slices"

	"blutrain/ir"
)

// Builder makes a kernel's operations. Integer arithmetic on immediates is done while building, and equal immediates are
// one value at the kernel's start. Operands that don't fit are a programming error and panic.
type Builder struct {
	*ir.Builder
	Kernel *ir.Op
	consts map[ir.Attr]*ir.Value
	last   *ir.Op // the newest immediate at the kernel's start
}

// Config is the attributes of a kernel.
type Config struct {
	Name        string
	Target      string
	Threads     int
	BlocksPerSM int // 0: not said
	Cluster     int // 0: 1
	Shared      int // bytes
}

// NewKernel makes a kernel, detached or at the builder's insertion point, with parameters of the given types, and a
// builder that appends to its body.
func NewKernel(at *ir.Builder, cfg Config, params ...ir.Type) *Builder {
	c := at.Ctx
	attrs := []ir.NamedAttr{
		{Name: "sym_name", Value: c.String(cfg.Name)}, {Name: "target", Value: c.String(cfg.Target)}, {Name: "threads", Value: c.Int64(int64(cfg.Threads))},
	}
	for _, a := range []struct {
		name  string
		value int
	}{{"blocks_per_sm", cfg.BlocksPerSM}, {"cluster", cfg.Cluster}, {"shared", cfg.Shared}} {
		if a.value > 0 {
			attrs = append(attrs, ir.NamedAttr{Name: a.name, Value: c.Int64(int64(a.value))})
		}
	}
	k := at.CreateState(Kernel, ir.OpState{Attrs: attrs, Regions: 1})
	body := k.Region(0).AddBlock(params...)
	b := ir.NewBuilder(c, body)
	b.Loc = at.Loc
	return &Builder{Builder: b, Kernel: k, consts: map[ir.Attr]*ir.Value{}}
}

// attr is a named attribute: a number, a string, or for true a unit attribute.
func (b *Builder) attr(name string, v any) ir.NamedAttr {
	switch v := v.(type) {
	case int:
		return ir.NamedAttr{Name: name, Value: b.Ctx.Int64(int64(v))}
	case string:
		return ir.NamedAttr{Name: name, Value: b.Ctx.String(v)}
	}
	return ir.NamedAttr{Name: name, Value: b.Ctx.Unit()}
}

// Const is an immediate.
func (b *Builder) Const(a ir.Attr) *ir.Value {
	if v := b.consts[a]; v != nil {
		return v
	}
	body := b.Kernel.Body()
	at := ir.NewBuilder(b.Ctx, body).AtStart(body)
	if b.last != nil {
		at = ir.NewBuilder(b.Ctx, body).After(b.last)
	}
	b.last = at.Create(Const, nil, ir.NamedAttr{Name: "value", Value: a})
	b.consts[a] = b.last.Result(0)
	return b.last.Result(0)
}

// I32 is an immediate.
func (b *Builder) I32(v int) *ir.Value { return b.Const(b.Ctx.Integer(int64(int32(v)), b.Ctx.I32())) }

// I64 is an immediate.
func (b *Builder) I64(v int64) *ir.Value { return b.Const(b.Ctx.Integer(v, b.Ctx.I64())) }

// F32 is an immediate.
func (b *Builder) F32(v float64) *ir.Value { return b.Const(b.Ctx.FloatAttr(v, b.Ctx.F32())) }

// True is a predicate that holds.
func (b *Builder) True() *ir.Value { return b.Const(b.Ctx.Bool(true)) }

// False is a predicate that doesn't hold.
func (b *Builder) False() *ir.Value { return b.Const(b.Ctx.Bool(false)) }

// ConstInt is the value of an integer immediate.
func ConstInt(v *ir.Value) (int64, bool) {
	if !v.DefinedBy(Const) {
		return 0, false
	}
	a, ok := v.Op().Attr("value").(*ir.IntegerAttr)
	if !ok {
		return 0, false
	}
	return a.Value, true
}

func (b *Builder) intLike(v int64, like *ir.Value) *ir.Value {
	if Width(like.Type()) == 32 {
		v = int64(int32(v))
	}
	return b.Const(b.Ctx.Integer(v, like.Type()))
}

func (b *Builder) op(def *ir.OpDef, operands ...*ir.Value) *ir.Value {
	return b.Create(def, operands).Result(0)
}

// fold computes with two integer immediates; ok is false for others.
func (b *Builder) fold(x, y *ir.Value, f func(x, y int64) int64) (*ir.Value, bool) {
	m, okX := ConstInt(x)
	n, okY := ConstInt(y)
	if !okX || !okY || Width(x.Type()) < 32 {
		return nil, false
	}
	return b.intLike(f(m, n), x), true
}

func is(v *ir.Value, n int64) bool {
	m, ok := ConstInt(v)
	return ok && m == n
}

// Add is x + y.
func (b *Builder) Add(x, y *ir.Value) *ir.Value {
	if v, ok := b.fold(x, y, func(x, y int64) int64 { return x + y }); ok {
		return v
	}
	if is(y, 0) {
		return x
	}
	if is(x, 0) {
		return y
	}
	return b.op(Add, x, y)
}

// AddI is x + n.
func (b *Builder) AddI(x *ir.Value, n int) *ir.Value { return b.Add(x, b.intLike(int64(n), x)) }

// Sub is x - y.
func (b *Builder) Sub(x, y *ir.Value) *ir.Value {
	if v, ok := b.fold(x, y, func(x, y int64) int64 { return x - y }); ok {
		return v
	}
	return b.op(Sub, x, y)
}

// Mul is x * y.
func (b *Builder) Mul(x, y *ir.Value) *ir.Value {
	if v, ok := b.fold(x, y, func(x, y int64) int64 { return x * y }); ok {
		return v
	}
	if is(y, 1) {
		return x
	}
	return b.op(Mul, x, y)
}

// MulI is x * n.
func (b *Builder) MulI(x *ir.Value, n int) *ir.Value { return b.Mul(x, b.intLike(int64(n), x)) }

// DivI is x / n, unsigned.
func (b *Builder) DivI(x *ir.Value, n int) *ir.Value {
	if n == 1 {
		return x
	}
	if n&(n-1) == 0 {
		return b.op(Shr, x, b.I32(log2(n)))
	}
	return b.op(Div, x, b.intLike(int64(n), x))
}

// RemI is x mod n, unsigned.
func (b *Builder) RemI(x *ir.Value, n int) *ir.Value {
	if n == 1 {
		return b.intLike(0, x)
	}
	if n&(n-1) == 0 {
		return b.op(And, x, b.intLike(int64(n-1), x))
	}
	return b.op(Rem, x, b.intLike(int64(n), x))
}

func log2(n int) int {
	k := 0
	for 1<<k < n {
		k++
	}
	return k
}

// Min is the smaller.
func (b *Builder) Min(x, y *ir.Value) *ir.Value { return b.op(Min, x, y) }

// Binary is any operation on two operands that infers its result.
func (b *Builder) Binary(def *ir.OpDef, x, y *ir.Value) *ir.Value { return b.op(def, x, y) }

// Unary is any operation on one operand that infers its result.
func (b *Builder) Unary(def *ir.OpDef, x *ir.Value) *ir.Value { return b.op(def, x) }

// FMA is x*y + z.
func (b *Builder) FMA(x, y, z *ir.Value) *ir.Value { return b.op(FMA, x, y, z) }

// MulWide is the address base + x*n in 64 bits, x unsigned.
func (b *Builder) MulWide(x *ir.Value, n int, base *ir.Value) *ir.Value {
	return b.op(MulWide, x, b.I32(n), base)
}

// Compare is x is y, "is" being eq, ne, lt, ....
func (b *Builder) Compare(is string, x, y *ir.Value) *ir.Value {
	return b.Create(Compare, []*ir.Value{x, y}, b.attr("is", is)).Result(0)
}

// And is both.
func (b *Builder) And(x, y *ir.Value) *ir.Value { return b.op(And, x, y) }

// Select is x where p holds, else y.
func (b *Builder) Select(p, x, y *ir.Value) *ir.Value { return b.op(Select, p, x, y) }

// Special reads a special register.
func (b *Builder) Special(name string) *ir.Value {
	return b.Create(Special, nil, b.attr("register", name)).Result(0)
}

// SharedBase is where dynamic shared memory starts.
func (b *Builder) SharedBase() *ir.Value { return b.op(SharedBase) }

// Undef is n f32 registers that hold nothing.
func (b *Builder) Undef(n int) *ir.Value {
	t := b.Ctx.Vector([]int64{int64(n)}, b.Ctx.F32())
	return b.CreateState(Undef, ir.OpState{Results: []ir.Type{t}}).Result(0)
}

// Extract is a register of a vector.
func (b *Builder) Extract(x *ir.Value, i int) *ir.Value {
	return b.Create(Extract, []*ir.Value{x}, b.attr("index", i)).Result(0)
}

// Scalars is all registers of a vector.
func (b *Builder) Scalars(x *ir.Value) []*ir.Value {
	if _, ok := x.Type().(*ir.VectorType); !ok {
		return []*ir.Value{x}
	}
	xs := make([]*ir.Value, Registers(x.Type()))
	for i := range xs {
		xs[i] = b.Extract(x, i)
	}
	return xs
}

// Vector names registers together.
func (b *Builder) Vector(xs ...*ir.Value) *ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return b.Create(Vector, xs).Result(0)
}

// Convert converts to a type; signed is about an integer.
func (b *Builder) Convert(x *ir.Value, to ir.Type, signed bool) *ir.Value {
	var attrs []ir.NamedAttr
	if signed {
		attrs = append(attrs, b.attr("signed", true))
	}
	return b.CreateState(Convert, ir.OpState{Operands: []*ir.Value{x}, Attrs: attrs, Results: []ir.Type{to}}).Result(0)
}

// TF32 rounds f32 to tf32.
func (b *Builder) TF32(x *ir.Value) *ir.Value {
	return b.CreateState(Convert, ir.OpState{Operands: []*ir.Value{x}, Attrs: []ir.NamedAttr{b.attr("tf32", true)}, Results: []ir.Type{x.Type()}}).Result(0)
}

// Pack rounds two numbers to 16 bits.
func (b *Builder) Pack(format string, low, high *ir.Value) *ir.Value {
	return b.Create(Pack, []*ir.Value{low, high}, b.attr("format", format)).Result(0)
}

// Bitcast keeps the bits.
func (b *Builder) Bitcast(x *ir.Value, to ir.Type) *ir.Value {
	if x.Type() == to {
		return x
	}
	return b.CreateState(Bitcast, ir.OpState{Operands: []*ir.Value{x}, Results: []ir.Type{to}}).Result(0)
}

// Split takes a register apart into halves of a type.
func (b *Builder) Split(x *ir.Value, half ir.Type) (low, high *ir.Value) {
	op := b.CreateState(Split, ir.OpState{Operands: []*ir.Value{x}, Results: []ir.Type{half, half}})
	return op.Result(0), op.Result(1)
}

// Join makes a register of two.
func (b *Builder) Join(low, high *ir.Value) *ir.Value { return b.op(Join, low, high) }

// Access says how memory is accessed.
type Access struct {
	Space  string // "global" or "shared"
	Offset int
	Cache  string
	If     *ir.Value
}

func (b *Builder) access(a Access) []ir.NamedAttr {
	attrs := []ir.NamedAttr{b.attr("space", a.Space)}
	if a.Offset != 0 {
		attrs = append(attrs, b.attr("offset", a.Offset))
	}
	if a.Cache != "" {
		attrs = append(attrs, b.attr("cache", a.Cache))
	}
	return attrs
}

// Load reads n registers of a type.
func (b *Builder) Load(address *ir.Value, elem ir.Type, n int, a Access) *ir.Value {
	t := elem
	if n > 1 {
		t = b.Ctx.Vector([]int64{int64(n)}, elem)
	}
	operands := []*ir.Value{address}
	if a.If != nil {
		operands = append(operands, a.If)
	}
	return b.CreateState(Load, ir.OpState{Operands: operands, Attrs: b.access(a), Results: []ir.Type{t}}).Result(0)
}

// Store writes registers.
func (b *Builder) Store(address, x *ir.Value, a Access) {
	operands := []*ir.Value{address, x}
	if a.If != nil {
		operands = append(operands, a.If)
	}
	b.CreateState(Store, ir.OpState{Operands: operands, Attrs: b.access(a)})
}

// LoadByte reads a byte of global memory; when may be nil.
func (b *Builder) LoadByte(address *ir.Value, offset int, when *ir.Value) *ir.Value {
	return b.Create(LoadByte, guarded(when, address), b.attr("offset", offset)).Result(0)
}

// StoreByte writes a byte of global memory; when may be nil.
func (b *Builder) StoreByte(address, x *ir.Value, offset int, when *ir.Value) {
	b.Do(StoreByte, guarded(when, address, x), "offset", offset)
}

// ReduceMin takes the smaller of global memory and x; when may be nil.
func (b *Builder) ReduceMin(address, x *ir.Value, offset int, when *ir.Value) {
	b.Do(ReduceMin, guarded(when, address, x), "offset", offset)
}

func guarded(when *ir.Value, operands ...*ir.Value) []*ir.Value {
	if when != nil {
		operands = append(operands, when)
	}
	return operands
}

// Do makes an operation without results, or with inferred ones. Attributes are name, value, name, value.
func (b *Builder) Do(def *ir.OpDef, operands []*ir.Value, attrs ...any) *ir.Op {
	named := make([]ir.NamedAttr, 0, len(attrs)/2)
	for i := 0; i < len(attrs); i += 2 {
		named = append(named, b.attr(attrs[i].(string), attrs[i+1]))
	}
	if def.Infer != nil {
		return b.Create(def, operands, named...)
	}
	return b.CreateState(def, ir.OpState{Operands: operands, Attrs: named})
}

// LoadMatrix reads n 8x8 matrices.
func (b *Builder) LoadMatrix(address *ir.Value, n, offset int, trans bool) *ir.Value {
	attrs := []ir.NamedAttr{b.attr("offset", offset)}
	if trans {
		attrs = append(attrs, b.attr("trans", true))
	}
	t := b.Ctx.Vector([]int64{int64(n)}, b.Ctx.I32())
	return b.CreateState(LoadMatrix, ir.OpState{Operands: []*ir.Value{address}, Attrs: attrs, Results: []ir.Type{t}}).Result(0)
}

// TMALoad copies a box of a tensor; mask may be nil.
func (b *Builder) TMALoad(m, to, barrier *ir.Value, mask *ir.Value, at ...*ir.Value) {
	operands := append([]*ir.Value{m, to, barrier}, at...)
	sizes := []int64{1, 1, 1, int64(len(at)), 0}
	if mask != nil {
		operands = append(operands, mask)
		sizes[4] = 1
	}
	b.CreateState(TMALoad, ir.OpState{Operands: operands, Attrs: []ir.NamedAttr{
		{Name: "operandSegmentSizes", Value: b.Ctx.DenseInts(b.Ctx.I32(), sizes...)}}})
}

// For makes a loop. The body gets the index and the carried values and returns those of the next iteration. The body may
// only use b.
func (b *Builder) For(lower, upper, step *ir.Value, uniform bool, inits []*ir.Value, body func(i *ir.Value, carried []*ir.Value) []*ir.Value) []*ir.Value {
	types := make([]ir.Type, len(inits))
	for i, v := range inits {
		types[i] = v.Type()
	}
	var attrs []ir.NamedAttr
	if uniform {
		attrs = append(attrs, b.attr("uniform", true))
	}
	op := b.CreateState(For, ir.OpState{Operands: append([]*ir.Value{lower, upper, step}, inits...), Attrs: attrs, Results: types, Regions: 1})
	block := op.Region(0).AddBlock(append([]ir.Type{b.Ctx.I32()}, types...)...)
	b.within(block, func() []*ir.Value { return body(block.Arg(0), slices.Clone(block.Args()[1:])) })
	return op.Results()
}

// If makes a branch without results; otherwise may be nil.
func (b *Builder) If(condition *ir.Value, uniform bool, then, otherwise func()) {
	var attrs []ir.NamedAttr
	if uniform {
		attrs = append(attrs, b.attr("uniform", true))
	}
	op := b.CreateState(If, ir.OpState{Operands: []*ir.Value{condition}, Attrs: attrs, Regions: 2})
	for i, body := range []func(){then, otherwise} {
		if body != nil {
			b.within(op.Region(i).AddBlock(), func() []*ir.Value { body(); return nil })
		}
	}
}

// within builds a block and comes back.
func (b *Builder) within(block *ir.Block, body func() []*ir.Value) {
	outer := *b.Builder
	b.AtEnd(block)
	vs := body()
	b.CreateState(Yield, ir.OpState{Operands: vs})
	*b.Builder = outer
}
