package kernels

import (
	"slices"

	"blutrain/dialects/arith"
	"blutrain/dialects/scf"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// writer writes the body of a tile.kernel.
type writer struct {
	c      *ir.Context
	kernel *ir.Op
	b      *ir.Builder
	ins    []*ir.Value
	outs   []*ir.Value
	axes   []*ir.Value // of the grid
	consts map[int64]*ir.Value
	scalar map[scalarKey]*ir.Value
}

type scalarKey struct {
	v    float64
	elem ir.Type
}

// newKernel starts a kernel of references of the given shapes.
func newKernel(c *ir.Context, loc *ir.Location, ins, outs []*ir.MemRefType, grid, steps []int64) *writer {
	k := c.NewOp(tile.Kernel, ir.OpState{Loc: loc, Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "outs", Value: c.Int64(int64(len(outs)))}, {Name: "grid", Value: c.I64s(grid...)}, {Name: "steps", Value: c.I64s(steps...)},
	}})
	body := k.Region(0).AddBlock()
	w := &writer{c: c, kernel: k, b: ir.NewBuilder(c, body).At(loc), consts: map[int64]*ir.Value{}, scalar: map[scalarKey]*ir.Value{}}
	for _, t := range ins {
		w.ins = append(w.ins, body.AddArg(t, loc))
	}
	for _, t := range outs {
		w.outs = append(w.outs, body.AddArg(t, loc))
	}
	for range grid {
		w.axes = append(w.axes, body.AddArg(c.Index(), loc))
	}
	return w
}

func (w *writer) end() { w.b.CreateState(tile.End, ir.OpState{}) }

// start is a builder for what the whole kernel shares.
func (w *writer) start() *ir.Builder {
	return ir.NewBuilder(w.c, nil).AtStart(w.kernel.Body()).At(w.b.Loc)
}

// number is a constant index.
func (w *writer) number(n int64) *ir.Value {
	if w.consts[n] == nil {
		w.consts[n] = arith.NewIndex(w.start(), n)
	}
	return w.consts[n]
}

// constant is a 1x1 block.
func (w *writer) constant(v float64, elem ir.Type) *ir.Value {
	key := scalarKey{v, elem}
	if w.scalar[key] == nil {
		w.scalar[key] = w.start().CreateState(tile.Constant, ir.OpState{
			Attrs: []ir.NamedAttr{{Name: "value", Value: w.c.FloatAttr(v, w.c.F64())}}, Results: []ir.Type{tile.Block(w.c, 1, 1, elem)},
		}).Result(0)
	}
	return w.scalar[key]
}

// index makes an operation of two indices, of constants at once.
func (w *writer) index(def *ir.OpDef, x, y *ir.Value) *ir.Value {
	a, okA := arith.IntValue(x)
	b, okB := arith.IntValue(y)
	switch {
	case def == arith.Addi && okA && a == 0, def == arith.Muli && okA && a == 1:
		return y
	case (def == arith.Addi || def == arith.Subi) && okB && b == 0, (def == arith.Muli || def == arith.Divsi) && okB && b == 1:
		return x
	case def == arith.Muli && (okA && a == 0 || okB && b == 0):
		return w.number(0)
	case okA && okB:
		switch def {
		case arith.Addi:
			return w.number(a + b)
		case arith.Subi:
			return w.number(a - b)
		case arith.Muli:
			return w.number(a * b)
		case arith.Divsi:
			return w.number(a / b)
		case arith.Minsi:
			return w.number(min(a, b))
		}
	}
	return w.b.Create(def, []*ir.Value{x, y}).Result(0)
}

// op makes a tile operation whose result type follows from its operands.
func (w *writer) op(def *ir.OpDef, operands []*ir.Value, attrs ...ir.NamedAttr) *ir.Value {
	return w.b.Create(def, operands, attrs...).Result(0)
}

// named makes an elementwise operation by name.
func (w *writer) named(name string, operands ...*ir.Value) *ir.Value {
	return w.op(tile.ElementwiseOp(name), operands)
}

func (w *writer) compare(predicate string, x, y *ir.Value) *ir.Value {
	return w.op(tile.ElementwiseOp("compare"), []*ir.Value{x, y}, ir.NamedAttr{Name: "predicate", Value: w.c.String(predicate)})
}

func (w *writer) cast(x *ir.Value, elem ir.Type) *ir.Value {
	if x.Elem() == elem {
		return x
	}
	s := x.Shape()
	return w.typed(tile.ElementwiseOp("cast"), []*ir.Value{x}, tile.Block(w.c, s[0], s[1], elem))
}

// typed makes an operation of a given result type.
func (w *writer) typed(def *ir.OpDef, operands []*ir.Value, t ir.Type, attrs ...ir.NamedAttr) *ir.Value {
	return w.b.CreateState(def, ir.OpState{Operands: operands, Attrs: attrs, Results: []ir.Type{t}}).Result(0)
}

func (w *writer) reduce(kind string, axis int64, x *ir.Value) *ir.Value {
	return w.op(tile.Reduce, []*ir.Value{x}, ir.NamedAttr{Name: "kind", Value: w.c.String(kind)}, ir.NamedAttr{Name: "axis", Value: w.c.Int64(axis)})
}

func (w *writer) dot(a, b, acc *ir.Value, ta, tb bool) *ir.Value {
	operands := []*ir.Value{a, b}
	if acc != nil {
		operands = append(operands, acc)
	}
	var attrs []ir.NamedAttr
	if ta {
		attrs = append(attrs, ir.NamedAttr{Name: "ta", Value: w.c.Bool(true)})
	}
	if tb {
		attrs = append(attrs, ir.NamedAttr{Name: "tb", Value: w.c.Bool(true)})
	}
	return w.op(tile.Dot, operands, attrs...)
}

// load reads a block; row and col are dimensions of the reference or -1.
func (w *writer) load(ref *ir.Value, at []*ir.Value, row, col int, rows, cols int64) *ir.Value {
	return w.typed(tile.Load, append([]*ir.Value{ref}, at...), tile.Block(w.c, rows, cols, ref.Elem()), w.window(ref, row, col)...)
}

func (w *writer) store(x, ref *ir.Value, at []*ir.Value, row, col int) {
	w.b.CreateState(tile.Store, ir.OpState{Operands: append([]*ir.Value{x, ref}, at...), Attrs: w.window(ref, row, col)})
}

// window is the attributes of a load or store: none where they say what is taken for granted.
func (w *writer) window(ref *ir.Value, row, col int) (attrs []ir.NamedAttr) {
	rank := len(ref.Shape())
	if col != rank-1 {
		attrs = append(attrs, ir.NamedAttr{Name: "col", Value: w.c.Int64(int64(col))})
	}
	if row != max(rank-2, -1) {
		attrs = append(attrs, ir.NamedAttr{Name: "row", Value: w.c.Int64(int64(row))})
	}
	return attrs
}

// broadcast repeats x to a block of the given type and actual extents.
func (w *writer) broadcast(x *ir.Value, rows, cols int64, actualRows, actualCols *ir.Value) *ir.Value {
	if slices.Equal(x.Shape(), []int64{rows, cols}) {
		return x
	}
	return w.typed(tile.Broadcast, []*ir.Value{x, actualRows, actualCols}, tile.Block(w.c, rows, cols, x.Elem()))
}

// loop makes a loop that carries blocks; body gives those of the next round.
func (w *writer) loop(lower, upper, step *ir.Value, inits []*ir.Value, body func(i *ir.Value, carried []*ir.Value) []*ir.Value) []*ir.Value {
	types := make([]ir.Type, len(inits))
	for i, v := range inits {
		types[i] = v.Type()
	}
	op := w.b.CreateState(scf.For, ir.OpState{Operands: append([]*ir.Value{lower, upper, step}, inits...), Results: types, Regions: 1})
	block := op.Region(0).AddBlock(append([]ir.Type{w.c.Index()}, types...)...)
	outer := w.b
	w.b = ir.NewBuilder(w.c, block).At(outer.Loc)
	next := body(block.Arg(0), block.Args()[1:])
	w.b.CreateState(scf.Yield, ir.OpState{Operands: next})
	w.b = outer
	return op.Results()
}

// clip is the actual extent of a block of at most so many elements at an offset in a dimension of n.
func (w *writer) clip(offset *ir.Value, n, most int64) *ir.Value {
	if n%most == 0 {
		return w.number(most)
	}
	return w.index(arith.Minsi, w.number(most), w.index(arith.Subi, w.number(n), offset))
}
