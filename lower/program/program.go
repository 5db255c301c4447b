// Package program turns functions on memory into the steps of a compiled program: the exec dialect. Views disappear into
// references with a byte offset and strides; what is left is a list of launches and copies.
package program

import (
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/ir"
)

// Run rewrites the module's functions, parameters and states.
func Run(c *ir.Context, module *ir.Op) error {
	b := ir.NewBuilder(c, nil)
	for op := range module.Body().Ops() {
		var err error
		switch op.Name() {
		case "blu.param":
			declare(b.Before(op), op, "param", true)
			op.Erase()
		case "blu.state":
			declare(b.Before(op), op, op.Attrs().Str("role"), op.Attrs().Bool("persist"))
			op.Erase()
		case "func.func":
			err = function(c, b.Before(op), op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// declare makes the exec.state of a parameter or state.
func declare(b *ir.Builder, op *ir.Op, role string, persist bool) {
	c := b.Ctx
	t := op.Attr("type").(*ir.TypeAttr).Type.(*ir.TensorType)
	n := b.CreateState(exec.State, ir.OpState{Loc: op.Loc(), Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: op.Attr("sym_name")},
		{Name: "type", Value: c.TypeAttr(c.MemRef(t.Shape, t.Elem))},
		{Name: "role", Value: c.String(role)},
		{Name: "persist", Value: c.Bool(persist)},
	}})
	for _, name := range []string{"of", "init", "dims", "weight_decay", "shard"} {
		n.SetAttr(name, op.Attr(name))
	}
}

func function(c *ir.Context, b *ir.Builder, fn *ir.Op) error {
	n := b.CreateState(exec.Func, ir.OpState{Loc: fn.Loc(), Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: fn.Attr("sym_name")},
		{Name: "arena", Value: fn.Attr("mem.arena")},
		{Name: "mem.interface", Value: fn.Attr("mem.interface")},
	}})
	t := &translator{c: c, b: ir.NewBuilder(c, n.Region(0).AddBlock()), refs: map[*ir.Value]*ir.Value{}}
	for op := range fn.Body().Ops() {
		if err := t.op(op); err != nil {
			return err
		}
	}
	fn.Erase()
	return nil
}

type translator struct {
	c    *ir.Context
	b    *ir.Builder
	refs map[*ir.Value]*ir.Value
}

func (t *translator) op(op *ir.Op) error {
	t.b.At(op.Loc())
	switch {
	case op.Is(mem.Buffer):
		t.refs[op.Result(0)] = t.ref(op, op.Result(0).Type().(*ir.MemRefType))
	case op.Is(mem.View):
		t.refs[op.Result(0)] = t.ref(op.Operand(0).Op(), op.Result(0).Type().(*ir.MemRefType))
	case op.Is(mem.Collective):
		t.b.CreateState(exec.Collective, ir.OpState{Operands: t.operands(op), Attrs: op.Attrs()})
	case op.Is(mem.Wait):
		t.b.CreateState(exec.Wait, ir.OpState{Attrs: op.Attrs()})
	case op.Is(mem.Copy):
		t.b.CreateState(exec.Copy, ir.OpState{Operands: t.operands(op)})
	case op.Name() == "tile.launch":
		t.b.CreateState(exec.Launch, ir.OpState{Operands: t.operands(op), Attrs: op.Attrs()})
	case op.Has(ir.Terminator):
		t.b.CreateState(exec.End, ir.OpState{})
	default:
		return op.Errorf("%s is no operation on memory", op.Name())
	}
	return nil
}

func (t *translator) operands(op *ir.Op) []*ir.Value {
	vs := op.Operands()
	for i, v := range vs {
		vs[i] = t.refs[v]
	}
	return vs
}

// ref makes the exec.ref of a view of a buffer.
func (t *translator) ref(buffer *ir.Op, view *ir.MemRefType) *ir.Value {
	strides, offset := mem.Layout(view)
	at := buffer.Attrs().IntOr("offset", 0) + offset*ir.ByteSize(view.Elem)
	attrs := []ir.NamedAttr{{Name: "space", Value: buffer.Attr("space")}, {Name: "offset", Value: t.c.Int64(at)}}
	for _, name := range []string{"name", "value"} {
		if a := buffer.Attr(name); a != nil {
			attrs = append(attrs, ir.NamedAttr{Name: name, Value: a})
		}
	}
	typ := t.c.MemRefWith(view.Shape, view.Elem, t.c.Strided(strides, 0), view.Space)
	return t.b.CreateState(exec.Ref, ir.OpState{Attrs: attrs, Results: []ir.Type{typ}}).Result(0)
}
