package ptx

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// body translates the operations of a block of the tile kernel.
func (l *lowering) body(block *ir.Block) error {
	early, err := l.loadEarly(block)
	if err != nil {
		return err
	}
	for op := range block.Ops() {
		if op.Has(ir.Terminator) {
			return nil
		}
		if early[op] {
			continue
		}
		l.b.At(op.Loc())
		if err := l.op(op); err != nil {
			return err
		}
	}
	return nil
}

// earlyRegisters is the most registers of a thread that loads may fill before anything is computed.
const earlyRegisters = 96

// loadEarly makes the loads of a block before anything else there, so that they are on their way together: the assembler
// moves no load over a store or a barrier. A row that many rows use stays where it is: it is in the cache after the first. An
// input may be in the memory of an output only where it is read before that is written anyway.
func (l *lowering) loadEarly(block *ir.Block) (map[*ir.Op]bool, error) {
	early, filled := map[*ir.Op]bool{}, 0
	for op := range block.Ops() {
		if !op.Is(tile.Load) || l.asked[op] != nil || l.refs[op.Operand(0)] == nil || l.refs[op.Operand(0)].scratch {
			continue
		}
		rows, cols := int(op.Result(0).Shape()[0]), int(op.Result(0).Shape()[1])
		n := l.rows(rows) * l.cols(cols) * max(1, ptx.Width(op.Result(0).Elem())/16) / 2
		if rows == 1 && cols > 1 && l.tr > 1 || filled+n > earlyRegisters {
			continue
		}
		ready := true
		for _, at := range op.Operands()[1:] {
			ok, err := l.indexEarly(at, block, early)
			if err != nil {
				return nil, err
			}
			ready = ready && ok
		}
		if ready {
			l.b.At(op.Loc())
			l.load(op)
			early[op], filled = true, filled+n
		}
	}
	return early, nil
}

// indexEarly computes an index of a block, and those that it is made of, unless it is there or made of something else.
func (l *lowering) indexEarly(v *ir.Value, block *ir.Block, early map[*ir.Op]bool) (bool, error) {
	op := v.Op()
	if op == nil || op.Block() != block || early[op] {
		return l.index[v] != nil, nil
	}
	if op.Def().DialectName() != "arith" {
		return false, nil
	}
	for _, o := range op.Operands() {
		if ok, err := l.indexEarly(o, block, early); !ok || err != nil {
			return false, err
		}
	}
	early[op] = true
	return true, l.indexOp(op)
}

func (l *lowering) op(op *ir.Op) error {
	switch op.Def() {
	case tile.Load:
		l.load(op)
	case tile.Store:
		return l.store(op)
	case tile.Scratch:
		l.scratch(op)
	case tile.Constant:
		x := l.blockFor(op.Result(0))
		x.regs[0] = l.number(x.elem, op.Attrs().FloatOr("value", 0))
		l.blocks[op.Result(0)] = x
	case tile.Iota:
		l.iota(op)
	case tile.Broadcast:
		l.broadcast(op)
	case tile.RandomUniform, tile.RandomNormal:
		return l.random(op)
	case tile.Gather:
		l.gather(op)
	case tile.Pick:
		l.pick(op)
	case tile.ScatterAdd:
		return l.scatterAdd(op)
	case tile.Reduce:
		return l.reduce(op)
	case tile.Transpose:
		return l.transpose(op)
	case tile.Dot:
		return l.dot(op)
	case tile.Contract:
		return l.contract(op)
	default:
		switch {
		case op.Def().DialectName() == "arith":
			return l.indexOp(op)
		case op.Name() == "scf.for":
			return l.loop(op)
		case tile.ElementwiseOp(op.Def().Name) == op.Def():
			return l.elementwise(op)
		}
		return op.Errorf("%s has no lowering for GPUs", op.Name())
	}
	return nil
}

func (l *lowering) iota(op *ir.Op) {
	x := l.blockFor(op.Result(0))
	axis := op.Attrs().IntOr("axis", 0)
	n := l.extentOf(op.Operand(1), x.shape[axis])
	if axis == 0 {
		x.rows = n
	} else {
		x.cols = n
	}
	index := l.index[op.Operand(0)]
	first, at := index, func(int) int { return 0 }
	switch {
	case x.shape[axis] == 1:
	case axis == 0:
		first = l.remember(placeKey{"first row", index, 0, 0}, func() *ir.Value { return l.b.Add(index, l.row0) })
		at = l.rowAt
	default:
		first = l.remember(placeKey{"first column", index, 0, 0}, func() *ir.Value { return l.b.Add(index, l.col0) })
		at = l.colAt
	}
	for k := range x.regs {
		x.regs[k] = l.cast(l.b.AddI(first, at(k)), x.elem)
	}
	l.blocks[op.Result(0)] = x
}

func (l *lowering) broadcast(op *ir.Op) {
	x, y := l.blocks[op.Operand(0)], l.blockFor(op.Result(0))
	y.rows, y.cols = l.extentOf(op.Operand(1), y.shape[0]), l.extentOf(op.Operand(2), y.shape[1])
	l.each(y, func(i, j, k int) { y.regs[k] = l.at(x, i, j) })
	l.blocks[op.Result(0)] = y
}

// elementwise computes every element that a thread has from its elements of the operands.
func (l *lowering) elementwise(op *ir.Op) error {
	y := l.blockFor(op.Result(0))
	xs := make([]*block, op.NumOperands())
	for i, v := range op.Operands() {
		xs[i] = l.blocks[v]
	}
	for _, x := range xs {
		if x.shape[0] == y.shape[0] {
			y.rows = narrower(y.rows, x.rows)
		}
		if x.shape[1] == y.shape[1] {
			y.cols = narrower(y.cols, x.cols)
		}
	}
	if l.masksPairs(op) {
		y.regs, l.blocks[op.Result(0)] = xs[1].regs, y
		return nil
	}
	if l.roundPairs(op, xs[0], y) {
		return nil
	}
	f, err := l.function(op)
	if err != nil {
		return err
	}
	var failed error
	l.each(y, func(i, j, k int) {
		if l.absent(y, i, j) {
			y.regs[k] = l.number(y.elem, 0)
			return
		}
		args := make([]*ir.Value, len(xs))
		for n, x := range xs {
			args[n] = l.at(x, i, j)
		}
		v, err := f(args)
		if err != nil {
			failed = err
		}
		y.regs[k] = v
	})
	l.blocks[op.Result(0)] = y
	return failed
}

// roundPairs rounds elements next to each other to 16 bits two at a time, or reports that they don't come so.
func (l *lowering) roundPairs(op *ir.Op, x, y *block) bool {
	if !l.roundsPairs(op) {
		return false
	}
	mask := func(_ int, pair *ir.Value) *ir.Value { return pair }
	if sel := op.Operand(0).Op(); l.masksPairs(sel) {
		p := l.blocks[sel.Operand(0)]
		mask = func(i int, pair *ir.Value) *ir.Value { return l.b.And(pair, l.mask(l.at(p, i, 0))) }
	}
	cols := l.cols(y.shape[1])
	for k := 0; k < len(y.regs); k += 2 {
		if l.absent(y, k/cols, k%cols) && l.absent(y, (k+1)/cols, (k+1)%cols) {
			y.regs[k], y.regs[k+1] = l.number(y.elem, 0), l.number(y.elem, 0)
			continue
		}
		y.regs[k], y.regs[k+1] = l.b.Split(mask(k/cols, l.b.Pack(y.elem.String(), x.regs[k], x.regs[k+1])), y.elem)
	}
	l.blocks[op.Result(0)] = y
	return true
}

// roundsPairs reports whether an operation rounds float32 to 16 bits, a thread an even number of them next to each other.
func (l *lowering) roundsPairs(op *ir.Op) bool {
	if op.Name() != "tile.cast" || !isHalf(op.Result(0).Elem()) || op.Operand(0).Elem() != ir.Type(l.c.F32()) {
		return false
	}
	return slices.Equal(op.Operand(0).Shape(), op.Result(0).Shape()) && l.cols(int(op.Result(0).Shape()[1]))%2 == 0
}

// masksPairs reports whether an operation is select(p, x, 0) with one p for a row, of what is then rounded two at a time: the
// mask is then put on pairs, by roundPairs, and until then the block is x.
func (l *lowering) masksPairs(op *ir.Op) bool {
	if op == nil || !l.masksRows(op) || !op.Result(0).HasOneUse() || !slices.Equal(op.Operand(1).Shape(), op.Result(0).Shape()) {
		return false
	}
	for u := range op.Result(0).Uses() {
		return u.Owner().Block() == op.Block() && l.roundsPairs(u.Owner())
	}
	return false
}

// narrower is the extent that two operands have: those that say how many there are say the same.
func narrower(x, y extent) extent {
	if x.v != nil {
		return x
	}
	return y
}

func (l *lowering) transpose(op *ir.Op) error {
	x := l.blocks[op.Operand(0)]
	if ptx.Width(x.elem) != 32 {
		return op.Errorf("tile.transpose of %s has no lowering for GPUs", x.elem)
	}
	l.blocks[op.Result(0)] = l.transposed(x)
	return nil
}

// transposed is a block with rows for columns, which threads exchange through shared memory. Lines there are an odd number of
// elements apart, so that neither rows nor columns meet in few banks.
func (l *lowering) transposed(x *block) *block {
	y := l.newBlock(x.elem, x.shape[1], x.shape[0])
	y.rows, y.cols = x.cols, x.rows
	lines := max(l.paddedRows(x.shape[0]), l.paddedCols(x.shape[0])) // of those that write and those that read
	pitch := 4 * int64(max(l.paddedCols(x.shape[1]), l.paddedRows(x.shape[1]))|1)
	s := sharedTile{l.exchange(int64(lines) * pitch), 0, pitch}
	owner := l.owner(x)
	l.each(x, func(i, j, k int) {
		at, shift := s.place(l, x, i, j)
		l.b.Store(at, x.regs[k], ptx.Access{Space: "shared", Offset: shift, If: owner})
	})
	l.sync()
	l.each(y, func(i, j, k int) {
		at, shift := s.placeAcross(l, y, i, j)
		y.regs[k] = l.b.Load(at, y.elem, 1, ptx.Access{Space: "shared", Offset: shift})
	})
	return y
}
