package ptx

import (
	"maps"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// stage is the row that a kernel goes over several times, kept in shared memory, so that it is read once. There are as many
// blocks of threads as the device has room for, and each goes on from one row to another: in the last loop over a row, what a
// round has read makes room for the same piece of the next row, which comes in the background while the rest of this row is
// stored and the next one's first pieces are worked on. A thread copies what it reads itself, so that none waits for another.
type stage struct {
	ref         *ir.Value // the input
	loops       []*ir.Op  // each loads the row's pieces, one a round
	offsets     []*ir.Value
	n, step     int64     // elements of the row, of a piece
	size        int64     // bytes of an element
	blocks, per int       // of threads, in the grid and on a multiprocessor
	at          *ir.Value // i32: of the thread's first element
	next        *ir.Value // i32: the grid point after this one
	more        *ir.Value // that there is such
}

// copyBytes is what one copy moves.
const copyBytes = 16

// stageThreads is how many threads a multiprocessor should have that work on staged rows.
const stageThreads = 1024

// findStage finds the input whose rows a kernel may keep in shared memory, or gives nil.
func findStage(kernel *ir.Op, target string, align []int64) *stage {
	ins, _ := tile.Refs(kernel)
	for i, ref := range ins {
		a := int64(Alignment)
		if align != nil {
			a = align[i]
		}
		if s := stageOf(kernel, ref); s != nil && s.fits(target) && s.aligned(a) && streams(kernel) {
			points, err := gridBlocks(kernel)
			if err != nil {
				return nil
			}
			s.blocks = int(min(points, int64(s.per*blublas.DeviceFor(target).SMs)))
			return s
		}
	}
	return nil
}

// stageOf is the loops of a kernel that each load the whole of one row of an input, piece by piece; nil where there are
// fewer than two, or the row is not the same in all.
func stageOf(kernel *ir.Op, ref *ir.Value) *stage {
	shape := ref.Shape()
	last := len(shape) - 1
	if last < 0 || isTruth(ref.Elem()) {
		return nil
	}
	s := &stage{ref: ref, n: shape[last], size: ir.ByteSize(ref.Elem())}
	for u := range ref.Uses() {
		switch load := u.Owner(); {
		case load.Is(tile.Pick):
		case load.Is(tile.Load) && s.add(kernel, load):
		default:
			return nil
		}
	}
	slices.SortFunc(s.loops, func(a, b *ir.Op) int {
		if a.IsBefore(b) {
			return -1
		}
		return 1
	})
	if len(s.loops) < 2 {
		return nil
	}
	return s
}

// readsAgain reports whether a kernel goes over rows of an input several times.
func readsAgain(kernel *ir.Op) bool {
	ins, _ := tile.Refs(kernel)
	return slices.ContainsFunc(ins, func(ref *ir.Value) bool { return stageOf(kernel, ref) != nil })
}

// add takes a load into the stage, if it is the only one of its loop and that goes over the row as the others do.
func (s *stage) add(kernel, load *ir.Op) bool {
	loop := load.Parent()
	row, col := tile.Window(load)
	at := load.Operands()[1:]
	last := len(at) - 1
	if loop.Name() != "scf.for" || loop.Parent() != kernel || int(col) != last || load.Result(0).Shape()[0] != 1 || int(row) >= last || at[last] != loop.Body().Arg(0) {
		return false
	}
	from, okFrom := constant(loop.Operand(0))
	to, okTo := constant(loop.Operand(1))
	step, okStep := constant(loop.Operand(2))
	if !okFrom || !okTo || !okStep || from != 0 || to != s.n || step != load.Result(0).Shape()[1] || slices.Contains(s.loops, loop) {
		return false
	}
	for _, o := range at[:last] {
		_, fixed := constant(o)
		if !fixed && !slices.Contains(tile.Axes(kernel), o) {
			return false
		}
	}
	if len(s.loops) > 0 && (step != s.step || !slices.Equal(at[:last], s.offsets)) {
		return false
	}
	s.loops, s.step, s.offsets = append(s.loops, loop), step, at[:last]
	return true
}

// fits reports whether the row, and some bytes for exchanges, fits the shared memory of a block of threads on a target, and
// notes how many blocks there is room for.
func (s *stage) fits(target string) bool {
	const reserved, exchanges = 1024, 1024 // bytes of each block that the system has, and that reductions need at most
	limit := ptx.SharedLimit(target)
	room := (limit + reserved) / (s.bytes() + exchanges + reserved)
	for s.per = stageThreads / 256; int64(s.per) > room; { // a power of two, as threads in a row of them are
		s.per /= 2
	}
	return s.per > 0 && (s.size == 2 || s.size == 4)
}

// bytes is the shared memory that a stage takes; none if there is no stage.
func (s *stage) bytes() int64 {
	if s == nil {
		return 0
	}
	return (s.n*s.size + copyBytes - 1) / copyBytes * copyBytes
}

// vector is the elements that one copy moves.
func (s *stage) vector() int { return int(copyBytes / s.size) }

// aligned reports whether pieces of the row can be copied 16 bytes at a time.
func (s *stage) aligned(base int64) bool {
	strides, _ := mem.Layout(s.ref.Type().(*ir.MemRefType))
	last := len(strides) - 1
	if strides[last] != 1 || base%copyBytes != 0 || s.step*s.size%copyBytes != 0 {
		return false
	}
	for d, n := range s.ref.Shape()[:last] {
		if n > 1 && strides[d]*s.size%copyBytes != 0 {
			return false
		}
	}
	return true
}

// streams reports whether a kernel does nothing but go over rows: whether its elements may be with threads in any order.
func streams(kernel *ir.Op) bool {
	ok := true
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		switch op.Def() {
		case tile.Scratch, tile.Gather, tile.ScatterAdd, tile.RandomUniform, tile.RandomNormal, tile.Transpose, tile.Dot, tile.Contract:
			ok = false
		}
		for _, v := range op.Results() {
			ok = ok && (!tile.IsBlock(v.Type()) || v.Shape()[0] == 1)
		}
		return ir.Advance
	})
	return ok
}

// layout is that of threads for pieces of a row: 16 bytes next to each other for each.
func (s *stage) layout() layout {
	v := s.vector()
	threads := max(32, stageThreads/s.per)
	for threads > 32 && int64(threads*v) > s.step {
		threads /= 2
	}
	return layout{threads: threads, tr: 1, tc: threads, vr: 1, v: v, perSM: s.per}
}

// staged translates the body of a kernel that stages rows.
func (l *lowering) staged(body *ir.Block) (err error) {
	s := l.stage
	l.shared = max(l.shared, s.bytes())
	s.at = l.b.Add(l.b.SharedBase(), l.b.MulI(l.col0, int(s.size)))
	first := l.b.Special("ctaid.x")
	points, _ := gridBlocks(l.kernel)
	l.fill(first)
	l.b.For(first, l.b.I32(int(points)), l.b.I32(s.blocks), true, nil, func(point *ir.Value, _ []*ir.Value) []*ir.Value {
		s.next = l.b.AddI(point, s.blocks)
		s.more = l.b.Compare("lt", s.next, l.b.I32(int(points)))
		maps.Copy(l.index, l.axesOf(point))
		err = l.body(body)
		return nil
	})
	return err
}

// fill has the pieces of a grid point's row copied.
func (l *lowering) fill(point *ir.Value) {
	s := l.stage
	row := l.stagedRow(point)
	whole := s.n / s.step * s.step
	l.b.For(l.b.I32(0), l.b.I32(int(whole)), l.b.I32(int(s.step)), true, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
		l.copyPiece(row, i)
		l.b.Do(ptx.CopyCommit, nil)
		return nil
	})
	if whole < s.n {
		l.copyPiece(row, l.b.I32(int(whole)))
		l.b.Do(ptx.CopyCommit, nil)
	}
}

// stagedRow is the address of a thread's first element in a grid point's row.
func (l *lowering) stagedRow(point *ir.Value) *ir.Value {
	s := l.stage
	r := l.refs[s.ref]
	at := l.b.MulWide(l.col0, int(s.size), l.base(r))
	index := l.axesOf(point)
	for d, o := range s.offsets {
		i := index[o]
		if n, ok := constant(o); ok {
			i = l.b.I32(int(n))
		}
		at = l.b.MulWide(i, int(r.strides[d]*r.size), at)
	}
	return at
}

// copyPiece copies what a thread has of a piece from its row to shared memory.
func (l *lowering) copyPiece(row, i *ir.Value) {
	s := l.stage
	size := int(s.size)
	from, to := l.b.MulWide(i, size, row), l.b.Add(s.at, l.b.MulI(i, size))
	left := s.step
	if n, ok := ptx.ConstInt(i); ok {
		left = min(left, s.n-n)
	}
	for k := 0; k < l.cols(int(s.step)); k += l.v {
		at := l.colAt(k)
		if int64(at) >= left {
			continue
		}
		move := func(count ...*ir.Value) {
			l.b.Do(ptx.CopyAsync, append([]*ir.Value{to, from}, count...), "bytes", copyBytes, "offset", at*size, "from_offset", at*size)
		}
		switch end := int64(at + (l.tc-1)*l.v); {
		case end+int64(l.v) <= left:
			move()
		case left%int64(l.v) == 0:
			l.b.If(l.b.Compare("lt", l.col(k), l.b.I32(int(left))), false, func() { move() }, nil)
		default:
			rest := l.b.Sub(l.b.I32(int(left)*size), l.b.MulI(l.col(k), size)) // bytes from here to the row's end
			l.b.If(l.b.Compare("gt", rest, l.b.I32(0)), false, func() { move(l.b.Min(rest, l.b.I32(copyBytes))) }, nil)
		}
	}
}

// rounds is how many pieces a row has.
func (s *stage) rounds() int { return int((s.n + s.step - 1) / s.step) }

// loadStaged reads a piece from shared memory. In the row's first loop it waits for it; in its last it has the same piece of
// the next row copied there.
func (l *lowering) loadStaged(op *ir.Op) {
	s := l.stage
	i := l.index[op.Operands()[op.NumOperands()-1]]
	if op.Parent() == s.loops[0] {
		// Groups of copies end in order. In each round of this loop another one, of nothing, is begun, and so the number of those that
		// may be unfinished is always the same.
		l.b.Do(ptx.CopyWait, nil, "pending", s.rounds()-1)
		l.b.Do(ptx.CopyCommit, nil)
	}
	x := l.blockFor(op.Result(0))
	x.cols = l.clip(op.Operands()[op.NumOperands()-1], s.n, x.shape[1])
	at := l.b.Add(s.at, l.b.MulI(i, int(s.size)))
	for k := 0; k < len(x.regs); k += l.v {
		if l.absent(x, 0, k) {
			copy(x.regs[k:], slices.Repeat([]*ir.Value{l.number(x.elem, 0)}, l.v))
			continue
		}
		words := l.b.Scalars(l.b.Load(at, l.c.I32(), copyBytes/4, ptx.Access{Space: "shared", Offset: l.colAt(k) * int(s.size), If: l.colInside(x, k)}))
		copy(x.regs[k:], l.unpacked(words, x.elem))
	}
	l.blocks[op.Result(0)] = x
	if op.Parent() == s.loops[len(s.loops)-1] {
		l.b.If(s.more, true, func() { l.copyPiece(l.stagedRow(s.next), i) }, nil)
		l.b.Do(ptx.CopyCommit, nil)
	}
}

// unpacked is the elements in registers of 32 bits.
func (l *lowering) unpacked(words []*ir.Value, elem ir.Type) (out []*ir.Value) {
	for _, w := range words {
		if ptx.Width(elem) == 16 {
			low, high := l.b.Split(w, elem)
			out = append(out, low, high)
			continue
		}
		out = append(out, l.b.Bitcast(w, elem))
	}
	return out
}

// packed is elements as registers of 32 bits.
func (l *lowering) packed(xs []*ir.Value) (words []*ir.Value) {
	for i := 0; i < len(xs); i += 2 {
		words = append(words, l.b.Join(xs[i], xs[i+1]))
	}
	return words
}
