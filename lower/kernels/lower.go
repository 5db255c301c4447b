package kernels

import (
	"fmt"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/builtin"
	"blutrain/dialects/fn"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// ReferenceModule is the name of the nested module that holds, for each kernel, the function it implements.
const ReferenceModule = "reference"

// Run lowers every function of the module that has a body, adds the kernels to the module, and their functions to the
// nested module @reference.
func Run(c *ir.Context, module *ir.Op, t Target) error {
	l := &lowerer{c: c, target: t, module: module, kernels: map[string]*ir.Op{}, names: map[string]bool{}, ids: map[any]uint64{}}
	for op := range module.Body().Ops() {
		l.names[ir.SymName(op)] = true
	}
	l.reference = builtin.NewModule(c, ReferenceModule, module.Loc())
	for op := range module.Body().Ops() {
		if op.Is(fn.Func) && op.Body() != nil {
			if err := l.function(op); err != nil {
				return err
			}
		}
	}
	module.Body().Append(l.reference)
	return nil
}

type lowerer struct {
	c         *ir.Context
	target    Target
	module    *ir.Op
	reference *ir.Op
	kernels   map[string]*ir.Op // by what they do
	names     map[string]bool   // taken
	ids       map[any]uint64
}

// spec is a kernel and how one group of operations launches it.
type spec struct {
	loc     *ir.Location
	key     string
	name    string
	inputs  []port
	outputs []port
	build   func() *ir.Op
	// refer writes what the kernel does as blu operations on its inputs.
	refer func(b *blu.Builder, args []*ir.Value) []*ir.Value
}

// port is an input or output of a launch: a value of the function, in the shape that the kernel wants.
type port struct {
	value *ir.Value
	perm  []int64 // order of the value's dimensions; nil for as they are
	shape []int64
	sum   *ir.Op // partial results of that reduction
}

// body is the new body of a function while it is written.
type body struct {
	b        *blu.Builder
	env      map[*ir.Value]*ir.Value
	results  map[*ir.Value]*ir.Value // of launches, in the shape that the kernel gives them
	partials map[*ir.Op]*ir.Value
	shaped   map[shapedKey]*ir.Value
}

type shapedKey struct {
	v *ir.Value
	t ir.Type
}

func (l *lowerer) function(f *ir.Op) error {
	if err := l.checkTypes(f); err != nil {
		return err
	}
	origin := prepare(l.c, f, l.target)
	p, err := plan(l.c, f, l.target, origin)
	if err != nil {
		return err
	}
	ret := f.Body().Terminator()
	var old []*ir.Op
	for op := range f.Body().Ops() {
		if op != ret {
			old = append(old, op)
		}
	}
	n := &body{b: blu.On(ir.NewBuilder(l.c, nil).Before(ret)), env: map[*ir.Value]*ir.Value{}, results: map[*ir.Value]*ir.Value{}, partials: map[*ir.Op]*ir.Value{}, shaped: map[shapedKey]*ir.Value{}}
	for _, a := range f.Body().Args() {
		n.env[a] = a
	}
	for _, g := range p.groups {
		var s *spec
		if isCommunication(g.root) {
			n.communicate(g.root)
			continue
		}
		if g.kind == single {
			if s, err = l.singleSpec(g); err != nil {
				return err
			}
		} else {
			s = l.formSpec(p.resolve(g))
		}
		n.launch(l, s)
	}
	n.b.At(ret.Loc())
	for i, v := range ret.Operands() {
		ret.SetOperand(i, n.get(v))
	}
	for _, op := range slices.Backward(old) {
		op.Erase()
	}
	return nil
}

// launch writes the launch of a kernel, and the views that bring its inputs into shape.
func (n *body) launch(l *lowerer, s *spec) {
	n.b.At(s.loc)
	kernel := l.kernel(s)
	var operands []*ir.Value
	for _, in := range s.inputs {
		operands = append(operands, n.input(in))
	}
	var types []ir.Type
	for _, out := range s.outputs {
		types = append(types, l.c.Tensor(out.shape, out.value.Elem()))
	}
	op := n.b.CreateState(tile.Launch, ir.OpState{
		Operands: operands, Results: types, Attrs: []ir.NamedAttr{{Name: "kernel", Value: l.c.Symbol(ir.SymName(kernel))}},
	})
	for i, out := range s.outputs {
		if out.sum != nil {
			n.partials[out.sum] = op.Result(i)
		} else {
			n.results[out.value] = op.Result(i)
		}
	}
}

// communicate writes a collective, or its beginning or end, again on what is in memory.
func (n *body) communicate(op *ir.Op) {
	operands := op.Operands()
	for i, v := range operands {
		operands[i] = n.get(v)
	}
	again := n.b.CreateState(op.Def(), ir.OpState{Loc: op.Loc(), Operands: operands, Attrs: op.Attrs(), Results: op.ResultTypes()})
	for i, v := range op.Results() {
		n.env[v] = again.Result(i)
	}
}

func (n *body) input(in port) *ir.Value {
	if in.sum != nil {
		return n.reshape(n.partials[in.sum], in.shape)
	}
	if w := n.results[in.value]; w != nil && in.perm == nil && slices.Equal(w.Shape(), in.shape) {
		return w
	}
	v := n.get(in.value)
	if in.perm != nil && !slices.IsSorted(in.perm) {
		v = n.transpose(v, in.perm)
	}
	return n.reshape(v, in.shape)
}

// reshape and transpose make each view once.
func (n *body) reshape(v *ir.Value, shape []int64) *ir.Value {
	t := n.b.Ctx.Tensor(shape, v.Elem())
	if v.Type() == t {
		return v
	}
	if v.DefinedBy(blu.Reshape) { // of what was reshaped for another kernel
		if x := v.Op().Operand(0); x.Type() == ir.Type(t) {
			return x
		}
	}
	key := shapedKey{v, t}
	if n.shaped[key] == nil {
		n.shaped[key] = n.b.Reshape(v, t)
	}
	return n.shaped[key]
}

func (n *body) transpose(v *ir.Value, perm []int64) *ir.Value {
	key := shapedKey{v, n.b.Ctx.DialectType("kernels", "order", nil, nil, n.b.Ctx.I64s(perm...))}
	if n.shaped[key] == nil {
		n.shaped[key] = n.b.Transpose(v, perm)
	}
	return n.shaped[key]
}

// get is the new value of an old one: what a launch gave, or the same view or constant again.
func (n *body) get(v *ir.Value) *ir.Value {
	if w := n.env[v]; w != nil {
		return w
	}
	if w := n.results[v]; w != nil {
		n.env[v] = n.reshape(w, v.Shape())
		return n.env[v]
	}
	op := v.Op()
	if !isView(op) && !op.Is(blu.Constant) {
		panic("kernels: a value of " + op.Name() + " was never computed")
	}
	n.env[v] = clone(n.b, op, n.get)
	return n.env[v]
}

// clone writes a view, constant or other operation again on new operands.
func clone(b *blu.Builder, op *ir.Op, get func(*ir.Value) *ir.Value) *ir.Value {
	operands := op.Operands()
	for i, v := range operands {
		operands[i] = get(v)
	}
	return b.CreateState(op.Def(), ir.OpState{Loc: op.Loc(), Operands: operands, Attrs: op.Attrs(), Results: op.ResultTypes()}).Result(0)
}

// kernel is the kernel of a spec, written when it is the first of its kind.
func (l *lowerer) kernel(s *spec) *ir.Op {
	if k := l.kernels[s.key]; k != nil {
		return k
	}
	name := s.name
	for n := 2; l.names[name]; n++ {
		name = fmt.Sprintf("%s_%d", s.name, n)
	}
	l.names[name] = true
	k := s.build()
	k.SetAttr("sym_name", l.c.String(name))
	l.module.Body().Append(k)
	l.kernels[s.key] = k
	l.refer(s, name)
	return k
}

// refer writes the function that a kernel implements.
func (l *lowerer) refer(s *spec, name string) {
	var in, out []ir.Type
	for _, p := range s.inputs {
		in = append(in, l.c.Tensor(p.shape, p.value.Elem()))
	}
	for _, p := range s.outputs {
		out = append(out, l.c.Tensor(p.shape, p.value.Elem()))
	}
	f := l.c.NewOp(fn.Func, ir.OpState{Loc: s.loc, Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: l.c.String(name)}, {Name: "function_type", Value: l.c.TypeAttr(l.c.Func(in, out))},
	}})
	block := f.Region(0).AddBlock(in...)
	b := blu.On(ir.NewBuilder(l.c, block).At(s.loc))
	results := s.refer(b, block.Args())
	b.CreateState(fn.Return, ir.OpState{Operands: results})
	l.reference.Body().Append(f)
}
