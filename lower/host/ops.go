package host

import (
	"slices"

	"blutrain/dialects/host"
	"blutrain/dialects/mem"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// body translates the operations of a block of the tile kernel.
func (l *lowering) body(block *ir.Block, b *ir.Builder) error {
	old := l.b
	l.b = b
	defer func() { l.b = old }()
	l.planStores(block)
	for op := range block.Ops() {
		l.b.At(op.Loc())
		if err := l.op(op); err != nil {
			return err
		}
	}
	return nil
}

// planStores decides which values are computed right where they are stored: those whose definition can write to the
// window. Of several stores of one value the first gets it.
func (l *lowering) planStores(block *ir.Block) {
	for store := range block.Ops() {
		if !store.Is(tile.Store) {
			continue
		}
		v := store.Operand(0)
		def := v.Op()
		if def == nil || def.Block() != block || l.stored[v] != nil || l.strict[store.Operand(1)] || !writesAnywhere(def) || !l.windowFits(store, v) {
			continue
		}
		ready := true // the offsets are known where the value is computed
		for i := 2; i < store.NumOperands(); i++ {
			if at := store.Operand(i).Op(); at != nil && at.Block() == block && !at.IsBefore(def) && !isConstant(store.Operand(i)) {
				ready = false
			}
		}
		if ready && !l.writtenFrom(def, store) {
			l.stored[v] = store
		}
	}
}

// writtenFrom reports whether scratch memory that a value is stored to must not be written where the value is defined:
// because the memory is used before the store, or the value after it, when something else may be there. An output's
// elements are stored once, and never read.
func (l *lowering) writtenFrom(def, store *ir.Op) bool {
	ref := store.Operand(1)
	if ref.Op() == nil {
		return false
	}
	if !store.Operand(0).HasOneUse() {
		return true
	}
	for u := range ref.Uses() {
		if op := within(u.Owner(), store.Block()); op != nil && op != store && !op.IsBefore(def) && op.IsBefore(store) {
			return true
		}
	}
	return false
}

// within is the operation of a block that op is, or is nested in; nil where there is none.
func within(op *ir.Op, b *ir.Block) *ir.Op {
	for op != nil && op.Block() != b {
		op = op.Parent()
	}
	return op
}

// overwritten reports whether scratch memory may be written after a load from it and before the last use of what was
// loaded, so that it has to be copied. The last use itself may write just what it reads.
func (l *lowering) overwritten(load *ir.Op) bool {
	ref, block := load.Operand(0), load.Block()
	last := load
	for u := range load.Result(0).Uses() {
		if user := within(l.user(u.Owner()), block); last.IsBefore(user) {
			last = user
		}
	}
	for u := range ref.Uses() {
		store := u.Owner()
		if !store.Is(tile.Store) {
			continue
		}
		at := within(store, block)
		if at == store && l.stored[store.Operand(0)] == store {
			at = store.Operand(0).Op()
		}
		switch {
		case at == nil || !load.IsBefore(at) || last.IsBefore(at):
		case at == last && at != store && share.SameBlock(load, store) && readsOnce(last, load.Result(0)):
		default:
			return true
		}
	}
	return false
}

// readsOnce reports whether an operation writes each element after it has read a value's element in the same place: whether
// it works element by element, or adds to it.
func readsOnce(op *ir.Op, v *ir.Value) bool {
	if op.Is(tile.Dot) {
		return op.NumOperands() == 3 && op.Operand(2) == v && op.Operand(0) != v && op.Operand(1) != v
	}
	return slices.Contains(tile.Elementwise, op.Def())
}

func isConstant(v *ir.Value) bool { _, ok := constant(v); return ok }

// writesAnywhere reports whether the operation's result is written by one instruction that takes any destination.
func writesAnywhere(op *ir.Op) bool {
	switch op.Def() {
	case tile.Load, tile.Contract, tile.Constant:
		return false
	}
	return op.Def().DialectName() == "tile" && op.NumResults() == 1
}

// windowFits reports whether computing v can write to the store's window: columns lie next to each other, and elements
// are held in memory as they are in scratch.
func (l *lowering) windowFits(store *ir.Op, v *ir.Value) bool {
	ref := store.Operand(1).Type().(*ir.MemRefType)
	_, col := tile.Window(store)
	return host.LaneBytes(ref.Elem) == ir.ByteSize(ref.Elem) && unitColumns(ref, col, v.Shape()[1])
}

func unitColumns(ref *ir.MemRefType, col, cols int64) bool {
	if col < 0 || cols == 1 {
		return true
	}
	strides, _ := mem.Layout(ref)
	return strides[col] == 1
}

func (l *lowering) op(op *ir.Op) error {
	switch op.Def() {
	case tile.Load:
		l.load(op)
	case tile.Store:
		return l.store(op)
	case tile.Scratch:
		t := op.Result(0).Type()
		l.index[op.Result(0)] = l.b.CreateState(host.Memory, ir.OpState{Attrs: l.attrs("offset", l.c.Int64(0)), Results: []ir.Type{t}}).Result(0)
	case tile.Constant:
		l.emitTo(op, l.number(1), l.number(1), host.Fill, nil, l.attrs("value", op.Attr("value")))
	case tile.Iota:
		l.iota(op)
	case tile.Broadcast:
		x := l.blocks[op.Operand(0)]
		l.emitTo(op, l.index[op.Operand(1)], l.index[op.Operand(2)], host.Copy, []*operand{x}, nil)
	case tile.RandomUniform, tile.RandomNormal:
		l.random(op)
	case tile.Gather, tile.Pick, tile.ScatterAdd:
		l.indexed(op)
	case tile.Reduce:
		l.reduce(op)
	case tile.Transpose:
		x := l.blocks[op.Operand(0)]
		l.emitTo(op, x.cols, x.rows, host.Transpose, []*operand{x}, nil)
	case tile.Dot:
		l.dot(op)
	case tile.Contract:
		return l.contractByBlocks(op)
	case tile.End, tile.Yield:
	default:
		return l.other(op)
	}
	return nil
}

func (l *lowering) other(op *ir.Op) error {
	switch {
	case op.Def().DialectName() == "tile":
		return l.elementwise(op)
	case op.Name() == "scf.for":
		return l.loop(op)
	case op.Name() == "scf.yield":
		return nil
	case op.Def().DialectName() == "arith":
		return l.indexOp(op)
	}
	return op.Errorf("%s has no lowering for CPUs", op.Name())
}

func (l *lowering) attrs(pairs ...any) (out []ir.NamedAttr) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, ir.NamedAttr{Name: pairs[i].(string), Value: pairs[i+1].(ir.Attr)})
	}
	return out
}

// indexOp copies index arithmetic.
func (l *lowering) indexOp(op *ir.Op) error {
	if n, ok := constant(op.Result(0)); ok {
		l.index[op.Result(0)] = l.number(n)
		return nil
	}
	operands := op.Operands()
	for i, v := range operands {
		if operands[i] = l.index[v]; operands[i] == nil {
			return op.Errorf("%s on blocks has no lowering for CPUs", op.Name())
		}
	}
	n := l.b.CreateState(op.Def(), ir.OpState{Operands: operands, Attrs: op.Attrs(), Results: op.ResultTypes()})
	l.index[op.Result(0)] = n.Result(0)
	return nil
}

// scratchFor is a new block in scratch memory for a value of tile type t.
func (l *lowering) scratchFor(t ir.Type, rows, cols *ir.Value) *operand {
	d := t.(*ir.DialectType)
	block := l.b.CreateState(host.Scratch, ir.OpState{
		Operands: []*ir.Value{rows, cols}, Attrs: l.attrs("offset", l.c.Int64(0)),
		Results: []ir.Type{host.Block(l.c, d.Shape[0], d.Shape[1], d.Elem)},
	}).Result(0)
	return &operand{block, rows, cols, true}
}

// window is the block of a reference that a load, or a store of a value of tile type t, is about.
func (l *lowering) window(op *ir.Op, ref *ir.Value, offsets []*ir.Value, t ir.Type, rows, cols *ir.Value) *operand {
	row, col := tile.Window(op)
	operands := []*ir.Value{l.index[ref], rows, cols}
	for _, o := range offsets {
		operands = append(operands, l.offset(o))
	}
	d := t.(*ir.DialectType)
	block := l.b.CreateState(host.Window, ir.OpState{
		Operands: operands, Attrs: l.attrs("row", l.c.Int64(row), "col", l.c.Int64(col)),
		Results: []ir.Type{host.Block(l.c, d.Shape[0], d.Shape[1], ir.Elem(ref.Type()))},
	}).Result(0)
	return &operand{block, rows, cols, false}
}

// offset is an index as an offset: a constant may be defined further down, where a value is written to the place it is stored at.
func (l *lowering) offset(v *ir.Value) *ir.Value {
	if n, ok := constant(v); ok && l.index[v] == nil {
		return l.number(n)
	}
	return l.index[v]
}

// load makes a window where its elements can be used in place, and else copies them to scratch memory.
func (l *lowering) load(op *ir.Op) {
	ref, t := op.Operand(0), op.Result(0).Type()
	rows, cols := l.loadExtents(op)
	w := l.window(op, ref, op.Operands()[1:], t, rows, cols)
	m := ref.Type().(*ir.MemRefType)
	_, col := tile.Window(op)
	inPlace := unitColumns(m, col, op.Result(0).Shape()[1]) && host.LaneBytes(m.Elem) == ir.ByteSize(m.Elem) && !l.strict[ref] && (ref.Op() == nil || !l.overwritten(op))
	if !inPlace {
		s := l.scratchFor(t, rows, cols)
		l.emit(host.Copy, []*operand{w, s}, nil)
		w = s
	}
	l.blocks[op.Result(0)] = w
}

// loadExtents is the actual rows and columns of a load.
func (l *lowering) loadExtents(op *ir.Op) (rows, cols *ir.Value) {
	row, col := tile.Window(op)
	shape := op.Operand(0).Shape()
	extent := func(dim, most int64) *ir.Value {
		if dim < 0 {
			return l.number(1)
		}
		return l.clip(op.Operand(1+int(dim)), shape[dim], most)
	}
	t := op.Result(0).Shape()
	return extent(row, t[0]), extent(col, t[1])
}

func (l *lowering) store(op *ir.Op) error {
	v := op.Operand(0)
	if l.stored[v] == op {
		return nil
	}
	x := l.blocks[v]
	w := l.window(op, op.Operand(1), op.Operands()[2:], v.Type(), x.rows, x.cols)
	l.emit(host.Copy, []*operand{x, w}, nil)
	return nil
}

// emit makes an instruction on blocks.
func (l *lowering) emit(def *ir.OpDef, operands []*operand, attrs []ir.NamedAttr) {
	vs := make([]*ir.Value, len(operands))
	for i, o := range operands {
		vs[i] = o.block
	}
	l.b.CreateState(def, ir.OpState{Operands: vs, Attrs: attrs})
}

// emitTo makes an instruction whose last operand is the destination for op's result.
func (l *lowering) emitTo(op *ir.Op, rows, cols *ir.Value, def *ir.OpDef, in []*operand, attrs []ir.NamedAttr) {
	dst := l.destination(op, rows, cols)
	l.emit(def, append(slices.Clip(in), dst), attrs)
}

// destination is where op's result goes: the window it is stored to, or scratch memory.
func (l *lowering) destination(op *ir.Op, rows, cols *ir.Value) *operand {
	v := op.Result(0)
	var dst *operand
	if store := l.stored[v]; store != nil {
		dst = l.window(store, store.Operand(1), store.Operands()[2:], v.Type(), rows, cols)
	} else {
		dst = l.scratchFor(v.Type(), rows, cols)
	}
	l.blocks[v] = dst
	return dst
}
