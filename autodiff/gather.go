package autodiff

import "blutrain/ir"

// y = table[indices], rows of the table: each row's gradient sums those of its copies.
func gather(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.ScatterAdd(dy, op.Operand(1), op.Operand(0).Shape()[0]))
}

// y = zeros with updates added to the rows that indices name: each update gets its row of dy.
func scatterAdd(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.Gather(dy, op.Operand(1)))
}
