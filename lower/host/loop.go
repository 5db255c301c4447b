package host

import (
	"blutrain/dialects/host"
	"blutrain/ir"
)

// loop translates scf.for. A carried block becomes scratch memory that the body writes anew.
func (l *lowering) loop(op *ir.Op) error {
	bounds := []*ir.Value{l.index[op.Operand(0)], l.index[op.Operand(1)], l.index[op.Operand(2)]}
	carried := make([]*operand, op.NumResults())
	args := op.Body().Args()[1:]
	for i := range carried {
		init := l.blocks[op.Operand(3+i)]
		if init == nil {
			return op.Errorf("scf.for carries a value of type %s, which has no lowering for CPUs", op.Operand(3+i).Type())
		}
		if carried[i] = init; !l.endsIn(op, i) {
			carried[i] = l.scratchFor(op.Result(i).Type(), init.rows, init.cols)
			l.emit(host.Copy, []*operand{init, carried[i]}, nil)
		}
		l.blocks[args[i]] = carried[i]
		l.blocks[op.Result(i)] = carried[i]
	}
	n := l.b.CreateState(op.Def(), ir.OpState{Operands: bounds, Regions: 1})
	body := n.Region(0).AddBlock(l.c.Index())
	l.index[op.Body().Arg(0)] = body.Arg(0)
	inner := ir.NewBuilder(l.c, body)
	if err := l.body(op.Body(), inner); err != nil {
		return err
	}
	l.carry(op, inner, carried)
	inner.CreateState(l.def("scf.yield"), ir.OpState{})
	return nil
}

// endsIn reports whether a loop may write its i-th carried value over its initial one, which nobody else has any use for: nothing
// after the loop, and nothing in its body, as a zero that sums begin with and that something is compared to.
func (l *lowering) endsIn(op *ir.Op, i int) bool {
	init := op.Operand(3 + i)
	uses := 0
	for u := range init.Uses() {
		if within(u.Owner(), op.Block()) == op {
			uses++
		}
	}
	return uses == 1 && l.blocks[init].scratch && l.diesAt(init, op)
}

// carry writes what the body yields to the carried blocks. A value that lies in another carried block is saved before
// anything is written.
func (l *lowering) carry(op *ir.Op, b *ir.Builder, carried []*operand) {
	old := l.b
	l.b = b
	defer func() { l.b = old }()
	yields := op.Body().Terminator().Operands()
	from := make([]*operand, len(carried))
	for i, v := range yields {
		from[i] = l.blocks[v]
		for k, c := range carried {
			if k != i && c.block == from[i].block {
				saved := l.scratchFor(v.Type(), c.rows, c.cols)
				l.emit(host.Copy, []*operand{c, saved}, nil)
				from[i] = saved
			}
		}
	}
	for i, c := range carried {
		if from[i].block != c.block {
			l.emit(host.Copy, []*operand{from[i], c}, nil)
		}
	}
}
