package autodiff

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/test/numbers"
)

// model builds a module as the frontend does: parameters, private functions, an exported loss.
type model struct {
	t      *testing.T
	c      *ir.Context
	module *ir.Op
	in     *numbers.Values
}

func newModel(t *testing.T, inputs string, params []string, decay float64) *model {
	c := dialects.NewContext()
	module := ir.NewBuilder(c, nil).CreateState(c.LookupOp("builtin.module"), ir.OpState{Regions: 1})
	module.Region(0).AddBlock()
	m := &model{t, c, module, numbers.Golden(t, inputs)}
	zeros := c.Dict(ir.NamedAttr{Name: "kind", Value: c.String("zeros")})
	for _, name := range params {
		attrs := []ir.NamedAttr{
			{Name: "sym_name", Value: c.String(name)},
			{Name: "type", Value: c.TypeAttr(m.typeOf(name))},
			{Name: "init", Value: zeros},
		}
		if decay > 0 && len(m.in.Tensor(t, name).Shape) >= 2 {
			attrs = append(attrs, ir.NamedAttr{Name: "weight_decay", Value: c.FloatAttr(decay, c.F64())})
		}
		ir.NewBuilder(c, module.Body()).CreateState(blu.Param, ir.OpState{Attrs: attrs})
	}
	return m
}

// typeOf is the IR type of a stored tensor.
func (m *model) typeOf(name string) *ir.TensorType {
	x := m.in.Tensor(m.t, name)
	var elem ir.Type = m.c.F32()
	if !x.DType.IsFloat() {
		elem = m.c.I32()
	}
	return m.c.Tensor(x.Shape, elem)
}

// get reads a parameter in place.
func (m *model) get(b *blu.Builder, name string) *ir.Value {
	op := b.CreateState(blu.Get, ir.OpState{
		Attrs:   []ir.NamedAttr{{Name: "param", Value: m.c.Symbol(name)}},
		Results: []ir.Type{m.typeOf(name)},
	})
	return op.Result(0)
}

// call calls a private function with values as arguments.
func (m *model) call(b *blu.Builder, callee *ir.Op, args ...*ir.Value) []*ir.Value {
	calls := fn.Builder{Builder: b.Builder}
	return calls.Call(args, ir.SymName(callee), ir.FuncType(callee).Results).Results()
}

// add puts a finished function into the module.
func (m *model) add(f *function, private bool) *ir.Op {
	op := f.finish()
	if private {
		op.SetAttr("sym_visibility", m.c.String("private"))
	}
	m.module.Body().Append(op)
	return op
}

func (m *model) input(f *function, name string, t ir.Type) *ir.Value {
	return f.arg(t, f.Loc, ir.NamedAttr{Name: inputAttr, Value: m.c.String(name)})
}

// linear is x wT + bias over the last axis; bias may be nil.
func linear(b *blu.Builder, x, w, bias *ir.Value) *ir.Value {
	last := int64(len(x.Shape()) - 1)
	y := b.Dot(x, w, nil, nil, []int64{last}, []int64{1})
	if bias == nil {
		return y
	}
	return b.Add(y, b.BroadcastTo(bias, []int64{last}, y.Shape()))
}

// heads is [B, S, n D] as [B, n, S, D].
func heads(b *blu.Builder, x *ir.Value, n int64) *ir.Value {
	s := x.Shape()
	return b.Transpose(b.ReshapeTo(x, s[0], s[1], n, s[2]/n), []int64{0, 2, 1, 3})
}

// merge undoes heads.
func merge(b *blu.Builder, x *ir.Value) *ir.Value {
	s := x.Shape()
	return b.ReshapeTo(b.Transpose(x, []int64{0, 2, 1, 3}), s[0], s[2], s[1]*s[3])
}

// cutLast is x[..., from:to].
func cutLast(b *blu.Builder, x *ir.Value, from, to int64) *ir.Value {
	starts, limits, steps := make([]int64, len(x.Shape())), append([]int64{}, x.Shape()...), make([]int64, len(x.Shape()))
	for i := range steps {
		steps[i] = 1
	}
	starts[len(starts)-1], limits[len(limits)-1] = from, to
	return b.Slice(x, starts, limits, steps)
}

var gpt2Block = []string{"ln1_g", "ln1_b", "qkv_w", "qkv_b", "proj_w", "proj_b", "ln2_g", "ln2_b", "fc_w", "fc_b", "out_w", "out_b"}

// gpt2 is gpt2-small: see test/numbers/scripts/gpt2_small.py. Batches have the given shape.
func gpt2(t *testing.T, batch []int64, decay float64) *model {
	const layers, H, C = 2, 2, 32
	params := []string{"wte", "wpe"}
	for i := range layers {
		for _, n := range gpt2Block {
			params = append(params, fmt.Sprintf("h.%d.%s", i, n))
		}
	}
	m := newModel(t, "gpt2-small.inputs", append(params, "lnf_g", "lnf_b"), decay)
	c := m.c
	x := c.Tensor([]int64{batch[0], batch[1], C}, c.F32())

	f := newFunction(c, "block.forward", c.FileLoc("gpt2.blu", 20, 5))
	v := []*ir.Value{f.arg(x, f.Loc)}
	for _, n := range gpt2Block {
		v = append(v, f.arg(m.typeOf("h.0."+n), f.Loc))
	}
	h := f.Layernorm(v[0], v[1], v[2], 1e-5).Result(0)
	qkv := linear(f.Builder, h, v[3], v[4])
	part := func(i int64) *ir.Value { return heads(f.Builder, cutLast(f.Builder, qkv, i*C, (i+1)*C), H) }
	a := f.Attention(part(0), part(1), part(2), true, 0.25).Result(0)
	y := f.Add(v[0], linear(f.Builder, merge(f.Builder, a), v[5], v[6]))
	h = f.Layernorm(y, v[7], v[8], 1e-5).Result(0)
	h = linear(f.Builder, f.Gelu(linear(f.Builder, h, v[9], v[10]), "tanh"), v[11], v[12])
	f.result(f.Add(y, h))
	block := m.add(f, true)

	f = newFunction(c, "logits", c.FileLoc("gpt2.blu", 33, 3))
	tokens := m.input(f, "tokens", c.Tensor(batch, c.I32()))
	wte := m.get(f.Builder, "wte")
	rows := f.Slice(m.get(f.Builder, "wpe"), []int64{0, 0}, []int64{batch[1], C}, []int64{1, 1})
	z := f.Add(f.Gather(wte, tokens), f.BroadcastTo(rows, []int64{1, 2}, x.Shape))
	for i := range layers {
		args := []*ir.Value{z}
		for _, n := range gpt2Block {
			args = append(args, m.get(f.Builder, fmt.Sprintf("h.%d.%s", i, n)))
		}
		z = m.call(f.Builder, block, args...)[0]
	}
	z = f.Layernorm(z, m.get(f.Builder, "lnf_g"), m.get(f.Builder, "lnf_b"), 1e-5).Result(0)
	f.output("logits", linear(f.Builder, z, wte, nil))
	logits := m.add(f, false)

	f = newFunction(c, "loss", c.FileLoc("gpt2.blu", 40, 3))
	tokens = m.input(f, "tokens", c.Tensor(batch, c.I32()))
	targets := m.input(f, "targets", c.Tensor(batch, c.I32()))
	ce := f.CrossEntropy(m.call(f.Builder, logits, tokens)[0], targets, -1)
	f.output("sum", ce.Result(0))
	f.output("count", ce.Result(1))
	m.add(f, false)
	return m
}

// train adds a train block and turns the model into its programs.
func (m *model) train(clip float64, optimizer ...ir.NamedAttr) *runner {
	c := m.c
	m.module.SetAttr("blu.train", c.Dict(
		ir.NamedAttr{Name: "minimize", Value: c.Symbol("loss")},
		ir.NamedAttr{Name: "clip_norm", Value: c.FloatAttr(clip, c.F64())},
		ir.NamedAttr{Name: "optimizer", Value: c.Dict(optimizer...)},
	))
	require.NoError(m.t, ir.Verify(m.c, m.module))
	require.NoError(m.t, Train(c, m.module))
	require.NoError(m.t, ir.Verify(m.c, m.module))
	r := &runner{m.t, ir.Interp{Ctx: c, Module: m.module}, map[string]*ir.Tensor{}}
	for op := range m.module.Body().Ops() {
		switch {
		case op.Is(blu.Param):
			r.storage[ir.SymName(op)] = datum(c, m.in, m.t, ir.SymName(op))
		case op.Is(blu.State):
			typ := op.Attr("type").(*ir.TypeAttr).Type.(*ir.TensorType)
			r.storage[ir.SymName(op)] = ir.NewTensor(typ.Elem, typ.Shape...)
		}
	}
	return r
}

// datum is a stored tensor as the reference evaluation has it.
func datum(c *ir.Context, v *numbers.Values, t *testing.T, name string) *ir.Tensor {
	x := v.Tensor(t, name)
	var elem ir.Type = c.F32()
	if !x.DType.IsFloat() {
		elem = c.I32()
	}
	return &ir.Tensor{Shape: x.Shape, Elem: elem, Data: x.Float64s()}
}

// runner runs the functions of a train-phase module by reference evaluation, as a runtime would.
type runner struct {
	t       *testing.T
	interp  ir.Interp
	storage map[string]*ir.Tensor
}

// call runs a function: states from the storage and back to it, the rest by name.
func (r *runner) call(name string, given map[string]*ir.Tensor) map[string]*ir.Tensor {
	r.t.Helper()
	fn := r.interp.Symbol(name)
	require.NotNil(r.t, fn, name)
	var in []ir.Datum
	for i := range fn.Body().Args() {
		role := ir.Attrs(roles(fn, "arg_attrs", i))
		source := given[role.Str(inputAttr)+role.Str(scalarAttr)]
		if s := role.Sym(stateAttr); s != "" {
			source = r.storage[s]
		}
		require.NotNil(r.t, source, "%s: argument %d %v", name, i, role)
		in = append(in, source)
	}
	out, err := r.interp.Call(name, in...)
	require.NoError(r.t, err)
	outputs := map[string]*ir.Tensor{}
	for i, d := range out {
		role := ir.Attrs(roles(fn, "res_attrs", i))
		if s := role.Sym(stateAttr); s != "" {
			r.storage[s] = d.(*ir.Tensor)
		} else {
			outputs[role.Str(outputAttr)] = d.(*ir.Tensor)
		}
	}
	return outputs
}

func scalar(v float64) *ir.Tensor { return &ir.Tensor{Data: []float64{v}} }
