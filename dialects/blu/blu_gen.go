// Code generated from the table of the blu dialect; DO NOT EDIT.

package blu

import "blutrain/ir"

// Builder makes operations of the blu dialect at an insertion point. Operands that don't fit are a programming error
// and panic; TryCreate says why instead.
type Builder struct{ *ir.Builder }

// ParamOp is a blu.param: a named parameter of the model.
type ParamOp struct{ *ir.Op }

// SymName is the attribute "sym_name": name, layers by number: h.0.ln1_g.
func (op ParamOp) SymName() string {
	return op.Attr("sym_name").(*ir.StringAttr).Value
}

// Type is the attribute "type": tensor type.
func (op ParamOp) Type() ir.Type {
	return op.Attr("type").(*ir.TypeAttr).Type
}

// Init is the attribute "init": initial values.
func (op ParamOp) Init() *ir.DictAttr {
	return op.Attr("init").(*ir.DictAttr)
}

// Dims is the attribute "dims": dimensions as the person wrote them, strings.
func (op ParamOp) Dims() (value *ir.ArrayAttr, ok bool) {
	if op.Attr("dims") == nil {
		return value, false
	}
	return op.Attr("dims").(*ir.ArrayAttr), true
}

// WeightDecay is the attribute "weight_decay": weight decay of this parameter, where it is decayed.
func (op ParamOp) WeightDecay() (value float64, ok bool) {
	if op.Attr("weight_decay") == nil {
		return value, false
	}
	return op.Attr("weight_decay").(*ir.FloatAttr).Value, true
}

// Param makes a blu.param: a named parameter of the model.
func (b *Builder) Param(symName string, typeAttr ir.Type, init *ir.DictAttr, dims, weightDecay ir.Attr) ParamOp {
	attrs := []ir.NamedAttr{
		{Name: "sym_name", Value: b.Ctx.String(symName)},
		{Name: "type", Value: b.Ctx.TypeAttr(typeAttr)},
		{Name: "init", Value: init},
	}
	if dims != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "dims", Value: dims})
	}
	if weightDecay != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "weight_decay", Value: weightDecay})
	}
	op := b.CreateState(Param, ir.OpState{Operands: nil, Attrs: attrs, Regions: 0})
	return ParamOp{op}
}

// StateOp is a blu.state: named storage of the training program: a gradient sum, an optimizer moment, an accumulator, a copy of a parameter.
type StateOp struct{ *ir.Op }

// SymName is the attribute "sym_name": name: grads/wte, adamw.m/wte, loss_sum, bf16/wte.
func (op StateOp) SymName() string {
	return op.Attr("sym_name").(*ir.StringAttr).Value
}

// Type is the attribute "type": tensor type.
func (op StateOp) Type() ir.Type {
	return op.Attr("type").(*ir.TypeAttr).Type
}

// Role is the attribute "role": gradient, optimizer, accumulator or copy.
func (op StateOp) Role() string {
	return op.Attr("role").(*ir.StringAttr).Value
}

// Persist is the attribute "persist": whether a checkpoint holds it.
func (op StateOp) Persist() bool {
	return op.Attrs().Bool("persist")
}

// Of is the attribute "of": of a copy: the parameter.
func (op StateOp) Of() (value string, ok bool) {
	if op.Attr("of") == nil {
		return value, false
	}
	return op.Attr("of").(*ir.SymbolRefAttr).Root(), true
}

// Shard is the attribute "shard": of what it is a rank's shard: `group` and `ranks` that share it, `shape` of the whole.
func (op StateOp) Shard() (value *ir.DictAttr, ok bool) {
	if op.Attr("shard") == nil {
		return value, false
	}
	return op.Attr("shard").(*ir.DictAttr), true
}

// State makes a blu.state: named storage of the training program: a gradient sum, an optimizer moment, an accumulator, a copy of a parameter.
func (b *Builder) State(symName string, typeAttr ir.Type, role string, persist bool, of, shard ir.Attr) StateOp {
	attrs := []ir.NamedAttr{
		{Name: "sym_name", Value: b.Ctx.String(symName)},
		{Name: "type", Value: b.Ctx.TypeAttr(typeAttr)},
		{Name: "role", Value: b.Ctx.String(role)},
		{Name: "persist", Value: b.Ctx.Bool(persist)},
	}
	if of != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "of", Value: of})
	}
	if shard != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "shard", Value: shard})
	}
	op := b.CreateState(State, ir.OpState{Operands: nil, Attrs: attrs, Regions: 0})
	return StateOp{op}
}

// GetOp is a blu.get: the value of a parameter.
type GetOp struct{ *ir.Op }

// Param is the attribute "param": the parameter.
func (op GetOp) Param() string {
	return op.Attr("param").(*ir.SymbolRefAttr).Root()
}

// Value is the result "value".
func (op GetOp) Value() *ir.Value {
	return op.Result(0)
}

// Get makes a blu.get: the value of a parameter.
func (b *Builder) Get(param string, valueType ir.Type) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "param", Value: b.Ctx.Symbol(param)},
	}
	op := b.CreateState(Get, ir.OpState{Operands: nil, Attrs: attrs, Results: []ir.Type{valueType}, Regions: 0})
	return op.Result(0)
}

// ConstantOp is a blu.constant: a tensor known at compile time.
type ConstantOp struct{ *ir.Op }

// Value is the attribute "value": the elements.
func (op ConstantOp) Value() ir.Attr {
	return op.Attr("value")
}

// ResultResult is the result "result".
func (op ConstantOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Constant makes a blu.constant: a tensor known at compile time.
func (b *Builder) Constant(value ir.Attr) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "value", Value: value},
	}
	op := b.Create(Constant, nil, attrs...)
	return op.Result(0)
}

// IotaOp is a blu.iota: 0, 1, 2, ... along one axis.
type IotaOp struct{ *ir.Op }

// Axis is the attribute "axis": the axis that counts.
func (op IotaOp) Axis() int64 {
	return op.Attr("axis").(*ir.IntegerAttr).Value
}

// ResultResult is the result "result".
func (op IotaOp) ResultResult() *ir.Value {
	return op.Result(0)
}

// Iota makes a blu.iota: 0, 1, 2, ... along one axis.
func (b *Builder) Iota(axis int64, resultType ir.Type) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axis", Value: b.Ctx.Int64(axis)},
	}
	op := b.CreateState(Iota, ir.OpState{Operands: nil, Attrs: attrs, Results: []ir.Type{resultType}, Regions: 0})
	return op.Result(0)
}

// NegOp is a blu.neg: negation.
type NegOp struct{ *ir.Op }

// X is the operand "x".
func (op NegOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op NegOp) Y() *ir.Value {
	return op.Result(0)
}

// Neg makes a blu.neg: negation.
func (b *Builder) Neg(x *ir.Value) *ir.Value {
	op := b.Create(Neg, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// AbsOp is a blu.abs: absolute value.
type AbsOp struct{ *ir.Op }

// X is the operand "x".
func (op AbsOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op AbsOp) Y() *ir.Value {
	return op.Result(0)
}

// Abs makes a blu.abs: absolute value.
func (b *Builder) Abs(x *ir.Value) *ir.Value {
	op := b.Create(Abs, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// ExpOp is a blu.exp: exponential.
type ExpOp struct{ *ir.Op }

// X is the operand "x".
func (op ExpOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op ExpOp) Y() *ir.Value {
	return op.Result(0)
}

// Exp makes a blu.exp: exponential.
func (b *Builder) Exp(x *ir.Value) *ir.Value {
	op := b.Create(Exp, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// LogOp is a blu.log: natural logarithm.
type LogOp struct{ *ir.Op }

// X is the operand "x".
func (op LogOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op LogOp) Y() *ir.Value {
	return op.Result(0)
}

// Log makes a blu.log: natural logarithm.
func (b *Builder) Log(x *ir.Value) *ir.Value {
	op := b.Create(Log, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// SqrtOp is a blu.sqrt: square root.
type SqrtOp struct{ *ir.Op }

// X is the operand "x".
func (op SqrtOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op SqrtOp) Y() *ir.Value {
	return op.Result(0)
}

// Sqrt makes a blu.sqrt: square root.
func (b *Builder) Sqrt(x *ir.Value) *ir.Value {
	op := b.Create(Sqrt, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// RsqrtOp is a blu.rsqrt: reciprocal square root.
type RsqrtOp struct{ *ir.Op }

// X is the operand "x".
func (op RsqrtOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op RsqrtOp) Y() *ir.Value {
	return op.Result(0)
}

// Rsqrt makes a blu.rsqrt: reciprocal square root.
func (b *Builder) Rsqrt(x *ir.Value) *ir.Value {
	op := b.Create(Rsqrt, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// TanhOp is a blu.tanh: hyperbolic tangent.
type TanhOp struct{ *ir.Op }

// X is the operand "x".
func (op TanhOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op TanhOp) Y() *ir.Value {
	return op.Result(0)
}

// Tanh makes a blu.tanh: hyperbolic tangent.
func (b *Builder) Tanh(x *ir.Value) *ir.Value {
	op := b.Create(Tanh, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// ErfOp is a blu.erf: error function.
type ErfOp struct{ *ir.Op }

// X is the operand "x".
func (op ErfOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op ErfOp) Y() *ir.Value {
	return op.Result(0)
}

// Erf makes a blu.erf: error function.
func (b *Builder) Erf(x *ir.Value) *ir.Value {
	op := b.Create(Erf, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// SigmoidOp is a blu.sigmoid: logistic function.
type SigmoidOp struct{ *ir.Op }

// X is the operand "x".
func (op SigmoidOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op SigmoidOp) Y() *ir.Value {
	return op.Result(0)
}

// Sigmoid makes a blu.sigmoid: logistic function.
func (b *Builder) Sigmoid(x *ir.Value) *ir.Value {
	op := b.Create(Sigmoid, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// SinOp is a blu.sin: sine.
type SinOp struct{ *ir.Op }

// X is the operand "x".
func (op SinOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op SinOp) Y() *ir.Value {
	return op.Result(0)
}

// Sin makes a blu.sin: sine.
func (b *Builder) Sin(x *ir.Value) *ir.Value {
	op := b.Create(Sin, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// CosOp is a blu.cos: cosine.
type CosOp struct{ *ir.Op }

// X is the operand "x".
func (op CosOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op CosOp) Y() *ir.Value {
	return op.Result(0)
}

// Cos makes a blu.cos: cosine.
func (b *Builder) Cos(x *ir.Value) *ir.Value {
	op := b.Create(Cos, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// SignOp is a blu.sign: sign: -1, 0 or 1.
type SignOp struct{ *ir.Op }

// X is the operand "x".
func (op SignOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op SignOp) Y() *ir.Value {
	return op.Result(0)
}

// Sign makes a blu.sign: sign: -1, 0 or 1.
func (b *Builder) Sign(x *ir.Value) *ir.Value {
	op := b.Create(Sign, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// FloorOp is a blu.floor: largest whole number that is not greater.
type FloorOp struct{ *ir.Op }

// X is the operand "x".
func (op FloorOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op FloorOp) Y() *ir.Value {
	return op.Result(0)
}

// Floor makes a blu.floor: largest whole number that is not greater.
func (b *Builder) Floor(x *ir.Value) *ir.Value {
	op := b.Create(Floor, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// NotOp is a blu.not: logical negation.
type NotOp struct{ *ir.Op }

// X is the operand "x".
func (op NotOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op NotOp) Y() *ir.Value {
	return op.Result(0)
}

// Not makes a blu.not: logical negation.
func (b *Builder) Not(x *ir.Value) *ir.Value {
	op := b.Create(Not, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// StopGradientOp is a blu.stop_gradient: the operand, through which no gradient flows.
type StopGradientOp struct{ *ir.Op }

// X is the operand "x".
func (op StopGradientOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op StopGradientOp) Y() *ir.Value {
	return op.Result(0)
}

// StopGradient makes a blu.stop_gradient: the operand, through which no gradient flows.
func (b *Builder) StopGradient(x *ir.Value) *ir.Value {
	op := b.Create(StopGradient, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// AddOp is a blu.add: sum.
type AddOp struct{ *ir.Op }

// A is the operand "a".
func (op AddOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op AddOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op AddOp) Y() *ir.Value {
	return op.Result(0)
}

// Add makes a blu.add: sum.
func (b *Builder) Add(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Add, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// SubOp is a blu.sub: difference.
type SubOp struct{ *ir.Op }

// A is the operand "a".
func (op SubOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op SubOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op SubOp) Y() *ir.Value {
	return op.Result(0)
}

// Sub makes a blu.sub: difference.
func (b *Builder) Sub(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Sub, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// MulOp is a blu.mul: product.
type MulOp struct{ *ir.Op }

// A is the operand "a".
func (op MulOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op MulOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op MulOp) Y() *ir.Value {
	return op.Result(0)
}

// Mul makes a blu.mul: product.
func (b *Builder) Mul(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Mul, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// DivOp is a blu.div: quotient.
type DivOp struct{ *ir.Op }

// A is the operand "a".
func (op DivOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op DivOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op DivOp) Y() *ir.Value {
	return op.Result(0)
}

// Div makes a blu.div: quotient.
func (b *Builder) Div(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Div, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// PowOp is a blu.pow: power.
type PowOp struct{ *ir.Op }

// A is the operand "a".
func (op PowOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op PowOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op PowOp) Y() *ir.Value {
	return op.Result(0)
}

// Pow makes a blu.pow: power.
func (b *Builder) Pow(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Pow, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// MaxOp is a blu.max: the greater.
type MaxOp struct{ *ir.Op }

// A is the operand "a".
func (op MaxOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op MaxOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op MaxOp) Y() *ir.Value {
	return op.Result(0)
}

// Max makes a blu.max: the greater.
func (b *Builder) Max(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Max, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// MinOp is a blu.min: the lesser.
type MinOp struct{ *ir.Op }

// A is the operand "a".
func (op MinOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op MinOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op MinOp) Y() *ir.Value {
	return op.Result(0)
}

// Min makes a blu.min: the lesser.
func (b *Builder) Min(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Min, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// AndOp is a blu.and: logical conjunction.
type AndOp struct{ *ir.Op }

// A is the operand "a".
func (op AndOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op AndOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op AndOp) Y() *ir.Value {
	return op.Result(0)
}

// And makes a blu.and: logical conjunction.
func (b *Builder) And(a, bValue *ir.Value) *ir.Value {
	op := b.Create(And, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// OrOp is a blu.or: logical disjunction.
type OrOp struct{ *ir.Op }

// A is the operand "a".
func (op OrOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op OrOp) B() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op OrOp) Y() *ir.Value {
	return op.Result(0)
}

// Or makes a blu.or: logical disjunction.
func (b *Builder) Or(a, bValue *ir.Value) *ir.Value {
	op := b.Create(Or, []*ir.Value{a, bValue}, nil...)
	return op.Result(0)
}

// CompareOp is a blu.compare: comparison of elements.
type CompareOp struct{ *ir.Op }

// A is the operand "a".
func (op CompareOp) A() *ir.Value {
	return op.Operand(0)
}

// B is the operand "b".
func (op CompareOp) B() *ir.Value {
	return op.Operand(1)
}

// Predicate is the attribute "predicate": eq, ne, lt, le, gt or ge.
func (op CompareOp) Predicate() string {
	return op.Attr("predicate").(*ir.StringAttr).Value
}

// Y is the result "y".
func (op CompareOp) Y() *ir.Value {
	return op.Result(0)
}

// Compare makes a blu.compare: comparison of elements.
func (b *Builder) Compare(a, bValue *ir.Value, predicate string) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "predicate", Value: b.Ctx.String(predicate)},
	}
	op := b.Create(Compare, []*ir.Value{a, bValue}, attrs...)
	return op.Result(0)
}

// SelectOp is a blu.select: elements of one of two tensors by a condition.
type SelectOp struct{ *ir.Op }

// C is the operand "c".
func (op SelectOp) C() *ir.Value {
	return op.Operand(0)
}

// A is the operand "a".
func (op SelectOp) A() *ir.Value {
	return op.Operand(1)
}

// B is the operand "b".
func (op SelectOp) B() *ir.Value {
	return op.Operand(2)
}

// Y is the result "y".
func (op SelectOp) Y() *ir.Value {
	return op.Result(0)
}

// Select makes a blu.select: elements of one of two tensors by a condition.
func (b *Builder) Select(c, a, bValue *ir.Value) *ir.Value {
	op := b.Create(Select, []*ir.Value{c, a, bValue}, nil...)
	return op.Result(0)
}

// CastOp is a blu.cast: conversion of the element type.
type CastOp struct{ *ir.Op }

// X is the operand "x".
func (op CastOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op CastOp) Y() *ir.Value {
	return op.Result(0)
}

// Cast makes a blu.cast: conversion of the element type.
func (b *Builder) Cast(x *ir.Value, yType ir.Type) *ir.Value {
	op := b.CreateState(Cast, ir.OpState{Operands: []*ir.Value{x}, Attrs: nil, Results: []ir.Type{yType}, Regions: 0})
	return op.Result(0)
}

// BroadcastOp is a blu.broadcast: repetition along new axes and axes of one element.
type BroadcastOp struct{ *ir.Op }

// X is the operand "x".
func (op BroadcastOp) X() *ir.Value {
	return op.Operand(0)
}

// Axes is the attribute "axes": where each axis of x goes.
func (op BroadcastOp) Axes() []int64 {
	return op.Attr("axes").(*ir.DenseArrayAttr).Ints
}

// Y is the result "y".
func (op BroadcastOp) Y() *ir.Value {
	return op.Result(0)
}

// Broadcast makes a blu.broadcast: repetition along new axes and axes of one element.
func (b *Builder) Broadcast(x *ir.Value, axes []int64, yType ir.Type) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axes", Value: b.Ctx.I64s(axes...)},
	}
	op := b.CreateState(Broadcast, ir.OpState{Operands: []*ir.Value{x}, Attrs: attrs, Results: []ir.Type{yType}, Regions: 0})
	return op.Result(0)
}

// ReshapeOp is a blu.reshape: the same elements in row-major order under another shape.
type ReshapeOp struct{ *ir.Op }

// X is the operand "x".
func (op ReshapeOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op ReshapeOp) Y() *ir.Value {
	return op.Result(0)
}

// Reshape makes a blu.reshape: the same elements in row-major order under another shape.
func (b *Builder) Reshape(x *ir.Value, yType ir.Type) *ir.Value {
	op := b.CreateState(Reshape, ir.OpState{Operands: []*ir.Value{x}, Attrs: nil, Results: []ir.Type{yType}, Regions: 0})
	return op.Result(0)
}

// TransposeOp is a blu.transpose: permutation of axes.
type TransposeOp struct{ *ir.Op }

// X is the operand "x".
func (op TransposeOp) X() *ir.Value {
	return op.Operand(0)
}

// Perm is the attribute "perm": for each axis of the result, the axis of x it is.
func (op TransposeOp) Perm() []int64 {
	return op.Attr("perm").(*ir.DenseArrayAttr).Ints
}

// Y is the result "y".
func (op TransposeOp) Y() *ir.Value {
	return op.Result(0)
}

// Transpose makes a blu.transpose: permutation of axes.
func (b *Builder) Transpose(x *ir.Value, perm []int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "perm", Value: b.Ctx.I64s(perm...)},
	}
	op := b.Create(Transpose, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// SliceOp is a blu.slice: a strided range of every axis.
type SliceOp struct{ *ir.Op }

// X is the operand "x".
func (op SliceOp) X() *ir.Value {
	return op.Operand(0)
}

// Starts is the attribute "starts": first index along each axis.
func (op SliceOp) Starts() []int64 {
	return op.Attr("starts").(*ir.DenseArrayAttr).Ints
}

// Limits is the attribute "limits": index each axis stops before.
func (op SliceOp) Limits() []int64 {
	return op.Attr("limits").(*ir.DenseArrayAttr).Ints
}

// Steps is the attribute "steps": distance of indices along each axis.
func (op SliceOp) Steps() []int64 {
	return op.Attr("steps").(*ir.DenseArrayAttr).Ints
}

// Y is the result "y".
func (op SliceOp) Y() *ir.Value {
	return op.Result(0)
}

// Slice makes a blu.slice: a strided range of every axis.
func (b *Builder) Slice(x *ir.Value, starts, limits, steps []int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "starts", Value: b.Ctx.I64s(starts...)},
		{Name: "limits", Value: b.Ctx.I64s(limits...)},
		{Name: "steps", Value: b.Ctx.I64s(steps...)},
	}
	op := b.Create(Slice, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// PadOp is a blu.pad: a constant border.
type PadOp struct{ *ir.Op }

// X is the operand "x".
func (op PadOp) X() *ir.Value {
	return op.Operand(0)
}

// Low is the attribute "low": elements added before, not negative.
func (op PadOp) Low() []int64 {
	return op.Attr("low").(*ir.DenseArrayAttr).Ints
}

// High is the attribute "high": elements added after, not negative.
func (op PadOp) High() []int64 {
	return op.Attr("high").(*ir.DenseArrayAttr).Ints
}

// Value is the attribute "value": what is added, a value of the element type.
func (op PadOp) Value() float64 {
	return op.Attr("value").(*ir.FloatAttr).Value
}

// Y is the result "y".
func (op PadOp) Y() *ir.Value {
	return op.Result(0)
}

// Pad makes a blu.pad: a constant border.
func (b *Builder) Pad(x *ir.Value, low, high []int64, value float64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "low", Value: b.Ctx.I64s(low...)},
		{Name: "high", Value: b.Ctx.I64s(high...)},
		{Name: "value", Value: b.Ctx.FloatAttr(value, b.Ctx.F64())},
	}
	op := b.Create(Pad, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// ConcatOp is a blu.concat: tensors joined along an axis.
type ConcatOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op ConcatOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Axis is the attribute "axis": the axis that grows.
func (op ConcatOp) Axis() int64 {
	return op.Attr("axis").(*ir.IntegerAttr).Value
}

// Y is the result "y".
func (op ConcatOp) Y() *ir.Value {
	return op.Result(0)
}

// Concat makes a blu.concat: tensors joined along an axis.
func (b *Builder) Concat(xs []*ir.Value, axis int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axis", Value: b.Ctx.Int64(axis)},
	}
	op := b.Create(Concat, xs, attrs...)
	return op.Result(0)
}

// ReduceSumOp is a blu.reduce_sum: sum along axes.
type ReduceSumOp struct{ *ir.Op }

// X is the operand "x".
func (op ReduceSumOp) X() *ir.Value {
	return op.Operand(0)
}

// Axes is the attribute "axes": the axes to reduce, ascending; none leaves x as it is.
func (op ReduceSumOp) Axes() []int64 {
	return op.Attr("axes").(*ir.DenseArrayAttr).Ints
}

// Y is the result "y".
func (op ReduceSumOp) Y() *ir.Value {
	return op.Result(0)
}

// ReduceSum makes a blu.reduce_sum: sum along axes.
func (b *Builder) ReduceSum(x *ir.Value, axes []int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axes", Value: b.Ctx.I64s(axes...)},
	}
	op := b.Create(ReduceSum, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// ReduceMaxOp is a blu.reduce_max: maximum along axes.
type ReduceMaxOp struct{ *ir.Op }

// X is the operand "x".
func (op ReduceMaxOp) X() *ir.Value {
	return op.Operand(0)
}

// Axes is the attribute "axes": the axes to reduce, ascending; none leaves x as it is.
func (op ReduceMaxOp) Axes() []int64 {
	return op.Attr("axes").(*ir.DenseArrayAttr).Ints
}

// Y is the result "y".
func (op ReduceMaxOp) Y() *ir.Value {
	return op.Result(0)
}

// ReduceMax makes a blu.reduce_max: maximum along axes.
func (b *Builder) ReduceMax(x *ir.Value, axes []int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axes", Value: b.Ctx.I64s(axes...)},
	}
	op := b.Create(ReduceMax, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// ReduceMinOp is a blu.reduce_min: minimum along axes.
type ReduceMinOp struct{ *ir.Op }

// X is the operand "x".
func (op ReduceMinOp) X() *ir.Value {
	return op.Operand(0)
}

// Axes is the attribute "axes": the axes to reduce, ascending; none leaves x as it is.
func (op ReduceMinOp) Axes() []int64 {
	return op.Attr("axes").(*ir.DenseArrayAttr).Ints
}

// Y is the result "y".
func (op ReduceMinOp) Y() *ir.Value {
	return op.Result(0)
}

// ReduceMin makes a blu.reduce_min: minimum along axes.
func (b *Builder) ReduceMin(x *ir.Value, axes []int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axes", Value: b.Ctx.I64s(axes...)},
	}
	op := b.Create(ReduceMin, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// ArgmaxOp is a blu.argmax: index of the greatest element along an axis.
type ArgmaxOp struct{ *ir.Op }

// X is the operand "x".
func (op ArgmaxOp) X() *ir.Value {
	return op.Operand(0)
}

// Axis is the attribute "axis": the axis to search, not empty.
func (op ArgmaxOp) Axis() int64 {
	return op.Attr("axis").(*ir.IntegerAttr).Value
}

// Index is the result "index".
func (op ArgmaxOp) Index() *ir.Value {
	return op.Result(0)
}

// Argmax makes a blu.argmax: index of the greatest element along an axis.
func (b *Builder) Argmax(x *ir.Value, axis int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axis", Value: b.Ctx.Int64(axis)},
	}
	op := b.Create(Argmax, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// DotOp is a blu.dot: sums of products over contracted axes, for each batch.
type DotOp struct{ *ir.Op }

// Lhs is the operand "lhs".
func (op DotOp) Lhs() *ir.Value {
	return op.Operand(0)
}

// Rhs is the operand "rhs".
func (op DotOp) Rhs() *ir.Value {
	return op.Operand(1)
}

// LhsBatch is the attribute "lhs_batch": batch axes of lhs.
func (op DotOp) LhsBatch() []int64 {
	return op.Attr("lhs_batch").(*ir.DenseArrayAttr).Ints
}

// RhsBatch is the attribute "rhs_batch": batch axes of rhs, in the same order.
func (op DotOp) RhsBatch() []int64 {
	return op.Attr("rhs_batch").(*ir.DenseArrayAttr).Ints
}

// LhsContract is the attribute "lhs_contract": contracted axes of lhs.
func (op DotOp) LhsContract() []int64 {
	return op.Attr("lhs_contract").(*ir.DenseArrayAttr).Ints
}

// RhsContract is the attribute "rhs_contract": contracted axes of rhs, in the same order.
func (op DotOp) RhsContract() []int64 {
	return op.Attr("rhs_contract").(*ir.DenseArrayAttr).Ints
}

// Y is the result "y".
func (op DotOp) Y() *ir.Value {
	return op.Result(0)
}

// Dot makes a blu.dot: sums of products over contracted axes, for each batch.
func (b *Builder) Dot(lhs, rhs *ir.Value, lhsBatch, rhsBatch, lhsContract, rhsContract []int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "lhs_batch", Value: b.Ctx.I64s(lhsBatch...)},
		{Name: "rhs_batch", Value: b.Ctx.I64s(rhsBatch...)},
		{Name: "lhs_contract", Value: b.Ctx.I64s(lhsContract...)},
		{Name: "rhs_contract", Value: b.Ctx.I64s(rhsContract...)},
	}
	op := b.Create(Dot, []*ir.Value{lhs, rhs}, attrs...)
	return op.Result(0)
}

// GatherOp is a blu.gather: rows of a table by index.
type GatherOp struct{ *ir.Op }

// Table is the operand "table".
func (op GatherOp) Table() *ir.Value {
	return op.Operand(0)
}

// Indices is the operand "indices".
func (op GatherOp) Indices() *ir.Value {
	return op.Operand(1)
}

// Y is the result "y".
func (op GatherOp) Y() *ir.Value {
	return op.Result(0)
}

// Gather makes a blu.gather: rows of a table by index.
func (b *Builder) Gather(table, indices *ir.Value) *ir.Value {
	op := b.Create(Gather, []*ir.Value{table, indices}, nil...)
	return op.Result(0)
}

// ScatterAddOp is a blu.scatter_add: sums of rows by index, the gradient of gather.
type ScatterAddOp struct{ *ir.Op }

// Updates is the operand "updates".
func (op ScatterAddOp) Updates() *ir.Value {
	return op.Operand(0)
}

// Indices is the operand "indices".
func (op ScatterAddOp) Indices() *ir.Value {
	return op.Operand(1)
}

// Rows is the attribute "rows": rows of the result.
func (op ScatterAddOp) Rows() int64 {
	return op.Attr("rows").(*ir.IntegerAttr).Value
}

// Table is the result "table".
func (op ScatterAddOp) Table() *ir.Value {
	return op.Result(0)
}

// ScatterAdd makes a blu.scatter_add: sums of rows by index, the gradient of gather.
func (b *Builder) ScatterAdd(updates, indices *ir.Value, rows int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "rows", Value: b.Ctx.Int64(rows)},
	}
	op := b.Create(ScatterAdd, []*ir.Value{updates, indices}, attrs...)
	return op.Result(0)
}

// SoftmaxOp is a blu.softmax: normalized exponentials along one axis.
type SoftmaxOp struct{ *ir.Op }

// X is the operand "x".
func (op SoftmaxOp) X() *ir.Value {
	return op.Operand(0)
}

// Axis is the attribute "axis": the axis that sums to 1.
func (op SoftmaxOp) Axis() int64 {
	return op.Attr("axis").(*ir.IntegerAttr).Value
}

// Y is the result "y".
func (op SoftmaxOp) Y() *ir.Value {
	return op.Result(0)
}

// Softmax makes a blu.softmax: normalized exponentials along one axis.
func (b *Builder) Softmax(x *ir.Value, axis int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axis", Value: b.Ctx.Int64(axis)},
	}
	op := b.Create(Softmax, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// LogSoftmaxOp is a blu.log_softmax: logarithm of softmax along one axis.
type LogSoftmaxOp struct{ *ir.Op }

// X is the operand "x".
func (op LogSoftmaxOp) X() *ir.Value {
	return op.Operand(0)
}

// Axis is the attribute "axis": the axis whose exponentials sum to 1.
func (op LogSoftmaxOp) Axis() int64 {
	return op.Attr("axis").(*ir.IntegerAttr).Value
}

// Y is the result "y".
func (op LogSoftmaxOp) Y() *ir.Value {
	return op.Result(0)
}

// LogSoftmax makes a blu.log_softmax: logarithm of softmax along one axis.
func (b *Builder) LogSoftmax(x *ir.Value, axis int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "axis", Value: b.Ctx.Int64(axis)},
	}
	op := b.Create(LogSoftmax, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// LayernormOp is a blu.layernorm: layer normalization over the last axis.
type LayernormOp struct{ *ir.Op }

// X is the operand "x".
func (op LayernormOp) X() *ir.Value {
	return op.Operand(0)
}

// G is the operand "g".
func (op LayernormOp) G() *ir.Value {
	return op.Operand(1)
}

// B is the operand "b".
func (op LayernormOp) B() *ir.Value {
	return op.Operand(2)
}

// Eps is the attribute "eps": added to the mean square before its root.
func (op LayernormOp) Eps() float64 {
	return op.Attr("eps").(*ir.FloatAttr).Value
}

// Y is the result "y".
func (op LayernormOp) Y() *ir.Value {
	return op.Result(0)
}

// Mean is the result "mean".
func (op LayernormOp) Mean() *ir.Value {
	return op.Result(1)
}

// Rstd is the result "rstd".
func (op LayernormOp) Rstd() *ir.Value {
	return op.Result(2)
}

// Layernorm makes a blu.layernorm: layer normalization over the last axis.
func (b *Builder) Layernorm(x, g, bValue *ir.Value, eps float64) LayernormOp {
	attrs := []ir.NamedAttr{
		{Name: "eps", Value: b.Ctx.FloatAttr(eps, b.Ctx.F64())},
	}
	op := b.Create(Layernorm, []*ir.Value{x, g, bValue}, attrs...)
	return LayernormOp{op}
}

// LayernormGradOp is a blu.layernorm_grad: gradient of layernorm.
type LayernormGradOp struct{ *ir.Op }

// X is the operand "x".
func (op LayernormGradOp) X() *ir.Value {
	return op.Operand(0)
}

// G is the operand "g".
func (op LayernormGradOp) G() *ir.Value {
	return op.Operand(1)
}

// Mean is the operand "mean".
func (op LayernormGradOp) Mean() *ir.Value {
	return op.Operand(2)
}

// Rstd is the operand "rstd".
func (op LayernormGradOp) Rstd() *ir.Value {
	return op.Operand(3)
}

// Dy is the operand "dy".
func (op LayernormGradOp) Dy() *ir.Value {
	return op.Operand(4)
}

// Dx is the result "dx".
func (op LayernormGradOp) Dx() *ir.Value {
	return op.Result(0)
}

// Dg is the result "dg".
func (op LayernormGradOp) Dg() *ir.Value {
	return op.Result(1)
}

// Db is the result "db".
func (op LayernormGradOp) Db() *ir.Value {
	return op.Result(2)
}

// LayernormGrad makes a blu.layernorm_grad: gradient of layernorm.
func (b *Builder) LayernormGrad(x, g, mean, rstd, dy *ir.Value) LayernormGradOp {
	op := b.Create(LayernormGrad, []*ir.Value{x, g, mean, rstd, dy}, nil...)
	return LayernormGradOp{op}
}

// RmsnormOp is a blu.rmsnorm: root-mean-square normalization over the last axis.
type RmsnormOp struct{ *ir.Op }

// X is the operand "x".
func (op RmsnormOp) X() *ir.Value {
	return op.Operand(0)
}

// G is the operand "g".
func (op RmsnormOp) G() *ir.Value {
	return op.Operand(1)
}

// Eps is the attribute "eps": added to the mean square before its root.
func (op RmsnormOp) Eps() float64 {
	return op.Attr("eps").(*ir.FloatAttr).Value
}

// Y is the result "y".
func (op RmsnormOp) Y() *ir.Value {
	return op.Result(0)
}

// Rstd is the result "rstd".
func (op RmsnormOp) Rstd() *ir.Value {
	return op.Result(1)
}

// Rmsnorm makes a blu.rmsnorm: root-mean-square normalization over the last axis.
func (b *Builder) Rmsnorm(x, g *ir.Value, eps float64) RmsnormOp {
	attrs := []ir.NamedAttr{
		{Name: "eps", Value: b.Ctx.FloatAttr(eps, b.Ctx.F64())},
	}
	op := b.Create(Rmsnorm, []*ir.Value{x, g}, attrs...)
	return RmsnormOp{op}
}

// RmsnormGradOp is a blu.rmsnorm_grad: gradient of rmsnorm.
type RmsnormGradOp struct{ *ir.Op }

// X is the operand "x".
func (op RmsnormGradOp) X() *ir.Value {
	return op.Operand(0)
}

// G is the operand "g".
func (op RmsnormGradOp) G() *ir.Value {
	return op.Operand(1)
}

// Rstd is the operand "rstd".
func (op RmsnormGradOp) Rstd() *ir.Value {
	return op.Operand(2)
}

// Dy is the operand "dy".
func (op RmsnormGradOp) Dy() *ir.Value {
	return op.Operand(3)
}

// Dx is the result "dx".
func (op RmsnormGradOp) Dx() *ir.Value {
	return op.Result(0)
}

// Dg is the result "dg".
func (op RmsnormGradOp) Dg() *ir.Value {
	return op.Result(1)
}

// RmsnormGrad makes a blu.rmsnorm_grad: gradient of rmsnorm.
func (b *Builder) RmsnormGrad(x, g, rstd, dy *ir.Value) RmsnormGradOp {
	op := b.Create(RmsnormGrad, []*ir.Value{x, g, rstd, dy}, nil...)
	return RmsnormGradOp{op}
}

// GeluOp is a blu.gelu: Gaussian error linear unit.
type GeluOp struct{ *ir.Op }

// X is the operand "x".
func (op GeluOp) X() *ir.Value {
	return op.Operand(0)
}

// Approximate is the attribute "approximate": "tanh" or "erf".
func (op GeluOp) Approximate() string {
	return op.Attr("approximate").(*ir.StringAttr).Value
}

// Y is the result "y".
func (op GeluOp) Y() *ir.Value {
	return op.Result(0)
}

// Gelu makes a blu.gelu: Gaussian error linear unit.
func (b *Builder) Gelu(x *ir.Value, approximate string) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "approximate", Value: b.Ctx.String(approximate)},
	}
	op := b.Create(Gelu, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// GeluGradOp is a blu.gelu_grad: gradient of gelu.
type GeluGradOp struct{ *ir.Op }

// X is the operand "x".
func (op GeluGradOp) X() *ir.Value {
	return op.Operand(0)
}

// Dy is the operand "dy".
func (op GeluGradOp) Dy() *ir.Value {
	return op.Operand(1)
}

// Approximate is the attribute "approximate": "tanh" or "erf".
func (op GeluGradOp) Approximate() string {
	return op.Attr("approximate").(*ir.StringAttr).Value
}

// Dx is the result "dx".
func (op GeluGradOp) Dx() *ir.Value {
	return op.Result(0)
}

// GeluGrad makes a blu.gelu_grad: gradient of gelu.
func (b *Builder) GeluGrad(x, dy *ir.Value, approximate string) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "approximate", Value: b.Ctx.String(approximate)},
	}
	op := b.Create(GeluGrad, []*ir.Value{x, dy}, attrs...)
	return op.Result(0)
}

// SiluOp is a blu.silu: sigmoid linear unit.
type SiluOp struct{ *ir.Op }

// X is the operand "x".
func (op SiluOp) X() *ir.Value {
	return op.Operand(0)
}

// Y is the result "y".
func (op SiluOp) Y() *ir.Value {
	return op.Result(0)
}

// Silu makes a blu.silu: sigmoid linear unit.
func (b *Builder) Silu(x *ir.Value) *ir.Value {
	op := b.Create(Silu, []*ir.Value{x}, nil...)
	return op.Result(0)
}

// SiluGradOp is a blu.silu_grad: gradient of silu.
type SiluGradOp struct{ *ir.Op }

// X is the operand "x".
func (op SiluGradOp) X() *ir.Value {
	return op.Operand(0)
}

// Dy is the operand "dy".
func (op SiluGradOp) Dy() *ir.Value {
	return op.Operand(1)
}

// Dx is the result "dx".
func (op SiluGradOp) Dx() *ir.Value {
	return op.Result(0)
}

// SiluGrad makes a blu.silu_grad: gradient of silu.
func (b *Builder) SiluGrad(x, dy *ir.Value) *ir.Value {
	op := b.Create(SiluGrad, []*ir.Value{x, dy}, nil...)
	return op.Result(0)
}

// RopeOp is a blu.rope: rotary position embedding.
type RopeOp struct{ *ir.Op }

// X is the operand "x".
func (op RopeOp) X() *ir.Value {
	return op.Operand(0)
}

// Base is the attribute "base": base of the wavelengths, positive: 10000 in most models.
func (op RopeOp) Base() float64 {
	return op.Attr("base").(*ir.FloatAttr).Value
}

// Inverse is the attribute "inverse": turn the other way.
func (op RopeOp) Inverse() bool {
	return op.Attrs().Bool("inverse")
}

// Y is the result "y".
func (op RopeOp) Y() *ir.Value {
	return op.Result(0)
}

// Rope makes a blu.rope: rotary position embedding.
func (b *Builder) Rope(x *ir.Value, base float64, inverse bool) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "base", Value: b.Ctx.FloatAttr(base, b.Ctx.F64())},
		{Name: "inverse", Value: b.Ctx.Bool(inverse)},
	}
	op := b.Create(Rope, []*ir.Value{x}, attrs...)
	return op.Result(0)
}

// AttentionOp is a blu.attention: scaled dot-product attention, of grouped heads too.
type AttentionOp struct{ *ir.Op }

// Q is the operand "q".
func (op AttentionOp) Q() *ir.Value {
	return op.Operand(0)
}

// K is the operand "k".
func (op AttentionOp) K() *ir.Value {
	return op.Operand(1)
}

// V is the operand "v".
func (op AttentionOp) V() *ir.Value {
	return op.Operand(2)
}

// Causal is the attribute "causal": whether a query sees no later keys than its own.
func (op AttentionOp) Causal() bool {
	return op.Attrs().Bool("causal")
}

// Scale is the attribute "scale": factor of the scores, usually 1 / sqrt(D).
func (op AttentionOp) Scale() float64 {
	return op.Attr("scale").(*ir.FloatAttr).Value
}

// O is the result "o".
func (op AttentionOp) O() *ir.Value {
	return op.Result(0)
}

// Lse is the result "lse".
func (op AttentionOp) Lse() *ir.Value {
	return op.Result(1)
}

// Attention makes a blu.attention: scaled dot-product attention, of grouped heads too.
func (b *Builder) Attention(q, k, v *ir.Value, causal bool, scale float64) AttentionOp {
	attrs := []ir.NamedAttr{
		{Name: "causal", Value: b.Ctx.Bool(causal)},
		{Name: "scale", Value: b.Ctx.FloatAttr(scale, b.Ctx.F64())},
	}
	op := b.Create(Attention, []*ir.Value{q, k, v}, attrs...)
	return AttentionOp{op}
}

// AttentionGradOp is a blu.attention_grad: gradient of attention.
type AttentionGradOp struct{ *ir.Op }

// Q is the operand "q".
func (op AttentionGradOp) Q() *ir.Value {
	return op.Operand(0)
}

// K is the operand "k".
func (op AttentionGradOp) K() *ir.Value {
	return op.Operand(1)
}

// V is the operand "v".
func (op AttentionGradOp) V() *ir.Value {
	return op.Operand(2)
}

// O is the operand "o".
func (op AttentionGradOp) O() *ir.Value {
	return op.Operand(3)
}

// Lse is the operand "lse".
func (op AttentionGradOp) Lse() *ir.Value {
	return op.Operand(4)
}

// Do is the operand "do".
func (op AttentionGradOp) Do() *ir.Value {
	return op.Operand(5)
}

// Causal is the attribute "causal": whether a query sees no later keys than its own.
func (op AttentionGradOp) Causal() bool {
	return op.Attrs().Bool("causal")
}

// Scale is the attribute "scale": factor of the scores, usually 1 / sqrt(D).
func (op AttentionGradOp) Scale() float64 {
	return op.Attr("scale").(*ir.FloatAttr).Value
}

// Dq is the result "dq".
func (op AttentionGradOp) Dq() *ir.Value {
	return op.Result(0)
}

// Dk is the result "dk".
func (op AttentionGradOp) Dk() *ir.Value {
	return op.Result(1)
}

// Dv is the result "dv".
func (op AttentionGradOp) Dv() *ir.Value {
	return op.Result(2)
}

// AttentionGrad makes a blu.attention_grad: gradient of attention.
func (b *Builder) AttentionGrad(q, k, v, o, lse, do *ir.Value, causal bool, scale float64) AttentionGradOp {
	attrs := []ir.NamedAttr{
		{Name: "causal", Value: b.Ctx.Bool(causal)},
		{Name: "scale", Value: b.Ctx.FloatAttr(scale, b.Ctx.F64())},
	}
	op := b.Create(AttentionGrad, []*ir.Value{q, k, v, o, lse, do}, attrs...)
	return AttentionGradOp{op}
}

// CrossEntropyOp is a blu.cross_entropy: cross entropy of logits and target classes: a sum and a count.
type CrossEntropyOp struct{ *ir.Op }

// Logits is the operand "logits".
func (op CrossEntropyOp) Logits() *ir.Value {
	return op.Operand(0)
}

// Targets is the operand "targets".
func (op CrossEntropyOp) Targets() *ir.Value {
	return op.Operand(1)
}

// Ignore is the attribute "ignore": the target that does not count.
func (op CrossEntropyOp) Ignore() int64 {
	return op.Attr("ignore").(*ir.IntegerAttr).Value
}

// Sum is the result "sum".
func (op CrossEntropyOp) Sum() *ir.Value {
	return op.Result(0)
}

// Count is the result "count".
func (op CrossEntropyOp) Count() *ir.Value {
	return op.Result(1)
}

// Lse is the result "lse".
func (op CrossEntropyOp) Lse() *ir.Value {
	return op.Result(2)
}

// CrossEntropy makes a blu.cross_entropy: cross entropy of logits and target classes: a sum and a count.
func (b *Builder) CrossEntropy(logits, targets *ir.Value, ignore int64) CrossEntropyOp {
	attrs := []ir.NamedAttr{
		{Name: "ignore", Value: b.Ctx.Int64(ignore)},
	}
	op := b.Create(CrossEntropy, []*ir.Value{logits, targets}, attrs...)
	return CrossEntropyOp{op}
}

// CrossEntropyGradOp is a blu.cross_entropy_grad: gradient of the sum of cross_entropy.
type CrossEntropyGradOp struct{ *ir.Op }

// Logits is the operand "logits".
func (op CrossEntropyGradOp) Logits() *ir.Value {
	return op.Operand(0)
}

// Targets is the operand "targets".
func (op CrossEntropyGradOp) Targets() *ir.Value {
	return op.Operand(1)
}

// Lse is the operand "lse".
func (op CrossEntropyGradOp) Lse() *ir.Value {
	return op.Operand(2)
}

// Dsum is the operand "dsum".
func (op CrossEntropyGradOp) Dsum() *ir.Value {
	return op.Operand(3)
}

// Ignore is the attribute "ignore": the target that does not count.
func (op CrossEntropyGradOp) Ignore() int64 {
	return op.Attr("ignore").(*ir.IntegerAttr).Value
}

// Dlogits is the result "dlogits".
func (op CrossEntropyGradOp) Dlogits() *ir.Value {
	return op.Result(0)
}

// CrossEntropyGrad makes a blu.cross_entropy_grad: gradient of the sum of cross_entropy.
func (b *Builder) CrossEntropyGrad(logits, targets, lse, dsum *ir.Value, ignore int64) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "ignore", Value: b.Ctx.Int64(ignore)},
	}
	op := b.Create(CrossEntropyGrad, []*ir.Value{logits, targets, lse, dsum}, attrs...)
	return op.Result(0)
}

// RandomUniformOp is a blu.random_uniform: uniform random numbers in [0, 1).
type RandomUniformOp struct{ *ir.Op }

// Seed is the operand "seed".
func (op RandomUniformOp) Seed() *ir.Value {
	return op.Operand(0)
}

// Stream is the attribute "stream": which of the independent sequences of the seed.
func (op RandomUniformOp) Stream() int64 {
	return op.Attr("stream").(*ir.IntegerAttr).Value
}

// Y is the result "y".
func (op RandomUniformOp) Y() *ir.Value {
	return op.Result(0)
}

// RandomUniform makes a blu.random_uniform: uniform random numbers in [0, 1).
func (b *Builder) RandomUniform(seed *ir.Value, stream int64, yType ir.Type) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "stream", Value: b.Ctx.Int64(stream)},
	}
	op := b.CreateState(RandomUniform, ir.OpState{Operands: []*ir.Value{seed}, Attrs: attrs, Results: []ir.Type{yType}, Regions: 0})
	return op.Result(0)
}

// RandomNormalOp is a blu.random_normal: normal random numbers.
type RandomNormalOp struct{ *ir.Op }

// Seed is the operand "seed".
func (op RandomNormalOp) Seed() *ir.Value {
	return op.Operand(0)
}

// Stream is the attribute "stream": which of the independent sequences of the seed.
func (op RandomNormalOp) Stream() int64 {
	return op.Attr("stream").(*ir.IntegerAttr).Value
}

// Mean is the attribute "mean": mean of the distribution.
func (op RandomNormalOp) Mean() float64 {
	return op.Attr("mean").(*ir.FloatAttr).Value
}

// Std is the attribute "std": standard deviation, not negative.
func (op RandomNormalOp) Std() float64 {
	return op.Attr("std").(*ir.FloatAttr).Value
}

// Y is the result "y".
func (op RandomNormalOp) Y() *ir.Value {
	return op.Result(0)
}

// RandomNormal makes a blu.random_normal: normal random numbers.
func (b *Builder) RandomNormal(seed *ir.Value, stream int64, mean, std float64, yType ir.Type) *ir.Value {
	attrs := []ir.NamedAttr{
		{Name: "stream", Value: b.Ctx.Int64(stream)},
		{Name: "mean", Value: b.Ctx.FloatAttr(mean, b.Ctx.F64())},
		{Name: "std", Value: b.Ctx.FloatAttr(std, b.Ctx.F64())},
	}
	op := b.CreateState(RandomNormal, ir.OpState{Operands: []*ir.Value{seed}, Attrs: attrs, Results: []ir.Type{yType}, Regions: 0})
	return op.Result(0)
}

// AccumulateOp is a blu.accumulate: a sum begun or continued.
type AccumulateOp struct{ *ir.Op }

// Sum is the operand "sum".
func (op AccumulateOp) Sum() *ir.Value {
	return op.Operand(0)
}

// X is the operand "x".
func (op AccumulateOp) X() *ir.Value {
	return op.Operand(1)
}

// First is the operand "first".
func (op AccumulateOp) First() *ir.Value {
	return op.Operand(2)
}

// Y is the result "y".
func (op AccumulateOp) Y() *ir.Value {
	return op.Result(0)
}

// Accumulate makes a blu.accumulate: a sum begun or continued.
func (b *Builder) Accumulate(sum, x, first *ir.Value) *ir.Value {
	op := b.Create(Accumulate, []*ir.Value{sum, x, first}, nil...)
	return op.Result(0)
}

// SumSquaresOp is a blu.sum_squares: sum of the squares of all elements of tensors.
type SumSquaresOp struct{ *ir.Op }

// Xs is the operand "xs".
func (op SumSquaresOp) Xs() []*ir.Value {
	return op.OperandGroup(0)
}

// Sum is the result "sum".
func (op SumSquaresOp) Sum() *ir.Value {
	return op.Result(0)
}

// SumSquares makes a blu.sum_squares: sum of the squares of all elements of tensors.
func (b *Builder) SumSquares(xs []*ir.Value) *ir.Value {
	op := b.Create(SumSquares, xs, nil...)
	return op.Result(0)
}

// AdamwOp is a blu.adamw: one step of AdamW for one parameter.
type AdamwOp struct{ *ir.Op }

// P is the operand "p".
func (op AdamwOp) P() *ir.Value {
	return op.Operand(0)
}

// M is the operand "m".
func (op AdamwOp) M() *ir.Value {
	return op.Operand(1)
}

// V is the operand "v".
func (op AdamwOp) V() *ir.Value {
	return op.Operand(2)
}

// G is the operand "g".
func (op AdamwOp) G() *ir.Value {
	return op.Operand(3)
}

// Lr is the operand "lr".
func (op AdamwOp) Lr() *ir.Value {
	return op.Operand(4)
}

// Gscale is the operand "gscale".
func (op AdamwOp) Gscale() *ir.Value {
	return op.Operand(5)
}

// Step is the operand "step".
func (op AdamwOp) Step() *ir.Value {
	return op.Operand(6)
}

// Beta1 is the attribute "beta1": decay of m, in [0, 1).
func (op AdamwOp) Beta1() float64 {
	return op.Attr("beta1").(*ir.FloatAttr).Value
}

// Beta2 is the attribute "beta2": decay of v, in [0, 1).
func (op AdamwOp) Beta2() float64 {
	return op.Attr("beta2").(*ir.FloatAttr).Value
}

// Eps is the attribute "eps": added to the root, not negative.
func (op AdamwOp) Eps() float64 {
	return op.Attr("eps").(*ir.FloatAttr).Value
}

// WeightDecay is the attribute "weight_decay": decay of p per unit of lr.
func (op AdamwOp) WeightDecay() float64 {
	return op.Attr("weight_decay").(*ir.FloatAttr).Value
}

// NewP is the result "new_p".
func (op AdamwOp) NewP() *ir.Value {
	return op.Result(0)
}

// NewM is the result "new_m".
func (op AdamwOp) NewM() *ir.Value {
	return op.Result(1)
}

// NewV is the result "new_v".
func (op AdamwOp) NewV() *ir.Value {
	return op.Result(2)
}

// Adamw makes a blu.adamw: one step of AdamW for one parameter.
func (b *Builder) Adamw(p, m, v, g, lr, gscale, step *ir.Value, beta1, beta2, eps, weightDecay float64) AdamwOp {
	attrs := []ir.NamedAttr{
		{Name: "beta1", Value: b.Ctx.FloatAttr(beta1, b.Ctx.F64())},
		{Name: "beta2", Value: b.Ctx.FloatAttr(beta2, b.Ctx.F64())},
		{Name: "eps", Value: b.Ctx.FloatAttr(eps, b.Ctx.F64())},
		{Name: "weight_decay", Value: b.Ctx.FloatAttr(weightDecay, b.Ctx.F64())},
	}
	op := b.Create(Adamw, []*ir.Value{p, m, v, g, lr, gscale, step}, attrs...)
	return AdamwOp{op}
}

// SgdOp is a blu.sgd: one step of SGD with momentum for one parameter.
type SgdOp struct{ *ir.Op }

// P is the operand "p".
func (op SgdOp) P() *ir.Value {
	return op.Operand(0)
}

// Buf is the operand "buf".
func (op SgdOp) Buf() *ir.Value {
	return op.Operand(1)
}

// G is the operand "g".
func (op SgdOp) G() *ir.Value {
	return op.Operand(2)
}

// Lr is the operand "lr".
func (op SgdOp) Lr() *ir.Value {
	return op.Operand(3)
}

// Gscale is the operand "gscale".
func (op SgdOp) Gscale() *ir.Value {
	return op.Operand(4)
}

// Momentum is the attribute "momentum": decay of buf, in [0, 1).
func (op SgdOp) Momentum() float64 {
	return op.Attr("momentum").(*ir.FloatAttr).Value
}

// Nesterov is the attribute "nesterov": look ahead by one step.
func (op SgdOp) Nesterov() bool {
	return op.Attrs().Bool("nesterov")
}

// WeightDecay is the attribute "weight_decay": added to the gradient per unit of p.
func (op SgdOp) WeightDecay() float64 {
	return op.Attr("weight_decay").(*ir.FloatAttr).Value
}

// NewP is the result "new_p".
func (op SgdOp) NewP() *ir.Value {
	return op.Result(0)
}

// NewBuf is the result "new_buf".
func (op SgdOp) NewBuf() *ir.Value {
	return op.Result(1)
}

// Sgd makes a blu.sgd: one step of SGD with momentum for one parameter.
func (b *Builder) Sgd(p, buf, g, lr, gscale *ir.Value, momentum float64, nesterov bool, weightDecay float64) SgdOp {
	attrs := []ir.NamedAttr{
		{Name: "momentum", Value: b.Ctx.FloatAttr(momentum, b.Ctx.F64())},
		{Name: "nesterov", Value: b.Ctx.Bool(nesterov)},
		{Name: "weight_decay", Value: b.Ctx.FloatAttr(weightDecay, b.Ctx.F64())},
	}
	op := b.Create(Sgd, []*ir.Value{p, buf, g, lr, gscale}, attrs...)
	return SgdOp{op}
}
