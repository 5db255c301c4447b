package ptx

import "blutrain/ir"

// record makes an error record and writes to it where an index is bad: position and value, the first position of all.
func (l *lowering) record(op *ir.Op, what string, extent int64, bad, position, index *ir.Value) {
	at := 8 * len(l.errors)
	l.errors = append(l.errors, l.c.Dict(ir.NamedAttr{Name: "what", Value: l.c.String(what)}, ir.NamedAttr{Name: "extent", Value: l.c.Int64(extent)}))
	l.b.ReduceMin(l.errorsAt, l.b.Join(index, position), at, bad)
}

// outside says whether an index is none of n.
func (l *lowering) outside(index *ir.Value, n int64) *ir.Value {
	return l.b.Compare("hs", index, l.b.I32(int(n)))
}

// Texts of error records.
const (
	tableRows  = "the table has %d rows"
	rowEntries = "there are %d"
)

func (l *lowering) gather(op *ir.Op) {
	table, index := l.refs[op.Operand(0)], l.blocks[op.Operand(1)]
	at, col := l.index[op.Operand(2)], op.Operand(3)
	y := l.blockFor(op.Result(0))
	y.rows = index.rows
	y.cols = l.clip(col, table.shape[1], y.shape[1])
	w := window{ref: table, offsets: []*ir.Value{op.Operand(2), col}, row: 0, col: 1, rowStride: table.strides[0] * table.size, colStride: table.strides[1] * table.size, cols: y.cols}
	start := l.b.MulWide(l.index[col], int(w.colStride), l.base(table))
	if y.shape[1] > 1 {
		start = l.b.MulWide(l.col0, int(w.colStride), start)
	}
	n := l.wideRow(w, y, col)
	cols := l.cols(y.shape[1])
	safe := l.checked(op, index, at, table.shape[0], tableRows, nil)
	rows := make([]*ir.Value, len(safe))
	for i, v := range safe {
		rows[i] = l.b.MulWide(v, int(w.rowStride), start)
	}
	for k := 0; k < len(y.regs); k += n {
		i, j := k/cols, k%cols
		shift := 0
		if y.shape[1] > 1 {
			shift = l.colAt(j) * int(w.colStride)
		}
		copy(y.regs[k:], l.read(rows[i], shift, y.elem, n, l.inside(y, i, j)))
	}
	l.blocks[op.Result(0)] = y
}

// wideRow is the elements of an access to a table whose rows are read in any order.
func (l *lowering) wideRow(w window, y *block, col *ir.Value) int {
	table := *w.ref
	table.align = gcd(table.align, w.rowStride)
	table.strides = table.strides[1:]
	w.ref, w.offsets = &table, []*ir.Value{col}
	return l.wide(w, &block{elem: y.elem, shape: [2]int{1, y.shape[1]}, cols: y.cols})
}

// checked is a thread's indices, 0 for those that name none of n: for these there is an error record, unless skip says
// that an index names nothing.
func (l *lowering) checked(op *ir.Op, index *block, at *ir.Value, n int64, what string, skip func(*ir.Value) *ir.Value) []*ir.Value {
	safe := make([]*ir.Value, len(index.regs))
	for i, v := range index.regs {
		bad := l.outside(v, n)
		safe[i] = l.b.Select(bad, l.b.I32(0), v)
		if skip != nil {
			bad = l.b.And(bad, l.not(skip(v)))
		}
		position := at
		if index.shape[0] > 1 {
			position = l.b.Add(at, l.row(i))
		}
		report := l.both(bad, l.rowInside(index, i))
		if i > 0 {
			l.b.ReduceMin(l.errorsAt, l.b.Join(v, position), 8*(len(l.errors)-1), report)
			continue
		}
		l.record(op, what, n, report, position, v)
	}
	return safe
}

func (l *lowering) pick(op *ir.Op) {
	ref, index := l.refs[op.Operand(0)], l.blocks[op.Operand(1)]
	offsets := op.Operands()[3:]
	y := l.blockFor(op.Result(0))
	y.rows = index.rows
	d := len(ref.shape) - 1
	w := window{ref: ref, offsets: offsets, rowStride: ref.strides[d-1] * ref.size}
	start := l.start(w)
	var skip func(*ir.Value) *ir.Value
	if ignore, ok := op.Attrs().Int("ignore"); ok {
		skip = func(v *ir.Value) *ir.Value { return l.b.Compare("eq", v, l.b.I32(int(ignore))) }
	}
	safe := l.checked(op, index, l.index[op.Operand(2)], ref.shape[d], rowEntries, skip)
	for i := range y.regs {
		at := start
		if y.shape[0] > 1 {
			at = l.b.MulWide(l.row(i), int(w.rowStride), at)
		}
		at = l.b.MulWide(safe[i], int(ref.strides[d]*ref.size), at)
		when := l.rowInside(y, i)
		if skip != nil {
			when = l.both(when, l.not(skip(index.regs[i])))
		}
		y.regs[i] = l.read(at, 0, y.elem, 1, when)[0]
	}
	l.blocks[op.Result(0)] = y
}
