// Code generated from the table of the func dialect; DO NOT EDIT.

package fn

import "blutrain/ir"

// Builder makes operations of the func dialect at an insertion point. Operands that don't fit are a programming error
// and panic; TryCreate says why instead.
type Builder struct{ *ir.Builder }

// FuncOp is a func.func: a function.
type FuncOp struct{ *ir.Op }

// SymName is the attribute "sym_name": the function's name.
func (op FuncOp) SymName() string {
	return op.Attr("sym_name").(*ir.StringAttr).Value
}

// FunctionType is the attribute "function_type": argument and result types.
func (op FuncOp) FunctionType() ir.Type {
	return op.Attr("function_type").(*ir.TypeAttr).Type
}

// SymVisibility is the attribute "sym_visibility": private, nested or, when absent, public.
func (op FuncOp) SymVisibility() (value string, ok bool) {
	if op.Attr("sym_visibility") == nil {
		return value, false
	}
	return op.Attr("sym_visibility").(*ir.StringAttr).Value, true
}

// ArgAttrs is the attribute "arg_attrs": a dictionary for each argument.
func (op FuncOp) ArgAttrs() (value *ir.ArrayAttr, ok bool) {
	if op.Attr("arg_attrs") == nil {
		return value, false
	}
	return op.Attr("arg_attrs").(*ir.ArrayAttr), true
}

// ResAttrs is the attribute "res_attrs": a dictionary for each result.
func (op FuncOp) ResAttrs() (value *ir.ArrayAttr, ok bool) {
	if op.Attr("res_attrs") == nil {
		return value, false
	}
	return op.Attr("res_attrs").(*ir.ArrayAttr), true
}

// Func makes a func.func: a function.
func (b *Builder) Func(symName string, functionType ir.Type, symVisibility, argAttrs, resAttrs ir.Attr) FuncOp {
	attrs := []ir.NamedAttr{
		{Name: "sym_name", Value: b.Ctx.String(symName)},
		{Name: "function_type", Value: b.Ctx.TypeAttr(functionType)},
	}
	if symVisibility != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "sym_visibility", Value: symVisibility})
	}
	if argAttrs != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "arg_attrs", Value: argAttrs})
	}
	if resAttrs != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "res_attrs", Value: resAttrs})
	}
	op := b.CreateState(Func, ir.OpState{Operands: nil, Attrs: attrs, Regions: 1})
	return FuncOp{op}
}

// CallOp is a func.call: calls a function.
type CallOp struct{ *ir.Op }

// OperandsValue is the operand "operands".
func (op CallOp) OperandsValue() []*ir.Value {
	return op.OperandGroup(0)
}

// Callee is the attribute "callee": the function.
func (op CallOp) Callee() string {
	return op.Attr("callee").(*ir.SymbolRefAttr).Root()
}

// ResultsResult is the result "results".
func (op CallOp) ResultsResult() []*ir.Value {
	return op.ResultGroup(0)
}

// Call makes a func.call: calls a function.
func (b *Builder) Call(operandsValue []*ir.Value, callee string, resultsResultTypes []ir.Type) CallOp {
	attrs := []ir.NamedAttr{
		{Name: "callee", Value: b.Ctx.Symbol(callee)},
	}
	op := b.CreateState(Call, ir.OpState{Operands: operandsValue, Attrs: attrs, Results: resultsResultTypes, Regions: 0})
	return CallOp{op}
}

// ReturnOp is a func.return: ends a function and gives its results.
type ReturnOp struct{ *ir.Op }

// OperandsValue is the operand "operands".
func (op ReturnOp) OperandsValue() []*ir.Value {
	return op.OperandGroup(0)
}

// Return makes a func.return: ends a function and gives its results.
func (b *Builder) Return(operandsValue []*ir.Value) ReturnOp {
	op := b.CreateState(Return, ir.OpState{Operands: operandsValue, Attrs: nil, Regions: 0})
	return ReturnOp{op}
}
