package ptx

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// A loop over rows that adds up their columns works on one block while the next is on its way to shared memory: as soon as a
// round has a block in registers it asks for the next round's. A thread copies what it will use itself, and waits for nothing
// but its own copies; memory is never idle, and no register holds what has not come yet.

// askedBytes is the most shared memory of a block of threads for what is on its way: two of them have it on a multiprocessor.
const askedBytes = 96 << 10

// ahead is a loop whose blocks are asked for a round ahead.
type ahead struct {
	l           *lowering
	loop        *ir.Op
	loads       map[*ir.Op]*asked
	upper, step *ir.Value
	held        int64 // bytes of shared memory
}

// asked is a load of such a loop.
type asked struct {
	*ahead
	to          *ir.Value // shared memory for the thread's first elements
	wide, bytes int       // elements that are copied at once
}

// askAhead finds what a loop can ask for ahead, and asks for what its first round needs; nil where there is nothing.
func (l *lowering) askAhead(op *ir.Op, late []*late) *ahead {
	lower, upper, step := l.index[op.Operand(0)], l.index[op.Operand(1)], l.index[op.Operand(2)]
	if l.stage != nil || !sumsColumns(late) || !l.isRepeated(lower, upper, step) {
		return nil
	}
	s := &ahead{l: l, loop: op, loads: map[*ir.Op]*asked{}, upper: upper, step: step}
	bytes := 0
	var order []*ir.Op
	var starts []int
	for load := range op.Body().Ops() {
		if !s.canAsk(load) {
			continue
		}
		n, per := s.size(load)
		if n == 0 || (bytes+per)*l.threads > askedBytes {
			continue
		}
		s.loads[load] = &asked{ahead: s, wide: n, bytes: n * int(ir.ByteSize(load.Result(0).Elem()))}
		starts = append(starts, bytes*l.threads)
		bytes += per
		order = append(order, load)
	}
	if len(order) == 0 {
		return nil
	}
	s.held = int64(bytes * l.threads)
	base, tid := l.hold(s.held), l.remember("thread", func() *ir.Value { return l.b.Special("tid.x") })
	for i, load := range order {
		l.b.At(load.Loc())
		asked := s.loads[load]
		l.asked[load] = asked
		asked.to = l.b.Add(l.b.AddI(base, starts[i]), l.b.MulI(tid, asked.bytes))
		asked.ask(load, lower)
	}
	return s
}

// release gives the shared memory back behind the loop, whose last round has asked for nothing, but in the background.
func (s *ahead) release() {
	if s == nil {
		return
	}
	s.l.b.Do(ptx.CopyWait, nil, "pending", 0)
	s.l.held -= s.held
}

// sumsColumns reports whether a loop adds up columns of its blocks.
func sumsColumns(late []*late) bool {
	for _, r := range late {
		if r != nil && r.reduce.Attrs().IntOr("axis", 0) == 0 {
			return true
		}
	}
	return false
}

// isRepeated reports whether a loop has several rounds, for all that is known.
func (l *lowering) isRepeated(lower, upper, step *ir.Value) bool {
	from, okFrom := ptx.ConstInt(lower)
	to, okTo := ptx.ConstInt(upper)
	by, okBy := ptx.ConstInt(step)
	return okBy && (!okFrom || !okTo || to-from > by)
}

// canAsk reports whether an operation loads rows that no other round loads, from memory that no other round writes.
func (s *ahead) canAsk(load *ir.Op) bool {
	if !load.Is(tile.Load) || isTruth(load.Result(0).Elem()) {
		return false
	}
	row, _ := tile.Window(load)
	index := s.loop.Body().Arg(0)
	if row < 0 || load.Operand(1+int(row)) != index || constantOf(s.step) < load.Result(0).Shape()[0] {
		return false
	}
	for i, at := range load.Operands()[1:] {
		if int64(i) != row && (s.l.index[at] == nil || at == index) {
			return false
		}
	}
	ins, outs := tile.Refs(s.l.kernel)
	i := slices.Index(ins, load.Operand(0))
	for _, pair := range share.Shared(s.l.kernel) {
		if pair[0] != i {
			continue
		}
		out := outs[pair[1]-len(ins)]
		if store := share.OnlyStore(out); s.l.shares[out] || store == nil || store.Block() != load.Block() || !share.SameBlock(load, store) {
			return false
		}
	}
	return i >= 0
}

// size is how many elements are copied at once, and the bytes that a thread has of a block; 0 where such can't be copied.
func (s *ahead) size(load *ir.Op) (wide, bytes int) {
	s.at(s.l.index[s.loop.Operand(0)], func() {
		x, w := s.l.loaded(load)
		wide, bytes = s.l.wide(w, x), len(x.regs)*int(w.ref.size)
		if n := wide * int(w.ref.size); n != 4 && n != 8 && n != 16 {
			wide = 0
		}
	})
	return wide, bytes
}

// at does something for the round of an index. What is known of the round at hand does not hold for it.
func (s *ahead) at(index *ir.Value, do func()) {
	l, arg := s.l, s.loop.Body().Arg(0)
	old, known := l.index[arg], l.known
	l.index[arg], l.known = index, map[*ir.Block]map[any]*ir.Value{}
	do()
	l.index[arg], l.known = old, known
}

// ask has the block of the round of an index copied, if there is one. What it lacks is 0; where nothing is read the address
// must still be one.
func (s *asked) ask(load *ir.Op, index *ir.Value) {
	l, b := s.l, s.l.b
	s.at(index, func() {
		x, w := l.loaded(load)
		p := l.places(w, x)
		isRound := b.Compare("lt", index, s.upper)
		s.each(x, func(i, j, k int) {
			when := l.both(isRound, l.inside(x, i, j))
			from, shift := p.place(x, i, j)
			from = l.remember(askedKey{when, from}, func() *ir.Value { return b.Select(when, from, l.base(w.ref)) })
			count := l.remember(askedKey{when, nil}, func() *ir.Value { return b.Select(when, b.I32(s.bytes), b.I32(0)) })
			b.Do(ptx.CopyAsync, []*ir.Value{s.to, from, count}, "bytes", s.bytes, "offset", s.place(k), "from_offset", shift)
		})
	})
	b.Do(ptx.CopyCommit, nil)
}

type askedKey struct{ when, from *ir.Value }

// take gives the block of the round at hand, and asks for the next one.
func (s *asked) take(load *ir.Op) {
	l, b := s.l, s.l.b
	x, _ := l.loaded(load)
	for k := range x.regs {
		x.regs[k] = l.number(x.elem, 0)
	}
	b.Do(ptx.CopyWait, nil, "pending", len(s.loads)-1)
	s.each(x, func(_, _, k int) {
		copy(x.regs[k:], b.Scalars(b.Load(s.to, x.elem, s.wide, ptx.Access{Space: "shared", Offset: s.place(k)})))
	})
	s.ask(load, b.Add(l.index[s.loop.Body().Arg(0)], s.step))
	l.blocks[load.Result(0)] = x
}

// each calls f for the first of the elements that are copied at once.
func (s *asked) each(x *block, f func(i, j, reg int)) {
	s.l.each(x, func(i, j, k int) {
		if k%s.wide == 0 && !s.l.absent(x, i, j) {
			f(i, j, k)
		}
	})
}

// place is the bytes from a thread's first elements to element k and those next to it: those of all threads lie together.
func (s *asked) place(k int) int { return k / s.wide * s.l.threads * s.bytes }
