// Package rewrite changes IR by small local rules: folding, dead code, and patterns, applied until nothing changes. It
// knows operations by their definitions only.
package rewrite

import (
	"fmt"

	"blutrain/ir"
)

// Pattern is one rule. The comment above a pattern should give the algebra.
type Pattern struct {
	Name string
	Op   *ir.OpDef // what it applies to
	// Run rewrites op, or reports false and has changed nothing. New operations are made with r, whose insertion point is
	// before op; r.Replace and r.Erase take op away.
	Run func(r *Rewriter, op *ir.Op) bool
}

// Rewriter is the builder that patterns work with. Besides making operations it keeps the driver informed.
type Rewriter struct {
	*ir.Builder
	list worklist
}

// Options of Greedy.
type Options struct {
	// Visit is told of each operation before it is looked at, unless nil.
	Visit func(*ir.Op)
	// Limit is the number of changes after which the rules are said not to end, by default 100 for each operation and a
	// thousand more.
	Limit int
}

// Greedy applies, to every operation inside root, in order and until nothing changes any more: removal of what is dead,
// folding, constants of commutative operations to the right, and the patterns. It reports whether it changed anything.
// The error says that the rules did not end.
func Greedy(c *ir.Context, root *ir.Op, patterns []Pattern, o Options) (changed bool, err error) {
	g := &greedy{r: &Rewriter{Builder: ir.NewBuilder(c, nil)}, patterns: map[*ir.OpDef][]Pattern{}}
	for _, p := range patterns {
		g.patterns[p.Op] = append(g.patterns[p.Op], p)
	}
	g.r.OnInsert = g.r.list.push
	ir.Walk(root, func(op *ir.Op) ir.WalkResult {
		if op != root {
			g.r.list.push(op)
		}
		return ir.Advance
	})
	g.r.list.reverse()
	if o.Limit == 0 {
		o.Limit = 100*len(g.r.list.ops) + 1000
	}
	for changes := 0; ; {
		op := g.r.list.pop()
		if op == nil {
			return changes > 0, nil
		}
		if o.Visit != nil {
			o.Visit(op)
		}
		if rule := g.step(op); rule != "" {
			if changes++; changes > o.Limit {
				return true, op.Errorf("rewriting did not end after %d changes, the last one by %s", changes, rule)
			}
		}
	}
}

type greedy struct {
	r        *Rewriter
	patterns map[*ir.OpDef][]Pattern
}

// step applies the first rule that changes op and names it, or is "".
func (g *greedy) step(op *ir.Op) string {
	if IsDead(op) {
		g.r.Erase(op)
		return "removal of dead operations"
	}
	g.r.Before(op).At(op.Loc())
	if g.r.fold(op) {
		return "folding of " + op.Name()
	}
	if g.r.constantsRight(op) {
		return "moving constants right in " + op.Name()
	}
	for _, p := range g.patterns[op.Def()] {
		g.r.Before(op).At(op.Loc())
		if p.Run(g.r, op) {
			return fmt.Sprintf("pattern %s", p.Name)
		}
	}
	return ""
}

// Replace makes users of op's results use vs, and erases op.
func (r *Rewriter) Replace(op *ir.Op, vs ...*ir.Value) {
	for _, res := range op.Results() {
		for u := range res.Uses() {
			r.list.push(u.Owner())
		}
	}
	for i, v := range vs {
		op.Result(i).ReplaceAllUsesWith(v)
	}
	r.Erase(op)
}

// Erase takes away an operation whose results are unused.
func (r *Rewriter) Erase(op *ir.Op) {
	ir.Walk(op, func(o *ir.Op) ir.WalkResult {
		r.touchOperands(o)
		r.list.remove(o)
		return ir.Advance
	})
	op.Erase()
}

// Changed says that op was changed in place.
func (r *Rewriter) Changed(op *ir.Op) {
	r.list.push(op)
	for _, res := range op.Results() {
		for u := range res.Uses() {
			r.list.push(u.Owner())
		}
	}
}

// touchOperands looks again at what op uses: it may become dead, or used once.
func (r *Rewriter) touchOperands(op *ir.Op) {
	for i := range op.NumOperands() {
		if v := op.Operand(i); v != nil && v.Op() != nil {
			r.list.push(v.Op())
		}
	}
}

// fold replaces op by what its definition folds it to.
func (r *Rewriter) fold(op *ir.Op) bool {
	if op.Def().Fold == nil || op.Has(ir.ConstantLike) {
		return false
	}
	consts := make([]ir.Attr, op.NumOperands())
	for i := range consts {
		consts[i] = ConstantValue(op.Operand(i))
	}
	old := op.Operands()
	folded := op.Def().Fold(r.Ctx, op, consts)
	if folded == nil {
		return false
	}
	if len(folded) != op.NumResults() {
		panic(fmt.Sprintf("%s has %d results, folding gave %d", op.Name(), op.NumResults(), len(folded)))
	}
	if len(folded) > 0 && folded[0].Value == op.Result(0) { // in place
		for _, v := range old {
			if v.Op() != nil {
				r.list.push(v.Op())
			}
		}
		r.Changed(op)
		return true
	}
	values := make([]*ir.Value, len(folded))
	for i, f := range folded {
		if values[i] = f.Value; f.Value == nil {
			k := Constant(r.Builder, op.Def().DialectName(), f.Attr, op.Result(i).Type())
			if k == nil {
				return false
			}
			values[i] = k
		}
	}
	r.Replace(op, values...)
	return true
}

// constantsRight swaps the operands of a commutative operation of two when only the left one is a constant.
func (r *Rewriter) constantsRight(op *ir.Op) bool {
	if !op.Has(ir.Commutative) || op.NumOperands() != 2 || !IsConstant(op.Operand(0)) || IsConstant(op.Operand(1)) {
		return false
	}
	left, right := op.Operand(0), op.Operand(1)
	op.SetOperand(0, right)
	op.SetOperand(1, left)
	r.Changed(op)
	return true
}

// IsConstant reports whether v is a constant, known or elided.
func IsConstant(v *ir.Value) bool { return v.Op() != nil && v.Op().Has(ir.ConstantLike) }

// ConstantValue is the value of a constant, or nil for every other value and where the constant was elided.
func ConstantValue(v *ir.Value) ir.Attr {
	if !IsConstant(v) {
		return nil
	}
	a := v.Op().Attr("value")
	if _, elided := a.(*ir.ElidedAttr); elided {
		return nil
	}
	return a
}

// Constant makes a constant at the insertion point, with the constant-like operation of the given dialect; it is nil
// where the dialect has none.
func Constant(b *ir.Builder, dialect string, value ir.Attr, t ir.Type) *ir.Value {
	d := b.Ctx.Dialect(dialect)
	if d == nil {
		return nil
	}
	for _, def := range d.Ops {
		if def.Traits&ir.ConstantLike != 0 {
			op := b.CreateState(def, ir.OpState{Attrs: []ir.NamedAttr{{Name: "value", Value: value}}, Results: []ir.Type{t}})
			return op.Result(0)
		}
	}
	return nil
}

// IsDead reports whether op can be taken away because it has no effect and nothing uses its results.
func IsDead(op *ir.Op) bool {
	return op.Has(ir.Pure) && !op.Has(ir.Terminator) && op.Unused()
}
