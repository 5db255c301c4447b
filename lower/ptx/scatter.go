package ptx

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// A scatter's blocks of threads have a range of the table's rows and a panel of its columns each; a warp has some rows of the
// table, one after the other, whose sums it keeps in registers. All read the indices, a chunk at a time, and write down those
// that name rows of their range, in order; then each warp picks what comes to its own, 32 entries at a time, and adds that. So
// a sum has the order of the indices, nothing is sorted, and nothing is written but the table: all of it with the first chunk,
// with others the rows that they come to.
const (
	scatterThreads = 512  // of a block: two of them are on a multiprocessor, of which one computes while the other waits
	scatterEach    = 32   // indices of a chunk that a thread looks at, one after the other
	scatterLooks   = 16   // of them, those that are on their way together
	scatterAhead   = 4    // rows that are on their way to a warp together
	scatterGroups  = 8    // rows of the table that a warp has
	scatterRows    = 4096 // more than a range has

	scatterWarps = scatterThreads / 32
	scatterChunk = scatterThreads * scatterEach
	scatterRange = scatterWarps * scatterGroups
)

// scatter is the state of lowering tile.scatter_add.
type scatter struct {
	l            *lowering
	x, idx       *reference
	out, init    *reference // init is nil where sums start from 0
	inPlace      bool       // init and out are the same memory
	first, limit *ir.Value  // the first row of the range, and how many it has
	lane, warp   *ir.Value
	panel        *ir.Value // of the kernel, the panel's first column
	width        int       // columns of a panel, of which the last may have fewer
	cols         extent
	together     int         // of a thread's columns, how many lie next to each other
	there        []*ir.Value // for each such group of columns, whether it is there; nil: it is
	column       *ir.Value   // the first of all
	list         *ir.Value   // shared memory: what is written down
	counts       *ir.Value   // the warps' numbers of entries
	looksAt      *ir.Value   // position in the chunk of the indices that a lane looks at
	picked       *ir.Value   // for each warp, positions of up to 32 rows that come to its own
	errorsAt     int
}

// scatterLayout has a row of the table for each warp at a time.
func scatterLayout(op *ir.Op) layout {
	return layout{vr: 1, v: 1, tc: 32, tr: scatterWarps, perSM: 2, parts: (int(op.Operand(3).Shape()[0]) + scatterRange - 1) / scatterRange}
}

// scatterAdd fills a panel of a table's columns, then adds rows to it.
func (l *lowering) scatterAdd(op *ir.Op) error {
	s := &scatter{l: l, x: l.refs[op.Operand(0)], idx: l.refs[op.Operand(1)], out: l.refs[op.Operand(3)]}
	if s.x.elem != l.c.F32() || s.out.elem != l.c.F32() {
		return op.Errorf("tile.scatter_add of %s has no lowering for GPUs", s.x.elem)
	}
	if op.NumOperands() == 5 {
		s.init = l.refs[op.Operand(4)]
		s.inPlace = sharesMemory(l.kernel, op.Operand(4), op.Operand(3))
	}
	b := l.b
	tid := b.Special("tid.x")
	s.lane, s.warp = b.RemI(tid, 32), b.DivI(tid, 32)
	s.first = b.MulI(l.part, scatterRange)
	s.limit = b.Min(b.I32(scatterRange), b.Sub(b.I32(int(s.out.shape[0])), s.first))
	s.columns(op)
	s.errorsAt = 8 * len(l.errors)
	l.record(op, tableRows, s.out.shape[0], l.truth(false), b.I32(0), b.I32(0))
	s.list = l.exchange(4 * (scatterChunk + 32 + 32*scatterWarps))
	s.counts = b.AddI(s.list, 4*scatterChunk)
	s.picked = b.Add(b.AddI(s.counts, 4*32), b.MulI(s.warp, 4*32))
	s.add(b.I32(0))
	n := int(s.x.shape[0])
	if n <= scatterChunk {
		return nil
	}
	s.init, s.inPlace = s.out, true
	b.For(b.I32(scatterChunk), b.I32(n), b.I32(scatterChunk), true, nil, func(at *ir.Value, _ []*ir.Value) []*ir.Value {
		l.sync() // the list is read until here
		s.add(at)
		return nil
	})
	return nil
}

// columns finds which of the panel's columns a thread has: 4 next to each other where memory lies so.
func (s *scatter) columns(op *ir.Op) {
	l, b := s.l, s.l.b
	s.width = int(op.Attrs().IntOr("cols", 1))
	s.together = 4
	for _, r := range []*reference{s.x, s.out, s.init} {
		if r != nil && (r.strides[1] != 1 || r.strides[0]%4 != 0 || r.shape[1]%4 != 0 || r.align%16 != 0) {
			s.together = 1
		}
	}
	if s.width%4 != 0 {
		s.together = 1
	}
	s.panel, s.cols = op.Operand(2), l.clip(op.Operand(2), s.out.shape[1], s.width)
	own := b.MulI(s.lane, s.together)
	s.column = b.Add(l.index[op.Operand(2)], own)
	for c := 0; c < s.width; c += 32 * s.together {
		var there *ir.Value
		if s.cols.v != nil || c+32*s.together > s.width {
			there = b.Compare("lt", b.AddI(own, c), l.limit(s.cols, s.width))
		}
		s.there = append(s.there, there)
	}
}

// add adds the rows of a chunk of indices.
func (s *scatter) add(at *ir.Value) {
	b := s.l.b
	total := s.write(at)
	b.For(b.I32(0), b.I32(scatterRange), b.I32(scatterWarps), true, nil, func(group *ir.Value, _ []*ir.Value) []*ir.Value {
		row := b.Add(group, s.warp)
		s.store(row, s.addListed(at, total, row))
		return nil
	})
}

// sharesMemory reports whether an input and an output of a kernel are the same memory.
func sharesMemory(kernel *ir.Op, in, out *ir.Value) bool {
	ins, outs := tile.Refs(kernel)
	refs := append(ins, outs...)
	for _, pair := range share.Shared(kernel) {
		if refs[pair[0]] == in && refs[pair[1]] == out {
			return true
		}
	}
	return false
}

// start is the sums of a thread's columns before anything is added, behind the number of rows that were.
func (s *scatter) start() []*ir.Value {
	sums := []*ir.Value{s.l.b.I32(0)}
	for range len(s.there) * s.together {
		sums = append(sums, s.l.b.F32(0))
	}
	return sums
}

// place is the address of the thread's first column in a row, and the bytes from one group of its columns to the next.
func (s *scatter) place(r *reference, row *ir.Value) (*ir.Value, int) {
	b := s.l.b
	step := 32 * s.together * int(r.strides[1]*4)
	return b.MulWide(row, int(r.strides[0]*4), b.MulWide(s.column, int(r.strides[1]*4), s.l.base(r))), step
}

// read reads the thread's columns of a row; where the predicate doesn't hold they are 0.
func (s *scatter) read(r *reference, row, when *ir.Value) (xs []*ir.Value) {
	at, step := s.place(r, row)
	for j, there := range s.there {
		xs = append(xs, s.l.read(at, j*step, s.l.c.F32(), s.together, s.l.both(when, there))...)
	}
	return xs
}

// write writes down which of a chunk's indices name rows of the range, and gives their number. A warp has indices that follow
// each other, of which its lanes look at 4 each at a time, twice: where they write is the number of those before.
func (s *scatter) write(at *ir.Value) (total *ir.Value) {
	b := s.l.b
	found := s.look(at, b.I32(0), true, func(four []*ir.Value, count *ir.Value) *ir.Value {
		return b.Add(count, s.count(four))
	})
	before, total := s.before(found)
	s.look(at, before, false, func(four []*ir.Value, before *ir.Value) *ir.Value {
		count := s.count(four)
		upTo := s.scan(count)
		to := b.Add(s.list, b.MulI(b.Add(before, b.Sub(upTo, count)), 4))
		for k, v := range four {
			row, own := s.own(v)
			b.Store(to, b.Add(b.MulI(b.AddI(s.looksAt, k), scatterRows), row), ptx.Access{Space: "shared", If: own})
			to = b.Add(to, b.Select(own, b.I32(4), b.I32(0)))
		}
		return b.Add(before, s.shuffle(upTo, b.I32(31), "idx"))
	})
	s.l.sync()
	return total
}

// own is the row of the range that an index names, and whether it names one.
func (s *scatter) own(index *ir.Value) (row, is *ir.Value) {
	row = s.l.b.Sub(index, s.first)
	return row, s.l.b.Compare("lo", row, s.limit)
}

// count is how many of some indices name rows of the range.
func (s *scatter) count(indices []*ir.Value) *ir.Value {
	b := s.l.b
	n := b.I32(0)
	for _, v := range indices {
		_, own := s.own(v)
		n = b.Add(n, b.Select(own, b.I32(1), b.I32(0)))
	}
	return n
}

// look goes over a warp's indices of a chunk and calls f for each 4 of a lane, at position looksAt of the chunk and behind it,
// with what f gave before. The first of those that name no row of the table is recorded, if it is to be, by the blocks of the
// table's first rows.
func (s *scatter) look(at, x *ir.Value, record bool, f func(four []*ir.Value, x *ir.Value) *ir.Value) *ir.Value {
	b := s.l.b
	mine := b.Add(b.MulI(s.warp, 32*scatterEach), b.MulI(s.lane, 4))
	return b.For(b.I32(0), b.I32(32*scatterEach), b.I32(32*scatterLooks), true, []*ir.Value{x}, func(k *ir.Value, xs []*ir.Value) []*ir.Value {
		first := b.Add(mine, k)
		var fours [][]*ir.Value
		for n := 0; n < scatterLooks; n += 4 {
			fours = append(fours, s.indices(b.AddI(b.Add(at, first), 32*n)))
		}
		x := xs[0]
		for n, four := range fours {
			s.looksAt = b.AddI(first, 32*4*n)
			if record {
				s.check(b.Add(at, s.looksAt), four)
			}
			x = f(four, x)
		}
		return []*ir.Value{x}
	})[0]
}

// indices reads 4 from a position on, at once where they lie so; -1 stands for those that are not there.
func (s *scatter) indices(position *ir.Value) (values []*ir.Value) {
	l, b := s.l, s.l.b
	n, stride, each := int(s.x.shape[0]), int(s.idx.strides[0]*4), 1
	if stride == 4 && n%4 == 0 && s.idx.align%16 == 0 {
		each = 4
	}
	from := b.MulWide(position, stride, l.base(s.idx))
	for k := 0; k < 4; k += each {
		there := s.isThere(position, k)
		for _, v := range b.Scalars(b.Load(from, l.c.I32(), each, ptx.Access{Space: "global", Offset: k * stride, If: there})) {
			values = append(values, l.choose(there, v, b.I32(-1)))
		}
	}
	return values
}

// isThere says whether there is an index k behind a position; nil: there is.
func (s *scatter) isThere(position *ir.Value, k int) *ir.Value {
	n := int(s.x.shape[0])
	if n%scatterChunk == 0 {
		return nil
	}
	return s.l.b.Compare("lt", s.l.b.AddI(position, k), s.l.b.I32(n))
}

// check records the first of the indices from a position on that name no row of the table.
func (s *scatter) check(position *ir.Value, values []*ir.Value) {
	l, b := s.l, s.l.b
	b.If(b.Compare("eq", s.first, b.I32(0)), true, func() {
		for k, v := range values {
			bad := l.both(l.outside(v, s.out.shape[0]), s.isThere(position, k))
			b.ReduceMin(l.errorsAt, b.Join(v, b.AddI(position, k)), s.errorsAt, bad)
		}
	}, nil)
}

// before adds up the counts of the warps before this one, and of all.
func (s *scatter) before(count *ir.Value) (before, total *ir.Value) {
	l, b := s.l, s.l.b
	b.Store(b.Add(s.counts, b.MulI(s.warp, 4)), s.scan(count), ptx.Access{Space: "shared", If: b.Compare("eq", s.lane, b.I32(31))})
	l.sync()
	isWarp := b.Compare("lt", s.lane, b.I32(scatterWarps))
	ofWarp := b.Load(b.Add(s.counts, b.MulI(s.lane, 4)), l.c.I32(), 1, ptx.Access{Space: "shared", If: isWarp})
	upToWarp := s.scan(ofWarp)
	total = s.shuffle(upToWarp, b.I32(31), "idx")
	return s.shuffle(b.Sub(upToWarp, ofWarp), s.warp, "idx"), total
}

// scan adds up a number over the lanes up to each.
func (s *scatter) scan(x *ir.Value) *ir.Value {
	b := s.l.b
	for d := 1; d < 32; d *= 2 {
		sum := b.Add(x, s.shuffle(x, b.I32(d), "up"))
		x = b.Select(b.Compare("ge", s.lane, b.I32(d)), sum, x)
	}
	return x
}

func (s *scatter) shuffle(x, lane *ir.Value, mode string) *ir.Value {
	return s.l.b.Do(ptx.Shuffle, []*ir.Value{x, lane}, "mode", mode).Result(0)
}

// addListed adds up what is written down for a row of the range. Each lane looks at an entry; those for the row are put next
// to each other, in their order.
func (s *scatter) addListed(at, total, row *ir.Value) []*ir.Value {
	l, b := s.l, s.l.b
	return b.For(b.I32(0), total, b.I32(32), true, s.start(), func(n *ir.Value, sums []*ir.Value) []*ir.Value {
		number := b.Add(n, s.lane)
		listed := b.Compare("lt", number, total)
		entry := b.Load(b.Add(s.list, b.MulI(number, 4)), l.c.I32(), 1, ptx.Access{Space: "shared", If: listed})
		mine := b.And(listed, b.Compare("eq", b.RemI(entry, scatterRows), row))
		upTo := s.scan(b.Select(mine, b.I32(1), b.I32(0)))
		count := s.shuffle(upTo, b.I32(31), "idx")
		position := b.DivI(entry, scatterRows)
		to := b.Add(s.picked, b.MulI(b.AddI(upTo, -1), 4))
		b.Store(to, position, ptx.Access{Space: "shared", If: mine})
		s.fetch(b.Add(at, position), mine)
		b.Do(ptx.WarpSync, nil)
		sums = s.addPicked(at, count, sums)
		b.Do(ptx.WarpSync, nil)
		return sums
	})
}

// fetch has a row, of which there may be many, brought into the second-level cache, where the target can.
func (s *scatter) fetch(row, when *ir.Value) {
	l, b := s.l, s.l.b
	if s.together == 1 || b.Kernel.Attrs().Str("target") != ptx.SM90A {
		return
	}
	panel := b.MulWide(l.index[s.panel], 4, l.base(s.x))
	b.Do(ptx.PrefetchBulk, []*ir.Value{b.MulWide(row, int(s.x.strides[0]*4), panel), b.MulI(l.limit(s.cols, s.width), 4), when})
}

// addPicked adds the rows of so many positions, several of which are on their way together. Rows that are not there are 0.
func (s *scatter) addPicked(at, count *ir.Value, sums []*ir.Value) []*ir.Value {
	l, b := s.l, s.l.b
	return b.For(b.I32(0), count, b.I32(scatterAhead), true, sums, func(n *ir.Value, sums []*ir.Value) []*ir.Value {
		from := b.Add(s.picked, b.MulI(n, 4))
		var rows [][]*ir.Value
		for k := range scatterAhead {
			is := b.Compare("lt", b.AddI(n, k), count)
			position := b.Load(from, l.c.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * k, If: is})
			rows = append(rows, s.read(s.x, b.Add(at, position), is))
		}
		next := []*ir.Value{count}
		for j, sum := range sums[1:] {
			for _, row := range rows {
				sum = b.Add(sum, row[j])
			}
			next = append(next, sum)
		}
		return next
	})
}

// store adds what the table held at first and writes a row of the range. In place, rows that nothing came to stay.
func (s *scatter) store(row *ir.Value, sums []*ir.Value) {
	l, b := s.l, s.l.b
	there := b.Compare("lt", row, s.limit)
	if s.inPlace {
		there = b.And(there, b.Compare("ne", sums[0], b.I32(0)))
	}
	row, sums = b.Add(s.first, row), slices.Clone(sums[1:])
	if s.init != nil {
		for j, x := range s.read(s.init, row, there) {
			sums[j] = b.Add(x, sums[j])
		}
	}
	to, step := s.place(s.out, row)
	for j, in := range s.there {
		x := b.Vector(sums[j*s.together : (j+1)*s.together]...)
		b.Store(to, x, ptx.Access{Space: "global", Offset: j * step, If: l.both(there, in)})
	}
}
