package autodiff

import (
	"blutrain/ir"
)

// optimizer updates the parameters.
type optimizer interface {
	// states names what is kept for a parameter, each of the parameter's type and zero at first.
	states(p param) []string
	// update is one step: the new parameter and state from the old. g gscale is the gradient; step counts from 1.
	update(f *function, p param, value, g *ir.Value, state []*ir.Value, lr, gscale, step *ir.Value) (*ir.Value, []*ir.Value)
}

// readOptimizer reads the train block's optimizer.
func (t *trainer) readOptimizer(at ir.Attrs) (optimizer, error) {
	switch kind := at.Str("kind"); kind {
	case "adamw":
		return adamw{at.FloatOr("beta1", 0.9), at.FloatOr("beta2", 0.999), at.FloatOr("eps", 1e-8)}, nil
	case "sgd":
		return sgd{at.FloatOr("momentum", 0), at.Bool("nesterov")}, nil
	default:
		return nil, t.module.Errorf("train: there is no optimizer %q: expected adamw or sgd", kind)
	}
}

// adamw is Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
type adamw struct{ beta1, beta2, eps float64 }

func (adamw) states(p param) []string { return []string{"adamw.m/" + p.name, "adamw.v/" + p.name} }

func (o adamw) update(f *function, p param, value, g *ir.Value, state []*ir.Value, lr, gscale, step *ir.Value) (*ir.Value, []*ir.Value) {
	op := f.Adamw(value, state[0], state[1], g, lr, gscale, step, o.beta1, o.beta2, o.eps, p.decay)
	rs := op.Results()
	return rs[0], rs[1:]
}

// sgd is gradient descent with momentum: buf' = momentum buf + g, p' = p - lr buf'. Weight decay is added to the gradient.
type sgd struct {
	momentum float64
	nesterov bool
}

func (sgd) states(p param) []string { return []string{"sgd.momentum/" + p.name} }

func (o sgd) update(f *function, p param, value, g *ir.Value, state []*ir.Value, lr, gscale, step *ir.Value) (*ir.Value, []*ir.Value) {
	op := f.Sgd(value, state[0], g, lr, gscale, o.momentum, o.nesterov, p.decay)
	rs := op.Results()
	return rs[0], rs[1:]
}
