package kernels

import (
	"encoding/binary"
	"slices"

	"blutrain/dialects/arith"
	"blutrain/dialects/blu"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// emitter writes the kernel of a form: a loop over a domain, or a product and its epilogue.
type emitter struct {
	*writer
	f     *form
	sides []*ir.Value // the operands of a product
	at    []*ir.Value // by axis: where the block is
	grid  []*ir.Value // by axis: where the grid point is
	scope *scope
	ids   map[any]uint64
}

// scope is what is known in a region; what is known around it is, too.
type scope struct {
	outer   *scope
	blocks  map[*ir.Value]*ir.Value
	loads   map[int]*ir.Value
	extents map[int]*ir.Value
	made    map[string]*ir.Value // elementwise operations by what they compute
}

func newScope(outer *scope) *scope {
	return &scope{outer, map[*ir.Value]*ir.Value{}, map[int]*ir.Value{}, map[int]*ir.Value{}, map[string]*ir.Value{}}
}

func (s *scope) block(v *ir.Value) *ir.Value {
	for ; s != nil; s = s.outer {
		if b := s.blocks[v]; b != nil {
			return b
		}
	}
	return nil
}

func (s *scope) equal(key string) *ir.Value {
	for ; s != nil; s = s.outer {
		if b := s.made[key]; b != nil {
			return b
		}
	}
	return nil
}

func (s *scope) load(input int) *ir.Value {
	for ; s != nil; s = s.outer {
		if b := s.loads[input]; b != nil {
			return b
		}
	}
	return nil
}

// emit writes the kernel; it has no name yet.
func (f *form) emit(c *ir.Context) *ir.Op {
	var grid, steps []int64
	for _, a := range f.axes {
		if a.grid {
			grid, steps = append(grid, a.size), append(steps, a.step)
		}
	}
	refs := func(ts []tensor) (out []*ir.MemRefType) {
		for _, t := range ts {
			out = append(out, c.MemRef(t.shape, t.value.Elem()))
		}
		return out
	}
	ins := append(refs(f.sides), refs(f.inputs)...)
	e := &emitter{writer: newKernel(c, f.g.root.Loc(), ins, refs(f.outputs), grid, steps), f: f, scope: newScope(nil), ids: map[any]uint64{}}
	e.sides, e.ins = e.ins[:len(f.sides)], e.ins[len(f.sides):]
	n := 0
	for _, a := range f.axes {
		i := e.number(0)
		if a.grid {
			i = e.axes[n]
			n++
		}
		e.at = append(e.at, i)
	}
	e.grid = slices.Clone(e.at)
	if f.g.kind == product {
		e.product()
	}
	e.panel()
	e.end()
	return e.kernel
}

// panel computes what the grid point does: one block, or with partial results a panel of blocks.
func (e *emitter) panel() {
	f := e.f
	if len(f.g.sums) == 0 {
		e.rowBlock()
		return
	}
	row := f.axes[f.row]
	var sums []*ir.Value
	if row.size <= row.extent || row.step <= row.extent {
		e.rowBlock()
		for _, r := range f.g.sums {
			sums = append(sums, e.blockSum(r))
		}
	} else {
		sums = e.panelLoop(row)
	}
	k := len(f.outputs) - len(sums)
	for i, x := range sums {
		e.storePartial(x, k+i)
	}
}

func (e *emitter) panelLoop(row axis) []*ir.Value {
	f := e.f
	var inits []*ir.Value
	for _, r := range f.g.sums {
		_, kept := f.g.split(r, f.g.operand[r])
		_, cols := f.extentsOf(kept)
		zero := e.constant(identity(r), r.Result(0).Elem())
		inits = append(inits, e.broadcast(zero, 1, cols, e.number(1), e.actualOf(kept, f.col)))
	}
	lower, upper := e.at[f.row], e.number(row.size)
	if row.grid {
		upper = e.index(arith.Minsi, upper, e.index(arith.Addi, lower, e.number(row.step)))
	}
	return e.loop(lower, upper, e.number(row.extent), inits, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		e.enter()
		defer e.leave()
		e.moveTo(f.row, i)
		e.rowBlock()
		next := make([]*ir.Value, len(carried))
		for k, r := range f.g.sums {
			next[k] = e.named(combiner(r), carried[k], e.blockSum(r))
		}
		e.at[f.row] = lower
		return next
	})
}

// moveTo puts the block at a place along an axis.
func (e *emitter) moveTo(k int, i *ir.Value) {
	e.at[k] = i
	e.scope.extents[k] = e.clip(i, e.f.axes[k].size, e.f.axes[k].extent)
}

func (e *emitter) enter() { e.scope = newScope(e.scope) }
func (e *emitter) leave() { e.scope = e.scope.outer }

// combiner is the elementwise operation that joins two results of a reduction.
func combiner(r *ir.Op) string {
	switch r.Def() {
	case blu.ReduceMax:
		return "max"
	case blu.ReduceMin:
		return "min"
	}
	return "add"
}

// reductionKind is what tile.reduce calls a reduction.
func reductionKind(r *ir.Op) string {
	switch r.Def() {
	case blu.ReduceMax:
		return "max"
	case blu.ReduceMin:
		return "min"
	case blu.Argmax:
		return "argmax"
	}
	return "sum"
}

// blockSum reduces the rows of the operand of a reduction over rows.
func (e *emitter) blockSum(r *ir.Op) *ir.Value {
	f := e.f
	_, kept := f.g.split(r, f.g.operand[r])
	_, cols := f.extentsOf(kept)
	x := e.broadcast(e.operand(r, 0), f.axes[f.row].extent, cols, e.actual(f.row), e.actualOf(kept, f.col))
	return e.reduce(reductionKind(r), 0, x)
}

func (e *emitter) storePartial(x *ir.Value, out int) {
	f, t := e.f, e.f.outputs[out]
	var at []*ir.Value
	for i, a := range f.axes {
		if a.sum {
			at = append(at, e.index(arith.Divsi, e.grid[i], e.number(a.step)))
		}
	}
	col := -1
	for i, k := range t.axes {
		if k == f.col {
			col = len(at)
		}
		at = append(at, e.at[t.axes[i]])
	}
	e.store(x, e.outs[out], at, -1, col)
}

// rowBlock computes everything for the rows at hand, and stores it.
func (e *emitter) rowBlock() {
	if !e.f.held {
		e.passes()
		return
	}
	for _, op := range e.f.ops {
		e.block(op.Result(0))
		e.storeResult(op)
	}
}

// storeResult stores what an operation computes, if it is an output.
func (e *emitter) storeResult(op *ir.Op) {
	for i, t := range e.f.outputs {
		if t.sum == nil && t.value == op.Result(0) {
			e.storeOutput(i)
		}
	}
}

func (e *emitter) storeOutput(i int) {
	f, t := e.f, e.f.outputs[i]
	at, row, col := e.window(t)
	rows, cols := f.extentsOf(f.g.dims[t.value])
	x := e.broadcast(e.block(t.value), rows, cols, e.actualOf(f.g.dims[t.value], f.row), e.actualOf(f.g.dims[t.value], f.col))
	e.store(x, e.outs[i], at, row, col)
}

// window is the offsets of the block at hand in a tensor, and which of its dimensions are rows and columns.
func (e *emitter) window(t tensor) (at []*ir.Value, row, col int) {
	row, col = -1, -1
	for d, k := range t.axes {
		if k < 0 {
			at = append(at, e.number(0))
			continue
		}
		if k == e.f.row {
			row = d
		}
		if k == e.f.col {
			col = d
		}
		at = append(at, e.at[k])
	}
	return at, row, col
}

// extentsOf is the most rows and columns of a block of a tensor with these atoms.
func (f *form) extentsOf(ds dims) (rows, cols int64) {
	rows, cols = 1, 1
	if f.has(ds, f.row) {
		rows = f.axes[f.row].extent
	}
	if f.has(ds, f.col) {
		cols = f.axes[f.col].extent
	}
	return rows, cols
}

// actual is the actual extent of blocks along an axis.
func (e *emitter) actual(k int) *ir.Value {
	if k < 0 {
		return e.number(1)
	}
	for s := e.scope; s != nil; s = s.outer {
		if v := s.extents[k]; v != nil {
			return v
		}
	}
	a := e.f.axes[k]
	v := e.clip(e.at[k], a.size, a.extent)
	e.scope.extents[k] = v
	return v
}

// actualOf is the actual extent along an axis of a block of a tensor with these atoms.
func (e *emitter) actualOf(ds dims, k int) *ir.Value {
	if !e.f.has(ds, k) {
		return e.number(1)
	}
	return e.actual(k)
}

// block is the block of something the group computes, written where it is first needed.
func (e *emitter) block(v *ir.Value) *ir.Value {
	if b := e.scope.block(v); b != nil {
		return b
	}
	b := e.compute(v.Op())
	e.scope.blocks[v] = b
	return b
}

// operand is the block of an operation's operand.
func (e *emitter) operand(op *ir.Op, i int) *ir.Value {
	switch s := e.f.sources[op][i]; {
	case s.member != nil:
		return e.block(s.member)
	case s.inline != nil:
		return e.inlined(s.inline, s.dims)
	default:
		return e.input(s.input)
	}
}

// input loads the block at hand of an input.
func (e *emitter) input(i int) *ir.Value {
	if b := e.scope.load(i); b != nil {
		return b
	}
	t := e.f.inputs[i]
	at, row, col := e.window(t)
	rows, cols := e.f.extentsOf(t.from.dims)
	b := e.load(e.ins[i], at, row, col, rows, cols)
	e.scope.loads[i] = b
	return b
}

// inlined is a constant, or the block at hand of a count.
func (e *emitter) inlined(op *ir.Op, ds dims) *ir.Value {
	elem := op.Result(0).Elem()
	if d, ok := op.Attr("value").(*ir.DenseAttr); ok {
		return e.constant(ir.DecodeElement(elem, d.Raw), elem)
	}
	f := e.f
	list := f.g.dom.leaves(ds[op.Attrs().IntOr("axis", 0)])
	var sum *ir.Value
	n := int64(1)
	for i := len(list) - 1; i >= 0; { // axes of the dimension, from the innermost
		k := f.axisOf(list[i])
		part := e.count(k, elem)
		if n != 1 {
			part = e.named("mul", part, e.constant(float64(n), elem))
		}
		if sum == nil {
			sum = part
		} else {
			sum = e.named("add", part, sum)
		}
		n *= f.axes[k].size
		i -= len(f.axes[k].atoms)
	}
	if sum == nil {
		return e.constant(0, elem)
	}
	return sum
}

// count is the positions along an axis.
func (e *emitter) count(k int, elem ir.Type) *ir.Value {
	rows, cols, axis, n := int64(1), int64(1), int64(1), e.number(1)
	switch k {
	case e.f.row:
		rows, axis, n = e.f.axes[k].extent, 0, e.actual(k)
	case e.f.col:
		cols, n = e.f.axes[k].extent, e.actual(k)
	}
	return e.typed(tile.Iota, []*ir.Value{e.at[k], n}, tile.Block(e.c, rows, cols, elem), ir.NamedAttr{Name: "axis", Value: e.c.Int64(axis)})
}

// compute writes one operation.
func (e *emitter) compute(op *ir.Op) *ir.Value {
	e.b.At(op.Loc())
	switch {
	case isInline(op):
		return e.inlined(op, e.f.g.dims[op.Result(0)])
	case op.Is(blu.Gather):
		return e.gather(op)
	case op.Is(blu.RandomUniform) || op.Is(blu.RandomNormal):
		return e.random(op)
	case op.Is(pick):
		return e.pick(op)
	case op.Is(replica):
		return e.operand(op, 0)
	case op.Is(expSum):
		return e.sumStep(op, e.initial(op))[1]
	case isReduction(op):
		x := e.whole(e.operand(op, 0), e.f.g.operand[op])
		return e.once(op.Def(), []*ir.Value{x}, nil, func() *ir.Value { return e.reduce(reductionKind(op), int64(e.f.along), x) })
	}
	operands := make([]*ir.Value, op.NumOperands())
	for i := range operands {
		operands[i] = e.operand(op, i)
	}
	if op.Is(blu.Cast) {
		return e.cast(operands[0], op.Result(0).Elem())
	}
	return e.elementwise(op, operands)
}

// elementwise writes an operation, unless an equal one is there.
func (e *emitter) elementwise(op *ir.Op, operands []*ir.Value) *ir.Value {
	return e.once(op.Def(), operands, op.Attrs(), func() *ir.Value { return e.op(tile.ElementwiseOp(op.Def().Name), operands, op.Attrs()...) })
}

// once gives what an operation of these operands and attributes gave before, or has it written. What is computed again here, to
// save memory, and what uses it may be the same.
func (e *emitter) once(def *ir.OpDef, operands []*ir.Value, attrs []ir.NamedAttr, write func() *ir.Value) *ir.Value {
	key := binary.AppendUvarint(nil, idOf(e.ids, def))
	for _, v := range operands {
		key = binary.AppendUvarint(key, idOf(e.ids, v))
	}
	for _, a := range attrs {
		if a.Name != blu.RecomputedAttr {
			key = binary.AppendUvarint(key, idOf(e.ids, a.Value))
		}
	}
	if v := e.scope.equal(string(key)); v != nil {
		return v
	}
	v := write()
	e.scope.made[string(key)] = v
	return v
}

// whole is a block with all elements along the reduced dimension, which it may have one of that stands for all.
func (e *emitter) whole(x *ir.Value, ds dims) *ir.Value {
	rows, cols := x.Shape()[0], x.Shape()[1]
	actualRows, actualCols := e.actualOf(ds, e.f.row), e.actualOf(ds, e.f.col)
	if e.f.along == 0 {
		rows = e.f.axes[e.f.row].extent
		if cols == 1 {
			actualCols = e.number(1)
		}
	} else {
		cols = e.f.axes[e.f.col].extent
		if rows == 1 {
			actualRows = e.number(1)
		}
	}
	return e.broadcast(x, rows, cols, actualRows, actualCols)
}

// position is where the block's first element is in a row-major tensor of the given dimensions.
func (e *emitter) position(ds dims) (at *ir.Value, rowStride int64) {
	f := e.f
	flat := f.g.dom.flat(ds)
	at = e.number(0)
	n := int64(1)
	for i := len(flat) - 1; i >= 0; {
		k := f.axisOf(flat[i])
		if k == f.row {
			rowStride = n
		}
		at = e.index(arith.Addi, at, e.index(arith.Muli, e.at[k], e.number(n)))
		n *= f.axes[k].size
		i -= len(f.axes[k].atoms)
	}
	return at, rowStride
}

func (e *emitter) gather(op *ir.Op) *ir.Value {
	f := e.f
	idx := e.operand(op, 1)
	at, _ := e.position(f.g.dims[op.Result(0)][:len(op.Operand(1).Shape())])
	table := e.ins[f.sources[op][0].input]
	col := f.axisOf(f.g.dom.leaves(f.g.dims[op.Result(0)][len(op.Operand(1).Shape())])[0])
	return e.typed(tile.Gather, []*ir.Value{table, idx, at, e.at[col]}, tile.Block(e.c, idx.Shape()[0], f.axes[col].extent, table.Elem()))
}

func (e *emitter) random(op *ir.Op) *ir.Value {
	ds := e.f.g.dims[op.Result(0)]
	rows, cols := e.f.extentsOf(ds)
	start, pitch := e.position(ds)
	def := tile.RandomUniform
	attrs := []ir.NamedAttr{{Name: "stream", Value: op.Attr("stream")}, {Name: "pitch", Value: e.c.Int64(pitch)}}
	if op.Is(blu.RandomNormal) {
		def = tile.RandomNormal
		attrs = append(attrs, ir.NamedAttr{Name: "mean", Value: op.Attr("mean")}, ir.NamedAttr{Name: "std", Value: op.Attr("std")})
	}
	operands := []*ir.Value{e.operand(op, 0), start, e.actualOf(ds, e.f.row), e.actualOf(ds, e.f.col)}
	return e.typed(def, operands, tile.Block(e.c, rows, cols, op.Result(0).Elem()), attrs...)
}

func (e *emitter) pick(op *ir.Op) *ir.Value {
	f := e.f
	i := f.sources[op][0].input
	rows, _ := f.extentsOf(f.g.dims[op.Result(0)])
	idx := e.broadcast(e.operand(op, 1), rows, 1, e.actualOf(f.g.dims[op.Result(0)], f.row), e.number(1))
	at, _ := e.position(f.g.dims[op.Result(0)])
	at = e.index(arith.Addi, at, e.number(op.Attrs().IntOr("from", 0)))
	offsets, _, _ := e.window(f.inputs[i])
	operands := append([]*ir.Value{e.ins[i], idx, at}, offsets[:len(offsets)-1]...)
	return e.typed(tile.Pick, operands, tile.Block(e.c, rows, 1, op.Result(0).Elem()), ir.NamedAttr{Name: "ignore", Value: op.Attr("ignore")})
}
