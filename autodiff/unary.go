package autodiff

import (
	"math"

	"blutrain/ir"
)

// y = -x:  dx = -dy
func neg(r *reverse, _ *ir.Op, dy *ir.Value) []*ir.Value { return one(r.Neg(dy)) }

// y = |x|:  dx = dy sign(x); 0 at 0
func abs(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.Mul(dy, r.Sign(op.Operand(0))))
}

// y = exp(x):  dx = dy y
func exp(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value { return one(r.Mul(dy, op.Result(0))) }

// y = log(x):  dx = dy / x
func log(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value { return one(r.Div(dy, op.Operand(0))) }

// y = sqrt(x):  dx = dy / (2 y); 0 where y is 0, so that a norm has gradient 0 at the zero vector
func sqrt(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	y := op.Result(0)
	zero := r.SplatLike(y, 0)
	return one(r.Select(r.Compare(y, zero, "eq"), zero, r.Div(r.times(dy, 0.5), y)))
}

// y = x^(-1/2):  dx = -dy y / (2 x)
func rsqrt(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.Div(r.Mul(r.times(dy, -0.5), op.Result(0)), op.Operand(0)))
}

// y = tanh(x):  dx = dy (1 - y^2)
func tanh(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	y := op.Result(0)
	return one(r.Mul(dy, r.Sub(r.SplatLike(y, 1), r.Mul(y, y))))
}

// y = erf(x):  dx = dy 2/sqrt(pi) exp(-x^2)
func erf(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	x := op.Operand(0)
	return one(r.Mul(r.times(dy, 2/math.Sqrt(math.Pi)), r.Exp(r.Neg(r.Mul(x, x)))))
}

// y = 1 / (1 + exp(-x)):  dx = dy y (1 - y)
func sigmoid(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	y := op.Result(0)
	return one(r.Mul(dy, r.Mul(y, r.Sub(r.SplatLike(y, 1), y))))
}

// y = sin(x):  dx = dy cos(x)
func sin(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.Mul(dy, r.Cos(op.Operand(0))))
}

// y = cos(x):  dx = -dy sin(x)
func cos(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.Neg(r.Mul(dy, r.Sin(op.Operand(0)))))
}

// y = x in another type:  dx = dy in x's type
func cast(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	return one(r.Cast(dy, op.Operand(0).Type()))
}
