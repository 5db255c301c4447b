package blu

import "blutrain/ir"

// Attributes in the dictionaries of a function's arg_attrs and res_attrs: what its arguments and results are for those who
// call it from outside.
const (
	StateAttr  = "blu.state"  // a symbol: the storage that is read (argument) or written (result)
	InputAttr  = "blu.input"  // a string: an input's name
	OutputAttr = "blu.output" // a string: an output's name
	ScalarAttr = "blu.scalar" // a string: the name of a scalar set at each call, a tensor of rank 0
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
