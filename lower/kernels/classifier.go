package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// classifier is a last layer with its loss: logits = rows x table, their cross entropy and its gradient, and what that
// gradient is multiplied with. The logits are the largest tensor of a language model by far, and nothing needs all of them
// at once: they are computed, used and forgotten a number of rows at a time, as in Liger's fused linear cross entropy
// (Hsu et al., arXiv 2410.10989). The sums over rows are made chunk by chunk, in order.
type classifier struct {
	p       *preparer
	dot     *ir.Op // the logits: [rows..., classes]
	loss    *ir.Op // blu.cross_entropy
	grad    *ir.Op // blu.cross_entropy_grad, or nil
	inputs  []*ir.Op
	weights []*ir.Op
	rows    int64
	classes int64
}

// chunk rewrites the function's classifiers whose logits are larger than the target likes.
func (p *preparer) chunk(fn *ir.Op) {
	for op := range fn.Body().Ops() {
		if op.Is(blu.Dot) && ir.NumElements(op.Result(0).Shape()) > p.target.LogitsElems {
			if k := p.findClassifier(op); k != nil {
				k.rewrite()
			}
		}
	}
}

// findClassifier recognizes a product that only a loss and its gradient use, or gives nil.
func (p *preparer) findClassifier(dot *ir.Op) *classifier {
	y := dot.Result(0)
	lhs, rhs := blu.DotOperandAxes(dot)
	rank := len(y.Shape())
	if len(lhs.Batch) > 0 || len(lhs.Contract) != 1 || len(rhs.Free) != 1 || rank < 2 {
		return nil
	}
	k := &classifier{p: p, dot: dot, classes: y.Shape()[rank-1], rows: ir.NumElements(y.Shape()[:rank-1])}
	for u := range y.Uses() {
		switch op := u.Owner(); {
		case op.Is(blu.CrossEntropy) && k.loss == nil:
			k.loss = op
		case op.Is(blu.CrossEntropyGrad) && k.grad == nil:
			k.grad = op
		default:
			return nil
		}
	}
	if k.loss == nil || k.rows <= k.atOnce() && k.grad == nil || k.grad != nil && !k.findProducts() {
		return nil
	}
	return k
}

func (k *classifier) atOnce() int64 { return RowsAtOnce(k.dot, k.p.target.ClassifierRows) }

// mostChunks is into how many chunks logits are cut at most: each is operations of its own, and a batch of any size is to be compiled in
// seconds. Rows in chunks of their usual size are a million.
const mostChunks = 1024

// RowsAtOnce is the most rows of logits, which a product gives, that are computed at a time: those that it says or, of float32, so many by
// default, and twice as many where logits take half the memory; more where there would be too many chunks.
func RowsAtOnce(dot *ir.Op, byDefault int64) int64 {
	y := dot.Result(0)
	n := dot.Attrs().IntOr(blu.RowsAttr, 0)
	if n <= 0 {
		n = byDefault
		if fromProduct(y) {
			n *= 2
		}
	}
	rows := ir.NumElements(y.Shape()[:len(y.Shape())-1])
	return max(n, (rows+mostChunks-1)/mostChunks)
}

// findProducts sorts the products with the gradient of the logits into those over classes, which give a row for each row,
// and those over rows, which are summed.
func (k *classifier) findProducts() bool {
	d := k.grad.Result(0)
	rank := len(d.Shape())
	of, _ := k.grad.Attrs().Int("ignore")
	ignore, _ := k.loss.Attrs().Int("ignore")
	if k.grad.Operand(1) != k.loss.Operand(1) || of != ignore || k.grad.Operand(2) != k.loss.Result(2) || dependsOn(k.grad.Operand(3), k.loss) {
		return false
	}
	for u := range d.Uses() {
		op := u.Owner()
		if !op.Is(blu.Dot) || op.Operand(0) == op.Operand(1) {
			return false
		}
		lhs, rhs := blu.DotOperandAxes(op)
		mine := lhs
		if op.Operand(1) == d {
			mine = rhs
		}
		switch {
		case len(mine.Batch) > 0:
			return false
		case slices.Equal(mine.Contract, []int64{int64(rank - 1)}) && op.Operand(0) == d:
			k.inputs = append(k.inputs, op)
		case slices.Equal(mine.Free, []int64{int64(rank - 1)}):
			k.weights = append(k.weights, op)
		default:
			return false
		}
	}
	slices.SortFunc(k.inputs, byPlace)
	slices.SortFunc(k.weights, byPlace)
	return true
}

func byPlace(a, b *ir.Op) int {
	switch {
	case a == b:
		return 0
	case a.IsBefore(b):
		return -1
	}
	return 1
}

// dependsOn reports whether a value is computed from results of op.
func dependsOn(v *ir.Value, op *ir.Op) bool {
	def := v.Op()
	if def == nil || def.IsBefore(op) {
		return false
	}
	return def == op || slices.ContainsFunc(def.Operands(), func(o *ir.Value) bool { return dependsOn(o, op) })
}

// rewrite writes the chunks where the loss is, and puts their results in the place of the old ones.
func (k *classifier) rewrite() {
	if !k.gather() {
		return
	}
	b := k.p.b
	b.Before(k.loss).At(k.loss.Loc())
	chunks := (k.rows + k.atOnce() - 1) / k.atOnce()
	size := (k.rows + chunks - 1) / chunks
	if size > 64 {
		size = (size + 63) / 64 * 64
	}
	var sum, count *ir.Value
	var lse []*ir.Value
	inputs, weights := make([][]*ir.Value, len(k.inputs)), make([]*ir.Value, len(k.weights))
	for at := int64(0); at < k.rows; at += size {
		c := k.chunkAt(at, min(at+size, k.rows))
		sum, count, lse = plus(b, sum, c.loss[0]), plus(b, count, c.loss[1]), append(lse, c.loss[2])
		for i, v := range c.inputs {
			inputs[i] = append(inputs[i], v)
		}
		for i, v := range c.weights {
			weights[i] = plus(b, weights[i], v)
		}
	}
	k.replace(k.loss.Result(0), sum)
	k.replace(k.loss.Result(1), count)
	k.replace(k.loss.Result(2), b.Concat(lse, 0))
	for i, op := range k.inputs {
		k.replace(op.Result(0), b.Concat(inputs[i], 0))
	}
	for i, op := range k.weights {
		k.replace(op.Result(0), weights[i])
	}
}

// gather makes sure that everything the chunks need is there where the loss is: constants are moved, and what single numbers are computed by.
func (k *classifier) gather() bool {
	var needed []*ir.Value
	if k.grad != nil {
		needed = append(needed, k.grad.Operand(3))
	}
	for _, op := range slices.Concat(k.inputs, k.weights) {
		for _, v := range op.Operands() {
			if v != k.grad.Result(0) {
				needed = append(needed, v)
			}
		}
	}
	for _, v := range needed {
		if !k.early(v) {
			return false
		}
	}
	return true
}

// early has a value computed before the loss, if it isn't and can be.
func (k *classifier) early(v *ir.Value) bool {
	op := v.Op()
	switch {
	case op == nil || op.IsBefore(k.loss):
		return true
	case op == k.loss || !op.Is(blu.Constant) && (!op.Has(ir.Elementwise) || !op.Has(ir.Pure) || ir.NumElements(v.Shape()) != 1):
		return false
	}
	for _, x := range op.Operands() {
		if !k.early(x) {
			return false
		}
	}
	op.MoveBefore(k.loss)
	return true
}

func (k *classifier) replace(old, by *ir.Value) {
	old.ReplaceAllUsesWith(k.p.b.ReshapeTo(by, old.Shape()...))
}

func plus(b *blu.Builder, sum, x *ir.Value) *ir.Value {
	if sum == nil {
		return x
	}
	return b.Add(sum, x)
}

// chunked is what one chunk of rows gives.
type chunked struct {
	loss            []*ir.Value // sum, count, lse
	inputs, weights []*ir.Value
}

func (k *classifier) chunkAt(from, to int64) (c chunked) {
	b := k.p.b
	_, rhs := blu.DotOperandAxes(k.dot)
	lhs, _ := blu.DotOperandAxes(k.dot)
	x := k.take(k.dot.Operand(0), append(slices.Clone(lhs.Free), lhs.Contract...), from, to)
	logits := k.p.keptLogits(dotLike(b, k.dot, x, k.dot.Operand(1), nil, nil, []int64{1}, rhs.Contract))
	targets := k.take(k.loss.Operand(1), counted(len(k.loss.Operand(1).Shape())), from, to)
	ignore, _ := k.loss.Attrs().Int("ignore")
	before := k.loss.Prev()
	c.loss = k.p.crossEntropyAt(logits, targets, ignore, from)
	for op := before.Next(); op != k.loss; op = op.Next() {
		k.p.origin[op] = k.loss.Def().Name
	}
	if k.grad == nil {
		return c
	}
	d := b.CrossEntropyGrad(logits, targets, c.loss[2], k.grad.Operand(3), ignore)
	for _, op := range k.inputs {
		_, rhs := blu.DotOperandAxes(op)
		y := dotLike(b, op, d, op.Operand(1), nil, nil, []int64{1}, rhs.Contract)
		c.inputs = append(c.inputs, y)
	}
	for _, op := range k.weights {
		c.weights = append(c.weights, k.weight(op, d, from, to))
	}
	return c
}

// weight is a chunk's part of a product over rows.
func (k *classifier) weight(op *ir.Op, d *ir.Value, from, to int64) *ir.Value {
	lhs, rhs := blu.DotOperandAxes(op)
	if op.Operand(0) == k.grad.Result(0) {
		x := k.take(op.Operand(1), append(paired(lhs.Contract, rhs.Contract), rhs.Free...), from, to)
		return dotLike(k.p.b, op, d, x, nil, nil, []int64{0}, []int64{0})
	}
	x := k.take(op.Operand(0), append(paired(rhs.Contract, lhs.Contract), lhs.Free...), from, to)
	return dotLike(k.p.b, op, x, d, nil, nil, []int64{0}, []int64{0})
}

// paired is the axes of another operand that the axes 0, 1, ... of this one are contracted with.
func paired(mine, other []int64) []int64 {
	out := make([]int64, len(mine))
	for i, a := range mine {
		out[a] = other[i]
	}
	return out
}

func counted(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// take is some rows of a tensor whose dimensions, in the given order, start with those of the rows.
func (k *classifier) take(v *ir.Value, order []int64, from, to int64) *ir.Value {
	b := k.p.b
	if !slices.IsSorted(order) {
		v = b.Transpose(v, order)
	}
	shape := []int64{k.rows}
	if width := ir.NumElements(v.Shape()) / k.rows; len(order) > len(k.dot.Result(0).Shape())-1 {
		shape = append(shape, width)
	}
	v = b.ReshapeTo(v, shape...)
	starts, limits, steps := make([]int64, len(shape)), slices.Clone(shape), make([]int64, len(shape))
	starts[0], limits[0] = from, to
	for i := range steps {
		steps[i] = 1
	}
	return b.Slice(v, starts, limits, steps)
}
