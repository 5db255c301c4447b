package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// roundProducts rounds what products of precision bf16 multiply: to bfloat16, to nearest with ties to even, and that is what
// they read. Sums and results are float32. So is an activation function, but its argument, the result of a product that is
// kept for the backward pass, is rounded, as is what it is multiplied with in a gated layer; and the gradient of a norm's result, which products give, before it is that of the
// norm's argument; and the logits of a cross entropy, if nothing else reads them. Attention is all of bfloat16: what it gives,
// products multiply next.
//
// It comes after the classifier was cut into chunks, so that of the gradient of all logits no more than a chunk is rounded
// at a time.
func (p *preparer) roundProducts(fn *ir.Op) {
	r := &narrower{p: p, rounded: map[*ir.Value]*ir.Value{}, exacts: map[*ir.Value]bool{}}
	for op := range fn.Body().Ops() {
		if (op.Is(blu.Attention) || op.Is(blu.AttentionGrad)) && len(r.operands(op)) > 0 {
			r.attention(op)
			continue
		}
		if isRounding(op) {
			op.ReplaceWith(r.round(op.Operand(0), op))
			continue
		}
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

// RoundedOperands lists the operands of an operation of a program yet to be cut into kernels that these will read rounded to bfloat16.
func RoundedOperands(op *ir.Op) []int {
	r := &narrower{}
	if op.Is(blu.Rope) && fromProduct(op.Operand(0)) && r.alone(op.Result(0)) {
		return []int{0}
	}
	return r.operands(op)
}

// operands lists the operands of an operation that are rounded.
func (r *narrower) operands(op *ir.Op) []int {
	switch op.Def() {
	case blu.Gelu, blu.GeluGrad, blu.Silu, blu.SiluGrad:
		if fromProduct(op.Operand(0)) {
			return []int{0}
		}
	case blu.Mul:
		if isGate(op.Operand(0)) && isGate(op.Operand(1)) {
			return indicesOf(op, fromProduct)
		}
	case blu.CrossEntropy, blu.CrossEntropyGrad:
		if fromProduct(op.Operand(0)) && onlyLosses(op.Operand(0)) {
			return []int{0}
		}
	case blu.LayernormGrad, blu.RmsnormGrad:
		dy := op.NumOperands() - 1
		if fromProduct(op.Operand(dy)) {
			return []int{dy}
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
		return []int{0, 1, 2, 3, 5}
	}
	return nil
}

// attention makes attention, or its gradient, one of bfloat16; what else uses its results gets them in float32.
func (r *narrower) attention(op *ir.Op) {
	b := r.p.b
	operands, types := op.Operands(), op.ResultTypes()
	for i, v := range operands {
		if i != lseOperand {
			operands[i] = r.round(v, op)
		}
	}
	for i, v := range op.Results() {
		if !(op.Is(blu.Attention) && i == 1) { // lse
			types[i] = b.Ctx.Tensor(v.Shape(), b.Ctx.Float(ir.BF16))
		}
	}
	b.Before(op).At(op.Loc())
	narrow := r.p.again(op, operands, types)
	sameTime(narrow[0], op)
	wide := make([]*ir.Value, len(narrow))
	for i, v := range narrow {
		if wide[i] = v; types[i] != op.Result(i).Type() {
			wide[i] = b.CastTo(v, b.Ctx.F32())
			sameTime(wide[i], op)
			r.rounded[wide[i]], r.exacts[wide[i]] = v, true
		}
	}
	op.ReplaceWith(wide...)
}

// exact reports whether rounding changes nothing: whether a value consists of results of attention.
func (r *narrower) exact(v *ir.Value) bool {
	op := v.Op()
	if op == nil || !op.Has(ir.View) && !op.Is(blu.Concat) {
		return r.exacts[v]
	}
	return !slices.ContainsFunc(op.Operands(), func(v *ir.Value) bool { return !r.exact(v) })
}

// joined joins what is bfloat16 as such, and widens that for others.
func (r *narrower) joined(op *ir.Op) *ir.Value {
	parts := op.Operands()
	for i, v := range parts {
		parts[i] = r.round(v, op)
	}
	b, v := r.p.b, op.Result(0)
	b.Before(op).At(op.Loc())
	w := b.Concat(parts, op.Attrs().IntOr("axis", 0))
	wide := b.CastTo(w, b.Ctx.F32())
	sameTime(w, op)
	sameTime(wide, op)
	v.ReplaceAllUsesWith(wide)
	r.rounded[v], r.rounded[wide], r.exacts[wide] = w, w, true
	return w
}

// lseOperand is the operand of attention_grad that is a statistic, not a factor of products.
const lseOperand = 4

// fromProduct reports whether a value is the result of a product of precision bf16, perhaps with a bias, or a sum of such: what one product
// adds to another.
func fromProduct(v *ir.Value) bool { return consistsOfProducts(v, map[*ir.Value]bool{}) }

// consistsOfProducts is fromProduct for a value of a sum, of whose other values some are known to be such.
func consistsOfProducts(v *ir.Value, known map[*ir.Value]bool) bool {
	op := v.Op()
	switch {
	case known[v]:
		return true
	case op == nil:
		return false
	case op.Is(blu.Dot):
		return op.Attrs().Str(blu.PrecisionAttr) == "bf16"
	case op.Is(blu.Add):
		parts := slices.DeleteFunc(op.Operands(), isBias)
		known[v] = len(parts) > 0 && !slices.ContainsFunc(parts, func(x *ir.Value) bool { return !consistsOfProducts(x, known) })
		return known[v]
	case op.Has(ir.View), isRounding(op), op.Is(blu.Cast) && isRounding(op.Operand(0).Op()):
		return consistsOfProducts(op.Operand(0), known)
	}
	return false
}

// isBias reports whether a value is one of fewer dimensions, repeated.
func isBias(v *ir.Value) bool {
	op := v.Op()
	return op != nil && op.Is(blu.Broadcast) && len(op.Operand(0).Shape()) < len(v.Shape())
}

// isGate reports whether a value is the result of a product of precision bf16 or an activation function of one: what gated
// layers multiply.
func isGate(v *ir.Value) bool {
	if op := v.Op(); op != nil && (op.Is(blu.Gelu) || op.Is(blu.Silu)) {
		v = op.Operand(0)
	}
	return fromProduct(v)
}

// indicesOf lists the operands for which something holds.
func indicesOf(op *ir.Op, holds func(*ir.Value) bool) (list []int) {
	for i, v := range op.Operands() {
		if holds(v) {
			list = append(list, i)
		}
	}
	return list
}

// onlyLosses reports whether a value is only read as logits, or rounded for that: a loss and its gradient have the same ones, or probabilities
// don't add up to one.
func onlyLosses(v *ir.Value) bool {
	for u := range v.Uses() {
		if op := u.Owner(); u.Index() != 0 || !op.Is(blu.CrossEntropy) && !op.Is(blu.CrossEntropyGrad) && !isRounding(op) {
			return false
		}
	}
	return true
}

// keptLogits is logits that nothing but a loss and its gradient reads, as roundProducts leaves them.
func (p *preparer) keptLogits(logits *ir.Value) *ir.Value {
	f32 := ir.Type(p.b.Ctx.F32())
	if !fromProduct(logits) || logits.Elem() != f32 {
		return logits
	}
	return p.b.CastTo(p.b.CastTo(logits, p.b.Ctx.Float(ir.BF16)), f32)
}

// narrower makes each rounded value once.
type narrower struct {
	p       *preparer
	rounded map[*ir.Value]*ir.Value
	exacts  map[*ir.Value]bool // those that rounding doesn't change
}

// round is v as bfloat16. Of a view, what it looks at is rounded, so that rounding is part of what computes it, and one for
// all views; but not where that would round what nothing reads.
func (r *narrower) round(v *ir.Value, user *ir.Op) *ir.Value {
	if w := r.rounded[v]; w != nil {
		return w
	}
	b := r.p.b
	op := v.Op()
	if op != nil && op.Is(blu.Concat) && r.exact(v) {
		return r.joined(op)
	}
	if op != nil && op.Has(ir.View) && (!op.Is(blu.Slice) || r.rounded[op.Operand(0)] != nil || r.alone(op.Operand(0))) {
		base := r.round(op.Operand(0), user)
		b.After(op).At(op.Loc())
		t := b.Ctx.Tensor(v.Shape(), base.Elem())
		r.rounded[v] = b.CreateState(op.Def(), ir.OpState{Operands: []*ir.Value{base}, Attrs: op.Attrs(), Results: []ir.Type{t}}).Result(0)
		sameTime(r.rounded[v], op)
		return r.rounded[v]
	}
	if op != nil && op.Is(blu.Cast) && op.Operand(0).Elem() == ir.Type(b.Ctx.Float(ir.BF16)) {
		return op.Operand(0)
	}
	if op != nil && op.Is(blu.Rope) && r.alone(v) && (fromProduct(op.Operand(0)) || r.exact(op.Operand(0))) {
		return r.turned(op)
	}
	if op != nil && op.Is(blu.Select) && r.cheap(op.Operand(1)) && r.cheap(op.Operand(2)) {
		r.selected(op)
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

// turned rotates what a product or attention leaves, rounded, for readers that round the result.
func (r *narrower) turned(rope *ir.Op) *ir.Value {
	b, v := r.p.b, rope.Result(0)
	x := r.round(rope.Operand(0), rope)
	b.After(rope).At(rope.Loc())
	r.rounded[v] = b.CreateState(rope.Def(), ir.OpState{Operands: []*ir.Value{x}, Attrs: rope.Attrs(), Results: []ir.Type{b.Ctx.Tensor(v.Shape(), x.Elem())}}).Result(0)
	sameTime(r.rounded[v], rope)
	return r.rounded[v]
}

// isRounding reports whether an operation rounds float32 to bfloat16.
func isRounding(op *ir.Op) bool {
	if op == nil || !op.Is(blu.Cast) {
		return false
	}
	from, ok := op.Operand(0).Elem().(*ir.FloatType)
	to, is := op.Result(0).Elem().(*ir.FloatType)
	return ok && is && from.Kind == ir.F32 && to.Kind == ir.BF16
}

// cheap reports whether a value need not be there in float32 too once it is rounded.
func (r *narrower) cheap(v *ir.Value) bool {
	return r.rounded[v] != nil || r.exact(v) || r.alone(v)
}

// selected has a choice between values that is read rounded be one between rounded values.
func (r *narrower) selected(op *ir.Op) {
	for i := 1; i <= 2; i++ {
		w := r.round(op.Operand(i), op)
		r.p.b.Before(op).At(op.Loc())
		wide := r.p.b.CastTo(w, r.p.b.Ctx.F32())
		sameTime(wide, op)
		op.SetOperand(i, wide)
	}
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
		if isRounding(op) || (op.Has(ir.View) || op.Is(blu.Select) && u.Index() > 0) && r.alone(op.Result(0)) {
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
