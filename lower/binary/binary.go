// Package binary packs a compiled module into an artifact: the program and the reference as text, and the manifest, which
// is read off the module. It knows the file's parts and the attributes that phases leave on a module, not what kernels do.
package binary

import (
	"fmt"
	"path"

	"blutrain/artifact"
	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
	"blutrain/formats"
	"blutrain/ir"
)

// Reference and Step name the nested modules that become reference.mlir: in @reference for each kernel the function it
// implements, and in @step the functions of the program, with its parameters and states, before they were cut into kernels. In @whole
// are those of one rank alone, where the program is that of one of many.
const Reference, Step, Whole = "reference", "step", "whole"

// Options is what a module does not say about itself.
type Options struct {
	Compiler  string // version
	Target    string // cpu, ref
	Arch      string
	Precision string
	Source    string // the model's file name, empty when the module did not come from one
	Text      []byte // its text
}

// Build makes the artifact of a module whose functions are a program (exec), or whose functions are evaluated as they are
// (blu, for the target ref). The module is changed: its nested modules move to the reference.
func Build(c *ir.Context, module *ir.Op, o Options) (*artifact.Artifact, error) {
	m, err := manifest(module, o)
	if err != nil {
		return nil, err
	}
	choices, err := candidates(module)
	if err != nil {
		return nil, err
	}
	kernels, err := takeKernels(c, module)
	if err != nil {
		return nil, err
	}
	setFlops(c, module)
	a := &artifact.Artifact{Manifest: *m, Files: append(kernels, choices...)}
	if ref := takeReference(c, module); ref != nil {
		a.Files = append(a.Files, artifact.File{Name: artifact.ReferenceName, Data: text(ref)})
	}
	if err := verify(c, module, o); err != nil {
		return nil, err
	}
	a.Files = append(a.Files, artifact.File{Name: artifact.ProgramName, Data: text(module)})
	if o.Source != "" {
		a.Files = append(a.Files, artifact.File{Name: "source/" + path.Base(o.Source), Data: o.Text})
	}
	return a, nil
}

// verify does what those who open the program do. A module that somebody has written may be wrong; one made from a model may not.
func verify(c *ir.Context, module *ir.Op, o Options) error {
	err := ir.Verify(c, module)
	if err != nil && o.Source != "" {
		return fmt.Errorf("internal error: no device could open the program: %w", err)
	}
	return err
}

// text prints everything, constants too: a program is complete.
func text(op *ir.Op) []byte {
	return ir.Print(op, ir.PrintOptions{Locations: true, ElideAbove: -1})
}

// takeReference takes the nested modules out of the module: that of the program before it was cut into kernels becomes a
// module of its own, and holds the one with the kernels' functions. It is nil when there are none.
func takeReference(c *ir.Context, module *ir.Op) *ir.Op {
	kernels, ref := nested(module, Reference), nested(module, Step)
	if kernels == nil && ref == nil {
		return nil
	}
	if ref == nil {
		ref = c.NewOp(module.Def(), ir.OpState{Regions: 1, Loc: module.Loc()})
		ref.Region(0).AddBlock()
	}
	ref.Remove()
	if kernels != nil {
		kernels.MoveToEnd(ref.Body())
	}
	return ref
}

// nested is the module of that name within the module, or nil.
func nested(module *ir.Op, name string) *ir.Op {
	if op := ir.LookupSymbol(module, name); op != nil && op.Def() == module.Def() {
		return op
	}
	return nil
}

func manifest(module *ir.Op, o Options) (*artifact.Manifest, error) {
	m := &artifact.Manifest{
		Format: artifact.Format, Version: artifact.Version, Compiler: o.Compiler, Target: o.Target, Arch: o.Arch, Precision: o.Precision, Tuning: takeTuning(module), ThreadStores: takeMark(module, ThreadStoresAttr),
		Model: module.Attrs().Str("blu.model"), Args: numbers(module.Attr("blu.args")), States: []artifact.State{}, Functions: []artifact.Function{},
	}
	var err error
	if m.Mesh, err = mesh(module); err != nil {
		return nil, err
	}
	flops := countFlops(module)
	among, err := indices(module)
	if err != nil {
		return nil, err
	}
	for op := range module.Body().Ops() {
		switch {
		case op.Is(blu.Param), op.Is(blu.State), op.Is(exec.State):
			s, err := state(op)
			if err != nil {
				return nil, err
			}
			m.States = append(m.States, s)
		case op.Is(exec.Func), op.Is(fn.Func) && !ir.IsPrivate(op):
			f, err := function(op)
			if err != nil {
				return nil, err
			}
			f.Flops, f.Collectives = flops[f.Name], collectives(op, m.Mesh)
			for i := range f.Inputs {
				f.Inputs[i].Below = among[f.Name][f.Inputs[i].Name]
			}
			m.Functions = append(m.Functions, f)
		}
	}
	if d, ok := module.Attr("blu.train").(*ir.DictAttr); ok {
		t, err := training(d.Entries, m)
		if err != nil {
			return nil, err
		}
		m.Train = t
	}
	m.Memory = memory(m)
	return m, m.Check()
}

// state reads a declaration of storage, of a model or of a program.
func state(op *ir.Op) (artifact.State, error) {
	a := op.Attrs()
	t, ok := a.Get("type").(*ir.TypeAttr)
	if !ok {
		return artifact.State{}, op.Errorf("%s %s has no type", op.Name(), ir.SymName(op))
	}
	v, err := value(op, ir.SymName(op), t.Type)
	if err != nil {
		return artifact.State{}, err
	}
	s := artifact.State{Value: v, Role: artifact.Role(a.Str("role")), Persist: a.Bool("persist"), WeightDecay: a.FloatOr("weight_decay", 0)}
	s.Shard, s.Of = shard(op), a.Sym("of")
	if op.Is(blu.Param) {
		s.Role, s.Persist = artifact.Param, true
	}
	if init, ok := a.Get("init").(*ir.DictAttr); ok {
		s.Init = ir.Attrs(init.Entries).Str("text")
	}
	if dims, ok := a.Get("dims").(*ir.ArrayAttr); ok {
		for _, d := range dims.Elems {
			if d, ok := d.(*ir.StringAttr); ok {
				s.Dims = append(s.Dims, d.Value)
			}
		}
	}
	return s, nil
}

func value(op *ir.Op, name string, t ir.Type) (artifact.Value, error) {
	shape, ok := ir.Shape(t)
	d := dtype(ir.Elem(t))
	if !ok || d == formats.Invalid {
		return artifact.Value{}, op.Errorf("%s of type %s can't be stored", name, t)
	}
	return artifact.Value{Name: name, DType: d, Shape: append([]int64{}, shape...)}, nil
}

func dtype(t ir.Type) formats.DType {
	switch t := t.(type) {
	case *ir.FloatType:
		return map[ir.FloatKind]formats.DType{ir.F64: formats.F64, ir.F32: formats.F32, ir.F16: formats.F16, ir.BF16: formats.BF16}[t.Kind]
	case *ir.IntegerType:
		if t.Sign == ir.Signless {
			return map[int]formats.DType{1: formats.Bool, 8: formats.I8, 16: formats.I16, 32: formats.I32, 64: formats.I64}[t.Width]
		}
	}
	return formats.Invalid
}

// port is one entry of a function's interface.
type port struct {
	space, name string
	typ         ir.Type
	value       *ir.Value // nil: buffers have taken its place
}

func function(op *ir.Op) (artifact.Function, error) {
	f := artifact.Function{
		Name: ir.SymName(op), Inputs: []artifact.Value{}, Outputs: []artifact.Value{}, Scalars: []artifact.Value{},
		Arena: op.Attrs().IntOr("arena", 0),
	}
	interfaces, err := ports(op)
	if err != nil {
		return f, err
	}
	for _, p := range interfaces {
		v, err := value(op, p.name, p.typ)
		if err != nil {
			return f, err
		}
		switch p.space {
		case "input":
			f.Inputs = append(f.Inputs, v)
		case "output":
			f.Outputs = append(f.Outputs, v)
		case "scalar":
			f.Scalars = append(f.Scalars, v)
		}
	}
	return f, nil
}

// ports reads a function's interface: the attribute that the buffers phase leaves, or the attributes of arguments and
// results.
func ports(op *ir.Op) (out []port, err error) {
	if list, ok := op.Attr("mem.interface").(*ir.ArrayAttr); ok {
		for i, e := range list.Elems {
			d, _ := e.(*ir.DictAttr)
			if d == nil {
				return nil, op.Errorf("mem.interface: entry %d is %s, no dictionary", i, e)
			}
			a := ir.Attrs(d.Entries)
			t, _ := a.Get("type").(*ir.TypeAttr)
			if t == nil {
				return nil, op.Errorf("mem.interface: entry %d has no type", i)
			}
			out = append(out, port{a.Str("space"), a.Str("name"), t.Type, nil})
		}
		return out, nil
	}
	if !op.Is(fn.Func) {
		return nil, nil
	}
	args, err := portsOf(op, "arg_attrs", op.Body().Args())
	if err != nil {
		return nil, err
	}
	results, err := portsOf(op, "res_attrs", op.Body().Terminator().Operands())
	return append(args, results...), err
}

func portsOf(op *ir.Op, attr string, values []*ir.Value) (out []port, err error) {
	list, ok := op.Attr(attr).(*ir.ArrayAttr)
	if !ok {
		return nil, nil
	}
	for i, e := range list.Elems {
		d, _ := e.(*ir.DictAttr)
		if d == nil || i >= len(values) {
			return nil, op.Errorf("%s: entry %d is %s; there is a dictionary for each of %d values", attr, i, e, len(values))
		}
		for _, n := range d.Entries {
			if s, ok := n.Value.(*ir.StringAttr); ok && len(n.Name) > 4 {
				out = append(out, port{n.Name[len("blu."):], s.Value, values[i].Type(), values[i]})
			}
		}
	}
	return out, nil
}

// numbers reads a dictionary of integers, floating-point numbers and truth values.
func numbers(a ir.Attr) map[string]float64 {
	out := map[string]float64{}
	d, _ := a.(*ir.DictAttr)
	if d == nil {
		return out
	}
	for _, e := range d.Entries {
		switch v := e.Value.(type) {
		case *ir.IntegerAttr:
			out[e.Name] = float64(v.Value)
		case *ir.FloatAttr:
			out[e.Name] = v.Value
		}
	}
	return out
}

func training(a ir.Attrs, m *artifact.Manifest) (*artifact.Train, error) {
	batch := numbers(a.Get("batch"))
	t := &artifact.Train{
		Minimize: a.Sym("minimize"),
		Batch:    artifact.Batch{B: int64(batch["B"]), S: int64(batch["S"]), Accumulate: max(1, int64(batch["accumulate"]))},
		Schedule: method(a.Get("schedule")), Optimizer: method(a.Get("optimizer")), ClipNorm: a.FloatOr("clip_norm", 0),
	}
	f, ok := m.Function("accumulate")
	if !ok {
		return nil, fmt.Errorf("the module has a train block and no function accumulate: it has not been through the train phase")
	}
	t.Inputs = f.Inputs
	return t, nil
}

// method reads a dictionary with a kind and named numbers.
func method(a ir.Attr) artifact.Method {
	m := artifact.Method{Params: numbers(a)}
	if d, ok := a.(*ir.DictAttr); ok {
		m.Kind = ir.Attrs(d.Entries).Str("kind")
	}
	return m
}

func memory(m *artifact.Manifest) (t artifact.Memory) {
	for _, s := range m.States {
		switch s.Role {
		case artifact.Param:
			t.Params += s.Bytes()
		case artifact.Gradient:
			t.Gradients += s.Bytes()
		case artifact.Copy:
			t.Copies += s.Bytes()
		default:
			t.Optimizer += s.Bytes()
		}
	}
	for _, f := range m.Functions {
		t.Arena = max(t.Arena, f.Arena)
	}
	t.Total = t.Params + t.Gradients + t.Optimizer + t.Copies + t.Arena
	return t
}
