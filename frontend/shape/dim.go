package shape

import (
	"errors"
	"fmt"
	"math"
)

// Int is an integer that is known when a model is compiled: a size, an axis, a bound. It remembers the names that
// it was computed from. The zero Int is 0.
type Int struct {
	N int64
	// Batch marks the batch dimension, the one that values may do without.
	Batch bool
	expr  poly
}

// Lit is an integer written as such.
func Lit(n int64) Int { return Int{N: n, expr: constant(n)} }

// Named is the integer that a name stands for.
func Named(name string, n int64) Int { return Int{N: n, expr: variable(name, n)} }

// String is the expression: "4*C".
func (a Int) String() string {
	if a.expr == nil {
		return fmt.Sprint(a.N)
	}
	return a.expr.String()
}

// IsNamed tells whether the integer is a name and nothing else.
func (a Int) IsNamed() bool { return a.expr.isName() }

func withExpr(n int64, expr poly, ok bool) Int {
	if !ok {
		return Lit(n)
	}
	return Int{N: n, expr: expr}
}

// The operations fail when the result is not an integer or does not fit 64 bits. The error says so with the numbers.

// Add is a + b.
func Add(a, b Int) (Int, error) {
	n, ok := AddInt(a.N, b.N)
	if !ok {
		return Int{}, overflow(a, "+", b)
	}
	expr, ok := add(a.expr, b.expr)
	return withExpr(n, expr, ok), nil
}

// Neg is -a.
func Neg(a Int) (Int, error) { return Mul(Lit(-1), a) }

// Sub is a - b.
func Sub(a, b Int) (Int, error) {
	minus, ok := mul(constant(-1), b.expr)
	n := a.N - b.N
	if (n < a.N) != (b.N > 0) {
		return Int{}, overflow(a, "-", b)
	}
	var expr poly
	if ok {
		expr, ok = add(a.expr, minus)
	}
	return withExpr(n, expr, ok), nil
}

// Mul is a * b.
func Mul(a, b Int) (Int, error) {
	n, ok := MulInt(a.N, b.N)
	if !ok {
		return Int{}, overflow(a, "*", b)
	}
	expr, ok := mul(a.expr, b.expr)
	return withExpr(n, expr, ok), nil
}

// Div is a / b, which must leave no remainder.
func Div(a, b Int) (Int, error) {
	switch {
	case b.N == 0:
		return Int{}, errors.New(Sprintf("division by zero: %v / %v", a, b))
	case a.N == math.MinInt64 && b.N == -1:
		return Int{}, overflow(a, "/", b)
	case a.N%b.N != 0:
		return Int{}, errors.New(Sprintf("%v is not divisible by %v", a, b))
	}
	expr, ok := div(a.expr, b.expr)
	return withExpr(a.N/b.N, expr, ok), nil
}

// Mod is the remainder of a / b, with the sign of a.
func Mod(a, b Int) (Int, error) {
	if b.N == 0 {
		return Int{}, errors.New(Sprintf("division by zero: %v %% %v", a, b))
	}
	if b.N == -1 {
		return Lit(0), nil
	}
	return Lit(a.N % b.N), nil
}

func overflow(a Int, op string, b Int) error {
	return errors.New(Sprintf("%v %s %v does not fit 64 bits", a, op, b))
}

// Bindings maps the names of a function's own sizes to what they are where it is called.
type Bindings map[string]Int

// In tells a in the names of the caller.
func (b Bindings) In(a Int) Int {
	by := make(map[string]poly, len(b))
	for name, value := range b {
		if value.expr != nil {
			by[name] = value.expr
		}
	}
	expr, ok := a.expr.substitute(by)
	out := withExpr(a.N, expr, ok)
	out.Batch = a.Batch
	return out
}
