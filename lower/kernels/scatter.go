package kernels

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// The gradient of a parameter that is used more than once is a sum of terms, which is added to the sum of micro-batches. Terms
// that are added to that sum one after the other need no memory of their own: products add to what is there, and rows of a lookup
// go to the few rows of the table that they are for.

// scatterInto adds rows to the rows of a table that holds something already. It exists within this phase only.
var scatterInto = ir.Define("kernels", ir.OpDef{
	Name:     "scatter_into",
	Summary:  "adds rows to the rows of a table that numbers name",
	Operands: []ir.OperandDef{{Name: "updates"}, {Name: "indices"}, {Name: "table"}},
	Results:  []ir.ResultDef{{Name: "y"}},
	Traits:   ir.Pure,
})

// accumulateFirst makes the accumulation of a sum of terms begin with what it is accumulated to: acc + (a + b) becomes
// (acc + a) + b.
func (p *preparer) accumulateFirst(fn *ir.Op) {
	for op := range fn.Body().Ops() {
		if !op.Is(blu.Accumulate) || op.Operand(0).Op() != nil || op.Operand(2).Op() != nil {
			continue
		}
		term, add := op.Operand(1), (*ir.Op)(nil)
		for term.DefinedBy(blu.Add) && term.HasOneUse() && term.Op().Operand(0).Op() != nil {
			add, term = term.Op(), term.Op().Operand(0)
		}
		if add == nil || !term.HasOneUse() {
			continue
		}
		p.b.After(term.Op()).At(op.Loc())
		add.SetOperand(0, p.b.Accumulate(op.Operand(0), term, op.Operand(2)))
		op.ReplaceWith(op.Operand(1))
	}
}

// scatterInPlace puts rows that are scattered straight to what they are added to, be it a sum or an accumulation.
func (p *preparer) scatterInPlace(fn *ir.Op) {
	for op := range fn.Body().Ops() {
		y := op.Result
		if !op.Is(blu.ScatterAdd) || hasEmpty(op) || ir.NumElements(y(0).Shape()) == 0 || isNarrow(y(0).Elem()) || !y(0).HasOneUse() {
			continue
		}
		var sum *ir.Op
		for u := range y(0).Uses() {
			sum = u.Owner()
		}
		p.b.Before(sum).At(op.Loc())
		var table *ir.Value
		switch {
		case sum.Is(blu.Add) && sum.Operand(0) == y(0):
			table = sum.Operand(1)
		case sum.Is(blu.Add):
			table = sum.Operand(0)
		case sum.Is(blu.Accumulate) && sum.Operand(1) == y(0):
			acc := sum.Operand(0)
			table = p.b.Select(p.b.Fill(sum.Operand(2), acc.Shape()), p.b.SplatLike(acc, 0), acc)
		default:
			continue
		}
		into := p.b.CreateState(scatterInto, ir.OpState{Operands: []*ir.Value{op.Operand(0), p.b.CastTo(op.Operand(1), p.b.Ctx.I32()), table}, Results: sum.ResultTypes()})
		sum.ReplaceWith(into.Results()...)
	}
}

// scatterSpec adds rows to the rows of a table, a strip of columns at a time.
func (l *lowerer) scatterSpec(s *spec, op *ir.Op) {
	updates, indices, y := op.Operand(0), op.Operand(1), op.Result(0)
	n, rows := ir.NumElements(indices.Shape()), y.Shape()[0]
	width := ir.NumElements(y.Shape()[1:])
	s.name = fmt.Sprintf("scatter_add_%dx%d_to_%d", n, width, rows)
	s.inputs = []port{{value: updates, shape: []int64{n, width}}, {value: indices, shape: []int64{n}}}
	s.outputs = []port{{value: y, shape: []int64{rows, width}}}
	if op.Is(scatterInto) {
		s.name = fmt.Sprintf("scatter_into_%dx%d_to_%d", n, width, rows)
		s.inputs = append(s.inputs, port{value: op.Operand(2), shape: []int64{rows, width}})
	}
	s.build = func() *ir.Op {
		cols := min(width, l.target.ScatterCols)
		w := l.start(s, []int64{width}, []int64{cols})
		w.b.CreateState(tile.ScatterAdd, ir.OpState{
			Operands: append([]*ir.Value{w.ins[0], w.ins[1], w.axes[0], w.outs[0]}, w.ins[2:]...), Attrs: []ir.NamedAttr{{Name: "cols", Value: w.c.Int64(cols)}},
		})
		w.end()
		return w.kernel
	}
}
