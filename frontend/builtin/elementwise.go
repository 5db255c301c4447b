package builtin

import (
	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
)

func unaryRow(name, doc string, k Kind, def *ir.OpDef, fold func(float64) float64) *Row {
	x := tensor("x", k)
	x.Adopts = fold != nil
	return &Row{Name: name, Doc: doc, Result: "as x", Params: []Param{x}, Infer: sameAsX, Fold: fold1(fold), Emit: emitOp(def)}
}

func arithmeticRow(name string, emit func(*Emitter) []*ir.Value) *Row {
	return &Row{Name: name, Params: []Param{adopting("left", Number), adopting("right", Number)}, Infer: inferJoint, Emit: emit}
}

func comparisonRow(name, predicate string, k Kind) *Row {
	return &Row{Name: name, Params: []Param{adopting("left", k), adopting("right", k)}, Infer: inferCompare, Emit: emitCompare(predicate)}
}

func sameAsX(c *Call) shape.Type { return c.typ("x") }

// inferJoint combines all arguments element by element.
func inferJoint(c *Call) shape.Type {
	names := make([]string, len(c.Row.Params))
	for i, p := range c.Row.Params {
		names[i] = p.Name
	}
	dims, ok := c.joint(names...)
	if !ok {
		return shape.Type{}
	}
	return shape.Tensor(c.Args[0].Type.DType, dims...)
}

func inferDivide(c *Call) shape.Type {
	if t := c.typ("left"); t.DType.IsInt() {
		return c.clash("left", nil, "integers do not divide: left is %v, cast it to a float type first", t)
	}
	return inferJoint(c)
}

func inferCompare(c *Call) shape.Type {
	t := inferJoint(c)
	if t.IsError() {
		return t
	}
	return t.WithDType(shape.Bool)
}

func inferWhere(c *Call) shape.Type {
	dims, ok := c.joint("cond", "x", "y")
	if !ok {
		return shape.Type{}
	}
	return shape.Tensor(c.typ("x").DType, dims...)
}

func inferCast(c *Call) shape.Type { return c.typ("x").WithDType(c.dtype("dtype")) }

// emitOp is an operation of the parameter x that keeps its type.
func emitOp(def *ir.OpDef) func(*Emitter) []*ir.Value {
	return func(e *Emitter) []*ir.Value { return e.op(def, e.as("x", e.Call.Result.Sizes())) }
}

// emitBinary is an operation of two operands of the result's shape.
func emitBinary(def *ir.OpDef) func(*Emitter) []*ir.Value {
	return func(e *Emitter) []*ir.Value {
		dims := e.Call.Result.Sizes()
		return e.op(def, e.nth(0, dims), e.nth(1, dims))
	}
}

func emitCompare(predicate string) func(*Emitter) []*ir.Value {
	return func(e *Emitter) []*ir.Value {
		dims := e.Call.Result.Sizes()
		return e.op(blu.Compare, e.nth(0, dims), e.nth(1, dims), e.attr("predicate", e.Ctx.String(predicate)))
	}
}

func emitSquare(e *Emitter) []*ir.Value {
	x := e.val("x")
	return e.op(blu.Mul, x, x)
}

func emitRelu(e *Emitter) []*ir.Value {
	x := e.val("x")
	return e.op(blu.Max, x, e.splat(0, x.Type()))
}

func emitGelu(e *Emitter) []*ir.Value {
	return e.op(blu.Gelu, e.val("x"), e.attr("approximate", e.Ctx.String(e.Call.str("approximate"))))
}

func emitWhere(e *Emitter) []*ir.Value {
	dims := e.Call.Result.Sizes()
	return e.op(blu.Select, e.as("cond", dims), e.as("x", dims), e.as("y", dims))
}

func emitCast(e *Emitter) []*ir.Value { return []*ir.Value{e.cast(e.val("x"), e.Call.dtype("dtype"))} }
