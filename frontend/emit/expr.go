package emit

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/frontend/sema"
	"blutrain/frontend/shape"
	"blutrain/ir"

	table "blutrain/frontend/builtin"
)

// values emits an expression: one value for a tensor, those of the elements for a tuple.
func (e *emitter) values(f *function, x sema.Expr) []*ir.Value {
	switch x := x.(type) {
	case *sema.Use:
		if vs, isTuple := f.tuples[x.Var]; isTuple {
			return vs
		}
		return []*ir.Value{f.values[x.Var]}
	case *sema.Const:
		return []*ir.Value{e.constant(f, x)}
	case *sema.Read:
		return []*ir.Value{e.read(f, x.Place, table.TensorType(e.ctx, x.Type()), e.loc(x.At()))}
	case *sema.TupleExpr:
		var vs []*ir.Value
		for _, elem := range x.Elems {
			vs = append(vs, e.values(f, elem)...)
		}
		return vs
	case *sema.Builtin:
		return e.builtin(f, x)
	case *sema.CallFunc:
		return e.call(f, x)
	}
	return nil
}

func (e *emitter) constant(f *function, x *sema.Const) *ir.Value {
	value := x.Value.Number()
	if x.Value.Bool {
		value = 1
	}
	t := table.TensorType(e.ctx, x.Type())
	return f.b.At(e.loc(x.At())).CreateState(blu.Constant, ir.OpState{
		Attrs: []ir.NamedAttr{e.attr("value", e.ctx.Splat(t, value))}, Results: []ir.Type{t},
	}).Result(0)
}

// read is the value of a parameter: an exported function gets it, once; a private one takes it as an argument.
func (e *emitter) read(f *function, place sema.Place, t ir.Type, loc *ir.Location) *ir.Value {
	if v := f.reads[place]; v != nil {
		return v
	}
	var v *ir.Value
	if f.of.Exported {
		v = f.b.At(loc).CreateState(blu.Get, ir.OpState{
			Attrs: []ir.NamedAttr{e.attr("param", e.ctx.Symbol(place.Path))}, Results: []ir.Type{t},
		}).Result(0)
	} else {
		v = f.op.Body().AddArg(t, loc)
	}
	f.reads[place] = v
	f.places = append(f.places, place)
	return v
}

func (e *emitter) builtin(f *function, x *sema.Builtin) []*ir.Value {
	operands := make([][]*ir.Value, len(x.Args))
	for i, list := range x.Args {
		for _, a := range list {
			operands[i] = append(operands[i], e.values(f, a)...)
		}
	}
	emitter := &table.Emitter{
		Builder: f.b.At(e.loc(x.At())), Call: x.Call, Values: operands,
		Seed:     func() *ir.Value { return f.seed },
		Training: func() *ir.Value { return f.train },
		Stream:   func() int64 { e.streams++; return e.streams - 1 },
	}
	return x.Call.Row.Emit(emitter)
}

// call calls an instance with its arguments, the seed where it draws random numbers, and the parameters that it
// reads of the layer it is called on.
func (e *emitter) call(f *function, x *sema.CallFunc) []*ir.Value {
	callee := e.function(x.Func)
	var operands []*ir.Value
	for _, a := range x.Args {
		operands = append(operands, e.values(f, a)...)
	}
	if x.Func.Random {
		operands = append(operands, f.seed, f.train)
	}
	if !x.Func.Exported {
		for _, place := range callee.places {
			operands = append(operands, e.read(f, place.In(x.Self), callee.reads[place].Type(), e.loc(x.At())))
		}
	}
	var results []ir.Type
	for _, t := range flatten(x.Func.Type) {
		results = append(results, table.TensorType(e.ctx, t))
	}
	return f.b.At(e.loc(x.At())).CreateState(fn.Call, ir.OpState{
		Operands: operands, Results: results,
		Attrs: []ir.NamedAttr{e.attr("callee", e.ctx.Symbol(callee.name))},
	}).Results()
}

func flatten(t shape.Type) []shape.Type {
	if !t.IsTuple() {
		return []shape.Type{t}
	}
	var out []shape.Type
	for _, e := range t.Elems {
		out = append(out, flatten(e)...)
	}
	return out
}
