package host

import (
	"slices"

	"blutrain/dialects/host"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// adamw is a step of AdamW as the operations of a kernel: what blu.adamw is taken apart to. One instruction does it in one
// pass over memory instead of eleven over blocks.
type adamw struct {
	blocks     []*ir.Value // p, m, v, g
	scalars    []*ir.Value // grad_scale, keep1, take1, keep2, take2, root, eps, step
	decay      *ir.Value   // or nil
	newM, newV *ir.Op
	newP       *ir.Op   // the last one
	rest       []*ir.Op // the others
}

// planAdamw finds steps of the optimizer among the operations of the kernel, and lets all but the last of each wait for that.
func (l *lowering) planAdamw() {
	for op := range l.kernel.Body().Ops() {
		a := matchAdamw(op)
		if a == nil || !l.atOnce(a) {
			continue
		}
		l.adamws[a.newP] = a
		for _, x := range a.parts() {
			l.waits[x] = a.newP
		}
	}
}

// parts are the operations before the last.
func (a *adamw) parts() []*ir.Op { return append([]*ir.Op{a.newM, a.newV}, a.rest...) }

// matchAdamw recognizes the last operation of a step: new_p = p - decay p - step new_m / (root sqrt(new_v) + eps).
func matchAdamw(op *ir.Op) *adamw {
	m := &matcher{}
	kept, rate := m.parts(result(op), "tile.sub")
	quotient, step := m.scaled(rate)
	newM, divisor := m.parts(quotient, "tile.div")
	rooted, eps := m.parts(divisor, "tile.add")
	sqrt, root := m.scaled(rooted)
	newV := m.part(sqrt, "tile.sqrt")
	keptM, takenM := m.parts(newM, "tile.add")
	old, keep1 := m.scaled(keptM)
	g1, take1 := m.scaled(takenM)
	keptV, takenV := m.parts(newV, "tile.add")
	oldV, keep2 := m.scaled(keptV)
	square, take2 := m.scaled(takenV)
	g2, g3 := m.parts(square, "tile.mul")
	g, gradScale := m.scaled(g1)
	if m.failed || g1 != g2 || g2 != g3 || eps.Type() != step.Type() {
		return nil
	}
	p, decay := kept, (*ir.Value)(nil)
	if kept.DefinedBy(op.Def()) { // the decay, unless what is subtracted is something else
		with := &matcher{}
		x, product := with.parts(kept, "tile.sub")
		if y, factor := with.scaled(product); !with.failed && x == y {
			p, decay = x, factor
			m.ops = append(m.ops, with.ops...)
		}
	}
	a := &adamw{blocks: []*ir.Value{p, old, oldV, g}, scalars: []*ir.Value{gradScale, keep1, take1, keep2, take2, root, eps, step}, decay: decay,
		newM: newM.Op(), newV: newV.Op(), newP: op}
	for _, x := range m.ops {
		if x != a.newM && x != a.newV && x != op && !slices.Contains(a.rest, x) {
			a.rest = append(a.rest, x)
		}
	}
	return a
}

// A matcher takes values apart and notes the operations that it saw. Once something is not what was asked for it has failed.
type matcher struct {
	ops    []*ir.Op
	failed bool
}

func (m *matcher) op(v *ir.Value, name string, operands int) *ir.Op {
	if m.failed || v == nil || v.Op() == nil || v.Op().Name() != name || v.Op().NumOperands() != operands || !isF32(v.Elem()) {
		m.failed = true
		return nil
	}
	m.ops = append(m.ops, v.Op())
	return v.Op()
}

func (m *matcher) part(v *ir.Value, name string) *ir.Value {
	if op := m.op(v, name, 1); op != nil {
		return op.Operand(0)
	}
	return nil
}

func (m *matcher) parts(v *ir.Value, name string) (x, y *ir.Value) {
	if op := m.op(v, name, 2); op != nil {
		return op.Operand(0), op.Operand(1)
	}
	return nil, nil
}

// scaled is a block and the one number that it is multiplied by.
func (m *matcher) scaled(v *ir.Value) (x, by *ir.Value) {
	x, by = m.parts(v, "tile.mul")
	if m.failed || x.Type() != v.Type() || !slices.Equal(by.Shape(), []int64{1, 1}) {
		m.failed = true
	}
	return x, by
}

// atOnce reports whether a step may be done where its last operation is: its new moments are stored once, to outputs whose
// windows take them, nothing else sees what is computed in between, and what it reads is still there.
func (l *lowering) atOnce(a *adamw) bool {
	members := append(a.parts(), a.newP)
	for _, op := range a.parts() {
		stores := 0
		for u := range op.Result(0).Uses() {
			switch user := u.Owner(); {
			case slices.Contains(members, user):
			case (op == a.newM || op == a.newV) && l.takesWindow(user, op.Result(0)):
				stores++
			default:
				return false
			}
		}
		if op.Block() != a.newP.Block() || (op == a.newM || op == a.newV) != (stores == 1) || op.Result(0).Type() != a.newP.Result(0).Type() {
			return false
		}
	}
	for _, v := range a.blocks {
		if v.Type() != a.newP.Result(0).Type() || !l.thereFor(v, a) {
			return false
		}
	}
	return true
}

// takesWindow reports whether a store takes a value in its window wherever in the block it is computed.
func (l *lowering) takesWindow(store *ir.Op, v *ir.Value) bool {
	if !store.Is(tile.Store) || store.Block() != v.Block() || store.Operand(1).Op() != nil || l.strict[store.Operand(1)] || !l.windowFits(store, v) {
		return false
	}
	for _, at := range store.Operands()[2:] {
		if at.Op() != nil && !isConstant(at) {
			return false
		}
	}
	return true
}

// thereFor reports whether what a step reads is there until its last operation. Memory that one of its own outputs takes over
// is: each element is read before it is written.
func (l *lowering) thereFor(v *ir.Value, a *adamw) bool {
	load := v.Op()
	if load == nil || !load.Is(tile.Load) || load.Operand(0).Op() != nil {
		return load != nil && load.Block() == a.newP.Block()
	}
	for _, pair := range share.Shared(l.kernel) {
		if pair[0] != load.Operand(0).Index() {
			continue
		}
		store := share.OnlyStore(l.kernel.Body().Arg(pair[1]))
		if store == nil || store.Block() != a.newP.Block() || store.Operand(0).Op() == nil {
			return false
		}
		own := slices.Contains([]*ir.Op{a.newM, a.newV, a.newP}, store.Operand(0).Op())
		if own && !share.SameBlock(load, store) || !own && store.Operand(0).Op().IsBefore(a.newP) {
			return false
		}
	}
	return true
}

// adamw translates a step where its last operation is.
func (l *lowering) adamw(a *adamw) {
	var in []*operand
	for _, v := range append(slices.Clone(a.blocks), a.scalars...) {
		in = append(in, l.blocks[v])
	}
	rows, cols := in[0].rows, in[0].cols
	for _, op := range []*ir.Op{a.newM, a.newV, a.newP} {
		in = append(in, l.destination(op, rows, cols))
	}
	if a.decay != nil {
		in = append(in, l.blocks[a.decay])
	}
	l.emit(host.Adamw, in, nil)
}

// result is an operation's only result, or nil.
func result(op *ir.Op) *ir.Value {
	if op.NumResults() != 1 {
		return nil
	}
	return op.Result(0)
}
