package autodiff

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/frontend"
	"blutrain/ir"
	"blutrain/test/numbers"
)

// model is a module as the frontend makes it, and stored values for its parameters.
type model struct {
	t      *testing.T
	c      *ir.Context
	module *ir.Op
	in     *numbers.Values
}

func newModel(t *testing.T, inputs string, params ...string) *model {
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
		ir.NewBuilder(c, module.Body()).CreateState(blu.Param, ir.OpState{Attrs: attrs})
	}
	return m
}

// compiled is an example at the sizes of the stored values, each text replaced as given.
func compiled(t *testing.T, example, inputs string, sizes map[string]float64, replace ...string) *model {
	src, err := os.ReadFile("../examples/" + example)
	require.NoError(t, err)
	c := dialects.NewContext()
	module, diags := frontend.Compile(c, example, []byte(strings.NewReplacer(replace...).Replace(string(src))), frontend.Options{Set: sizes})
	require.NotNil(t, module, "%v", diags)
	return &model{t, c, module, numbers.Golden(t, inputs)}
}

// gpt2 is gpt2-small with batches of some rows: see test/numbers/scripts/gpt2_small.py.
func gpt2(t *testing.T, rows int64, replace ...string) *model {
	sizes := map[string]float64{"V": 97, "T": 32, "L": 2, "H": 2, "C": 32, "B": float64(rows), "S": 24}
	return compiled(t, "gpt2.blu", "gpt2-small.inputs", sizes, replace...)
}

// llama is llama-small: see test/numbers/scripts/llama_small.py.
func llama(t *testing.T) *model {
	sizes := map[string]float64{"V": 97, "L": 2, "H": 4, "K": 2, "C": 32, "F": 48, "B": 2, "S": 24}
	return compiled(t, "llama.blu", "llama-small.inputs", sizes)
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
	return b.Get(name, m.typeOf(name))
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

// cutLast is x[..., from:to].
func cutLast(b *blu.Builder, x *ir.Value, from, to int64) *ir.Value {
	starts, limits, steps := make([]int64, len(x.Shape())), append([]int64{}, x.Shape()...), make([]int64, len(x.Shape()))
	for i := range steps {
		steps[i] = 1
	}
	starts[len(starts)-1], limits[len(limits)-1] = from, to
	return b.Slice(x, starts, limits, steps)
}

// train adds a train block and turns the model into its programs.
func (m *model) train(clip float64, optimizer ...ir.NamedAttr) *runner {
	c := m.c
	m.module.SetAttr("blu.train", c.Dict(
		ir.NamedAttr{Name: "minimize", Value: c.Symbol("loss")},
		ir.NamedAttr{Name: "clip_norm", Value: c.FloatAttr(clip, c.F64())},
		ir.NamedAttr{Name: "optimizer", Value: c.Dict(optimizer...)},
	))
	return m.programs()
}

// programs turns the model into its programs.
func (m *model) programs() *runner {
	c := m.c
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
