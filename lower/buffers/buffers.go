// Package buffers places the values of each function in memory: the buffers phase. It works on functions whose bodies hold
// kernel launches and view operations. A view becomes strides, where strides can say it; the result of a kernel is written
// straight to where its consumers want it (a slice of a concatenation, transposed, or the state it updates); an output
// takes over the memory of an input that dies where the kernel allows that; and what is left gets a static offset in one
// arena. It knows what kernels read and write, not what they compute.
package buffers

import (
	"fmt"

	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/lower/arena"
	"blutrain/lower/share"
)

// Options of the phase.
type Options struct {
	Align int64 // of offsets in the arena, in bytes
}

// Run rewrites every function of the module.
func Run(c *ir.Context, module *ir.Op, opts Options) error {
	spec := newSpecializer(c, module)
	for op := range module.Body().Ops() {
		if op.Name() != "func.func" {
			continue
		}
		if err := placeFunction(c, module, op, spec, opts); err != nil {
			return fmt.Errorf("function %s: %w", ir.SymName(op), err)
		}
	}
	spec.dropUnused()
	return nil
}

func placeFunction(c *ir.Context, module, fn *ir.Op, spec *specializer, opts Options) error {
	f := &function{
		ctx: c, module: module, fn: fn, spec: spec,
		index: map[*ir.Op]int{}, places: map[*ir.Value]*place{}, lastUse: map[*ir.Value]int{}, named: map[[2]string]*root{}, wants: map[*ir.Value]*place{}, meets: map[*ir.Value]*place{}, early: map[*ir.Value]*ir.Op{},
	}
	if err := f.readInterface(); err != nil {
		return err
	}
	f.number()
	f.placeArguments()
	f.placeResults()
	f.number() // again, since some results are done with earlier
	for op := range fn.Body().Ops() {
		if err := f.placeOp(op); err != nil {
			return err
		}
	}
	return f.emit(pack(f.arena, opts.Align))
}

// function is the state of placing one function.
type function struct {
	ctx    *ir.Context
	module *ir.Op
	fn     *ir.Op
	spec   *specializer

	args, results []port
	index         map[*ir.Op]int
	places        map[*ir.Value]*place
	lastUse       map[*ir.Value]int // by value: the last operation that reads it, through views too
	named         map[[2]string]*root
	arena         []*root
	copies        []pending // in the order of the operations they precede, those of the return first
	wants         map[*ir.Value]*place
	early         map[*ir.Value]*ir.Op // by result that is copied home before the function returns: the operation before which
	meets         map[*ir.Value]*place // by result of a collective: the place of its source
}

// port is one argument or result: what it stands for outside.
type port struct {
	space, name string
	value       *ir.Value
}

// pending is a copy to be made before an operation, of a value that could not be computed where it is wanted. The source
// is where the value lives, unless from says otherwise.
type pending struct {
	before *ir.Op
	src    *ir.Value
	from   *place
	dst    *place
}

// readInterface finds out what arguments and results stand for.
func (f *function) readInterface() error {
	body := f.fn.Body()
	ret := body.Terminator()
	if ret == nil {
		return f.fn.Errorf("no return")
	}
	var err error
	if f.args, err = f.ports("arg_attrs", body.Args()); err != nil {
		return err
	}
	f.results, err = f.ports("res_attrs", ret.Operands())
	return err
}

func (f *function) ports(attr string, values []*ir.Value) ([]port, error) {
	dicts, _ := f.fn.Attr(attr).(*ir.ArrayAttr)
	ports := make([]port, len(values))
	for i, v := range values {
		ports[i].value = v
		if dicts == nil || i >= len(dicts.Elems) {
			return nil, f.fn.Errorf("%s: number %d of %s has no attributes that say what it stands for", f.fn.Name(), i, attr)
		}
		for _, e := range dicts.Elems[i].(*ir.DictAttr).Entries {
			switch a := e.Value.(type) {
			case *ir.StringAttr:
				ports[i].name = a.Value
			case *ir.SymbolRefAttr:
				ports[i].name = a.Root()
			}
			switch e.Name {
			case "blu.state":
				ports[i].space = mem.State
			case "blu.input":
				ports[i].space = mem.Input
			case "blu.output":
				ports[i].space = mem.Output
			case "blu.scalar":
				ports[i].space = mem.Scalar
			}
		}
		if ports[i].space == "" {
			return nil, f.fn.Errorf("number %d of %s stands for no state, input, output or scalar", i, attr)
		}
	}
	return ports, nil
}

// number gives operations their place in time and values their last use.
func (f *function) number() {
	n := 0
	for op := range f.fn.Body().Ops() {
		f.index[op] = n
		n++
	}
	for op := range f.fn.Body().OpsReversed() {
		for _, r := range op.Results() {
			f.lastUse[r] = f.lastUseOf(r, f.index[op])
		}
	}
	for _, a := range f.fn.Body().Args() {
		f.lastUse[a] = f.lastUseOf(a, -1)
	}
}

// lastUseOf sees through views and concatenations, whose results are already known since they come later.
func (f *function) lastUseOf(v *ir.Value, defined int) int {
	last := defined
	for u := range v.Uses() {
		op := u.Owner()
		if early := f.early[v]; early != nil {
			op = early
		}
		last = max(last, f.index[op])
		if isView(op) || op.Name() == "blu.concat" {
			last = max(last, f.lastUse[op.Result(0)])
		}
	}
	return last
}

// rootOf is the storage of that name, made at first use.
func (f *function) rootOf(space, name string, t ir.Type, loc *ir.Location) *root {
	key := [2]string{space, name}
	if f.named[key] == nil {
		f.named[key] = &root{space: space, name: name, typ: f.memref(t), loc: loc}
	}
	return f.named[key]
}

// fresh is new memory in the arena for a tensor of type t that is written first by operation at.
func (f *function) fresh(t ir.Type, at int, loc *ir.Location) *root {
	m := f.memref(t)
	bytes := ir.NumElements(m.Shape) * ir.ByteSize(m.Elem)
	r := &root{Piece: arena.Piece{Bytes: bytes, First: at, Last: at}, space: mem.Arena, typ: m, loc: loc}
	f.arena = append(f.arena, r)
	return r
}

func (f *function) memref(t ir.Type) *ir.MemRefType {
	tensor := t.(*ir.TensorType)
	return f.ctx.MemRef(tensor.Shape, tensor.Elem)
}

func (f *function) placeArguments() {
	for _, p := range f.args {
		r := f.rootOf(p.space, p.name, p.value.Type(), p.value.Loc())
		f.places[p.value] = whole(r, p.value.Shape())
		r.tenants = append(r.tenants, tenant{Span: share.Span{First: -1, Last: f.lastUse[p.value]}, values: []*ir.Value{p.value}, place: f.places[p.value]})
	}
}

// placeResults asks for every result to be computed where it belongs, and schedules a copy where that can't be.
func (f *function) placeResults() {
	for _, r := range f.results {
		home := whole(f.rootOf(r.space, r.name, r.value.Type(), r.value.Loc()), r.value.Shape())
		if p := f.places[r.value]; p != nil && p.same(home) {
			continue // an argument handed through
		}
		if f.request(r.value, home) {
			continue
		}
		f.copyResult(r.value, home)
	}
}

// copyResult copies v home when the function returns. What arguments hold is saved before anything runs, since their
// memory may be written by then.
func (f *function) copyResult(v *ir.Value, home *place) {
	if f.copyEarly(v, home) {
		return
	}
	body := f.fn.Body()
	copied := pending{before: body.Terminator(), src: v, dst: home}
	if arg := base(v); arg.Op() == nil {
		saved := whole(f.fresh(v.Type(), 0, v.Loc()), v.Shape())
		saved.root.extend(0, f.index[body.Terminator()])
		after := body.First()
		if v.Op() != nil {
			after = v.Op().Next()
		}
		f.copies = append(f.copies, pending{before: after, src: v, dst: saved})
		copied.from = saved
	}
	f.copies = append(f.copies, copied)
}
