// Package fn is MLIR's func dialect: functions, calls, returns. (func is a word of Go's.)
package fn

import (
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{Name: "func", Summary: "functions, calls and returns", Ops: []*ir.OpDef{Func, Call, Return}}

// Func is a function.
var Func = ir.Define("func", ir.OpDef{
	Name:    "func",
	Summary: "a function",
	Description: "Its body uses no value from outside and ends in func.return. A function without a body is declared, not defined, and must be private. " +
		"The dictionaries of `arg_attrs` and `res_attrs` say what each argument and result is for.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Doc: "the function's name"},
		{Name: "function_type", Kind: ir.TypeKind, Doc: "argument and result types"},
		{Name: "sym_visibility", Kind: ir.StringKind, Optional: true, Doc: "private, nested or, when absent, public"},
		{Name: "arg_attrs", Kind: ir.ArrayKind, Optional: true, Doc: "a dictionary for each argument"},
		{Name: "res_attrs", Kind: ir.ArrayKind, Optional: true, Doc: "a dictionary for each result"},
	},
	Regions: []ir.RegionDef{{Name: "body", Arity: ir.Variadic}},
	Traits:  ir.Symbol | ir.Isolated | ir.FunctionLike | ir.Properties,
	Verify:  verifyFunc,
})

func verifyFunc(op *ir.Op) error {
	if op.Body() == nil && !ir.IsPrivate(op) {
		return op.Errorf("function @%s has no body and isn't private", ir.SymName(op))
	}
	return nil
}

// Call calls a function.
var Call = ir.Define("func", ir.OpDef{
	Name:        "call",
	Summary:     "calls a function",
	Description: "Operands and results have the types of the function @callee.",
	Operands:    []ir.OperandDef{{Name: "operands", Type: kinds.Any, Arity: ir.Variadic}},
	Attrs:       []ir.AttrDef{{Name: "callee", Kind: ir.SymbolKind, Doc: "the function"}},
	Results:     []ir.ResultDef{{Name: "results", Type: kinds.Any, Arity: ir.Variadic}},
	Traits:      ir.Properties,
	Verify:      verifyCall,
	Eval: func(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		return f.Interp.Call(op.Attrs().Sym("callee"), in...)
	},
})

// Callee is the function an func.call calls, or nil where it isn't found.
func Callee(call *ir.Op) *ir.Op {
	ref, ok := call.Attr("callee").(*ir.SymbolRefAttr)
	if !ok {
		return nil
	}
	return ir.ResolveSymbol(call, ref)
}

func verifyCall(op *ir.Op) error {
	callee := Callee(op)
	if callee == nil {
		return nil // an unknown symbol is reported as such
	}
	name := op.Attr("callee").String()
	if !callee.Is(Func) {
		return op.Errorf("func.call: %s is a %s, not a function", name, callee.Name()).WithNote(callee.Loc(), "defined here")
	}
	t := ir.FuncType(callee)
	if t == nil {
		return nil
	}
	operands := make([]ir.Type, op.NumOperands())
	for i := range operands {
		operands[i] = op.Operand(i).Type()
	}
	if err := mismatch(op, name, "takes", "argument", t.Inputs, operands); err != nil {
		return err.WithNote(callee.Loc(), "defined here")
	}
	if err := mismatch(op, name, "returns", "result", t.Results, op.ResultTypes()); err != nil {
		return err.WithNote(callee.Loc(), "defined here")
	}
	return nil
}

func mismatch(op *ir.Op, name, verb, what string, want, got []ir.Type) *ir.Error {
	if len(want) != len(got) {
		return op.Errorf("func.call: %s %s %d %ss, here are %d", name, verb, len(want), what, len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			return op.Errorf("func.call: %s %d of %s has type %s, here it is %s", what, i, name, want[i], got[i])
		}
	}
	return nil
}

// Return ends a function.
var Return = ir.Define("func", ir.OpDef{
	Name:        "return",
	Summary:     "ends a function and gives its results",
	Description: "Operands have the types of the function's results.",
	Operands:    []ir.OperandDef{{Name: "operands", Type: kinds.Any, Arity: ir.Variadic}},
	Traits:      ir.Terminator,
	Verify:      verifyReturn,
})

func verifyReturn(op *ir.Op) error {
	f := op.Parent()
	if !f.Is(Func) {
		return op.Errorf("func.return: only a func.func is ended by it")
	}
	t := ir.FuncType(f)
	if t == nil {
		return nil // reported at the function
	}
	var got []ir.Type
	for _, v := range op.Operands() {
		got = append(got, v.Type())
	}
	if !slices.Equal(got, t.Results) {
		return op.Errorf("func.return: returns %s, function @%s has result types %s", typeList(got), ir.SymName(f), typeList(t.Results)).
			WithNote(f.Loc(), "defined here")
	}
	return nil
}

func typeList(ts []ir.Type) string {
	s := "("
	for i, t := range ts {
		if i > 0 {
			s += ", "
		}
		s += t.String()
	}
	return s + ")"
}
