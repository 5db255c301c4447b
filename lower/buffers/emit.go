package buffers

import (
	"fmt"

	"blutrain/dialects/mem"
	"blutrain/ir"
)

// emit replaces the function's body by operations on memory.
func (f *function) emit(arena int64) error {
	e := &emitter{f: f, b: ir.NewBuilder(f.ctx, f.fn.Body()), views: map[string]*ir.Value{}, ids: map[*ir.Op]int64{}}
	old := f.operations()
	for _, op := range old {
		e.b.Before(op).At(op.Loc())
		e.copiesBefore(op)
		switch {
		case op.Name() == "tile.launch":
			e.launch(op)
		case isCommunication(op):
			e.communicate(op)
		}
	}
	ret := old[len(old)-1]
	ret.SetOperands(nil)
	for i := len(old) - 2; i >= 0; i-- {
		old[i].Erase()
	}
	for i := len(f.args) - 1; i >= 0; i-- {
		f.fn.Body().EraseArg(i)
	}
	f.setInterface(arena)
	return nil
}

func (f *function) operations() (ops []*ir.Op) {
	for op := range f.fn.Body().Ops() {
		ops = append(ops, op)
	}
	return ops
}

// setInterface says in attributes what arguments and results said.
func (f *function) setInterface(arena int64) {
	c := f.ctx
	var entries []ir.Attr
	seen := map[[2]string]bool{}
	for _, ports := range [][]port{f.args, f.results} {
		for _, p := range ports {
			key := [2]string{p.space, p.name}
			if seen[key] {
				continue
			}
			seen[key] = true
			entries = append(entries, c.Dict(
				ir.NamedAttr{Name: "space", Value: c.String(p.space)},
				ir.NamedAttr{Name: "name", Value: c.String(p.name)},
				ir.NamedAttr{Name: "type", Value: c.TypeAttr(f.named[key].typ)}))
		}
	}
	f.fn.SetAttr("mem.interface", c.Array(entries...))
	f.fn.SetAttr("mem.arena", c.Int64(arena))
	f.fn.SetAttr("function_type", c.TypeAttr(c.Func(nil, nil)))
	f.fn.SetAttr("arg_attrs", nil)
	f.fn.SetAttr("res_attrs", nil)
}

type emitter struct {
	f     *function
	b     *ir.Builder
	views map[string]*ir.Value
	ids   map[*ir.Op]int64
}

// copiesBefore makes the copies due before op.
func (e *emitter) copiesBefore(op *ir.Op) {
	for _, c := range e.f.copies {
		if c.before != op {
			continue
		}
		src := c.from
		if src == nil {
			src = e.f.places[c.src]
		}
		e.b.CreateState(mem.Copy, ir.OpState{Operands: []*ir.Value{e.ref(src, c.src.Elem()), e.ref(c.dst, c.src.Elem())}})
	}
}

func (e *emitter) launch(op *ir.Op) {
	var refs []*ir.Value
	for _, v := range append(op.Operands(), op.Results()...) {
		refs = append(refs, e.ref(e.f.places[v], v.Elem()))
	}
	kernel := e.f.spec.specialize(e.f.kernel(op), refs, e.f.shared(op))
	n := e.b.CreateState(op.Def(), ir.OpState{Operands: refs, Attrs: op.Attrs()})
	n.SetAttr("kernel", e.f.ctx.Symbol(ir.SymName(kernel)))
}

// shared lists the inputs and outputs of a launch that are the same memory.
func (f *function) shared(launch *ir.Op) (pairs []int64) {
	n := launch.NumOperands()
	for i, in := range launch.Operands() {
		for j, out := range launch.Results() {
			if f.places[in].same(f.places[out]) {
				pairs = append(pairs, int64(i), int64(n+j))
			}
		}
	}
	return pairs
}

// ref is the memref value for a place: a buffer, or a view of it.
func (e *emitter) ref(p *place, elem ir.Type) *ir.Value {
	buffer := e.buffer(p.root)
	if p.same(whole(p.root, p.root.typ.Shape)) {
		return buffer
	}
	c := e.f.ctx
	t := c.MemRefWith(p.shape, elem, c.Strided(p.strides, p.offset), nil)
	key := fmt.Sprintf("%p %s", buffer, t)
	if e.views[key] == nil {
		e.views[key] = e.b.CreateState(mem.View, ir.OpState{Operands: []*ir.Value{buffer}, Results: []ir.Type{t}}).Result(0)
	}
	return e.views[key]
}

func (e *emitter) buffer(r *root) *ir.Value {
	if r.buffer == nil {
		c := e.f.ctx
		attrs := []ir.NamedAttr{{Name: "space", Value: c.String(r.space)}}
		switch r.space {
		case mem.Arena:
			attrs = append(attrs, ir.NamedAttr{Name: "offset", Value: c.Int64(r.Offset)})
		case mem.Const:
			attrs = append(attrs, ir.NamedAttr{Name: "value", Value: r.value})
		default:
			attrs = append(attrs, ir.NamedAttr{Name: "name", Value: c.String(r.name)})
		}
		r.buffer = e.b.CreateState(mem.Buffer, ir.OpState{Loc: r.loc, Attrs: attrs, Results: []ir.Type{r.typ}})
	}
	return r.buffer.Result(0)
}
