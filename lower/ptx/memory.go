package ptx

import (
	"slices"

	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// window is where a block lies in a reference.
type window struct {
	ref        *reference
	offsets    []*ir.Value // of the tile kernel
	row, col   int64       // dimensions, or -1
	rowStride  int64       // bytes; 0 where there is one row
	colStride  int64
	rows, cols extent
}

func (l *lowering) window(ref *ir.Value, offsets []*ir.Value, row, col int64, block *ir.Value) window {
	r := l.refs[ref]
	w := window{ref: r, offsets: offsets, row: row, col: col, rows: extent{divisor: 1}, cols: extent{divisor: 1}}
	if row >= 0 {
		w.rowStride = r.strides[row] * r.size
		w.rows = l.clip(offsets[row], r.shape[row], int(block.Shape()[0]))
	}
	if col >= 0 {
		w.colStride = r.strides[col] * r.size
		w.cols = l.clip(offsets[col], r.shape[col], int(block.Shape()[1]))
	}
	return w
}

// start is the address of a window's first element.
func (l *lowering) start(w window) *ir.Value {
	at := l.base(w.ref)
	fixed := int64(0)
	for d, o := range w.offsets {
		stride := w.ref.strides[d] * w.ref.size
		if n, ok := ptx.ConstInt(l.index[o]); ok {
			fixed += n * stride
		} else if stride != 0 {
			at = l.b.MulWide(l.index[o], int(stride), at)
		}
	}
	if fixed != 0 {
		at = l.b.Add(at, l.b.I64(fixed))
	}
	return at
}

// places is a way to the elements of a thread: an address, and what is to be added for row i and column j.
type places struct {
	l  *lowering
	at *ir.Value
	w  window
}

// places leads to a thread's elements of a window for blocks like x.
func (l *lowering) places(w window, x *block) places {
	at := l.start(w)
	if x.shape[0] > 1 && w.rowStride > 0 {
		at = l.b.MulWide(l.row0, int(w.rowStride), at)
	}
	if x.shape[1] > 1 && w.colStride > 0 {
		at = l.b.MulWide(l.col0, int(w.colStride), at)
	}
	return places{l, at, w}
}

// place is an address and bytes to add to it.
func (p places) place(x *block, i, j int) (*ir.Value, int) {
	n := int64(0)
	if x.shape[0] > 1 {
		n += int64(p.l.rowAt(i)) * p.w.rowStride
	}
	if x.shape[1] > 1 {
		n += int64(p.l.colAt(j)) * p.w.colStride
	}
	if n < 1<<30 {
		return p.at, int(n)
	}
	return p.l.b.Add(p.at, p.l.b.I64(n)), 0
}

// wide is how many columns next to each other one access can move: 1, 2, 4 or, of 16 bits, 8.
func (l *lowering) wide(w window, x *block) int {
	n := min(l.v, 16/int(w.ref.size))
	if n < 2 || x.shape[1] == 1 || w.colStride != w.ref.size || w.cols.divisor%int64(l.v) != 0 || x.shape[1]%l.v != 0 || isTruth(x.elem) {
		return 1
	}
	aligned := w.ref.align
	if x.shape[0] > 1 {
		aligned = gcd(aligned, w.rowStride)
	}
	for d, o := range w.offsets {
		aligned = gcd(aligned, divisor(o)*w.ref.strides[d]*w.ref.size)
	}
	for n > 1 && aligned%(int64(n)*w.ref.size) != 0 {
		n /= 2
	}
	return n
}

func isTruth(t ir.Type) bool {
	i, ok := t.(*ir.IntegerType)
	return ok && i.Width == 1
}

// loaded is the block that a load gives, still without registers, and where it lies.
func (l *lowering) loaded(op *ir.Op) (*block, window) {
	row, col := tile.Window(op)
	w := l.window(op.Operand(0), op.Operands()[1:], row, col, op.Result(0))
	x := l.blockFor(op.Result(0))
	x.rows, x.cols = w.rows, w.cols
	return x, w
}

func (l *lowering) load(op *ir.Op) {
	if l.stage != nil && op.Operand(0) == l.stage.ref {
		l.loadStaged(op)
		return
	}
	if s := l.asked[op]; s != nil {
		s.take(op)
		return
	}
	x, w := l.loaded(op)
	if w.ref.scratch {
		l.sync()
	}
	if w.runsDown(x) {
		l.blocks[op.Result(0)] = l.transposed(l.fetch(l.newBlock(x.elem, x.shape[1], x.shape[0]), w.transposed()))
		return
	}
	l.blocks[op.Result(0)] = l.fetch(x, w)
}

// runsDown reports whether memory runs along the rows of a window, not along its columns, and threads can exchange what they
// read the other way.
func (w window) runsDown(x *block) bool {
	return w.rowStride == w.ref.size && w.colStride != w.ref.size && w.colStride != 0 && min(x.shape[0], x.shape[1]) >= 16 && ptx.Width(x.elem) == 32
}

// transposed is the window with rows for columns.
func (w window) transposed() window {
	w.row, w.col, w.rowStride, w.colStride, w.rows, w.cols = w.col, w.row, w.colStride, w.rowStride, w.cols, w.rows
	return w
}

// fetch loads a thread's elements of a block.
func (l *lowering) fetch(x *block, w window) *block {
	x.rows, x.cols = w.rows, w.cols
	p := l.places(w, x)
	n := l.wide(w, x)
	cols := l.cols(x.shape[1])
	for k := 0; k < len(x.regs); k += n {
		i, j := k/cols, k%cols
		if l.absent(x, i, j) {
			copy(x.regs[k:], slices.Repeat([]*ir.Value{l.number(x.elem, 0)}, n))
			continue
		}
		at, shift := p.place(x, i, j)
		copy(x.regs[k:], l.read(at, shift, x.elem, n, l.inside(x, i, j)))
	}
	return x
}

// read loads n elements that lie next to each other; where the predicate doesn't hold they are 0.
func (l *lowering) read(at *ir.Value, shift int, elem ir.Type, n int, when *ir.Value) []*ir.Value {
	if isTruth(elem) {
		byteAt := l.b.LoadByte(at, shift, when)
		return []*ir.Value{l.b.Compare("ne", byteAt, l.b.I32(0))}
	}
	access := ptx.Access{Space: "global", Offset: shift, If: when}
	if n > 4 {
		return l.unpacked(l.b.Scalars(l.b.Load(at, l.c.I32(), n/2, access)), elem)
	}
	return l.b.Scalars(l.b.Load(at, elem, n, access))
}

func (l *lowering) store(op *ir.Op) error {
	row, col := tile.Window(op)
	v := op.Operand(0)
	w := l.window(op.Operand(1), op.Operands()[2:], row, col, v)
	x := l.blocks[v]
	if w.ref.scratch || l.shares[op.Operand(1)] {
		l.sync()
	}
	y := &block{elem: x.elem, shape: x.shape, rows: w.rows, cols: w.cols}
	p := l.places(w, y)
	n := l.wide(w, y)
	owner := l.owner(y)
	cols := l.cols(x.shape[1])
	for k := 0; k < len(x.regs); k += n {
		i, j := k/cols, k%cols
		if l.absent(y, i, j) {
			continue
		}
		at, shift := p.place(y, i, j)
		l.write(at, shift, x.regs[k:k+n], l.both(owner, l.inside(y, i, j)))
	}
	return nil
}

// write stores elements next to each other where the predicate holds.
func (l *lowering) write(at *ir.Value, shift int, xs []*ir.Value, when *ir.Value) {
	if isTruth(xs[0].Type()) {
		l.b.StoreByte(at, l.b.Select(xs[0], l.b.I32(1), l.b.I32(0)), shift, when)
		return
	}
	if isHalf(xs[0].Type()) && len(xs) > 4 {
		xs = l.packed(xs)
	}
	l.b.Store(at, l.b.Vector(xs...), ptx.Access{Space: "global", Offset: shift, If: when})
}

// scratch gives a grid point memory of its own: a piece of the workspace.
func (l *lowering) scratch(op *ir.Op) {
	t := op.Result(0).Type().(*ir.MemRefType)
	if l.workspace == 0 {
		l.workAt = l.workBase()
	}
	base := l.b.Add(l.workAt, l.b.I64(l.workspace))
	r := newReference(base, t, Alignment)
	r.scratch = true
	l.refs[op.Result(0)] = r
	l.workspace += (ir.NumElements(t.Shape)*ir.ByteSize(t.Elem) + Alignment - 1) / Alignment * Alignment
}

// workBase is where this block's workspace starts: the blocks' pieces follow each other.
func (l *lowering) workBase() *ir.Value {
	total := int64(0)
	ir.Walk(l.kernel, func(op *ir.Op) ir.WalkResult {
		if op.Is(tile.Scratch) {
			t := op.Result(0).Type().(*ir.MemRefType)
			total += (ir.NumElements(t.Shape)*ir.ByteSize(t.Elem) + Alignment - 1) / Alignment * Alignment
		}
		return ir.Advance
	})
	return l.b.MulWide(l.b.Special("ctaid.x"), int(total), l.workAt)
}

// findShared finds the outputs that share memory with an input of which a thread may read what another stores: all but
// those whose every element is read and stored by the same thread, one right after the other. Where a loop does that, and all
// else is read before it, its threads wait for each other once, before its first round.
func (l *lowering) findShared(ins, outs []*ir.Value) {
	for _, pair := range share.Shared(l.kernel) {
		in, out := ins[pair[0]], outs[pair[1]-len(ins)]
		store := share.OnlyStore(out)
		if store == nil || !l.storedByReaders(store) {
			l.shares[out] = true
			continue
		}
		for u := range in.Uses() {
			switch load := u.Owner(); {
			case load.Is(tile.Load) && load.Block() == store.Block() && share.SameBlock(load, store):
			case store.Parent().Name() == "scf.for" && !store.Parent().IsAncestorOf(load):
				l.waits[store.Parent()] = true
			default:
				l.shares[out] = true
			}
		}
	}
}

// storedByReaders reports whether what is stored belongs to one thread, element by element, so that the one that stores it is the
// one that reads it in its place.
func (l *lowering) storedByReaders(store *ir.Op) bool {
	block := store.Operand(0).Shape()
	return (block[0] > 1 || l.tr == 1) && (block[1] > 1 || l.tc == 1)
}

// layoutOf is the strides of a memref in bytes.
func layoutOf(t *ir.MemRefType) []int64 {
	strides, _ := mem.Layout(t)
	out := make([]int64, len(strides))
	for i, s := range strides {
		out[i] = s * ir.ByteSize(t.Elem)
	}
	return out
}
