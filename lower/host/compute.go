package host

import (
	"strings"

	"blutrain/dialects/host"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// elementwise translates an elementwise operation. Its result takes over the scratch memory of an operand that dies here.
func (l *lowering) elementwise(op *ir.Op) error {
	if l.waits[op] != nil {
		return nil
	}
	if a := l.adamws[op]; a != nil {
		l.adamw(a)
		return nil
	}
	if mul := l.takenIn[op]; mul != nil {
		l.multiplyAdd(op, mul)
		return nil
	}
	in := make([]*operand, op.NumOperands())
	for i, v := range op.Operands() {
		in[i] = l.blocks[v]
	}
	rows, cols := l.common(op, in)
	name := function(op)
	var def *ir.OpDef
	attrs := l.attrs("fn", l.c.String(name))
	switch {
	case strings.HasSuffix(name, "_grad"):
		l.activationGrad(op, name, in, rows, cols)
		return nil
	case name == "select":
		def, attrs = host.Select, nil
	case name == "compare":
		def, attrs = host.Compare, l.attrs("fn", op.Attr("predicate"))
	case name == "cast":
		def, attrs = host.Cast, nil
		if via := l.castThrough(in[0].block.Elem(), op.Result(0).Elem()); via != nil {
			x := op.Operand(0)
			step := l.scratchFor(tile.Block(l.c, x.Shape()[0], x.Shape()[1], via), in[0].rows, in[0].cols)
			l.emit(host.Cast, []*operand{in[0], step}, nil)
			in[0] = step
		}
	case len(in) == 1:
		def = host.Unary
	case len(in) == 2:
		def = host.Binary
	default:
		return op.Errorf("%s has no lowering for CPUs", op.Name())
	}
	dst := l.reuse(op, in)
	if dst == nil {
		dst = l.destination(op, rows, cols)
	}
	l.blocks[op.Result(0)] = dst
	l.emit(def, append(in, dst), attrs)
	return nil
}

// castThrough is the type between two of which one is cast to the other in two steps; nil where there is an instruction. Of the
// integers that a number of 16 bits is near, float32 has all that it has.
func (l *lowering) castThrough(from, to ir.Type) ir.Type {
	f32 := ir.Type(l.c.F32())
	half := func(t ir.Type) bool { return ir.IsFloat(t) && ir.ByteSize(t) == 2 }
	switch {
	case half(from) && to != f32, half(to) && from != f32:
		return f32
	case from == ir.Type(l.c.I64()) && to == ir.Type(l.c.I1()):
		return f32 // of which none is 0 but of 0
	case from == ir.Type(l.c.I1()) && to == ir.Type(l.c.I64()):
		return l.c.I32()
	}
	return nil
}

// function is the name of an elementwise operation among the instructions' functions.
func function(op *ir.Op) string {
	name := op.Def().Name
	if approximate := op.Attrs().Str("approximate"); approximate != "" {
		base, grad, isGrad := strings.Cut(name, "_")
		if name = base + "_" + approximate; isGrad {
			name += "_" + grad
		}
	}
	return name
}

// activationGrad multiplies the derivative at x by what comes from above.
func (l *lowering) activationGrad(op *ir.Op, name string, in []*operand, rows, cols *ir.Value) {
	dst := l.reuse(op, in[:1])
	if dst == nil {
		dst = l.scratchFor(op.Result(0).Type(), rows, cols)
	}
	l.emit(host.Unary, []*operand{in[0], dst}, l.attrs("fn", l.c.String(name)))
	out := dst
	if l.stored[op.Result(0)] != nil {
		out = l.destination(op, rows, cols)
	}
	l.blocks[op.Result(0)] = out
	l.emit(host.Binary, []*operand{dst, in[1], out}, l.attrs("fn", l.c.String("mul")))
}

// common is the extents of an elementwise result: those of an operand that is not repeated.
func (l *lowering) common(op *ir.Op, in []*operand) (rows, cols *ir.Value) {
	rows, cols = l.number(1), l.number(1)
	for i, v := range op.Operands() {
		if v.Shape()[0] != 1 {
			rows = in[i].rows
		}
		if v.Shape()[1] != 1 {
			cols = in[i].cols
		}
	}
	return rows, cols
}

// reuse is the scratch block of one of the first operands, of the result's type, that is used here for the last time; or nil.
func (l *lowering) reuse(op *ir.Op, in []*operand) *operand {
	return l.reuseOf(op, op.Operands()[:len(in)], in)
}

// reuseOf is reuse for an operation that reads these values.
func (l *lowering) reuseOf(op *ir.Op, values []*ir.Value, in []*operand) *operand {
	if l.stored[op.Result(0)] != nil {
		return nil
	}
	for i, v := range values {
		if in[i].scratch && v.Type() == op.Result(0).Type() && l.diesAt(v, op) {
			return in[i]
		}
	}
	return nil
}

// lastUse reports whether no use of v comes after op, which is in v's block.
func (l *lowering) lastUse(v *ir.Value, op *ir.Op) bool {
	for u := range v.Uses() {
		user := l.user(u.Owner())
		for user.Block() != op.Block() {
			user = user.Parent()
		}
		if user != op && op.IsBefore(user) {
			return false
		}
	}
	return true
}

func (l *lowering) iota(op *ir.Op) {
	n := l.index[op.Operand(1)]
	if piece := l.piece[op.Operand(0)]; piece != nil {
		n = piece
	}
	axis, _ := op.Attrs().Int("axis")
	rows, cols := n, l.number(1)
	if axis == 1 {
		rows, cols = cols, rows
	}
	dst := l.destination(op, rows, cols)
	l.b.CreateState(host.Iota, ir.OpState{Operands: []*ir.Value{l.index[op.Operand(0)], dst.block}, Attrs: l.attrs("axis", op.Attr("axis"))})
}

func (l *lowering) random(op *ir.Op) {
	rows, cols := l.index[op.Operand(2)], l.index[op.Operand(3)]
	dst := l.destination(op, rows, cols)
	fn := "uniform"
	attrs := l.attrs("stream", op.Attr("stream"), "pitch", op.Attr("pitch"))
	if op.Is(tile.RandomNormal) {
		fn = "normal"
		attrs = append(attrs, l.attrs("mean", op.Attr("mean"), "std", op.Attr("std"))...)
	}
	attrs = append(attrs, l.attrs("fn", l.c.String(fn))...)
	seed := l.blocks[op.Operand(0)]
	l.b.CreateState(host.Random, ir.OpState{Operands: []*ir.Value{seed.block, l.index[op.Operand(1)], dst.block}, Attrs: attrs})
}

func (l *lowering) reduce(op *ir.Op) {
	if mul := l.takenIn[op]; mul != nil {
		l.inner(op, mul)
		return
	}
	x := l.blocks[op.Operand(0)]
	rows, cols := x.rows, l.number(1)
	if axis, _ := op.Attrs().Int("axis"); axis == 0 {
		rows, cols = l.number(1), x.cols
	}
	l.emitTo(op, rows, cols, host.Reduce, []*operand{x}, l.attrs("fn", op.Attr("kind"), "axis", op.Attr("axis")))
}

// dot translates a product of blocks. An accumulator that dies here is added to in place.
func (l *lowering) dot(op *ir.Op) {
	a, b := l.blocks[op.Operand(0)], l.blocks[op.Operand(1)]
	ta, tb := op.Attrs().Bool("ta"), op.Attrs().Bool("tb")
	rows, cols := a.rows, b.cols
	if ta {
		rows = a.cols
	}
	if tb {
		cols = b.rows
	}
	accumulate := op.NumOperands() == 3
	var dst *operand
	if accumulate {
		acc := op.Operand(2)
		if o := l.blocks[acc]; l.stored[op.Result(0)] == nil && o.scratch && l.diesAt(acc, op) {
			dst = o
			l.blocks[op.Result(0)] = dst
		} else {
			dst = l.destination(op, rows, cols)
			l.emit(host.Copy, []*operand{o, dst}, nil)
		}
	} else {
		dst = l.destination(op, rows, cols)
	}
	l.emit(host.Dot, []*operand{a, b, dst}, l.attrs("ta", l.c.Bool(ta), "tb", l.c.Bool(tb), "accumulate", l.c.Bool(accumulate)))
}

// diesAt reports whether v, a value of op's block or carried by the loop whose body that is, is used by op for the last
// time.
func (l *lowering) diesAt(v *ir.Value, op *ir.Op) bool {
	return v.Block() == op.Block() && l.lastUse(v, op)
}

// indexed translates operations that address rows by number.
func (l *lowering) indexed(op *ir.Op) {
	switch op.Def() {
	case tile.Gather:
		table := op.Operand(0)
		index := l.blocks[op.Operand(1)]
		cols := l.clip(op.Operand(3), table.Shape()[1], op.Result(0).Shape()[1])
		dst := l.destination(op, index.rows, cols)
		l.b.CreateState(host.Gather, ir.OpState{Operands: []*ir.Value{
			l.index[table], index.block, l.index[op.Operand(2)], l.index[op.Operand(3)], dst.block}})
	case tile.Pick:
		index := l.blocks[op.Operand(1)]
		dst := l.destination(op, index.rows, l.number(1))
		operands := []*ir.Value{l.index[op.Operand(0)], index.block, l.index[op.Operand(2)]}
		for i := 3; i < op.NumOperands(); i++ {
			operands = append(operands, l.index[op.Operand(i)])
		}
		l.b.CreateState(host.Pick, ir.OpState{Operands: append(operands, dst.block), Attrs: op.Attrs()})
	default:
		operands := op.Operands()
		for i, v := range operands {
			operands[i] = l.index[v]
		}
		l.b.CreateState(host.ScatterAdd, ir.OpState{Operands: operands, Attrs: op.Attrs()})
	}
}
