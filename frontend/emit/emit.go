// Package emit turns a checked program into a module of the blu dialect: a blu.param for each parameter, a function
// for each exported function, which reads parameters in place, and a private function for each other instance, which
// takes the parameters that it reads as arguments, so that all layers share it.
//
// The package knows the checked tree and the IR. It reports nothing: what could be wrong was found before.
package emit

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/dialects/builtin"
	"blutrain/dialects/fn"
	"blutrain/frontend/sema"
	"blutrain/frontend/shape"
	"blutrain/ir"
	"blutrain/ir/diag"

	table "blutrain/frontend/builtin"
)

// Module builds the module of a program.
func Module(c *ir.Context, p *sema.Program) *ir.Op {
	e := &emitter{ctx: c, program: p, taken: map[string]bool{}, functions: map[*sema.Function]*function{}}
	e.module = builtin.NewModule(c, p.Name, e.loc(p.At))
	e.attributes()
	e.params()
	for _, f := range p.Exports {
		e.taken[f.Name] = true // exported names come first: they must be as written
	}
	for _, f := range p.Exports {
		e.function(f)
	}
	return e.module
}

type emitter struct {
	ctx       *ir.Context
	program   *sema.Program
	module    *ir.Op
	taken     map[string]bool // names of functions
	functions map[*sema.Function]*function
	streams   int64
}

// function is an instance that is being emitted or was.
type function struct {
	of     *sema.Function
	name   string
	op     *ir.Op
	b      *ir.Builder
	values map[*sema.Var]*ir.Value   // of tensors
	tuples map[*sema.Var][]*ir.Value // of tuples
	reads  map[sema.Place]*ir.Value
	places []sema.Place // parameters that are read, in the order of first use: arguments, where the function is private
	seed   *ir.Value    // of a random function
	train  *ir.Value
}

func (e *emitter) loc(r diag.Range) *ir.Location {
	return e.ctx.FileLoc(r.File, r.Start.Line, r.Start.Col)
}

func (e *emitter) attr(name string, a ir.Attr) ir.NamedAttr {
	return ir.NamedAttr{Name: name, Value: a}
}

func (e *emitter) attributes() {
	c, p := e.ctx, e.program
	e.module.SetAttr("blu.phase", c.String("input"))
	e.module.SetAttr("blu.model", c.String(p.Name))
	args := p.Args
	if p.Train == nil {
		args = append(args[:len(args):len(args)], p.Batch...)
	}
	e.module.SetAttr("blu.args", e.constants(args))
	if t := p.Train; t != nil {
		batch := append(t.Batch[:len(t.Batch):len(t.Batch)], sema.NamedConst{Name: "accumulate", Value: shape.IntOf(shape.Lit(t.Accumulate))})
		entries := []ir.NamedAttr{
			e.attr("minimize", c.Symbol(t.Minimize.Name)),
			e.attr("batch", e.constants(batch)),
			e.attr("optimizer", e.method(t.Optimizer.Kind, t.Optimizer.Values)),
			e.attr("schedule", e.method(t.Schedule.Kind, t.Schedule.Values)),
		}
		if t.ClipNorm > 0 {
			entries = append(entries, e.attr("clip_norm", c.FloatAttr(t.ClipNorm, c.F64())))
		}
		e.module.SetAttr("blu.train", c.Dict(entries...))
	}
}

func (e *emitter) constants(list []sema.NamedConst) ir.Attr {
	var entries []ir.NamedAttr
	for _, n := range list {
		switch n.Value.Kind {
		case shape.IntConst:
			entries = append(entries, e.attr(n.Name, e.ctx.Int64(n.Value.Int.N)))
		case shape.FloatConst:
			entries = append(entries, e.attr(n.Name, e.ctx.FloatAttr(n.Value.Float, e.ctx.F64())))
		case shape.BoolConst:
			entries = append(entries, e.attr(n.Name, e.ctx.Bool(n.Value.Bool)))
		}
	}
	return e.ctx.Dict(entries...)
}

// method is a dictionary of a kind and its numbers; nesterov is a truth value in the IR.
func (e *emitter) method(kind string, values []sema.NamedNumber, more ...ir.NamedAttr) ir.Attr {
	entries := append([]ir.NamedAttr{e.attr("kind", e.ctx.String(kind))}, more...)
	for _, v := range values {
		if v.Name == "nesterov" {
			entries = append(entries, e.attr(v.Name, e.ctx.Bool(v.Value != 0)))
			continue
		}
		entries = append(entries, e.attr(v.Name, e.ctx.FloatAttr(v.Value, e.ctx.F64())))
	}
	return e.ctx.Dict(entries...)
}

// params declares the storage of the model.
func (e *emitter) params() {
	for _, p := range e.program.Params {
		dims := make([]string, p.Type.Rank())
		for i, d := range p.Type.Dims {
			dims[i] = d.String()
		}
		attrs := []ir.NamedAttr{
			e.attr("sym_name", e.ctx.String(p.Name)),
			e.attr("type", e.ctx.TypeAttr(table.TensorType(e.ctx, p.Type))),
			e.attr("init", e.method(p.Init.Kind, p.Init.Values, e.attr("text", e.ctx.String(p.Init.Text)))),
			e.attr("dims", e.ctx.Strings(dims...)),
		}
		if p.Decay > 0 {
			attrs = append(attrs, e.attr("weight_decay", e.ctx.FloatAttr(p.Decay, e.ctx.F64())))
		}
		b := ir.NewBuilder(e.ctx, e.module.Body()).At(e.loc(p.At))
		b.CreateState(blu.Param, ir.OpState{Attrs: attrs})
	}
}

// function emits an instance, once, and after what it calls.
func (e *emitter) function(of *sema.Function) *function {
	if f := e.functions[of]; f != nil {
		return f
	}
	f := &function{
		of: of, name: e.name(of), op: e.ctx.NewOp(fn.Func, ir.OpState{Loc: e.loc(of.At), Regions: 1}),
		values: map[*sema.Var]*ir.Value{}, tuples: map[*sema.Var][]*ir.Value{}, reads: map[sema.Place]*ir.Value{},
	}
	e.functions[of] = f
	body := f.op.Region(0).AddBlock()
	f.b = ir.NewBuilder(e.ctx, body).At(e.loc(of.At))
	for _, v := range of.Params {
		f.values[v] = body.AddArg(table.TensorType(e.ctx, v.Type), e.loc(v.At))
	}
	if of.Random {
		f.seed = body.AddArg(e.ctx.Tensor(nil, e.ctx.I64()), e.loc(of.At))
		f.train = body.AddArg(e.ctx.Tensor(nil, e.ctx.I1()), e.loc(of.At))
	}
	for _, let := range of.Body {
		e.let(f, let)
	}
	results := e.values(f, of.Result)
	f.b.At(e.loc(of.Result.At())).CreateState(fn.Return, ir.OpState{Operands: results})
	e.finish(f, results)
	e.module.Body().Append(f.op)
	return f
}

// name is a symbol that no other function has: instances of one function are numbered.
func (e *emitter) name(of *sema.Function) string {
	if of.Exported {
		return of.Name
	}
	name := of.Name
	for n := 1; e.taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", of.Name, n)
	}
	e.taken[name] = true
	return name
}

// finish gives a function its type and says what its arguments and results are.
func (e *emitter) finish(f *function, results []*ir.Value) {
	c := e.ctx
	var ins, outs []ir.Type
	for _, a := range f.op.Body().Args() {
		ins = append(ins, a.Type())
	}
	for _, v := range results {
		outs = append(outs, v.Type())
	}
	f.op.SetAttr("sym_name", c.String(f.name))
	f.op.SetAttr("function_type", c.TypeAttr(c.Func(ins, outs)))
	if !f.of.Exported {
		f.op.SetAttr("sym_visibility", c.String("private"))
		return
	}
	var args []ir.Attr
	for _, v := range f.of.Params {
		args = append(args, c.Dict(e.attr("blu.input", c.String(v.Name))))
	}
	if f.of.Random {
		args = append(args, c.Dict(e.attr("blu.scalar", c.String("seed"))), c.Dict(e.attr("blu.scalar", c.String("training"))))
	}
	if len(args) > 0 {
		f.op.SetAttr("arg_attrs", c.Array(args...))
	}
	var res []ir.Attr
	for i := range results {
		name := f.name
		if len(results) > 1 {
			name = fmt.Sprintf("%s.%d", f.name, i)
		}
		res = append(res, c.Dict(e.attr("blu.output", c.String(name))))
	}
	f.op.SetAttr("res_attrs", c.Array(res...))
}

func (e *emitter) let(f *function, let *sema.Let) {
	vs := e.values(f, let.Value)
	if len(let.Vars) == 1 {
		f.define(let.Vars[0], vs)
		return
	}
	at := 0
	for i, t := range let.Value.Type().Elems {
		n := width(t)
		f.define(let.Vars[i], vs[at:at+n])
		at += n
	}
}

func (f *function) define(v *sema.Var, vs []*ir.Value) {
	if v.Type.IsTuple() {
		f.tuples[v] = vs
	} else {
		f.values[v] = vs[0]
	}
}

// width is the number of IR values that a type is: a tuple is those of its elements.
func width(t shape.Type) int {
	if !t.IsTuple() {
		return 1
	}
	n := 0
	for _, e := range t.Elems {
		n += width(e)
	}
	return n
}
