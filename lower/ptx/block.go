package ptx

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// block is what a thread has of a tile block: its rows, one after the other.
type block struct {
	elem       ir.Type
	shape      [2]int // of the type
	rows, cols extent
	regs       []*ir.Value
}

// extent is how many of a block's rows or columns there are.
type extent struct {
	v       *ir.Value // i32; nil: all of the type
	divisor int64     // that it is known to be a multiple of
}

func (l *lowering) newBlock(elem ir.Type, rows, cols int) *block {
	return &block{elem: elem, shape: [2]int{rows, cols}, regs: make([]*ir.Value, l.rows(rows)*l.cols(cols)),
		rows: extent{divisor: int64(rows)}, cols: extent{divisor: int64(cols)}}
}

// blockFor is a new block of the type of v.
func (l *lowering) blockFor(v *ir.Value) *block {
	return l.newBlock(v.Elem(), int(v.Shape()[0]), int(v.Shape()[1]))
}

// at is the register of a thread's row i and column j, where a row or column that is the only one stands for all.
func (l *lowering) at(x *block, i, j int) *ir.Value {
	n := l.cols(x.shape[1])
	if x.shape[0] == 1 {
		i = 0
	}
	if x.shape[1] == 1 {
		j = 0
	}
	return x.regs[i*n+j]
}

// each calls f for every register of a block.
func (l *lowering) each(x *block, f func(i, j, reg int)) {
	n := l.cols(x.shape[1])
	for k := range x.regs {
		f(k/n, k%n, k)
	}
}

type placeKey struct {
	what string
	v    *ir.Value
	n, i int
}

// row is the number of the thread's row i, col of its column.
func (l *lowering) row(i int) *ir.Value {
	return l.remember(placeKey{"row", nil, 0, i}, func() *ir.Value { return l.b.AddI(l.row0, l.rowAt(i)) })
}

func (l *lowering) col(i int) *ir.Value {
	return l.remember(placeKey{"col", nil, 0, i}, func() *ir.Value { return l.b.AddI(l.col0, l.colAt(i)) })
}

// rowInside says whether the thread's row i of a block is one that there is; nil where it always is.
func (l *lowering) rowInside(x *block, i int) *ir.Value {
	n := x.shape[0]
	if n == 1 || x.rows.v == nil && (i/l.vr+1)*l.tr*l.vr <= n {
		return nil
	}
	return l.remember(placeKey{"row<", x.rows.v, n, i}, func() *ir.Value { return l.b.Compare("lt", l.row(i), l.limit(x.rows, n)) })
}

func (l *lowering) colInside(x *block, j int) *ir.Value {
	n := x.shape[1]
	if n == 1 || x.cols.v == nil && (j/l.v+1)*l.tc*l.v <= n {
		return nil
	}
	return l.remember(placeKey{"col<", x.cols.v, n, j}, func() *ir.Value { return l.b.Compare("lt", l.col(j), l.limit(x.cols, n)) })
}

func (l *lowering) limit(e extent, n int) *ir.Value {
	if e.v != nil {
		return e.v
	}
	return l.b.I32(n)
}

// both is the conjunction of two predicates; nil holds always.
func (l *lowering) both(p, q *ir.Value) *ir.Value {
	switch {
	case p == nil || p == q:
		return q
	case q == nil:
		return p
	}
	type key struct{ p, q *ir.Value }
	return l.remember(key{p, q}, func() *ir.Value { return l.b.And(p, q) })
}

// inside says whether an element of a block is one that there is.
func (l *lowering) inside(x *block, i, j int) *ir.Value {
	return l.both(l.rowInside(x, i), l.colInside(x, j))
}

// absent reports whether no thread's row i and column j of a block is one that there is: that is known of blocks whose extent is.
// Nothing is computed of such elements; they are 0.
func (l *lowering) absent(x *block, i, j int) bool {
	beyond := func(e extent, n, at int) bool {
		if e.v != nil {
			k, ok := ptx.ConstInt(e.v)
			return ok && n > 1 && int64(at) >= k
		}
		return n > 1 && at >= n
	}
	return beyond(x.rows, x.shape[0], l.rowAt(i)) || beyond(x.cols, x.shape[1], l.colAt(j))
}

// owner says whether the thread is the one that stores a block whose only row or column several have.
func (l *lowering) owner(x *block) *ir.Value {
	var p *ir.Value
	if x.shape[0] == 1 && l.tr > 1 {
		p = l.remember("first row", func() *ir.Value { return l.b.Compare("eq", l.trow, l.b.I32(0)) })
	}
	if x.shape[1] == 1 && l.tc > 1 {
		p = l.both(p, l.remember("first column", func() *ir.Value { return l.b.Compare("eq", l.tcol, l.b.I32(0)) }))
	}
	return p
}

// number is a constant of an element type.
func (l *lowering) number(t ir.Type, x float64) *ir.Value {
	switch t := t.(type) {
	case *ir.FloatType:
		return l.b.Const(l.c.FloatAttr(x, t))
	case *ir.IntegerType:
		if t.Width > 1 {
			return l.b.Const(l.c.Integer(int64(x), t))
		}
		return l.truth(x != 0)
	}
	panic("lower/ptx: constant of type " + t.String())
}

// truth is a constant predicate, in a register: instructions on predicates take no immediates.
func (l *lowering) truth(is bool) *ir.Value {
	relation := map[bool]string{true: "eq", false: "ne"}[is]
	return l.remember(relation, func() *ir.Value { return l.b.Compare(relation, l.trow, l.trow) })
}

// choose is x where p holds, else y, of any type.
func (l *lowering) choose(p, x, y *ir.Value) *ir.Value {
	if p == nil || x == y {
		return x
	}
	if t, ok := x.Type().(*ir.IntegerType); ok && t.Width == 1 {
		return l.either(l.b.And(p, x), l.b.And(l.not(p), y))
	}
	return l.b.Select(p, x, y)
}
