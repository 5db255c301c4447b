package ptx

import (
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// apply does what the tile kernel does with a few elements of the product.
func (m *match) apply(p *blublas.Point, acc []*ir.Value) {
	m.l.b = p.B
	loc := p.B.Loc
	env := map[*ir.Value][]*ir.Value{m.contract.Result(0): acc}
	for _, op := range m.ops {
		p.B.At(op.Loc())
		switch {
		case op.Is(tile.Load):
			env[op.Result(0)] = m.load(p, op)
		case op.Is(tile.Reduce):
			p.SumColumns(m.sums[op.Result(0)], env[op.Operand(0)])
		case op.Is(tile.Store) && op.Operand(0).DefinedBy(tile.Reduce):
		case op.Is(tile.Store):
			m.store(p, op, env[op.Operand(0)])
		default:
			env[op.Result(0)] = m.compute(op, env)
		}
	}
	p.B.At(loc)
}

// compute gives a point's elements of what is neither read nor stored.
func (m *match) compute(op *ir.Op, env map[*ir.Value][]*ir.Value) []*ir.Value {
	switch {
	case op.Is(tile.Constant):
		return []*ir.Value{m.l.number(op.Result(0).Elem(), op.Attrs().FloatOr("value", 0))}
	case op.Is(tile.Broadcast):
		return env[op.Operand(0)]
	}
	return m.elementwise(op, env)
}

// elementwise applies an operation to the elements of a point; a single one stands for all.
func (m *match) elementwise(op *ir.Op, env map[*ir.Value][]*ir.Value) []*ir.Value {
	n := 1
	for _, v := range op.Operands() {
		n = max(n, len(env[v]))
	}
	if ys := m.rounded(op, env, n); ys != nil {
		return ys
	}
	f, err := m.function(op)
	ys := make([]*ir.Value, n)
	for i := range ys {
		args := make([]*ir.Value, op.NumOperands())
		for k, v := range op.Operands() {
			args[k] = env[v][i%len(env[v])]
		}
		if err == nil {
			ys[i], err = f(args)
		}
		if err != nil {
			m.err = err
			ys[i] = m.l.number(op.Result(0).Elem(), 0)
		}
	}
	return ys
}

// rounded rounds pairs of numbers to 16 bits at once.
func (m *match) rounded(op *ir.Op, env map[*ir.Value][]*ir.Value, n int) []*ir.Value {
	to := op.Result(0).Elem()
	if op.Name() != "tile.cast" || !isHalf(to) || op.Operand(0).Elem() != ir.Type(m.l.c.F32()) || n%2 != 0 {
		return nil
	}
	var ys []*ir.Value
	for i := 0; i < n; i += 2 {
		low, high := m.l.b.Split(m.l.b.Pack(to.String(), env[op.Operand(0)][i], env[op.Operand(0)][i+1]), to)
		ys = append(ys, low, high)
	}
	return ys
}

// function is what an operation does with elements. gelu needs no closer exponential than the special unit's: what rounding its argument
// costs is as much.
func (m *match) function(op *ir.Op) (scalarFunc, error) {
	if op.Attrs().Str("approximate") == "tanh" && op.Result(0).Elem() == ir.Type(m.l.c.F32()) {
		switch op.Def().Name {
		case "gelu":
			return func(xs []*ir.Value) (*ir.Value, error) { return blublas.Gelu(m.l.b, xs[0]), nil }, nil
		case "gelu_grad":
			return func(xs []*ir.Value) (*ir.Value, error) {
				return m.l.b.Mul(xs[1], blublas.GeluSlope(m.l.b, xs[0])), nil
			}, nil
		}
	}
	return m.l.function(op)
}

// onlyRounded reports whether a result is rounded to bf16; what is added up beside that needs be no closer.
func onlyRounded(v *ir.Value) bool {
	rounded := false
	for u := range v.Uses() {
		switch op := u.Owner(); {
		case op.Name() == "tile.cast" && op.Result(0).Elem().String() == "bf16":
			rounded = true
		case !op.Is(tile.Reduce):
			return false
		}
	}
	return rounded
}

// load reads a point's elements, once for all points that share them. Rows of a matrix are as long in memory as points are, or
// longer; a single row may end where it does.
func (m *match) load(p *blublas.Point, op *ir.Op) []*ir.Value {
	m.l.b = p.B
	v := m.views[op]
	// Of a single row or column, which is replaced, threads beyond it read nothing: others may have written it.
	row, col := v.Row != 0 || v.replaced, v.Col != 0 || v.replaced
	return p.Once(op, row, col, func() []*ir.Value {
		if r := v.read(); p.Near(r) {
			return p.Source(r, v.elem)
		}
		at, shift := m.at(p, v)
		when := p.Inside(row, col)
		if condition := spared(op); condition != nil {
			when = m.l.both(when, m.l.not(m.load(p, condition)[0]))
		}
		n := p.Width()
		if v.Col == 0 {
			n = 1
		}
		step, ragged := m.together(v, n), p.Holds(n-1) != nil && v.Row == 0
		if ragged {
			step = 1
		}
		var xs []*ir.Value
		for len(xs) < n {
			in := when
			if ragged {
				in = m.l.both(when, p.Holds(len(xs)))
			}
			xs = append(xs, m.l.read(at, shift+len(xs)*v.Col, v.elem, step, in)...)
		}
		return xs
	})
}

// store writes a point's elements: where not all are there, one at a time.
func (m *match) store(p *blublas.Point, op *ir.Op, xs []*ir.Value) {
	v := m.views[op]
	n := p.Width()
	if len(xs) == 1 {
		xs = slices.Repeat(xs, n)
	}
	if p.Put(v.read(), xs) {
		return
	}
	at, shift := m.at(p, v)
	whole, row := p.Holds(n-1), p.Inside(true, false)
	if whole == nil {
		m.write(v, at, shift, xs, m.together(v, n), p.Inside(true, true))
		return
	}
	m.write(v, at, shift, xs, m.together(v, n), m.l.both(row, whole))
	for i := range n - 1 {
		in := p.Once(partly{i}, false, true, func() []*ir.Value {
			there := p.Inside(false, true)
			return []*ir.Value{m.l.both(m.l.both(there, p.Holds(i)), p.B.Unary(ptx.Not, whole))}
		})[0]
		m.write(v, at, shift+i*v.Col, xs[i:i+1], 1, m.l.both(row, in))
	}
}

// partly is the key for whether a point has its element i, but not all.
type partly struct{ i int }

// write writes elements next to each other, some at a time.
func (m *match) write(v view, at *ir.Value, shift int, xs []*ir.Value, step int, when *ir.Value) {
	for i := 0; i < len(xs); i += step {
		m.l.write(at, shift+i*v.Col, xs[i:i+step], when)
	}
}

func (m *match) at(p *blublas.Point, v view) (*ir.Value, int) {
	at, shift := p.At(v.View)
	if far := int64(shift) + v.fixed; far < 1<<30 {
		return at, int(far)
	}
	return p.B.Add(at, p.B.I64(v.fixed)), shift
}

// together is how many of n elements next to each other one access can move.
func (m *match) together(v view, n int) int {
	size := ptx.Width(v.elem) / 8
	if isTruth(v.elem) || v.Col != size {
		return 1
	}
	aligned := gcd(gcd(v.align, v.fixed), int64(v.Row))
	for _, s := range v.Batch {
		aligned = gcd(aligned, int64(s))
	}
	for n > 1 && (aligned%int64(n*size) != 0 || n*size > 16) {
		n /= 2
	}
	return n
}
