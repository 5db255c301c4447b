package kernels

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// gradSums is a sum over all positions of the gradients of queries, keys and values, side by side as a joint product of the three gives
// them: the gradient of its bias. The kernel that computes the gradients stores partial results of it.
type gradSums struct {
	op    *ir.Op
	grads [3]*ir.Value
	order [3]int64 // results of attention_grad, as they lie side by side
}

// gradientSums is the sum whose partial results a group of attention's gradient stores, if it does.
func gradientSums(g *group) *gradSums {
	if len(g.sums) == 0 {
		return nil
	}
	return gradSumsOf(g.sums[0])
}

// sumOfGradients has the kernel of attention's gradient add up the columns of its results, if that is what a reduction does.
func (p *planner) sumOfGradients(r *ir.Op) bool {
	s := gradSumsOf(r)
	if s == nil || p.target.AttentionSumRows == 0 {
		return false
	}
	g := p.home[s.grads[0]]
	if g == nil || len(g.sums) > 0 || g.root.Attrs().Str(blu.PrecisionAttr) == "fp32-strict" {
		return false
	}
	g.sums = []*ir.Op{r}
	f := p.finish(g, r)
	shape := g.root.Operand(0).Shape()
	f.dom.size[f.inner[0]] = shape[0] * ((shape[2] + p.target.AttentionSumRows - 1) / p.target.AttentionSumRows)
	return true
}

// gradSumsOf reads a sum over all but the last dimension of attention's gradients side by side; nil: it is something else.
func gradSumsOf(r *ir.Op) *gradSums {
	x := r.Operand(0)
	last := len(x.Shape()) - 1
	if !r.Is(blu.ReduceSum) || len(reducedAxes(r)) != last || slices.Contains(reducedAxes(r), int64(last)) {
		return nil
	}
	joint := columnsOf(x).Op()
	if joint == nil || !joint.Is(blu.Concat) || joint.NumOperands() != 3 || joint.Attrs().IntOr("axis", 0) != int64(len(joint.Result(0).Shape())-1) {
		return nil
	}
	s := &gradSums{op: r}
	for i, v := range joint.Operands() {
		n, grad := headsOf(v)
		if grad == nil || i > 0 && s.grads[0].Op() != grad.Op() || slices.Contains(s.order[:i], n) {
			return nil
		}
		s.grads[i], s.order[i] = grad, n
	}
	return s
}

// columnsOf is what a value has the columns of: looked at in other rows, or widened.
func columnsOf(v *ir.Value) *ir.Value {
	for op := v.Op(); op != nil; op = v.Op() {
		shape := op.Result(0).Shape()
		switch {
		case isWidening(op):
		case op.Is(blu.Reshape):
			if from := op.Operand(0).Shape(); len(from) == 0 || from[len(from)-1] != shape[len(shape)-1] {
				return v
			}
		default:
			return v
		}
		v = op.Operand(0)
	}
	return v
}

// headsOf is the result of attention's gradient, and its number, whose heads a value has side by side at every position; nil: it is
// something else.
func headsOf(v *ir.Value) (n int64, grad *ir.Value) {
	v = columnsOf(v)
	merged := v.Op()
	if merged == nil || !merged.Is(blu.Reshape) {
		return 0, nil
	}
	turned := merged.Operand(0).Op()
	if turned == nil || !turned.Is(blu.Transpose) || !slices.Equal(turned.Attrs().Ints("perm"), []int64{0, 2, 1, 3}) {
		return 0, nil
	}
	x := turned.Operand(0)
	if op, shape := x.Op(), x.Shape(); op == nil || !op.Is(blu.AttentionGrad) || v.Shape()[len(v.Shape())-1] != shape[1]*shape[3] {
		return 0, nil
	}
	return int64(x.Index()), x
}

// columns is where the sums of the gradients of queries, keys and values begin.
func (s *gradSums) columns() (at [3]int64) {
	next := int64(0)
	for i, n := range s.order {
		at[n] = next
		next += columnsIn(s.grads[i])
	}
	return at
}

func (s *gradSums) width() (n int64) {
	for _, v := range s.grads {
		n += columnsIn(v)
	}
	return n
}

// columnsIn is how many columns heads side by side have.
func columnsIn(grad *ir.Value) int64 { return grad.Shape()[1] * grad.Shape()[3] }

// refer writes the partial results as operations on the gradients.
func (s *gradSums) refer(b *blu.Builder, results []*ir.Value, rows int64) *ir.Value {
	parts := make([]*ir.Value, len(s.order))
	for i, n := range s.order {
		x := b.Transpose(b.CastTo(results[n], s.op.Result(0).Elem()), []int64{0, 2, 1, 3})
		shape := x.Shape()
		panels := (shape[1] + rows - 1) / rows
		if missing := panels*rows - shape[1]; missing > 0 {
			x = b.Pad(x, make([]int64, 4), []int64{0, missing, 0, 0}, 0)
		}
		x = b.ReshapeTo(x, shape[0]*panels, rows, columnsIn(s.grads[i]))
		parts[i] = b.ReduceSum(x, []int64{1})
	}
	return b.Concat(parts, 1)
}
