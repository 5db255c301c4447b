package kernels

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// scatterInto adds rows to the rows of a table that holds something already. It exists within this phase only.
var scatterInto = ir.Define("kernels", ir.OpDef{
	Name:     "scatter_into",
	Summary:  "adds rows to the rows of a table that numbers name",
	Operands: []ir.OperandDef{{Name: "updates"}, {Name: "indices"}, {Name: "table"}},
	Results:  []ir.ResultDef{{Name: "y"}},
	Traits:   ir.Pure,
})

// accumulateFirst makes sums of terms, a ? a + b : acc + a + b, begin with what they are accumulated to: then every term is
// added in its place, and there is no sum of the terms alone.
func (p *preparer) accumulateFirst(fn *ir.Op) {
	for op := range fn.Body().Ops() {
		if !op.Is(blu.Accumulate) || !isGiven(op.Operand(0)) || !isGiven(op.Operand(2)) {
			continue
		}
		add := (*ir.Op)(nil)
		term := op.Operand(1)
		for term.DefinedBy(blu.Add) && term.HasOneUse() && term.Op().Operand(0).Op() != nil {
			add, term = term.Op(), term.Op().Operand(0)
		}
		if add == nil || !term.HasOneUse() {
			continue
		}
		p.b.After(term.Op()).At(op.Loc())
		add.SetOperand(0, p.b.Create(blu.Accumulate, []*ir.Value{op.Operand(0), term, op.Operand(2)}).Result(0))
		op.ReplaceWith(op.Operand(1))
	}
}

// mergeScatters puts what scattered rows are added to where they are scattered: a table that is used twice, to look rows up
// and for logits, has a gradient of both kinds, and most of its rows get nothing by the first.
func (p *preparer) mergeScatters(fn *ir.Op) {
	for op := range fn.Body().Ops() {
		if !op.Is(blu.ScatterAdd) || ir.NumElements(op.Operand(0).Shape()) == 0 || op.Result(0).Elem() != ir.Type(p.b.Ctx.F32()) {
			continue
		}
		sum := onlyUserOf(op.Result(0), blu.Add)
		if sum == nil || sum.Operand(0) == sum.Operand(1) {
			continue
		}
		table := sum.Operand(0)
		if table == op.Result(0) {
			table = sum.Operand(1)
		}
		p.b.Before(sum).At(op.Loc())
		y := p.b.CreateState(scatterInto, ir.OpState{Operands: []*ir.Value{op.Operand(0), p.b.CastTo(op.Operand(1), p.b.Ctx.I32()), table}, Results: sum.ResultTypes()})
		sum.ReplaceWith(y.Results()...)
	}
}

// onlyUserOf is the one operation that uses a value, once, if it is of a kind.
func onlyUserOf(v *ir.Value, def *ir.OpDef) *ir.Op {
	if !v.HasOneUse() {
		return nil
	}
	for u := range v.Uses() {
		if u.Owner().Is(def) {
			return u.Owner()
		}
	}
	return nil
}

// isGiven reports whether a value is an argument of the function.
func isGiven(v *ir.Value) bool { return v.Op() == nil }

// scatterSpec adds rows to the rows of a table, a strip of columns at a time.
func (l *lowerer) scatterSpec(s *spec, op *ir.Op) {
	updates, indices, y := op.Operand(0), op.Operand(1), op.Result(0)
	n, rows := ir.NumElements(indices.Shape()), y.Shape()[0]
	width := ir.NumElements(y.Shape()[1:])
	s.name = fmt.Sprintf("scatter_add_%dx%d_to_%d", n, width, rows)
	s.inputs = []port{{value: updates, shape: []int64{n, width}}, {value: indices, shape: []int64{n}}}
	if op.Is(scatterInto) {
		s.inputs = append(s.inputs, port{value: op.Operand(2), shape: []int64{rows, width}})
	}
	s.outputs = []port{{value: y, shape: []int64{rows, width}}}
	s.build = func() *ir.Op {
		cols := min(width, l.target.ScatterCols)
		w := l.start(s, []int64{width}, []int64{cols})
		operands := append([]*ir.Value{w.ins[0], w.ins[1], w.axes[0], w.outs[0]}, w.ins[2:]...)
		w.b.CreateState(tile.ScatterAdd, ir.OpState{Operands: operands, Attrs: []ir.NamedAttr{{Name: "cols", Value: w.c.Int64(cols)}}})
		w.end()
		return w.kernel
	}
}
