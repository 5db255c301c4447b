package passes

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// PrecisionOptions are the options of the pass precision.
type PrecisionOptions struct {
	Mode   string `help:"the promise that products keep" enum:"fp32,fp32-strict,tf32,bf16"`
	Target string `help:"what is compiled for: cpu and ref round operands, others are told the mode by an attribute of each product"`
}

// roundingTargets lists the targets whose products are of float32 (or wider) and of nothing else.
var roundingTargets = []string{"cpu", "ref"}

// precision makes products keep the promise of a mode. It is for programs that have been differentiated: gradients of
// rounded operands are products with rounded operands of their own, not gradients of the rounding.
//
// Where targets have float32 products only, fp32 and fp32-strict are what they are, tf32 is refused, and bf16 rounds the
// float32 operands of products to bfloat16, to nearest with ties to even, while sums, results and everything else stay in
// float32. Products are blu.dot, and in attention and its gradient q, k, v and do; the probabilities and their gradients,
// which exist within a kernel only, are not rounded. Other targets find the mode in the attribute blu.precision.
func precision(s *State, op *ir.Op, o PrecisionOptions) error {
	rounds := slices.Contains(roundingTargets, o.Target)
	if rounds && o.Mode == "tf32" {
		return op.Errorf("precision tf32: target %s has no tf32 products; use fp32, or bf16 for operands of fewer bits", o.Target)
	}
	if rounds && o.Mode != "bf16" {
		return nil
	}
	r := &rounder{b: blu.On(ir.NewBuilder(s.Ctx, nil)), rounded: map[*ir.Value]*ir.Value{}}
	s.Walk(op, func(op *ir.Op) ir.WalkResult {
		for _, i := range blu.ProductOperands(op) {
			if op.Operand(i).Elem() != ir.Type(s.Ctx.F32()) {
				continue
			}
			if !rounds {
				op.SetAttr(blu.PrecisionAttr, s.Ctx.String(o.Mode))
				continue
			}
			r.user = op
			op.SetOperand(i, r.round(op.Operand(i)))
		}
		return ir.Advance
	})
	return nil
}

// rounder makes each rounded value once.
type rounder struct {
	b       *blu.Builder
	rounded map[*ir.Value]*ir.Value
	user    *ir.Op // the product that is being worked on
}

// round is v rounded to bfloat16, in float32. Of a view, what it looks at is rounded, so that the rounding is part of what
// computes it, and one for all views; but not where that would round what no product reads.
func (r *rounder) round(v *ir.Value) *ir.Value {
	if w := r.rounded[v]; w != nil {
		return w
	}
	var w *ir.Value
	if op := v.Op(); op != nil && op.Has(ir.View) && r.roundsBase(op) {
		base := r.round(op.Operand(0))
		r.b.After(base.Op())
		w = r.b.Insert(op.Clone(r.b.Ctx, map[*ir.Value]*ir.Value{op.Operand(0): base})).Result(0)
	} else {
		r.place(v)
		w = r.b.CastTo(r.b.CastTo(v, r.b.Ctx.Float(ir.BF16)), r.b.Ctx.F32())
	}
	r.rounded[v] = w
	return w
}

// roundsBase reports whether to round what a view looks at.
func (r *rounder) roundsBase(view *ir.Op) bool {
	base := view.Operand(0)
	return !view.Is(blu.Slice) || r.rounded[base] != nil || onlyInProducts(base)
}

// place moves the insertion point to where v has just been computed, or where an argument is used first.
func (r *rounder) place(v *ir.Value) {
	switch {
	case v.Op() != nil:
		r.b.After(v.Op())
	case r.user.Block() == v.Arg():
		r.b.Before(r.user)
	default:
		r.b.AtStart(v.Arg())
	}
	r.b.At(v.Loc())
}

// onlyInProducts reports whether a value is used by products, and by views that are, alone.
func onlyInProducts(v *ir.Value) bool {
	for u := range v.Uses() {
		op := u.Owner()
		if op.Has(ir.View) && onlyInProducts(op.Result(0)) || slices.Contains(blu.ProductOperands(op), u.Index()) {
			continue
		}
		return false
	}
	return true
}
