package ptx

import (
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// dot multiplies two blocks through shared memory, where the contracted dimension is the major one of both.
func (l *lowering) dot(op *ir.Op) error {
	a, b, y := l.blocks[op.Operand(0)], l.blocks[op.Operand(1)], l.blockFor(op.Result(0))
	if a.elem != l.c.F32() || b.elem != l.c.F32() || y.elem != l.c.F32() {
		return op.Errorf("tile.dot of %s and %s has no lowering for GPUs", a.elem, b.elem)
	}
	ta, tb := op.Attrs().Bool("ta"), op.Attrs().Bool("tb")
	depth := a.shape[1]
	y.rows, y.cols = a.rows, b.cols
	if ta {
		depth, y.rows = a.shape[0], a.cols
	}
	if tb {
		y.cols = b.rows
	}
	a, b = l.masked(a, ta), l.masked(b, !tb)
	second := l.sharedBytes(a, !ta)
	base := l.exchange(second + l.sharedBytes(b, tb))
	sa := l.sharedBlock(a, !ta, 0, base)
	sb := l.sharedBlock(b, tb, second, base)
	l.sync()
	acc := make([]*ir.Value, len(y.regs))
	for k := range acc {
		if op.NumOperands() == 3 {
			acc[k] = l.blocks[op.Operand(2)].regs[k]
		} else {
			acc[k] = l.b.F32(0)
		}
	}
	step := 4
	if depth == 1 {
		step = 1
	}
	l.operandStarts(y, sa, sb)
	y.regs = l.b.For(l.b.I32(0), l.b.I32((depth+step-1)/step*step), l.b.I32(step), true, acc, func(k *ir.Value, acc []*ir.Value) []*ir.Value {
		atA, atB := l.operandStarts(y, sa, sb)
		atA, atB = l.b.Add(atA, l.b.MulI(k, int(sa.pitch))), l.b.Add(atB, l.b.MulI(k, int(sb.pitch)))
		for kk := range step {
			acc = l.outer(y, acc, l.fragment(atA, int(sa.offset+int64(kk)*sa.pitch), y.shape[0], l.rows(y.shape[0]), l.vr, l.rowAt),
				l.fragment(atB, int(sb.offset+int64(kk)*sb.pitch), y.shape[1], l.cols(y.shape[1]), l.v, l.colAt))
		}
		return acc
	})
	l.blocks[op.Result(0)] = y
	return nil
}

// operandStarts is where a thread's rows of the one operand and columns of the other start in a line of shared memory.
func (l *lowering) operandStarts(y *block, sa, sb sharedTile) (a, b *ir.Value) {
	a, b = sa.base, sb.base
	if y.shape[0] > 1 {
		a = l.remember(placeKey{"rows in line", sa.base, 0, 0}, func() *ir.Value { return l.b.Add(sa.base, l.b.MulI(l.row0, 4)) })
	}
	if y.shape[1] > 1 {
		b = l.remember(placeKey{"columns in line", sb.base, 0, 0}, func() *ir.Value { return l.b.Add(sb.base, l.b.MulI(l.col0, 4)) })
	}
	return a, b
}

// fragment loads a thread's n elements of a line of shared memory, those that lie next to each other at once.
func (l *lowering) fragment(at *ir.Value, shift, extent, n, together int, place func(int) int) []*ir.Value {
	if extent == 1 {
		return []*ir.Value{l.b.Load(at, l.c.F32(), 1, ptx.Access{Space: "shared", Offset: shift})}
	}
	var out []*ir.Value
	for i := 0; i < n; i += together {
		out = append(out, l.b.Scalars(l.b.Load(at, l.c.F32(), together, ptx.Access{Space: "shared", Offset: shift + 4*place(i)}))...)
	}
	return out
}

// outer adds the outer product of a thread's elements of two lines.
func (l *lowering) outer(y *block, acc, a, b []*ir.Value) []*ir.Value {
	next := make([]*ir.Value, len(acc))
	l.each(y, func(i, j, k int) { next[k] = l.b.FMA(a[i], b[j], acc[k]) })
	return next
}

// depthStep is the elements of the contracted dimension that are in shared memory at a time.
const depthStep = 8

// contract multiplies panels of two references: step by step both are copied to shared memory, what comes next being
// fetched to registers meanwhile.
func (l *lowering) contract(op *ir.Op) error {
	if len(op.Regions()) > 0 && op.Body() != nil {
		return op.Errorf("tile.contract with a body has no lowering for GPUs")
	}
	lhs, rhs, lhsAt, rhsAt := tile.ContractOperands(op)
	y := l.blockFor(op.Result(0))
	elem := lhs[0].Elem()
	if len(lhs) != 1 || len(rhs) != 1 || y.elem != l.c.F32() || elem != rhs[0].Elem() || elem != l.c.F32() && !isHalf(elem) {
		return op.Errorf("tile.contract of %s and %s has no lowering for GPUs", elem, rhs[0].Elem())
	}
	if op.Attrs().Str("precision") == "bf16" && !isHalf(elem) {
		return op.Errorf("tile.contract of %s in precision bf16: its operands must have been rounded", elem)
	}
	shape := lhs[0].Shape()
	depth := int(shape[len(shape)-1])
	a := l.panel(lhs[0], lhsAt, y.shape[0], l.paddedRows(y.shape[0]))
	b := l.panel(rhs[0], rhsAt, y.shape[1], l.paddedCols(y.shape[1]))
	y.rows, y.cols = a.extent, b.extent
	second := depthStep * pitchOf(a.padded)
	base := l.exchange(second + depthStep*pitchOf(b.padded))
	sa, sb := sharedTile{base, 0, pitchOf(a.padded)}, sharedTile{base, second, pitchOf(b.padded)}
	a.prepare(depth)
	b.prepare(depth)
	l.operandStarts(y, sa, sb)
	inits := make([]*ir.Value, len(y.regs))
	for k := range inits {
		inits[k] = l.b.F32(0)
	}
	zero := l.b.I32(0)
	inits = append(append(inits, a.fetch(zero)...), b.fetch(zero)...)
	na := len(a.units) * 4
	results := l.b.For(zero, l.b.I32(depth), l.b.I32(depthStep), true, inits, func(k *ir.Value, carried []*ir.Value) []*ir.Value {
		acc, next := carried[:len(y.regs)], carried[len(y.regs):]
		l.sync()
		a.put(sa, next[:na])
		b.put(sb, next[na:])
		l.sync()
		ahead := l.b.AddI(k, depthStep)
		next = append(a.fetch(ahead), b.fetch(ahead)...)
		atA, atB := l.operandStarts(y, sa, sb)
		for kk := range depthStep {
			acc = l.outer(y, acc, l.fragment(atA, int(sa.offset+int64(kk)*sa.pitch), y.shape[0], l.rows(y.shape[0]), l.vr, l.rowAt),
				l.fragment(atB, int(sb.offset+int64(kk)*sb.pitch), y.shape[1], l.cols(y.shape[1]), l.v, l.colAt))
		}
		return append(acc, next...)
	})
	y.regs = results[:len(y.regs)]
	l.blocks[op.Result(0)] = y
	return nil
}

// panel is an operand of a contraction on its way to shared memory: rows along its last dimension but one.
type panel struct {
	l                 *lowering
	elem              ir.Type
	start             *ir.Value
	extent            extent
	rows, padded      int
	rowPitch, kPitch  int64 // bytes
	alongRows         bool  // four rows are fetched at a time, else four elements of the contracted dimension
	together          int   // elements of an access
	depth             int
	units             []unit
	divisor, rowAlign int64
}

// unit is four elements that a thread fetches: from row `row` and element `k` of a step on.
type unit struct {
	at, row, k *ir.Value
	exists     *ir.Value // nil: always
}

func (l *lowering) panel(ref *ir.Value, at []*ir.Value, rows, padded int) *panel {
	r := l.refs[ref]
	n := len(r.shape)
	p := &panel{l: l, elem: r.elem, rows: rows, padded: padded, rowPitch: r.strides[n-2] * r.size, kPitch: r.strides[n-1] * r.size}
	p.extent = l.clip(at[n-2], r.shape[n-2], rows)
	p.start = l.start(window{ref: r, offsets: at})
	p.alongRows = p.kPitch != r.size && p.rowPitch == r.size && padded%4 == 0
	aligned := r.align
	for d, o := range at {
		aligned = gcd(aligned, divisor(o)*r.strides[d]*r.size)
	}
	if p.alongRows {
		aligned = gcd(aligned, p.kPitch)
	} else {
		aligned = gcd(aligned, p.rowPitch)
	}
	p.together = 1
	if aligned%(4*r.size) == 0 && (p.alongRows && p.extent.divisor%4 == 0 || !p.alongRows && p.kPitch == r.size && r.shape[n-1]%4 == 0) {
		p.together = 4
	}
	return p
}

// prepare finds a thread's units.
func (p *panel) prepare(depth int) {
	l := p.l
	p.depth = depth
	tid := l.remember("thread", func() *ir.Value { return l.b.Special("tid.x") })
	count := (p.padded*depthStep + 3) / 4
	for n := 0; n < count; n += l.threads {
		u := unit{}
		id := l.b.AddI(tid, n)
		if n+l.threads > count {
			u.exists = l.b.Compare("lt", id, l.b.I32(count))
		}
		if p.alongRows {
			u.k, u.row = l.b.DivI(id, p.padded/4), l.b.MulI(l.b.RemI(id, p.padded/4), 4)
		} else {
			u.row, u.k = l.b.DivI(id, depthStep/4), l.b.MulI(l.b.RemI(id, depthStep/4), 4)
		}
		u.at = l.b.MulWide(u.row, int(p.rowPitch), p.start)
		p.units = append(p.units, u)
	}
}

// fetch loads a thread's elements of the step that starts at k; what is not there is 0.
func (p *panel) fetch(k *ir.Value) []*ir.Value {
	l := p.l
	var out []*ir.Value
	for n, u := range p.units {
		first := l.b.Add(k, u.k)
		at := l.b.MulWide(first, int(p.kPitch), u.at)
		for e := 0; e < 4; e += p.together {
			row, depth, shift := 0, e, int64(e)*p.kPitch
			if p.alongRows {
				row, depth, shift = e, 0, int64(e)*p.rowPitch
			}
			when := l.both(u.exists, p.rowThere(n, u, row))
			when = l.both(when, l.b.Compare("lt", first, l.b.I32(p.depth-depth)))
			for _, x := range l.read(at, int(shift), p.elem, p.together, when) {
				out = append(out, l.cast(x, l.c.F32()))
			}
		}
	}
	return out
}

// rowThere says whether a row of a unit is one that there is.
func (p *panel) rowThere(n int, u unit, e int) *ir.Value {
	if p.extent.v == nil && p.padded == p.rows {
		return nil
	}
	type key struct {
		p    *panel
		n, e int
	}
	return p.l.remember(key{p, n, e}, func() *ir.Value {
		return p.l.b.Compare("lt", p.l.b.AddI(u.row, e), p.l.limit(p.extent, p.rows))
	})
}

// put stores a thread's elements to shared memory, where lines run along the rows.
func (p *panel) put(s sharedTile, regs []*ir.Value) {
	l := p.l
	for n, u := range p.units {
		at := l.b.Add(s.base, l.b.Add(l.b.MulI(u.k, int(s.pitch)), l.b.MulI(u.row, 4)))
		four := regs[4*n : 4*n+4]
		if p.alongRows {
			l.b.Store(at, l.b.Vector(four...), ptx.Access{Space: "shared", Offset: int(s.offset), If: u.exists})
			continue
		}
		for e, v := range four {
			l.b.Store(at, v, ptx.Access{Space: "shared", Offset: int(s.offset + int64(e)*s.pitch), If: u.exists})
		}
	}
}
