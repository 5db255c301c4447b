package autodiff

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// What an argument or result of an exported function is, as the name of an attribute; its value names the storage.
const (
	stateAttr  = "blu.state"  // storage that lasts between calls
	inputAttr  = "blu.input"  // given by the caller
	scalarAttr = "blu.scalar" // of rank 0, set at run time
	outputAttr = "blu.output" // returned to the caller
)

// function is a func.func under construction: each argument and result says what it is.
type function struct {
	*blu.Builder
	name          string
	op            *ir.Op
	body          *ir.Block
	args, results []ir.Attr   // dictionaries
	ret           *ir.Op      // the end of the body; f.Builder writes before it
	pending       []*ir.Value // results that ret does not return yet
	params        map[string]*ir.Value
}

// newFunction makes a function without arguments, detached: finish completes it.
func newFunction(c *ir.Context, name string, loc *ir.Location) *function {
	op := c.NewOp(fn.Func, ir.OpState{Loc: loc, Regions: 1})
	body := op.Region(0).AddBlock()
	ret := ir.NewBuilder(c, body).At(loc).CreateState(fn.Return, ir.OpState{})
	return &function{
		Builder: blu.On(ir.NewBuilder(c, nil).Before(ret).At(loc)),
		name:    name, op: op, body: body, ret: ret, params: map[string]*ir.Value{},
	}
}

// state adds an argument that reads the storage of that name.
func (f *function) state(name string, t ir.Type, loc *ir.Location) *ir.Value {
	return f.arg(t, loc, ir.NamedAttr{Name: stateAttr, Value: f.Ctx.Symbol(name)})
}

// scalar adds an argument of rank 0 that is set at run time.
func (f *function) scalar(name string, elem ir.Type) *ir.Value {
	return f.arg(f.Ctx.Tensor(nil, elem), f.Loc, ir.NamedAttr{Name: scalarAttr, Value: f.Ctx.String(name)})
}

func (f *function) arg(t ir.Type, loc *ir.Location, role ...ir.NamedAttr) *ir.Value {
	f.args = append(f.args, f.Ctx.Dict(role...))
	return f.body.AddArg(t, loc)
}

// inputs adds the arguments of a function of the model, with the roles it gives them.
func (f *function) inputs(model *ir.Op) []*ir.Value {
	return f.inputsBut(model, nil)
}

// inputsBut adds the arguments of a function of the model, but for those whose role as a scalar is known: they are
// constants.
func (f *function) inputsBut(model *ir.Op, known map[string]float64) []*ir.Value {
	var args []*ir.Value
	for i, a := range model.Body().Args() {
		role := roles(model, "arg_attrs", i)
		if v, ok := known[ir.Attrs(role).Str(scalarAttr)]; ok {
			args = append(args, f.Splat(a.Type(), v))
		} else {
			args = append(args, f.arg(a.Type(), a.Loc(), role...))
		}
	}
	return args
}

// write returns v, to be kept in the storage of that name.
func (f *function) write(name string, v *ir.Value) {
	f.result(v, ir.NamedAttr{Name: stateAttr, Value: f.Ctx.Symbol(name)})
}

// output returns v to the caller.
func (f *function) output(name string, v *ir.Value) {
	f.result(v, ir.NamedAttr{Name: outputAttr, Value: f.Ctx.String(name)})
}

func (f *function) result(v *ir.Value, role ...ir.NamedAttr) {
	f.results = append(f.results, f.Ctx.Dict(role...))
	f.pending = append(f.pending, v)
}

// flush makes ret return all results so far: from then on they follow replacements.
func (f *function) flush() {
	f.ret.SetOperands(append(f.ret.Operands(), f.pending...))
	f.pending = nil
}

// dropUnused removes arguments that are not used, unless the caller gives them as inputs.
func (f *function) dropUnused() {
	for i := len(f.args) - 1; i >= 0; i-- {
		role := ir.Attrs(f.args[i].(*ir.DictAttr).Entries)
		if role.Get(inputAttr) == nil && f.body.Arg(i).Unused() {
			f.body.EraseArg(i)
			f.args = slices.Delete(f.args, i, i+1)
		}
	}
}

// finish erases what is unused and gives the function its type.
func (f *function) finish() *ir.Op {
	c := f.Ctx
	f.flush()
	rewrite.EraseDead(f.op)
	var ins, outs []ir.Type
	for _, a := range f.body.Args() {
		ins = append(ins, a.Type())
	}
	for _, v := range f.ret.Operands() {
		outs = append(outs, v.Type())
	}
	f.op.SetAttr("sym_name", c.String(f.name))
	f.op.SetAttr("function_type", c.TypeAttr(c.Func(ins, outs)))
	if len(f.args) > 0 {
		f.op.SetAttr("arg_attrs", c.Array(f.args...))
	}
	if len(f.results) > 0 {
		f.op.SetAttr("res_attrs", c.Array(f.results...))
	}
	return f.op
}

// roles is the attributes that list, arg_attrs or res_attrs, gives to argument or result i.
func roles(fn *ir.Op, list string, i int) []ir.NamedAttr {
	if all, ok := fn.Attr(list).(*ir.ArrayAttr); ok && i < len(all.Elems) {
		if d, ok := all.Elems[i].(*ir.DictAttr); ok {
			return d.Entries
		}
	}
	return nil
}
