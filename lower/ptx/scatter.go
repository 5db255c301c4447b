package ptx

import (
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// A scatter's blocks of threads have a range of the table's rows and a panel of its columns each; a row of threads has some
// rows of the table, one after the other, whose sums it keeps in registers. All read the indices, a chunk at a time, and write
// down those that name rows of their range, in order; then each row of threads adds what comes to its own. So a sum has the
// order of the indices, nothing is sorted, and nothing is written but the table: all of it with the first chunk, with others
// the rows that they come to.
const (
	scatterThreads = 1024
	scatterEach    = 16   // indices of a chunk that a thread looks at, one after the other
	scatterAhead   = 4    // of what is written down, how many are looked at together
	scatterGroups  = 4    // rows of the table that a row of threads has
	scatterRows    = 4096 // more than a range has
)

// scatter is the state of lowering tile.scatter_add.
type scatter struct {
	l          *lowering
	x, idx     *reference
	out, init  *reference // init is nil where sums start from 0
	inPlace    bool       // init and out are the same memory
	first      *ir.Value  // the first row of the range
	lane, warp *ir.Value
	columns    []*ir.Value // whether the thread's columns are there; nil: they are
	column     *ir.Value   // its first
	list       *ir.Value   // shared memory: what is written down, then the warps' counts
	errorsAt   int
}

// scatterLayout has a row of the table for each row of threads, which are a warp where there are columns enough, and
// several columns for each thread.
func scatterLayout(op *ir.Op) layout {
	tc := min(powerOf2(int(op.Attrs().IntOr("cols", 1))), 32)
	y := layout{vr: 1, v: 1, tc: tc, tr: scatterThreads / tc}
	y.parts = (int(op.Operand(3).Shape()[0]) + y.tr*scatterGroups - 1) / (y.tr * scatterGroups)
	return y
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
	s.first = b.MulI(l.part, l.tr*scatterGroups)
	width := int(op.Attrs().IntOr("cols", 1))
	panel := l.clip(op.Operand(2), s.out.shape[1], width)
	s.column = b.Add(l.index[op.Operand(2)], l.tcol)
	for c := 0; c < width; c += l.tc {
		var there *ir.Value
		if panel.v != nil || c+l.tc > width {
			there = b.Compare("lt", b.AddI(l.tcol, c), l.limit(panel, width))
		}
		s.columns = append(s.columns, there)
	}
	s.errorsAt = 8 * len(l.errors)
	l.record(op, tableRows, s.out.shape[0], l.truth(false), b.I32(0), b.I32(0))
	chunk := scatterThreads * scatterEach
	s.list = l.exchange(int64(4 * (chunk + scatterThreads/32)))
	s.add(b.I32(0))
	n := int(s.x.shape[0])
	if n <= chunk {
		return nil
	}
	s.init, s.inPlace = s.out, true
	b.For(b.I32(chunk), b.I32(n), b.I32(chunk), true, nil, func(at *ir.Value, _ []*ir.Value) []*ir.Value {
		l.sync() // the list is read until here
		s.add(at)
		return nil
	})
	return nil
}

// add adds the rows of a chunk of indices.
func (s *scatter) add(at *ir.Value) {
	l, b := s.l, s.l.b
	total := s.write(at)
	b.For(b.I32(0), b.I32(l.tr*scatterGroups), b.I32(l.tr), true, nil, func(group *ir.Value, _ []*ir.Value) []*ir.Value {
		row := b.Add(group, l.trow)
		s.store(row, s.addListed(at, total, row, s.start()))
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

// start is the sums of a thread's columns before anything is added, and that nothing was.
func (s *scatter) start() []*ir.Value {
	sums := []*ir.Value{s.l.b.I32(0)}
	for range s.columns {
		sums = append(sums, s.l.b.F32(0))
	}
	return sums
}

// place is the address of the thread's first column in a row, and the bytes from one of its columns to the next.
func (s *scatter) place(r *reference, row *ir.Value) (*ir.Value, int) {
	b := s.l.b
	return b.MulWide(row, int(r.strides[0]*4), b.MulWide(s.column, int(r.strides[1]*4), s.l.base(r))), s.l.tc * int(r.strides[1]*4)
}

// write writes down which of a chunk's indices name rows of the range, and gives their number. A thread looks at several
// that follow each other; where it writes is the number of those that threads before it have found.
func (s *scatter) write(at *ir.Value) (total *ir.Value) {
	l, b := s.l, s.l.b
	mine := b.MulI(b.Special("tid.x"), scatterEach)
	position := b.Add(at, mine)
	var rows, found, counts []*ir.Value
	count := b.I32(0)
	for k, v := range s.indices(position) {
		there := b.Compare("lt", b.AddI(position, k), b.I32(int(s.x.shape[0])))
		bad := l.outside(v, s.out.shape[0])
		b.ReduceMin(l.errorsAt, b.Join(v, b.AddI(position, k)), s.errorsAt, b.And(there, bad))
		row := b.Sub(v, s.first)
		own := b.And(b.And(there, l.not(bad)), b.Compare("lo", row, b.I32(l.tr*scatterGroups)))
		rows, found, counts = append(rows, row), append(found, own), append(counts, count)
		count = b.Add(count, b.Select(own, b.I32(1), b.I32(0)))
	}
	before, total := s.before(count)
	for k, row := range rows {
		entry := b.Add(b.MulI(b.AddI(mine, k), scatterRows), row)
		to := b.Add(s.list, b.MulI(b.Add(before, counts[k]), 4))
		b.Store(to, entry, ptx.Access{Space: "shared", If: found[k]})
	}
	l.sync()
	return total
}

// indices reads those that a thread looks at, 4 at a time where they lie so.
func (s *scatter) indices(position *ir.Value) (all []*ir.Value) {
	l, b := s.l, s.l.b
	n, stride, each := int(s.x.shape[0]), int(s.idx.strides[0]*4), 1
	if stride == 4 && n%4 == 0 && s.idx.align%16 == 0 {
		each = 4
	}
	from := b.MulWide(position, stride, l.base(s.idx))
	for k := 0; k < scatterEach; k += each {
		there := b.Compare("lt", b.AddI(position, k), b.I32(n))
		all = append(all, b.Scalars(b.Load(from, l.c.I32(), each, ptx.Access{Space: "global", Offset: k * stride, If: there}))...)
	}
	return all
}

// before adds up the counts of the threads before this one, and of all.
func (s *scatter) before(count *ir.Value) (before, total *ir.Value) {
	l, b := s.l, s.l.b
	warps := b.AddI(s.list, 4*scatterThreads*scatterEach)
	upTo := s.scan(count)
	b.Store(b.Add(warps, b.MulI(s.warp, 4)), upTo, ptx.Access{Space: "shared", If: b.Compare("eq", s.lane, b.I32(31))})
	l.sync()
	ofWarp := b.Load(b.Add(warps, b.MulI(s.lane, 4)), l.c.I32(), 1, ptx.Access{Space: "shared"})
	upToWarp := s.scan(ofWarp)
	total = s.shuffle(upToWarp, b.I32(31), "idx")
	before = s.shuffle(b.Sub(upToWarp, ofWarp), s.warp, "idx")
	return b.Add(before, b.Sub(upTo, count)), total
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

// addListed adds what is written down for a row of the range. Most of it is for others: nothing is done for that.
func (s *scatter) addListed(at, total, row *ir.Value, sums []*ir.Value) []*ir.Value {
	l, b := s.l, s.l.b
	return b.For(b.I32(0), total, b.I32(scatterAhead), true, sums, func(n *ir.Value, sums []*ir.Value) []*ir.Value {
		entries := b.Add(s.list, b.MulI(n, 4))
		var own, positions []*ir.Value
		for k := range scatterAhead {
			listed := b.Compare("lt", b.AddI(n, k), total)
			entry := b.Load(entries, l.c.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * k, If: listed})
			mine := b.And(listed, b.Compare("eq", b.RemI(entry, scatterRows), row))
			own, positions = append(own, b.Select(mine, b.I32(1), b.I32(0))), append(positions, b.DivI(entry, scatterRows))
		}
		for k, times := range own {
			sums = b.For(b.I32(0), times, b.I32(1), l.tc >= 32, sums, func(_ *ir.Value, sums []*ir.Value) []*ir.Value {
				from, step := s.place(s.x, b.Add(at, positions[k]))
				next := []*ir.Value{b.I32(1)}
				for j, there := range s.columns {
					x := b.Load(from, l.c.F32(), 1, ptx.Access{Space: "global", Offset: j * step, If: there})
					next = append(next, b.Add(sums[j+1], x))
				}
				return next
			})
		}
		return sums
	})
}

// store adds what the table held at first and writes a row of the range. In place, rows that nothing came to stay.
func (s *scatter) store(row *ir.Value, sums []*ir.Value) {
	l, b := s.l, s.l.b
	row = b.Add(s.first, row)
	there := b.Compare("lt", row, b.I32(int(s.out.shape[0])))
	if s.inPlace {
		there = b.And(there, b.Compare("ne", sums[0], b.I32(0)))
	}
	to, step := s.place(s.out, row)
	for j, in := range s.columns {
		sum, when := sums[j+1], l.both(there, in)
		if s.init != nil {
			from, far := s.place(s.init, row)
			sum = b.Add(b.Load(from, l.c.F32(), 1, ptx.Access{Space: "global", Offset: j * far, If: when}), sum)
		}
		b.Store(to, sum, ptx.Access{Space: "global", Offset: j * step, If: when})
	}
}
