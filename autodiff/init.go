package autodiff

import (
	"blutrain/ir"
)

// buildInit writes the initial parameters and optimizer state. Each parameter draws from the random stream of its place
// among the parameters, so that one's values don't depend on the sizes of the others.
func (t *trainer) buildInit() (*ir.Op, error) {
	f := newFunction(t.c, Init, t.module.Loc())
	seed := f.scalar("seed", t.c.I64())
	for i, p := range t.params {
		f.Builder.At(p.op.Loc())
		v, err := p.initial(f, seed, int64(i))
		if err != nil {
			return nil, err
		}
		f.write(p.name, v)
	}
	if t.minimize == nil {
		return f.finish(), nil
	}
	for _, p := range t.params {
		f.Builder.At(p.op.Loc())
		for _, s := range t.states(p) {
			f.write(s, f.Splat(p.typ, 0))
		}
	}
	return f.finish(), nil
}

// initial is the parameter's first value, by its initializer.
func (p param) initial(f *function, seed *ir.Value, stream int64) (*ir.Value, error) {
	d, ok := p.op.Attr("init").(*ir.DictAttr)
	if !ok {
		return nil, p.op.Errorf("parameter %s has no initializer", p.name)
	}
	at := ir.Attrs(d.Entries)
	constant := func(v float64) *ir.Value { return f.Splat(p.typ, v) }
	switch kind := at.Str("kind"); kind {
	case "zeros":
		return constant(0), nil
	case "ones":
		return constant(1), nil
	case "constant":
		return constant(at.FloatOr("value", 0)), nil
	case "normal":
		return f.RandomNormal(seed, stream, at.FloatOr("mean", 0), at.FloatOr("std", 1), p.typ), nil
	case "uniform":
		low, high := at.FloatOr("low", 0), at.FloatOr("high", 1)
		u := f.RandomUniform(seed, stream, p.typ)
		return f.Add(constant(low), f.Mul(u, constant(high-low))), nil
	default:
		return nil, p.op.Errorf("parameter %s: there is no initializer %q", p.name, kind)
	}
}
