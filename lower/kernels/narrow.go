package kernels

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// roundProducts rounds what products of precision bf16 multiply: to bfloat16, to nearest with ties to even, and that is what
// they read. Sums and results are float32. In attention q, k, v and do are rounded, and so is the argument of an activation
// function, as the result of a product that is kept for the backward pass: both are computed in float32 from the rounded
// values.
//
// It comes after the classifier was cut into chunks, so that of the gradient of all logits no more than a chunk is rounded
// at a time.
func (p *preparer) roundProducts(fn *ir.Op) {
	r := &narrower{p: p, rounded: map[*ir.Value]*ir.Value{}}
	for op := range fn.Body().Ops() {
		for _, i := range r.operands(op) {
			v := op.Operand(i)
			if v.Elem() != ir.Type(p.b.Ctx.F32()) {
				continue
			}
			w := r.round(v, op)
			if !op.Is(blu.Dot) {
				p.b.Before(op).At(op.Loc())
				w = p.b.CastTo(w, p.b.Ctx.F32())
				sameTime(w, op)
			}
			op.SetOperand(i, w)
		}
	}
}

// operands lists the operands of an operation that are rounded.
func (r *narrower) operands(op *ir.Op) []int {
	switch op.Def() {
	case blu.Gelu, blu.GeluGrad, blu.Silu, blu.SiluGrad:
		if fromProduct(op.Operand(0)) {
			return []int{0}
		}
	}
	if op.Attrs().Str(blu.PrecisionAttr) != "bf16" {
		return nil
	}
	switch op.Def() {
	case blu.Dot:
		return []int{0, 1}
	case blu.Attention:
		return []int{0, 1, 2}
	case blu.AttentionGrad:
		return []int{0, 1, 2, 5}
	}
	return nil
}

// fromProduct reports whether a value is the result of a product of precision bf16, perhaps with a bias.
func fromProduct(v *ir.Value) bool {
	for op := v.Op(); op != nil; op = op.Operand(0).Op() {
		switch {
		case op.Is(blu.Dot):
			return op.Attrs().Str(blu.PrecisionAttr) == "bf16"
		case op.Is(blu.Add), op.Has(ir.View):
		default:
			return false
		}
	}
	return false
}

// narrower makes each rounded value once.
type narrower struct {
	p       *preparer
	rounded map[*ir.Value]*ir.Value
}

// round is v as bfloat16. Of a view, what it looks at is rounded, so that rounding is part of what computes it, and one for
// all views; but not where that would round what nothing reads.
func (r *narrower) round(v *ir.Value, user *ir.Op) *ir.Value {
	if w := r.rounded[v]; w != nil {
		return w
	}
	b := r.p.b
	op := v.Op()
	if op != nil && op.Has(ir.View) && (!op.Is(blu.Slice) || r.rounded[op.Operand(0)] != nil || r.alone(op.Operand(0))) {
		base := r.round(op.Operand(0), user)
		b.After(op).At(op.Loc())
		t := b.Ctx.Tensor(v.Shape(), base.Elem())
		r.rounded[v] = b.CreateState(op.Def(), ir.OpState{Operands: []*ir.Value{base}, Attrs: op.Attrs(), Results: []ir.Type{t}}).Result(0)
		sameTime(r.rounded[v], op)
		return r.rounded[v]
	}
	switch {
	case op != nil:
		b.After(op).At(op.Loc())
	default:
		b.AtStart(v.Arg()).At(user.Loc())
	}
	r.rounded[v] = b.CastTo(v, b.Ctx.Float(ir.BF16))
	sameTime(r.rounded[v], op)
	return r.rounded[v]
}

// sameTime notes that a value belongs to an operation which is computed late, to save memory, if it is.
func sameTime(v *ir.Value, op *ir.Op) {
	if op == nil || v.Op() == nil {
		return
	}
	if a := op.Attr(blu.RecomputedAttr); a != nil {
		v.Op().SetAttr(blu.RecomputedAttr, a)
	}
}

// alone reports whether a value is only read rounded.
func (r *narrower) alone(v *ir.Value) bool {
	for u := range v.Uses() {
		op := u.Owner()
		if op.Has(ir.View) && r.alone(op.Result(0)) {
			continue
		}
		found := false
		for _, i := range r.operands(op) {
			found = found || i == u.Index()
		}
		if !found {
			return false
		}
	}
	return true
}

// dotLike makes a product as another one is, of other operands.
func dotLike(b *blu.Builder, like *ir.Op, lhs, rhs *ir.Value, lhsBatch, rhsBatch, lhsContract, rhsContract []int64) *ir.Value {
	y := b.Dot(lhs, rhs, lhsBatch, rhsBatch, lhsContract, rhsContract)
	if elem := like.Result(0).Elem(); y.Elem() != elem {
		attrs := y.Op().Attrs()
		shape := y.Shape()
		y.Op().Erase()
		y = b.CreateState(blu.Dot, ir.OpState{Operands: []*ir.Value{lhs, rhs}, Attrs: attrs, Results: []ir.Type{b.Ctx.Tensor(shape, elem)}}).Result(0)
	}
	if a := like.Attr(blu.PrecisionAttr); a != nil {
		y.Op().SetAttr(blu.PrecisionAttr, a)
	}
	return y
}
