package ptx

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// reduction combines numbers; each is one register, or two where it is a value and its position.
type reduction struct {
	combine func(x, y []*ir.Value) []*ir.Value
	neutral []*ir.Value
}

// reduce reduces along one dimension: first what a thread has, pairwise, then across lanes, then across warps in order.
func (l *lowering) reduce(op *ir.Op) error {
	x, y := l.blocks[op.Operand(0)], l.blockFor(op.Result(0))
	axis := int(op.Attrs().IntOr("axis", 0))
	kind := op.Attrs().Str("kind")
	r, err := l.reduction(op, kind, x.elem)
	if err != nil {
		return err
	}
	lines := l.lines(x, axis, kind == "argmax", r)
	sums := make([][]*ir.Value, len(lines))
	for k, line := range lines {
		sums[k] = tree(line, r.combine)
	}
	if !l.within[op] {
		sums = l.across(x, axis, sums, r)
	}
	for k, s := range sums {
		y.regs[k] = s[len(s)-1]
	}
	y.rows, y.cols = x.rows, x.cols
	if axis == 0 {
		y.rows = extent{divisor: 1}
	} else {
		y.cols = extent{divisor: 1}
	}
	l.blocks[op.Result(0)] = y
	return nil
}

// across combines what the threads along a dimension have.
func (l *lowering) across(x *block, axis int, sums [][]*ir.Value, r *reduction) [][]*ir.Value {
	switch {
	case x.shape[axis] == 1:
		return sums
	case axis == 1:
		return l.acrossColumns(x, sums, r)
	}
	return l.acrossRows(x, sums, r)
}

// lines is what a thread has to reduce for each of its results, neutral where there is nothing.
func (l *lowering) lines(x *block, axis int, positions bool, r *reduction) [][][]*ir.Value {
	rows, cols := l.rows(x.shape[0]), l.cols(x.shape[1])
	n := rows
	if axis == 0 {
		n = cols
	}
	lines := make([][][]*ir.Value, n)
	l.each(x, func(i, j, k int) {
		line, at := i, j
		if axis == 0 {
			line, at = j, i
		}
		if l.absent(x, i, j) {
			return
		}
		p := l.colInside(x, j)
		if axis == 0 {
			p = l.rowInside(x, i)
		}
		v := []*ir.Value{l.choose(p, x.regs[k], r.neutral[0])}
		if positions {
			position := l.b.I32(0)
			switch {
			case x.shape[axis] == 1:
			case axis == 0:
				position = l.row(at)
			default:
				position = l.col(at)
			}
			v = append(v, l.choose(p, position, r.neutral[1]))
		}
		lines[line] = append(lines[line], v)
	})
	for i, line := range lines {
		if len(line) == 0 {
			lines[i] = append(line, r.neutral)
		}
	}
	return lines
}

// tree combines pairwise.
func tree(xs [][]*ir.Value, combine func(x, y []*ir.Value) []*ir.Value) []*ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	n := (len(xs) + 1) / 2
	return combine(tree(xs[:n], combine), tree(xs[n:], combine))
}

func (l *lowering) reduction(op *ir.Op, kind string, elem ir.Type) (*reduction, error) {
	if w := ptx.Width(elem); w != 32 && w != 64 {
		return nil, op.Errorf("tile.reduce of %s has no lowering for GPUs", elem)
	}
	low := math.Inf(-1)
	high := math.Inf(1)
	if ir.IsInteger(elem) {
		low, high = math.MinInt32, math.MaxInt32
		if ptx.Width(elem) == 64 {
			low, high = math.MinInt64, 1<<63-1024
		}
	}
	one := func(f func(x, y *ir.Value) *ir.Value, neutral float64) *reduction {
		return &reduction{func(x, y []*ir.Value) []*ir.Value { return []*ir.Value{f(x[0], y[0])} }, []*ir.Value{l.number(elem, neutral)}}
	}
	switch kind {
	case "sum":
		return one(l.b.Add, 0), nil
	case "max":
		return one(l.maximum, low), nil
	case "min":
		return one(l.minimum, high), nil
	case "argmax":
		return &reduction{l.firstGreatest, []*ir.Value{l.number(elem, low), l.b.I32(math.MaxInt32)}}, nil
	}
	return nil, op.Errorf("tile.reduce: no kind %q", kind)
}

// firstGreatest chooses the greater of two numbers with positions, NaN being greater than all, the first of equals.
func (l *lowering) firstGreatest(x, y []*ir.Value) []*ir.Value {
	b := l.b
	more, same := b.Compare("gt", y[0], x[0]), b.Compare("eq", y[0], x[0])
	if ir.IsFloat(x[0].Type()) {
		xn, yn := b.Compare("ne", x[0], x[0]), b.Compare("ne", y[0], y[0])
		more = l.either(more, b.And(yn, l.not(xn)))
		same = l.either(same, b.And(yn, xn))
	}
	take := l.either(more, b.And(same, b.Compare("lt", y[1], x[1])))
	return []*ir.Value{b.Select(take, y[0], x[0]), b.Select(take, y[1], x[1])}
}

// shuffled is what the lane that differs in bit m has.
func (l *lowering) shuffled(xs []*ir.Value, m int) []*ir.Value {
	out := make([]*ir.Value, len(xs))
	for i, x := range xs {
		if ptx.Width(x.Type()) == 64 {
			low, high := l.b.Split(l.b.Bitcast(x, l.c.I64()), l.c.I32())
			out[i] = l.b.Bitcast(l.b.Join(l.lane(low, m), l.lane(high, m)), x.Type())
			continue
		}
		out[i] = l.lane(x, m)
	}
	return out
}

func (l *lowering) lane(x *ir.Value, m int) *ir.Value {
	return l.b.Do(ptx.Shuffle, []*ir.Value{x, l.b.I32(m)}, "mode", "bfly").Result(0)
}

// acrossColumns combines the sums of rows that the threads of a row have.
func (l *lowering) acrossColumns(x *block, sums [][]*ir.Value, r *reduction) [][]*ir.Value {
	for m := 1; m < min(l.tc, 32); m *= 2 {
		for k, s := range sums {
			sums[k] = r.combine(s, l.shuffled(s, m))
		}
	}
	groups := l.tc / 32
	if groups <= 1 {
		return sums
	}
	group := l.remember("warp of row", func() *ir.Value { return l.b.DivI(l.tcol, 32) })
	writer := l.remember("first lane", func() *ir.Value { return l.b.Compare("eq", l.b.RemI(l.tcol, 32), l.b.I32(0)) })
	line, count := l.row0, l.paddedRows(x.shape[0])
	if x.shape[0] == 1 {
		line, count = l.trow, l.tr
	}
	lineAt := func(k, size int) int { return l.rowAt(k) * groups * size }
	if groups >= 4 && groups&(groups-1) == 0 {
		// [line][group]: each lane reads what one of the groups has, and the lanes exchange that.
		one := l.remember("lane of group", func() *ir.Value { return l.b.RemI(l.tcol, groups) })
		sums = l.acrossGroups(sums, r, 1, groups*count, func(size int) (write, read *ir.Value) {
			read = l.b.MulI(line, groups*size)
			return l.b.Add(read, l.b.MulI(group, size)), l.b.Add(read, l.b.MulI(one, size))
		}, lineAt, func(int, int) int { return 0 }, writer)
		for m := 1; m < groups; m *= 2 {
			for k, s := range sums {
				sums[k] = r.combine(s, l.shuffled(s, m))
			}
		}
		return sums
	}
	// [line][group]
	return l.acrossGroups(sums, r, groups, count, func(size int) (write, read *ir.Value) {
		read = l.b.MulI(line, groups*size)
		return l.b.Add(read, l.b.MulI(group, size)), read
	}, lineAt, func(g, size int) int { return g * size }, writer)
}

// acrossRows combines the sums of columns that the threads of a column have.
func (l *lowering) acrossRows(x *block, sums [][]*ir.Value, r *reduction) [][]*ir.Value {
	if l.tr == 1 {
		return sums
	}
	for m := l.tc; m < 32; m *= 2 {
		for k, s := range sums {
			sums[k] = r.combine(s, l.shuffled(s, m))
		}
	}
	groups, group := l.tr, l.trow
	var writer *ir.Value
	if l.tc < 32 {
		groups = l.threads / 32
		perWarp := 32 / l.tc
		group = l.remember("warp", func() *ir.Value { return l.b.DivI(l.trow, perWarp) })
		writer = l.remember("first row of warp", func() *ir.Value { return l.b.Compare("eq", l.b.RemI(l.trow, perWarp), l.b.I32(0)) })
	}
	if groups == 1 {
		return sums
	}
	line, count := l.col0, l.paddedCols(x.shape[1])
	if x.shape[1] == 1 {
		line, count = l.tcol, l.tc
	}
	// [group][line]
	return l.acrossGroups(sums, r, groups, count, func(size int) (write, read *ir.Value) {
		read = l.b.MulI(line, size)
		return l.b.Add(read, l.b.MulI(group, count*size)), read
	}, func(k, size int) int { return l.colAt(k) * size }, func(g, size int) int { return g * count * size }, writer)
}

// acrossGroups combines, in order of their number, what groups of threads have for each of so many lines, through shared
// memory: places gives a thread's address to write to and to read from, lineAt and groupAt what its line k and group g add.
func (l *lowering) acrossGroups(sums [][]*ir.Value, r *reduction, groups, lines int, places func(size int) (write, read *ir.Value),
	lineAt, groupAt func(k, size int) int, writer *ir.Value) [][]*ir.Value {
	total, parts := 0, len(sums[0])
	starts := make([]int, parts)
	for p, v := range sums[0] {
		starts[p] = total
		total += (groups*lines*ptx.Width(v.Type())/8 + 15) / 16 * 16
	}
	base := l.exchange(int64(total))
	read := make([]*ir.Value, parts)
	for p := range parts {
		size := ptx.Width(sums[0][p].Type()) / 8
		write, from := places(size)
		read[p] = l.b.Add(base, from)
		at := l.b.Add(base, write)
		for k, s := range sums {
			l.b.Store(at, s[p], ptx.Access{Space: "shared", Offset: starts[p] + lineAt(k, size), If: writer})
		}
	}
	l.sync()
	for k, s := range sums {
		var all [][]*ir.Value
		for g := range groups {
			v := make([]*ir.Value, parts)
			for p := range parts {
				size := ptx.Width(s[p].Type()) / 8
				v[p] = l.b.Load(read[p], s[p].Type(), 1, ptx.Access{Space: "shared", Offset: starts[p] + lineAt(k, size) + groupAt(g, size)})
			}
			all = append(all, v)
		}
		sums[k] = tree(all, r.combine)
	}
	return sums
}
