package autodiff

import "blutrain/ir"

// y = (x - mean) rstd g + b over the last axis. With xhat = (x - mean) rstd and h = dy g:
//
//	dx = rstd (h - mean(h) - xhat mean(h xhat)),  dg = sum of dy xhat over rows,  db = sum of dy over rows
//
// which is blu.layernorm_grad.
func layernorm(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	x, g, mean, rstd := op.Operand(0), op.Operand(1), op.Result(1), op.Result(2)
	d := r.LayernormGrad(x, g, mean, rstd, dy)
	return d.Results()
}

// y = x rstd g over the last axis, rstd = (mean(x^2) + eps)^(-1/2). With xhat = x rstd and h = dy g:
//
//	dx = rstd (h - xhat mean(h xhat)),  dg = sum of dy xhat over rows
//
// which is blu.rmsnorm_grad.
func rmsnorm(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	x, g, rstd := op.Operand(0), op.Operand(1), op.Result(1)
	d := r.RmsnormGrad(x, g, rstd, dy)
	return d.Results()
}
