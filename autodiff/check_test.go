package autodiff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// build writes a function's body.
type build func(b *blu.Builder, in []*ir.Value) []*ir.Value

// program is a module with one function @f in float64, whose gradient is looked at.
type program struct {
	t      *testing.T
	c      *ir.Context
	module *ir.Op
	fn     *ir.Op
}

// input is the type of one argument; integers are given, floating-point values are drawn.
type input struct {
	shape []int64
	ints  []int64                  // an i32 argument with these values
	draw  func(*rand.Rand) float64 // nil: normal
}

func dims(ns ...int64) input { return input{shape: ns} }

func indices(shape []int64, ints ...int64) input { return input{shape: shape, ints: ints} }

// drawn gives an argument a distribution.
func (in input) drawn(draw func(*rand.Rand) float64) input { in.draw = draw; return in }

func (in input) elem(c *ir.Context) ir.Type {
	if in.ints != nil {
		return c.I32()
	}
	return c.F64()
}

func newProgram(t *testing.T, inputs []input, body build) *program {
	t.Helper()
	return newProgramOf(t, ir.F64, inputs, body)
}

// newProgramOf makes the program with floating-point arguments of another kind.
func newProgramOf(t *testing.T, kind ir.FloatKind, inputs []input, body build) *program {
	t.Helper()
	c := dialects.NewContext()
	f := newFunction(c, "f", c.FileLoc("test.blu", 1, 1))
	var args []*ir.Value
	for _, in := range inputs {
		elem := in.elem(c)
		if ir.IsFloat(elem) {
			elem = c.Float(kind)
		}
		args = append(args, f.arg(c.Tensor(in.shape, elem), f.Loc))
	}
	for _, v := range body(f.Builder, args) {
		f.result(v)
	}
	p := &program{t: t, c: c, fn: f.finish()}
	p.module = ir.NewBuilder(c, nil).CreateState(c.LookupOp("builtin.module"), ir.OpState{Regions: 1})
	p.module.Region(0).AddBlock().Append(p.fn)
	p.verify()
	return p
}

func (p *program) verify() {
	p.t.Helper()
	require.NoError(p.t, ir.Verify(p.c, p.module), "%s", p.module)
}

// vjp adds the gradient of fn by its floating-point arguments to the module.
func (p *program) vjp(fn *ir.Op) *ir.Op {
	p.t.Helper()
	var wrt []int
	for i, a := range fn.Body().Args() {
		if ir.IsFloat(a.Type()) {
			wrt = append(wrt, i)
		}
	}
	g, err := VJP(p.c, p.module, fn, ir.SymName(fn)+".vjp", wrt)
	require.NoError(p.t, err)
	p.module.Body().Append(g)
	p.verify()
	return g
}

// call evaluates a function of the module.
func (p *program) call(fn *ir.Op, args []*ir.Tensor) []*ir.Tensor {
	p.t.Helper()
	in := make([]ir.Datum, len(args))
	for i, a := range args {
		in[i] = a
	}
	interp := ir.Interp{Ctx: p.c, Module: p.module}
	out, err := interp.Call(ir.SymName(fn), in...)
	require.NoError(p.t, err)
	ts := make([]*ir.Tensor, len(out))
	for i, d := range out {
		ts[i] = d.(*ir.Tensor)
	}
	return ts
}

func (p *program) tensors(rng *rand.Rand, inputs []input) []*ir.Tensor {
	ts := make([]*ir.Tensor, len(inputs))
	for i, in := range inputs {
		ts[i] = ir.NewTensor(in.elem(p.c), in.shape...)
		for k := range ts[i].Data {
			switch {
			case in.ints != nil:
				ts[i].Data[k] = float64(in.ints[k])
			case in.draw != nil:
				ts[i].Data[k] = in.draw(rng)
			default:
				ts[i].Data[k] = rng.NormFloat64()
			}
		}
	}
	return ts
}

// dotProductTest compares <u, J v>, with J v by finite differences of fn at x, with <JT u, v> by its gradient, in a
// random direction v and for a random cotangent u. It returns the gradient function and the arguments it was called with.
func (p *program) dotProductTest(rng *rand.Rand, fn *ir.Op, x []*ir.Tensor) (*ir.Op, []*ir.Tensor) {
	p.t.Helper()
	g := p.vjp(fn)
	v := make([]*ir.Tensor, len(x))
	for i := range x {
		v[i] = random(rng, x[i])
	}
	jv := p.directional(fn, x, v)
	args := append([]*ir.Tensor{}, x...)
	var u []*ir.Tensor
	forward := 0.0
	for i, y := range p.call(fn, x) {
		if !ir.IsFloat(y.Elem) {
			continue
		}
		w := random(rng, y)
		u = append(u, w)
		forward += inner(w.Data, jv[i])
	}
	args = append(args, u...)
	results := p.call(g, args)
	gradients := results[len(results)-floats(x):]
	backward, scale := 0.0, 0.0
	for i, k := 0, 0; i < len(x); i++ {
		if ir.IsFloat(x[i].Elem) {
			require.Equal(p.t, x[i].Shape, gradients[k].Shape)
			backward += inner(gradients[k].Data, v[i].Data)
			scale += math.Sqrt(inner(gradients[k].Data, gradients[k].Data) * inner(v[i].Data, v[i].Data))
			k++
		}
	}
	require.InDelta(p.t, forward, backward, 1e-8*(scale+math.Abs(forward)+1e-3), "%s", ir.SymName(g))
	return g, args
}

// directional is J v for each result, by central differences of fourth order.
func (p *program) directional(fn *ir.Op, x, v []*ir.Tensor) [][]float64 {
	p.t.Helper()
	const h = 1e-3
	at := func(s float64) []*ir.Tensor {
		moved := make([]*ir.Tensor, len(x))
		for i := range x {
			moved[i] = ir.NewTensor(x[i].Elem, x[i].Shape...)
			for k := range x[i].Data {
				moved[i].Data[k] = x[i].Data[k] + s*v[i].Data[k]
			}
		}
		return p.call(fn, moved)
	}
	far, near, back, farBack := at(2*h), at(h), at(-h), at(-2*h)
	d := make([][]float64, len(near))
	for i := range near {
		d[i] = make([]float64, len(near[i].Data))
		for k := range d[i] {
			d[i][k] = (8*(near[i].Data[k]-back[i].Data[k]) - (far[i].Data[k] - farBack[i].Data[k])) / (12 * h)
		}
	}
	return d
}

// random is a tensor like x with normal elements, or zero for integers, which can't move.
func random(rng *rand.Rand, x *ir.Tensor) *ir.Tensor {
	r := ir.NewTensor(x.Elem, x.Shape...)
	if ir.IsFloat(x.Elem) {
		for k := range r.Data {
			r.Data[k] = rng.NormFloat64()
		}
	}
	return r
}

func inner(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func floats(ts []*ir.Tensor) int {
	n := 0
	for _, t := range ts {
		if ir.IsFloat(t.Elem) {
			n++
		}
	}
	return n
}

// tensor is a float64 tensor of rank 1.
func tensor(c *ir.Context, data []float64) *ir.Tensor {
	return &ir.Tensor{Shape: []int64{int64(len(data))}, Elem: c.F64(), Data: data}
}

// gradientAt is the gradient of sum(f(x)) by every argument.
func gradientAt(t *testing.T, inputs []input, body build, x ...[]float64) [][]float64 {
	t.Helper()
	p := newProgram(t, inputs, body)
	args := make([]*ir.Tensor, len(x))
	for i := range x {
		args[i] = &ir.Tensor{Shape: inputs[i].shape, Elem: inputs[i].elem(p.c), Data: x[i]}
	}
	results := p.call(p.fn, args)
	n := len(results)
	for _, y := range results {
		ones := ir.NewTensor(y.Elem, y.Shape...)
		for k := range ones.Data {
			ones.Data[k] = 1
		}
		args = append(args, ones)
	}
	var ds [][]float64
	for _, d := range p.call(p.vjp(p.fn), args)[n:] {
		ds = append(ds, d.Data)
	}
	return ds
}

func seeded(name string) *rand.Rand {
	seed := uint64(14695981039346656037)
	for _, b := range []byte(fmt.Sprint(name)) {
		seed = (seed ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, 1))
}
