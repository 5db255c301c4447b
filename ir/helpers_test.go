package ir_test

import (
	"fmt"
	"math/rand/v2"

	"blutrain/ir"
)

// The operations of the tests: enough of builtin and func for modules, and a dialect with every kind of operation.
var (
	moduleDef = ir.Define("builtin", ir.OpDef{
		Name: "module", Regions: []ir.RegionDef{{Name: "body"}},
		Attrs:  []ir.AttrDef{{Name: "sym_name", Kind: ir.StringKind, Optional: true}, {Name: "sym_visibility", Kind: ir.StringKind, Optional: true}},
		Traits: ir.Symbol | ir.SymbolTable | ir.Isolated | ir.NoTerminator | ir.Properties,
	})
	funcDef = ir.Define("func", ir.OpDef{
		Name: "func", Regions: []ir.RegionDef{{Name: "body", Arity: ir.Variadic}},
		Attrs: []ir.AttrDef{
			{Name: "sym_name", Kind: ir.StringKind}, {Name: "function_type", Kind: ir.TypeKind},
			{Name: "sym_visibility", Kind: ir.StringKind, Optional: true},
			{Name: "arg_attrs", Kind: ir.ArrayKind, Optional: true}, {Name: "res_attrs", Kind: ir.ArrayKind, Optional: true},
		},
		Traits: ir.Symbol | ir.Isolated | ir.FunctionLike | ir.Properties,
	})
	returnDef = ir.Define("func", ir.OpDef{
		Name: "return", Operands: []ir.OperandDef{{Name: "operands", Type: anyType, Arity: ir.Variadic}}, Traits: ir.Terminator,
	})
	callDef = ir.Define("func", ir.OpDef{
		Name: "call", Operands: []ir.OperandDef{{Name: "operands", Type: anyType, Arity: ir.Variadic}},
		Results: []ir.ResultDef{{Name: "results", Type: anyType, Arity: ir.Variadic}},
		Attrs:   []ir.AttrDef{{Name: "callee", Kind: ir.SymbolKind}},
	})
	anyType = ir.Constraint{Doc: "any type", OK: func(ir.Type) bool { return true }}

	opDef = ir.Define("test", ir.OpDef{
		Name: "op", Operands: []ir.OperandDef{{Name: "in", Type: anyType, Arity: ir.Variadic}},
		Results: []ir.ResultDef{{Name: "out", Type: anyType, Arity: ir.Variadic}},
	})
	loopDef = ir.Define("test", ir.OpDef{
		Name: "loop", Operands: []ir.OperandDef{{Name: "in", Type: anyType, Arity: ir.Variadic}},
		Results: []ir.ResultDef{{Name: "out", Type: anyType, Arity: ir.Variadic}},
		Regions: []ir.RegionDef{{Name: "body", Arity: ir.Variadic}, {Name: "tail"}},
		Traits:  ir.NoTerminator,
	})
	branchDef = ir.Define("test", ir.OpDef{
		Name: "branch", Operands: []ir.OperandDef{{Name: "in", Type: anyType, Arity: ir.Variadic}}, Traits: ir.Terminator,
	})
	globalDef = ir.Define("test", ir.OpDef{
		Name:   "global",
		Attrs:  []ir.AttrDef{{Name: "sym_name", Kind: ir.StringKind}, {Name: "type", Kind: ir.TypeKind}},
		Traits: ir.Symbol,
	})
)

func testDialects() []*ir.Dialect {
	return []*ir.Dialect{
		{Name: "builtin", Ops: []*ir.OpDef{moduleDef}},
		{Name: "func", Ops: []*ir.OpDef{funcDef, returnDef, callDef}},
		{Name: "test", Ops: []*ir.OpDef{opDef, loopDef, branchDef, globalDef},
			Types: []ir.TypeDef{{Name: "thing"}, {Name: "block"}}, Attrs: []ir.AttributeDef{{Name: "split"}, {Name: "mark"}}},
	}
}

// randomIR makes modules that use everything the text can say.
type randomIR struct {
	*rand.Rand
	c *ir.Context
}

func (r *randomIR) pick(n int) bool { return r.IntN(n) == 0 }

func (r *randomIR) shape(dynamic bool) []int64 {
	var s []int64
	for range r.IntN(4) {
		if dynamic && r.pick(4) {
			s = append(s, ir.Dynamic)
		} else {
			s = append(s, int64(r.IntN(4)))
		}
	}
	return s
}

func (r *randomIR) scalar() ir.Type {
	switch r.IntN(5) {
	case 0:
		return r.c.Int([]int{1, 8, 16, 32, 64}[r.IntN(5)])
	case 1:
		return r.c.IntSigned([]int{8, 32, 64}[r.IntN(3)], ir.Signedness(r.IntN(3)))
	case 2:
		return r.c.Index()
	}
	return r.c.Float([]ir.FloatKind{ir.F64, ir.F32, ir.F16, ir.BF16}[r.IntN(4)])
}

func (r *randomIR) typ(depth int) ir.Type {
	if depth == 0 {
		return r.scalar()
	}
	switch r.IntN(8) {
	case 0:
		var enc ir.Attr
		if r.pick(3) {
			enc = r.attr(depth - 1)
		}
		return r.c.TensorEncoded(r.shape(true), r.scalar(), enc)
	case 1:
		return r.c.Vector(r.shape(false), r.scalar())
	case 2:
		shape := r.shape(true)
		var layout, space ir.Attr
		if r.pick(2) {
			layout = r.c.Strided(make([]int64, len(shape)), []int64{0, 4, ir.Dynamic, -3}[r.IntN(4)])
		}
		if r.pick(2) {
			space = r.c.Integer(3, r.c.I32())
		}
		return r.c.MemRefWith(shape, r.scalar(), layout, space)
	case 3:
		return r.c.Func(r.types(depth-1), r.types(depth-1))
	case 4:
		return r.c.DialectType("test", "thing", nil, nil, r.attrs(depth-1)...)
	case 5:
		return r.c.DialectType("test", "block", r.shape(true), r.scalar(), r.attrs(depth-1)...)
	case 6:
		return r.c.None()
	}
	return r.scalar()
}

func (r *randomIR) types(depth int) []ir.Type {
	var ts []ir.Type
	for range r.IntN(3) {
		ts = append(ts, r.typ(depth))
	}
	return ts
}

func (r *randomIR) attrs(depth int) []ir.Attr {
	var as []ir.Attr
	for range r.IntN(3) {
		as = append(as, r.attr(depth))
	}
	return as
}

func (r *randomIR) float() float64 {
	return []float64{0, -0.0, 1, 0.1, -3e38, 6e-8, 1e300, r.NormFloat64(), inf, -inf, nan}[r.IntN(11)]
}

func (r *randomIR) floatType() ir.Type {
	return r.c.Float([]ir.FloatKind{ir.F64, ir.F32, ir.F16, ir.BF16}[r.IntN(4)])
}

func (r *randomIR) integer() ir.Attr {
	width := []int{1, 8, 32, 64}[r.IntN(4)]
	v := int64(r.Uint64()) >> (64 - width)
	if width == 1 {
		v &= 1
	}
	return r.c.Integer(v, r.c.Int(width))
}

func (r *randomIR) str() string {
	return []string{"", "a", "with \"quotes\" and \\", "nul\x00 é\n\t\xff", "x.y$z", "1a", "unit"}[r.IntN(7)]
}

func (r *randomIR) dense() ir.Attr {
	shape, elem := r.shape(false), r.scalar()
	var raw []byte
	for range ir.NumElements(shape) {
		if ir.IsFloat(elem) {
			raw = ir.EncodeElement(raw, elem, r.float())
		} else if elem == r.c.I1() {
			raw = append(raw, byte(r.IntN(2)))
		} else {
			raw = ir.EncodeInt(raw, elem, int64(r.Uint64()))
		}
	}
	return r.c.Dense(r.c.Tensor(shape, elem), raw)
}

func (r *randomIR) attr(depth int) ir.Attr {
	c := r.c
	n := 14
	if depth <= 0 {
		n = 9
	}
	switch r.IntN(n) {
	case 0:
		return c.Unit()
	case 1:
		return r.integer()
	case 2:
		return c.FloatAttr(r.float(), r.floatType())
	case 3:
		return c.String(r.str())
	case 4:
		return c.Symbol("a", "with space")
	case 5:
		return c.DenseInts(c.Int(8), 1, -2, 127)
	case 6:
		return c.DenseFloats(r.floatType(), r.float(), r.float())
	case 7:
		return r.dense()
	case 8:
		return c.DenseInts(c.I1(), 1, 0)
	case 9:
		return c.TypeAttr(r.typ(depth - 1))
	case 10:
		return c.Array(r.attrs(depth - 1)...)
	case 11:
		return c.Dict(r.named(depth - 1)...)
	case 12:
		return c.DialectAttr("test", "split", r.attrs(depth-1), r.named(depth-1)...)
	}
	return c.Elided(c.Tensor([]int64{99}, c.F32()))
}

func (r *randomIR) named(depth int) []ir.NamedAttr {
	var as []ir.NamedAttr
	for i := range r.IntN(3) {
		as = append(as, ir.NamedAttr{Name: fmt.Sprintf([]string{"a%d", "d.x%d", "%d odd", "_%d"}[r.IntN(4)], i), Value: r.attr(depth)})
	}
	return as
}

func (r *randomIR) loc() *ir.Location {
	c := r.c
	switch r.IntN(6) {
	case 0:
		return c.NameLoc("name", nil)
	case 1:
		return c.NameLoc("name", r.loc())
	case 2:
		return c.CallSite(c.FileLoc("a.blu", 1, 2), r.loc())
	case 3:
		return c.Fused(r.loc(), r.loc())
	case 4:
		return c.Unknown()
	}
	return c.FileLoc("gpt2.blu", r.IntN(100)+1, r.IntN(80)+1)
}

// module makes a module of functions.
func (r *randomIR) module() *ir.Op {
	m := r.c.NewOp(moduleDef, ir.OpState{Regions: 1, Loc: r.loc()})
	if r.pick(2) {
		m.SetAttr("sym_name", r.c.String("m"))
	}
	b := ir.NewBuilder(r.c, m.Region(0).AddBlock())
	for i := range r.IntN(4) {
		if r.pick(4) {
			b.CreateState(globalDef, ir.OpState{Loc: r.loc(), Attrs: []ir.NamedAttr{
				{Name: "sym_name", Value: r.c.String(fmt.Sprint("g ", i))}, {Name: "type", Value: r.c.TypeAttr(r.typ(2))},
				{Name: "sym_visibility", Value: r.c.String([]string{"private", "nested", "public"}[r.IntN(3)])}}})
			continue
		}
		r.function(b, fmt.Sprint("f", i))
	}
	return m
}

func (r *randomIR) function(b *ir.Builder, name string) {
	ins, outs := r.types(2), r.types(2)
	attrs := []ir.NamedAttr{{Name: "sym_name", Value: r.c.String(name)}, {Name: "function_type", Value: r.c.TypeAttr(r.c.Func(ins, outs))}}
	if r.pick(2) {
		attrs = append(attrs, ir.NamedAttr{Name: "sym_visibility", Value: r.c.String("private")})
	}
	if r.pick(2) && len(ins) > 0 {
		dicts := make([]ir.Attr, len(ins))
		for i := range dicts {
			dicts[i] = r.c.Dict(r.named(1)...)
		}
		attrs = append(attrs, ir.NamedAttr{Name: "arg_attrs", Value: r.c.Array(dicts...)})
	}
	f := b.CreateState(funcDef, ir.OpState{Regions: 1, Attrs: append(attrs, ir.NamedAttr{Name: "test.note", Value: r.attr(1)}), Loc: r.loc()})
	if r.pick(4) {
		return
	}
	entry := f.Region(0).AddBlock()
	for _, t := range ins {
		entry.AddArg(t, r.loc())
	}
	r.fill(f.Region(0), nil, 3)
}

// fill puts operations into the first block of a region, and sometimes adds blocks that jump to each other.
func (r *randomIR) fill(reg *ir.Region, visible []*ir.Value, depth int) {
	entry := reg.First()
	blocks := []*ir.Block{entry}
	if r.pick(3) {
		for range r.IntN(3) {
			blocks = append(blocks, reg.AddBlock(r.types(1)...))
		}
	}
	for i, b := range blocks {
		values := append(visible[:len(visible):len(visible)], b.Args()...)
		for range r.IntN(5) {
			values = append(values, r.op(b, values, depth)...)
		}
		if i+1 < len(blocks) {
			ir.NewBuilder(r.c, b).CreateState(branchDef, ir.OpState{Successors: blocks[1:], Loc: r.loc(), Operands: values[:min(1, len(values))]})
		}
	}
	// Uses before the definition in the text, as between blocks that dominate each other out of order.
	if last := blocks[len(blocks)-1]; len(blocks) > 1 && last.First() != nil && last.First().NumResults() > 0 {
		ir.NewBuilder(r.c, nil).AtStart(entry).CreateState(opDef, ir.OpState{Operands: []*ir.Value{last.First().Result(last.First().NumResults() - 1)}})
	}
}

func (r *randomIR) op(block *ir.Block, values []*ir.Value, depth int) []*ir.Value {
	b := ir.NewBuilder(r.c, block).At(r.loc())
	s := ir.OpState{Attrs: r.named(2), Results: r.types(2)}
	for range r.IntN(3) {
		if len(values) > 0 {
			s.Operands = append(s.Operands, values[r.IntN(len(values))])
		}
	}
	def := opDef
	if depth > 0 && r.pick(4) {
		def, s.Regions = loopDef, 2
		if r.pick(5) {
			s.Regions = 1 // not what the definition asks for: printed generically
		}
	}
	op := b.CreateState(def, s)
	for _, reg := range op.Regions() {
		if r.pick(4) {
			continue
		}
		entry := reg.AddBlock(r.types(1)...)
		_ = entry
		r.fill(reg, values, depth-1)
	}
	return op.Results()
}
