package autodiff

import (
	"blutrain/ir"
)

// buildApply writes the optimizer step. With G the sum of the gradients over all micro-batches, and 0 for 1/count where
// nothing counted:
//
//	loss      = loss_sum / count
//	grad_norm = |G| / count
//	gscale    = 1/count, times clip / max(grad_norm, clip) where the norm is clipped
//
// so that a parameter's gradient is G gscale. The optimizer multiplies: no scaled gradient is stored.
func (t *trainer) buildApply() (*ir.Op, error) {
	f := newFunction(t.c, Apply, t.minimize.Loc())
	params := t.readParams(f)
	states := make([][]*ir.Value, len(params))
	for i, p := range t.params {
		for _, s := range t.states(p) {
			states[i] = append(states[i], f.state(s, p.typ, p.op.Loc()))
		}
	}
	var gradients []*ir.Value
	for _, p := range t.params {
		gradients = append(gradients, f.state(gradName(p.name), p.typ, p.op.Loc()))
	}
	scalar := t.c.Tensor(nil, t.c.F32())
	sum, n := f.state(lossSum, scalar, f.Loc), f.state(count, scalar, f.Loc)
	lr, step := f.scalar("lr", t.c.F32()), f.scalar("step", t.c.F32())

	inverse := f.reciprocal(n)
	squares := f.CastTo(f.SumSquares(gradients), t.c.F32()) // of float64 parameters it is float64
	norm := f.Mul(f.Sqrt(squares), inverse)
	gscale := inverse
	if t.clip > 0 {
		clip := f.Splat(scalar, t.clip)
		gscale = f.Mul(inverse, f.Div(clip, f.Max(norm, clip)))
	}
	for i, p := range t.params {
		f.Builder.At(p.op.Loc())
		p2, states2 := t.update(f, p, params[i], gradients[i], states[i], lr, gscale, step)
		f.write(p.name, p2)
		for k, s := range t.states(p) {
			f.write(s, states2[k])
		}
	}
	f.Builder.At(t.minimize.Loc())
	f.output("loss", f.Mul(sum, inverse))
	f.output("grad_norm", norm)
	return f.finish(), nil
}

// reciprocal is 1/n, and 0 where n is 0.
func (f *function) reciprocal(n *ir.Value) *ir.Value {
	zero := f.Splat(n.Type(), 0)
	one := f.Splat(n.Type(), 1)
	return f.Select(f.Compare(n, zero, "eq"), zero, f.Div(one, n))
}
