package kernels

import (
	"math"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// pick is one element of each row of logits: what cross entropy needs, with its run-time check of targets, which no
// primitive of blu has. It exists within this phase only.
var pick = ir.Define("kernels", ir.OpDef{
	Name:     "pick",
	Summary:  "one element of each row, by number",
	Operands: []ir.OperandDef{{Name: "x"}, {Name: "indices"}},
	Attrs: []ir.AttrDef{
		{Name: "ignore", Kind: ir.I64Kind}, {Name: "from", Kind: ir.I64Kind, Doc: "position of the first index, for messages"},
	},
	Results: []ir.ResultDef{{Name: "y"}},
	Traits:  ir.Pure,
})

// expSum is the sum of e^(x - m) over the last dimension, m being the greatest x there: what softmax divides by. It exists
// within this phase only. Rows too long for a block are gone over once for it, with the greatest element so far in the place
// of m (Milakov and Gimelshein, arXiv 1805.02867).
var expSum = ir.Define("kernels", ir.OpDef{
	Name:     "exp_sum",
	Summary:  "the sum of exponentials relative to the greatest element",
	Operands: []ir.OperandDef{{Name: "x"}},
	Results:  []ir.ResultDef{{Name: "y"}},
	Traits:   ir.Pure,
})

// whole lists the composite operations that have kernels, or instructions, of their own.
var whole = map[*ir.OpDef]bool{
	blu.Attention: true, blu.AttentionGrad: true, blu.CrossEntropy: true,
	blu.Gelu: true, blu.GeluGrad: true, blu.Silu: true, blu.SiluGrad: true,
}

// smallElems is the size up to which equal values are computed once. Larger ones may be cheaper to compute again where
// they are needed than to keep.
const smallElems = 1024

// prepare rewrites a function to operations that the plan knows. It returns, for operations that come from a composite
// one, the composite's name.
func prepare(c *ir.Context, fn *ir.Op, t Target) map[*ir.Op]string {
	p := &preparer{b: blu.On(ir.NewBuilder(c, fn.Body())), target: t, origin: map[*ir.Op]string{}}
	p.chunk(fn)
	p.accumulateFirst(fn)
	p.scatterInPlace(fn)
	rewrite.EraseDead(fn)
	p.roundProducts(fn)
	p.round(fn, p.rewrite, func(op *ir.Op) string { return op.Def().Name })
	p.round(fn, p.primitive, func(op *ir.Op) string { return p.origin[op] })
	p.fold(fn)
	mergeSmall(fn)
	rewrite.EraseDead(fn)
	if len(t.Beside) > 0 {
		behindProducts(fn)
	}
	return p.origin
}

// fold applies the folders of operations once, in order: composites leave products with 1 and sums of constants.
func (p *preparer) fold(fn *ir.Op) {
	c := p.b.Ctx
	for op := range fn.Body().Ops() {
		if op.Def().Fold == nil || op.Is(blu.Constant) {
			continue
		}
		consts := make([]ir.Attr, op.NumOperands())
		for i := range consts {
			consts[i] = rewrite.ConstantValue(op.Operand(i))
		}
		folded := op.Def().Fold(c, op, consts)
		if len(folded) != op.NumResults() || len(folded) == 0 {
			continue
		}
		p.b.Before(op).At(op.Loc())
		values := make([]*ir.Value, len(folded))
		for i, r := range folded {
			if values[i] = r.Value; r.Attr != nil {
				values[i] = p.b.Constant(r.Attr)
			}
		}
		if values[0] != op.Result(0) { // else it was changed in place
			op.ReplaceWith(values...)
		}
	}
}

type preparer struct {
	b      *blu.Builder
	target Target
	origin map[*ir.Op]string
}

// round replaces every operation for which there is a rule, and notes where what it is replaced by comes from.
func (p *preparer) round(fn *ir.Op, rule func(*ir.Op) []*ir.Value, name func(*ir.Op) string) {
	for op := range fn.Body().Ops() {
		p.b.Before(op).At(op.Loc())
		before, after := op.Prev(), op.Next()
		made := rule(op)
		if made == nil {
			continue
		}
		from, again := name(op), op.Attr(blu.RecomputedAttr)
		op.ReplaceWith(made...)
		first := fn.Body().First()
		if before != nil {
			first = before.Next()
		}
		for o := first; o != after; o = o.Next() {
			p.origin[o] = from
			if again != nil {
				o.SetAttr(blu.RecomputedAttr, again)
			}
		}
	}
}

// rewrite gives the results of a composite operation in primitive ones, or nil.
func (p *preparer) rewrite(op *ir.Op) []*ir.Value {
	if empty := p.emptyResults(op); empty != nil {
		return empty
	}
	if i32 := p.b.Ctx.I32(); (op.Is(blu.CrossEntropy) || op.Is(blu.CrossEntropyGrad)) && op.Operand(1).Elem() != ir.Type(i32) {
		op.SetOperand(1, p.b.CastTo(op.Operand(1), i32))
	}
	switch op.Def() {
	case blu.CrossEntropy:
		return p.crossEntropy(op)
	case blu.SumSquares:
		if p.target.Lists && !hasEmpty(op) {
			return p.sumSquares(op)
		}
	case blu.Attention, blu.AttentionGrad:
		if !hasEmpty(op) && !p.narrow(op) {
			return nil
		}
		if !hasEmpty(op) {
			return p.widened(op)
		}
	default:
		if whole[op.Def()] {
			return nil
		}
	}
	if decompose := blu.Decompose[op.Name()]; decompose != nil {
		return decompose(p.b, op)
	}
	return nil
}

// primitive gives the results of a primitive operation in others that are easier to plan, or nil.
func (p *preparer) primitive(op *ir.Op) []*ir.Value {
	if empty := p.emptyResults(op); empty != nil {
		return empty
	}
	switch op.Def() {
	case blu.StopGradient:
		return []*ir.Value{op.Operand(0)}
	case blu.Pad:
		return []*ir.Value{p.pad(op)}
	case blu.Argmax:
		if op.Operand(0).Shape()[op.Attrs().IntOr("axis", 0)] == 1 {
			return []*ir.Value{p.b.Splat(op.Result(0).Type(), 0)}
		}
	case blu.ReduceSum, blu.ReduceMax, blu.ReduceMin:
		if y := p.reduction(op); y != nil {
			return []*ir.Value{y}
		}
	case blu.Dot:
		if y := p.dot(op); y != nil {
			return []*ir.Value{y}
		}
		return nil
	case blu.Gather, blu.ScatterAdd:
		if op.Operand(1).Elem() != ir.Type(p.b.Ctx.I32()) {
			indices := p.b.CastTo(op.Operand(1), p.b.Ctx.I32())
			return p.again(op, []*ir.Value{op.Operand(0), indices}, op.ResultTypes())
		}
		if op.Is(blu.Gather) {
			return nil
		}
	case blu.Cast, blu.Reshape, blu.Transpose, blu.Slice, blu.Broadcast, blu.Concat, blu.Constant, blu.Iota:
		return nil
	}
	if p.narrow(op) {
		return p.widened(op)
	}
	return nil
}

func (p *preparer) again(op *ir.Op, operands []*ir.Value, results []ir.Type) []*ir.Value {
	return p.b.CreateState(op.Def(), ir.OpState{Operands: operands, Attrs: op.Attrs(), Results: results}).Results()
}

// emptyResults gives constants for an operation whose results have no elements.
func (p *preparer) emptyResults(op *ir.Op) []*ir.Value {
	if op.NumResults() == 0 || op.Is(blu.Constant) {
		return nil
	}
	var out []*ir.Value
	for _, r := range op.Results() {
		if ir.NumElements(r.Shape()) > 0 {
			return nil
		}
		out = append(out, p.b.Constant(p.b.Ctx.Dense(r.Type(), nil)))
	}
	return out
}

func hasEmpty(op *ir.Op) bool {
	for _, v := range op.Operands() {
		if ir.NumElements(v.Shape()) == 0 {
			return true
		}
	}
	return false
}

// crossEntropy is cross_entropy with the check of its targets kept.
func (p *preparer) crossEntropy(op *ir.Op) []*ir.Value {
	if hasEmpty(op) {
		return blu.Decompose[op.Name()](p.b, op)
	}
	ignore, _ := op.Attrs().Int("ignore")
	return p.crossEntropyAt(op.Operand(0), op.Operand(1), ignore, 0)
}

// crossEntropyAt is the cross entropy of rows from row `from` of a larger tensor on, which messages count from.
func (p *preparer) crossEntropyAt(logits, targets *ir.Value, ignore, from int64) []*ir.Value {
	b, c := p.b, p.b.Ctx
	var stat ir.Type = c.F32()
	if f, ok := logits.Elem().(*ir.FloatType); ok && f.Kind == ir.F64 {
		stat = f
	}
	x := b.CastTo(logits, stat)
	axis := int64(len(x.Shape()) - 1)
	top := b.ReduceMax(x, []int64{axis})
	shift := b.Select(b.Compare(top, b.SplatLike(top, math.Inf(-1)), "eq"), b.SplatLike(top, 0), top)
	log := b.Log(p.expSum(x, shift))
	stored := logits // pick reads them from memory
	if op := logits.Op(); op != nil && op.Is(blu.Cast) && isNarrow(op.Operand(0).Elem()) {
		stored = op.Operand(0)
	}
	picked := b.CreateState(pick, ir.OpState{
		Operands: []*ir.Value{stored, b.CastTo(targets, c.I32())}, Attrs: []ir.NamedAttr{{Name: "ignore", Value: c.Int64(ignore)}, {Name: "from", Value: c.Int64(from)}},
		Results: []ir.Type{c.Tensor(targets.Shape(), stored.Elem())},
	}).Result(0)
	counts := b.Compare(targets, b.SplatLike(targets, float64(ignore)), "ne")
	// Not lse - picked: of a target that is all but certain, that leaves nothing but the rounding of large numbers.
	loss := b.Select(counts, b.Sub(log, b.Sub(b.CastTo(picked, stat), shift)), b.SplatLike(log, 0))
	rows := make([]int64, len(targets.Shape()))
	for i := range rows {
		rows[i] = int64(i)
	}
	return []*ir.Value{b.ReduceSum(loss, rows), b.ReduceSum(b.CastTo(counts, stat), rows), b.Add(shift, log)}
}

// sumSquares is the sum of all squares of many tensors: of rows of each, independent of one another, and then of what all
// rows gave.
func (p *preparer) sumSquares(op *ir.Op) []*ir.Value {
	b, y := p.b, op.Result(0)
	var rows []*ir.Value
	for _, x := range op.Operands() {
		n := ir.NumElements(x.Shape())
		width := p.rowOf(x.Shape())
		x = b.CastTo(b.ReshapeTo(x, n/width, width), y.Elem())
		rows = append(rows, b.ReduceSum(b.Mul(x, x), []int64{1}))
	}
	return []*ir.Value{b.ReduceSum(b.Concat(rows, 0), []int64{0})}
}

// rowOf is the length of rows that all elements of a tensor are cut into to be reduced: a block's, or else the longest that
// a block can hold. It is more than one row if that can be: a single result would be no slice of the vector of all.
func (p *preparer) rowOf(shape []int64) int64 {
	n, last := ir.NumElements(shape), int64(1)
	if len(shape) > 0 {
		last = shape[len(shape)-1]
	}
	switch {
	case n <= p.target.BlockElems:
		rows := int64(2)
		for rows < n && n%rows != 0 {
			rows++
		}
		return max(n/rows, 1)
	case n%p.target.BlockElems == 0:
		return p.target.BlockElems
	case last > 1 && last <= p.target.RowElems:
		return last
	}
	width := p.target.BlockElems
	for n%width != 0 {
		width--
	}
	return width
}

// expSum is the sum of e^(x - shift) over the last dimension: one operation where rows are too long for a block and the
// target likes to compute more rather than read them again.
func (p *preparer) expSum(x, shift *ir.Value) *ir.Value {
	axis := int64(len(x.Shape()) - 1)
	if p.target.OnlineSums && x.Shape()[axis] > p.target.RowElems {
		return p.b.CreateState(expSum, ir.OpState{Operands: []*ir.Value{x}, Results: []ir.Type{shift.Type()}}).Result(0)
	}
	return p.b.ReduceSum(p.b.Exp(p.b.Sub(x, p.b.Along(shift, axis, x.Shape()))), []int64{axis})
}

// pad joins the borders to the operand, axis by axis.
func (p *preparer) pad(op *ir.Op) *ir.Value {
	b, x := p.b, op.Operand(0)
	low, high := op.Attrs().Ints("low"), op.Attrs().Ints("high")
	value := op.Attrs().FloatOr("value", 0)
	border := func(axis int, n int64) *ir.Value {
		shape := slices.Clone(x.Shape())
		shape[axis] = n
		return b.Splat(b.Ctx.Tensor(shape, x.Elem()), value)
	}
	for axis := range low {
		parts := []*ir.Value{x}
		if low[axis] > 0 {
			parts = append([]*ir.Value{border(axis, low[axis])}, parts...)
		}
		if high[axis] > 0 {
			parts = append(parts, border(axis, high[axis]))
		}
		if ir.NumElements(x.Shape()) == 0 {
			parts = slices.DeleteFunc(parts, func(v *ir.Value) bool { return v == x && v.Shape()[axis] == 0 })
		}
		switch len(parts) {
		case 0: // still empty along this axis
		case 1:
			x = parts[0]
		default:
			x = b.Concat(parts, int64(axis))
		}
	}
	return x
}

// reduction cuts a reduction over everything, or over axes that do not lie together, into one over the last axes and one
// over the others; over no elements it is a constant.
func (p *preparer) reduction(op *ir.Op) *ir.Value {
	b, x := p.b, op.Operand(0)
	axes, rank := op.Attrs().Ints("axes"), len(x.Shape())
	if ir.NumElements(x.Shape()) == ir.NumElements(op.Result(0).Shape()) { // over nothing, or axes of one element
		return b.ReshapeTo(x, op.Result(0).Shape()...)
	}
	if ir.NumElements(x.Shape()) == 0 {
		return b.Splat(op.Result(0).Type(), identity(op))
	}
	if p.narrow(op) {
		return p.widened(op)[0]
	}
	axes = slices.DeleteFunc(slices.Clone(axes), func(a int64) bool { return x.Shape()[a] == 1 })
	tail := 0 // how many of the last axes are reduced
	for tail < len(axes) && axes[len(axes)-1-tail] == int64(rank-1-tail) {
		tail++
	}
	if (tail == 0 || tail == len(axes)) && len(axes) == len(op.Attrs().Ints("axes")) {
		return nil
	}
	cut := len(axes) - tail
	for _, list := range [][]int64{axes[cut:], axes[:cut]} {
		if len(list) > 0 {
			x = b.Create(op.Def(), []*ir.Value{x}, ir.NamedAttr{Name: "axes", Value: b.Ctx.I64s(list...)}).Result(0)
		}
	}
	return b.ReshapeTo(x, op.Result(0).Shape()...)
}

// identity is the value of a reduction over nothing.
func identity(op *ir.Op) float64 {
	elem := op.Result(0).Elem()
	switch {
	case op.Is(blu.ReduceMax):
		return identityOf(elem, true)
	case op.Is(blu.ReduceMin):
		return identityOf(elem, false)
	}
	return 0
}

// identityOf is the least, or the greatest, value of a type.
func identityOf(elem ir.Type, least bool) float64 {
	t, isInt := elem.(*ir.IntegerType)
	switch {
	case isInt && least:
		return -math.Ldexp(1, t.Width-1)
	case isInt:
		limit := math.Ldexp(1, t.Width-1)
		return min(limit-1, math.Nextafter(limit, 0))
	case least:
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// dot computes a product that is only used transposed the other way around, and one over no elements as zeros.
func (p *preparer) dot(op *ir.Op) *ir.Value {
	if hasEmpty(op) {
		return p.b.Splat(op.Result(0).Type(), 0)
	}
	if p.narrow(op) && isNarrow(op.Result(0).Elem()) {
		return p.widened(op)[0]
	}
	y := op.Result(0)
	if !y.HasOneUse() {
		return nil
	}
	for u := range y.Uses() {
		if t := u.Owner(); t.Is(blu.Transpose) && swapsSides(op, t.Attrs().Ints("perm")) {
			a := op.Attrs()
			swapped := dotLike(p.b, op, op.Operand(1), op.Operand(0), a.Ints("rhs_batch"), a.Ints("lhs_batch"), a.Ints("rhs_contract"), a.Ints("lhs_contract"))
			t.Result(0).ReplaceAllUsesWith(swapped)
			return p.b.Transpose(swapped, inversePerm(t.Attrs().Ints("perm"))) // for the transpose, which nothing uses now
		}
	}
	return nil
}

// swapsSides reports whether a permutation of a product's axes puts those of rhs before those of lhs and changes no other
// order.
func swapsSides(dot *ir.Op, perm []int64) bool {
	lhs, rhs := blu.DotOperandAxes(dot)
	nb, nl, nr := len(lhs.Batch), len(lhs.Free), len(rhs.Free)
	if nl == 0 || nr == 0 {
		return false
	}
	want := make([]int64, 0, len(perm))
	for i := range nb {
		want = append(want, int64(i))
	}
	for i := range nr {
		want = append(want, int64(nb+nl+i))
	}
	for i := range nl {
		want = append(want, int64(nb+i))
	}
	return slices.Equal(perm, want)
}

// narrow reports whether an operation computes with floating-point numbers that the target's arithmetic is too wide for.
func (p *preparer) narrow(op *ir.Op) bool {
	if !p.target.WideProducts || op.Def().DialectName() != "blu" {
		return false
	}
	if (op.Is(blu.Attention) || op.Is(blu.AttentionGrad)) && op.Attrs().Str(blu.PrecisionAttr) == "bf16" {
		return false // it has kernels for narrow elements
	}
	for _, v := range append(op.Operands(), op.Results()...) {
		if isNarrow(v.Elem()) {
			return true
		}
	}
	return false
}

func isNarrow(t ir.Type) bool {
	f, ok := t.(*ir.FloatType)
	return ok && (f.Kind == ir.BF16 || f.Kind == ir.F16)
}

// widened computes in f32 and rounds the results.
func (p *preparer) widened(op *ir.Op) []*ir.Value {
	c := p.b.Ctx
	operands := op.Operands()
	for i, v := range operands {
		if isNarrow(v.Elem()) {
			operands[i] = p.b.CastTo(v, c.F32())
		}
	}
	types := op.ResultTypes()
	for i, t := range types {
		if isNarrow(ir.Elem(t)) {
			types[i] = c.Tensor(op.Result(i).Shape(), c.F32())
		}
	}
	out := p.again(op, operands, types)
	for i, v := range out {
		out[i] = p.b.CastTo(v, op.Result(i).Elem())
	}
	return out
}

// mergeSmall merges equal operations with small results.
func mergeSmall(fn *ir.Op) {
	seen := map[string]*ir.Op{}
	ids := map[any]uint64{}
	for op := range fn.Body().Ops() {
		if !op.Has(ir.Pure) || op.NumResults() != 1 || len(op.Regions()) > 0 || ir.NumElements(op.Result(0).Shape()) > smallElems {
			continue
		}
		key := opKey(ids, op)
		if first := seen[key]; first != nil {
			op.ReplaceWith(first.Results()...)
		} else {
			seen[key] = op
		}
	}
}
