package blu

import (
	"slices"

	"blutrain/ir"
)

// Attributes in the dictionaries of a function's arg_attrs and res_attrs: what its arguments and results are for those who
// call it from outside.
const (
	StateAttr  = "blu.state"  // a symbol: the storage that is read (argument) or written (result)
	InputAttr  = "blu.input"  // a string: an input's name
	OutputAttr = "blu.output" // a string: an output's name
	ScalarAttr = "blu.scalar" // a string: the name of a scalar set at each call, a tensor of rank 0
)

// Names of functions that passes add to those of training.
const (
	AccumulateLast = "accumulate_last" // accumulate of a step's last micro-batch, and the sums of all ranks
	Refresh        = "refresh"         // writes every copy of a parameter anew, after parameters were written by others than the program
)

// Port is what an argument or result is for: one of the attributes above, and the name it gives. Kind is "" where nothing
// is said.
type Port struct{ Kind, Name string }

// ArgPort is what argument i of a function is for.
func ArgPort(fn *ir.Op, i int) Port {
	return port(fn, "arg_attrs", i, StateAttr, InputAttr, ScalarAttr)
}

// ResultPort is what result i of a function is for.
func ResultPort(fn *ir.Op, i int) Port { return port(fn, "res_attrs", i, StateAttr, OutputAttr) }

func port(fn *ir.Op, list string, i int, kinds ...string) Port {
	dicts, ok := fn.Attr(list).(*ir.ArrayAttr)
	if !ok || i >= len(dicts.Elems) {
		return Port{}
	}
	dict, ok := dicts.Elems[i].(*ir.DictAttr)
	if !ok {
		return Port{}
	}
	for _, kind := range kinds {
		switch a := ir.Attrs(dict.Entries).Get(kind).(type) {
		case *ir.StringAttr:
			return Port{kind, a.Value}
		case *ir.SymbolRefAttr:
			return Port{kind, a.Root()}
		}
	}
	return Port{}
}

// attr is the dictionary that says what a port says.
func (p Port) attr(c *ir.Context) ir.Attr {
	var name ir.Attr = c.String(p.Name)
	if p.Kind == StateAttr {
		name = c.Symbol(p.Name)
	}
	return c.Dict(ir.NamedAttr{Name: p.Kind, Value: name})
}

// AddArg adds an argument to a function.
func AddArg(c *ir.Context, fn *ir.Op, p Port, t ir.Type, loc *ir.Location) *ir.Value {
	n := len(fn.Body().Args())
	insertPort(c, fn, "arg_attrs", n, n, p)
	v := fn.Body().AddArg(t, loc)
	Retype(c, fn)
	return v
}

// InsertResult makes a value result i of a function, and those that were i and more one more.
func InsertResult(c *ir.Context, fn *ir.Op, i int, p Port, v *ir.Value) {
	end := fn.Body().Terminator()
	insertPort(c, fn, "res_attrs", end.NumOperands(), i, p)
	end.SetOperands(slices.Insert(end.Operands(), i, v))
	Retype(c, fn)
}

// insertPort puts what a port says in place i of a list about n arguments or results, which may be missing.
func insertPort(c *ir.Context, fn *ir.Op, list string, n, i int, p Port) {
	dicts := make([]ir.Attr, n)
	for k := range dicts {
		dicts[k] = c.Dict()
	}
	if given, ok := fn.Attr(list).(*ir.ArrayAttr); ok {
		copy(dicts, given.Elems)
	}
	fn.SetAttr(list, c.Array(slices.Insert(dicts, i, p.attr(c))...))
}

// Retype gives a function the type that its arguments and its terminator have.
func Retype(c *ir.Context, fn *ir.Op) {
	var ins, outs []ir.Type
	for _, a := range fn.Body().Args() {
		ins = append(ins, a.Type())
	}
	for _, v := range fn.Body().Terminator().Operands() {
		outs = append(outs, v.Type())
	}
	fn.SetAttr("function_type", c.TypeAttr(c.Func(ins, outs)))
}
