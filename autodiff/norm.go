package autodiff

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// y = (x - mean) rstd g + b over the last axis. With xhat = (x - mean) rstd and h = dy g:
//
//	dx = rstd (h - mean(h) - xhat mean(h xhat)),  dg = sum of dy xhat over rows,  db = sum of dy over rows
//
// which is blu.layernorm_grad.
func layernorm(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	n := blu.LayernormOp{Op: op}
	return r.LayernormGrad(n.X(), n.G(), n.Mean(), n.Rstd(), dy).Results()
}

// y = x rstd g over the last axis, rstd = (mean(x^2) + eps)^(-1/2). With xhat = x rstd and h = dy g:
//
//	dx = rstd (h - xhat mean(h xhat)),  dg = sum of dy xhat over rows
//
// which is blu.rmsnorm_grad.
func rmsnorm(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	n := blu.RmsnormOp{Op: op}
	return r.RmsnormGrad(n.X(), n.G(), n.Rstd(), dy).Results()
}
