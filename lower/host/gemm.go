package host

import (
	"slices"

	"blutrain/dialects/host"
	"blutrain/dialects/mem"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// An epilogue runs on pieces of at most this many rows and columns, so that a chain of operations stays in the first-level
// cache: 16 KiB of float32.
const epilogueRows, epilogueCols = 32, 128

// product is what is known of a contraction that becomes one matrix product on all workers.
type product struct {
	contract *ir.Op
	i, j     *ir.Value // the axes along rows and columns
	a, b     *ir.Value // references
	ta, tb   bool
	store    *ir.Op // of the reference that the product is written to
	sum      *share.Accumulation
}

// findContract looks for the kernel's contraction and says whether one matrix product can compute all of it: the kernel's
// last two axes are rows and columns of the product, each operand has a dimension whose elements lie next to each other,
// and there is a float32 output of the product's shape to write to. It is nil otherwise.
func (l *lowering) findContract() *product {
	var p *product
	for op := range l.kernel.Body().Ops() {
		if !op.Is(tile.Contract) {
			continue
		}
		if p != nil {
			return nil // two products: block by block
		}
		if p = l.wholeProduct(op); p == nil {
			return nil
		}
	}
	return p
}

func (l *lowering) wholeProduct(op *ir.Op) *product {
	lhs, rhs, lhsAt, rhsAt := tile.ContractOperands(op)
	if len(op.Regions()) > 0 && op.Body() != nil || len(lhs) != 1 || len(rhs) != 1 || op.Result(0).Elem() != l.c.F32() {
		return nil
	}
	p := &product{contract: op, a: lhs[0], b: rhs[0], i: lhsAt[len(lhsAt)-1], j: rhsAt[len(rhsAt)-1]}
	var ok bool
	if p.ta, ok = transposed(p.a); !ok {
		return nil
	}
	kMajorB, ok := transposed(p.b)
	if !ok {
		return nil
	}
	p.tb = !kMajorB // b is stored [n, k]
	if p.ta && p.tb {
		return nil
	}
	if !l.axisOver(p.i, p.a) || !l.axisOver(p.j, p.b) || p.i == p.j || usedOutside(p, lhsAt, rhsAt) {
		return nil
	}
	p.store = l.productStore(p)
	if p.store == nil || !l.oneStepEach(p) {
		return nil
	}
	if sum := share.AccumulationOf(p.store); sum != nil && l.sharesWithLoad(p.store, sum.Load) {
		p.sum = sum
	}
	return p
}

// transposed reports whether a contraction's operand has its contracted dimension, the last, not next to each other in
// memory but the one before it; ok is false when neither is, or when rows overlap, as those of a broadcast.
func transposed(ref *ir.Value) (t, ok bool) {
	strides, _ := mem.Layout(ref.Type().(*ir.MemRefType))
	shape := ref.Shape()
	n := len(strides)
	apart := func(row, col int) bool { return shape[row] <= 1 || strides[row] >= shape[col] }
	switch {
	case !isF32(ref.Elem()):
		return false, false
	case strides[n-1] == 1 && apart(n-2, n-1):
		return false, true
	case strides[n-2] == 1 && apart(n-1, n-2):
		return true, true
	}
	return false, false
}

func isF32(t ir.Type) bool {
	f, ok := t.(*ir.FloatType)
	return ok && f.Kind == ir.F32
}

// axisOver reports whether v is a grid axis that covers the last dimension but one of ref.
func (l *lowering) axisOver(v, ref *ir.Value) bool {
	a, ok := l.axes[v]
	shape := ref.Shape()
	return ok && a.extent == shape[len(shape)-2]
}

// usedOutside reports whether a row or column axis also addresses a batch dimension.
func usedOutside(p *product, lhsAt, rhsAt []*ir.Value) bool {
	for _, at := range [][]*ir.Value{lhsAt[:len(lhsAt)-1], rhsAt[:len(rhsAt)-1]} {
		for _, v := range at {
			if v == p.i || v == p.j || isOperationOf(v) && !isConstant(v) {
				return true
			}
		}
	}
	return false
}

func isOperationOf(v *ir.Value) bool { return v.Op() != nil }

// productStore finds the store whose output holds the product meanwhile: of a float32 block with the product's extents, at
// its rows and columns, that shares memory with no input but one that the product is added to.
func (l *lowering) productStore(p *product) *ir.Op {
	for op := range l.kernel.Body().Ops() {
		if !op.Is(tile.Store) || op.Operand(0).Type() != p.contract.Result(0).Type() || op.Operand(1).Op() != nil {
			continue
		}
		row, col := tile.Window(op)
		ref := op.Operand(1).Type().(*ir.MemRefType)
		if row < 0 || col < 0 || op.Operand(2+int(row)) != p.i || op.Operand(2+int(col)) != p.j || !unitColumns(ref, col, 2) {
			continue
		}
		if sum := share.AccumulationOf(op); l.sharesAny(op.Operand(1)) && (sum == nil || !l.sharesWithLoad(op, sum.Load)) {
			continue
		}
		return op
	}
	return nil
}

func (l *lowering) sharesAny(ref *ir.Value) bool {
	for _, pair := range share.Shared(l.kernel) {
		if pair[1] == ref.Index() {
			return true
		}
	}
	return false
}

func (l *lowering) sharesWithLoad(store, load *ir.Op) bool {
	for _, pair := range share.Shared(l.kernel) {
		if pair[1] == store.Operand(1).Index() && pair[0] == load.Operand(0).Index() {
			return true
		}
	}
	return false
}

// oneStepEach reports whether the epilogue may run on pieces other than the grid's: whether no index is computed from a
// row or column axis, as the place of a partial result is, and no block has the grid's extents but those that begin at an
// axis, which get the piece's.
func (l *lowering) oneStepEach(p *product) bool {
	for _, v := range []*ir.Value{p.i, p.j} {
		for u := range v.Uses() {
			if u.Owner().Def().DialectName() == "arith" && !onlyCounts(u.Owner(), v) {
				return false
			}
		}
	}
	for op := range l.kernel.Body().Ops() {
		switch {
		case op != p.contract && len(op.Regions()) > 0:
			return false
		case op.Is(tile.Iota):
			if v := op.Operand(0); (v == p.i || v == p.j) && max(op.Result(0).Shape()[0], op.Result(0).Shape()[1]) != l.axes[v].step {
				return false
			}
		case op.Is(tile.Reduce), op.Is(tile.Broadcast), op.Is(tile.RandomUniform), op.Is(tile.RandomNormal):
			return false
		}
	}
	return true
}

// onlyCounts reports whether all that is computed from axis v by way of op is how many positions from v on there are.
func onlyCounts(op *ir.Op, v *ir.Value) bool {
	for u := range op.Result(0).Uses() {
		user := u.Owner()
		counts := user.Is(tile.Iota) && user.Operand(0) == v && user.Operand(1) == op.Result(0)
		if !counts && (user.Def().DialectName() != "arith" || !onlyCounts(user, v)) {
			return false
		}
	}
	return true
}

// gemm translates a kernel whose contraction is one matrix product. Its grid keeps the batch axes.
func (l *lowering) gemm(p *product) error {
	for _, ref := range []*ir.Value{p.a, p.b, p.store.Operand(1)} {
		if n := ir.NumElements(ref.Shape()); n > host.MaxElements {
			return p.contract.Errorf("a matrix of %d elements is more than the target can address", n)
		}
	}
	l.dropAxes(p)
	for op := range l.kernel.Body().Ops() {
		if op.Def().DialectName() == "arith" && l.knows(op.Operands()) { // else a count: the piece's is taken
			if err := l.indexOp(op); err != nil {
				return err
			}
		}
	}
	_, _, lhsAt, rhsAt := tile.ContractOperands(p.contract)
	a := l.matrix(p.a, lhsAt[:len(lhsAt)-1], p.ta)
	b := l.matrix(p.b, rhsAt[:len(rhsAt)-1], !p.tb)
	c := l.result(p)
	operands := []*ir.Value{a, b, c}
	if p.sum != nil {
		operands = append(operands, l.beta(p.sum))
	}
	n := l.b.CreateState(host.Gemm, ir.OpState{Loc: p.contract.Loc(), Operands: operands, Regions: 1, Attrs: l.attrs(
		"ta", l.c.Bool(p.ta), "tb", l.c.Bool(p.tb), "piece", l.c.I64s(min(epilogueRows, l.axes[p.i].step), min(epilogueCols, l.axes[p.j].step)))})
	x := l.c.Index()
	body := n.Region(0).AddBlock(x, x, x, x)
	if err := l.epilogue(p, body); err != nil {
		return err
	}
	ir.NewBuilder(l.c, body).CreateState(host.End, ir.OpState{})
	return nil
}

func (l *lowering) knows(indices []*ir.Value) bool {
	return !slices.ContainsFunc(indices, func(v *ir.Value) bool { return l.index[v] == nil })
}

// dropAxes takes the row and column axes out of the host kernel's grid.
func (l *lowering) dropAxes(p *product) {
	var grid, steps []int64
	oldGrid, oldSteps := l.kernel.Attrs().Ints("grid"), l.kernel.Attrs().Ints("steps")
	body := l.out.Body()
	for i, v := range tile.Axes(l.kernel) {
		if v != p.i && v != p.j {
			grid, steps = append(grid, oldGrid[i]), append(steps, oldSteps[i])
		}
	}
	first, second := max(l.index[p.i].Index(), l.index[p.j].Index()), min(l.index[p.i].Index(), l.index[p.j].Index())
	body.EraseArg(first)
	body.EraseArg(second)
	delete(l.index, p.i)
	delete(l.index, p.j)
	l.out.SetAttr("grid", l.c.I64s(grid...))
	l.out.SetAttr("steps", l.c.I64s(steps...))
}

// matrix is the window of all of an operand's last two dimensions at the given batch offsets, rows along the one whose
// stride is not 1.
func (l *lowering) matrix(ref *ir.Value, at []*ir.Value, swapped bool) *ir.Value {
	shape := ref.Shape()
	row, col := int64(len(shape)-2), int64(len(shape)-1)
	if swapped {
		row, col = col, row
	}
	operands := []*ir.Value{l.index[ref], l.number(shape[row]), l.number(shape[col])}
	for _, v := range at {
		operands = append(operands, l.index[v])
	}
	operands = append(operands, l.number(0), l.number(0))
	return l.wholeWindow(operands, row, col, shape[row], shape[col])
}

func (l *lowering) wholeWindow(operands []*ir.Value, row, col, rows, cols int64) *ir.Value {
	return l.b.CreateState(host.Window, ir.OpState{
		Operands: operands, Attrs: l.attrs("row", l.c.Int64(row), "col", l.c.Int64(col)),
		Results: []ir.Type{host.Block(l.c, rows, cols, l.c.F32())},
	}).Result(0)
}

// result is the window of the whole product in the output it is written to.
func (l *lowering) result(p *product) *ir.Value {
	row, col := tile.Window(p.store)
	ref := p.store.Operand(1)
	m, n := l.axes[p.i].extent, l.axes[p.j].extent
	operands := []*ir.Value{l.index[ref], l.number(m), l.number(n)}
	for _, v := range p.store.Operands()[2:] {
		at := l.index[v]
		if v == p.i || v == p.j {
			at = l.number(0)
		}
		operands = append(operands, at)
	}
	return l.wholeWindow(operands, row, col, m, n)
}

// beta is the truth value that says whether the product is added to what is there: always, or where first is false.
func (l *lowering) beta(sum *share.Accumulation) *ir.Value {
	one := l.number(1)
	beta := l.scratchFor(tile.Block(l.c, 1, 1, l.c.I1()), one, one)
	if sum.First == nil {
		l.emit(host.Fill, []*operand{beta}, l.attrs("value", l.c.FloatAttr(1, l.c.F64())))
		return beta.block
	}
	load := sum.First.Op()
	l.load(load)
	l.emit(host.Unary, []*operand{l.blocks[sum.First], beta}, l.attrs("fn", l.c.String("not")))
	return beta.block
}

// epilogue translates what the kernel does with the product, for the piece of it that the region's arguments name: row and
// column of the first element, rows and columns.
func (l *lowering) epilogue(p *product, body *ir.Block) error {
	l.index[p.i], l.index[p.j] = body.Arg(0), body.Arg(1)
	l.piece = map[*ir.Value]*ir.Value{p.i: body.Arg(2), p.j: body.Arg(3)}
	old := l.b
	l.b = ir.NewBuilder(l.c, body)
	defer func() { l.b = old }()
	if l.nothingLeft(p) {
		return nil
	}
	y := p.contract.Result(0)
	at := p.store.Operands()[2:]
	l.blocks[y] = l.window(p.store, p.store.Operand(1), at, y.Type(), body.Arg(2), body.Arg(3))
	done := map[*ir.Op]bool{p.contract: true}
	if v := p.store.Operand(0); p.sum != nil || v == y {
		l.blocks[v] = l.blocks[y]
		done[p.store] = true
		if p.sum != nil {
			done[p.sum.Load] = true
			for _, op := range p.sum.Ops {
				done[op] = true
			}
		}
	} else if !l.lastUse(y, v.Op()) {
		saved := l.scratchFor(y.Type(), body.Arg(2), body.Arg(3))
		l.emit(host.Copy, []*operand{l.blocks[y], saved}, nil)
		l.blocks[y] = saved
	}
	l.planStores(l.kernel.Body())
	for op := range l.kernel.Body().Ops() {
		if done[op] || op.Def().DialectName() == "arith" {
			continue
		}
		l.b.At(op.Loc())
		if err := l.op(op); err != nil {
			return err
		}
	}
	return nil
}

// contractByBlocks translates a contraction for one grid point: the operands' blocks, step by step along the contracted
// dimension, are multiplied and added. It is what a kernel that is no single matrix product comes to.
func (l *lowering) contractByBlocks(op *ir.Op) error {
	if len(op.Regions()) > 0 && op.Body() != nil {
		return op.Errorf("tile.contract with a body has no lowering for CPUs")
	}
	lhs, rhs, lhsAt, rhsAt := tile.ContractOperands(op)
	const step = 128
	shape := lhs[0].Shape()
	depth := shape[len(shape)-1]
	m, n := op.Result(0).Shape()[0], op.Result(0).Shape()[1]
	rows := l.clip(lhsAt[len(lhsAt)-1], shape[len(shape)-2], m)
	cols := l.clip(rhsAt[len(rhsAt)-1], rhs[0].Shape()[len(rhsAt)-1], n)
	dst := l.destination(op, rows, cols)
	l.emit(host.Fill, []*operand{dst}, l.attrs("value", l.c.FloatAttr(0, l.c.F64())))
	loop := l.b.CreateState(l.def("scf.for"), ir.OpState{Operands: []*ir.Value{l.number(0), l.number(depth), l.number(step)}, Regions: 1})
	body := loop.Region(0).AddBlock(l.c.Index())
	old := l.b
	l.b = ir.NewBuilder(l.c, body).At(op.Loc())
	defer func() { l.b = old }()
	k := body.Arg(0)
	extent := l.arith("minsi", l.number(step), l.arith("subi", l.number(depth), k))
	a := l.panel(lhs[0], lhsAt, k, rows, extent, m, step)
	b := l.panel(rhs[0], rhsAt, k, cols, extent, n, step)
	l.emit(host.Dot, []*operand{a, b, dst}, l.attrs("ta", l.c.Bool(false), "tb", l.c.Bool(true), "accumulate", l.c.Bool(true)))
	l.b.CreateState(l.def("scf.yield"), ir.OpState{})
	return nil
}

// panel is a block of an operand of a contraction: rows along its last dimension but one, columns along the contracted
// one, copied to scratch memory where the elements of a row are apart.
func (l *lowering) panel(ref *ir.Value, at []*ir.Value, k, rows, cols *ir.Value, most, step int64) *operand {
	rank := int64(len(ref.Shape()))
	operands := []*ir.Value{l.index[ref], rows, cols}
	for _, v := range at {
		operands = append(operands, l.index[v])
	}
	t := host.Block(l.c, most, step, ref.Elem())
	w := &operand{rows: rows, cols: cols, block: l.b.CreateState(host.Window, ir.OpState{
		Operands: append(operands, k), Attrs: l.attrs("row", l.c.Int64(rank-2), "col", l.c.Int64(rank-1)), Results: []ir.Type{t},
	}).Result(0)}
	strides, _ := mem.Layout(ref.Type().(*ir.MemRefType))
	if unitColumns(ref.Type().(*ir.MemRefType), rank-1, step) && ref.Elem() == l.c.F32() && (most == 1 || strides[rank-2] >= min(step, ref.Shape()[rank-1])) {
		return w
	}
	s := l.scratchFor(tile.Block(l.c, most, step, l.c.F32()), rows, cols)
	if ref.Elem() == l.c.F32() {
		l.emit(host.Copy, []*operand{w, s}, nil)
	} else {
		l.emit(host.Cast, []*operand{w, s}, nil)
	}
	return s
}

// nothingLeft reports whether the product, or the sum it is added to, is stored as it is and nothing else is computed.
func (l *lowering) nothingLeft(p *product) bool {
	stores := 0
	for op := range l.kernel.Body().Ops() {
		if op.Is(tile.Store) {
			stores++
		}
	}
	return stores == 1 && (p.sum != nil || p.store.Operand(0) == p.contract.Result(0))
}
