package blu

import (
	"math"
	"math/rand/v2"
	"testing"

	"blutrain/ir"
	"github.com/stretchr/testify/require"
)

// bench is a block in which tests build operations on arguments with known values.
type bench struct {
	t     testing.TB
	ctx   *ir.Context
	b     *Builder
	block *ir.Block
	args  []*ir.Tensor
}

func newBench(t testing.TB) *bench {
	c := ir.NewContext(Dialect)
	c.AllowUnregistered = true
	block := c.NewOp(c.LookupOp("test.func"), ir.OpState{Regions: 1}).Region(0).AddBlock()
	return &bench{t: t, ctx: c, b: On(ir.NewBuilder(c, block)), block: block}
}

// arg adds an argument with a value.
func (n *bench) arg(x *ir.Tensor) *ir.Value {
	n.args = append(n.args, x)
	return n.block.AddArg(n.ctx.Tensor(x.Shape, x.Elem), nil)
}

// argsOf adds arguments.
func (n *bench) argsOf(xs []*ir.Tensor) []*ir.Value {
	vs := make([]*ir.Value, len(xs))
	for i, x := range xs {
		vs[i] = n.arg(x)
	}
	return vs
}

// tryEval verifies and evaluates all operations built so far.
func (n *bench) tryEval(want ...*ir.Value) ([]*ir.Tensor, error) {
	for op := range n.block.Ops() {
		if err := ir.Verify(n.ctx, op); err != nil {
			return nil, err
		}
	}
	f := (&ir.Interp{Ctx: n.ctx}).NewFrame()
	args := make([]ir.Datum, len(n.args))
	for i, x := range n.args {
		args[i] = x
	}
	if _, err := f.Run(n.block, args); err != nil {
		return nil, err
	}
	out := make([]*ir.Tensor, len(want))
	for i, v := range want {
		d, ok := f.Get(v)
		require.True(n.t, ok)
		out[i] = d.(*ir.Tensor)
		require.Equal(n.t, v.Type(), ir.Type(n.ctx.Tensor(out[i].Shape, out[i].Elem)), "the value has the type of the result")
	}
	return out, nil
}

func (n *bench) eval(want ...*ir.Value) []*ir.Tensor {
	n.t.Helper()
	out, err := n.tryEval(want...)
	require.NoError(n.t, err)
	return out
}

// f64, f32, i32, ... are tensors of a shape; without values they are zeros.
func (n *bench) of(elem ir.Type, shape []int64, values ...float64) *ir.Tensor {
	x := ir.NewTensor(elem, shape...)
	if len(values) > 0 {
		require.Len(n.t, values, len(x.Data))
		copy(x.Data, values)
	}
	return x
}

func (n *bench) f64(shape []int64, values ...float64) *ir.Tensor {
	return n.of(n.ctx.F64(), shape, values...)
}

func (n *bench) f32(shape []int64, values ...float64) *ir.Tensor {
	return n.of(n.ctx.F32(), shape, values...)
}

func (n *bench) i32(shape []int64, values ...float64) *ir.Tensor {
	return n.of(n.ctx.I32(), shape, values...)
}

func (n *bench) i1(shape []int64, values ...float64) *ir.Tensor {
	return n.of(n.ctx.I1(), shape, values...)
}

// normal is an f64 tensor of normal numbers, the same for the same seed.
func (n *bench) normal(seed uint64, shape ...int64) *ir.Tensor {
	r := rand.New(rand.NewPCG(seed, 7))
	x := n.f64(shape)
	for i := range x.Data {
		x.Data[i] = r.NormFloat64()
	}
	return x
}

func dims(ds ...int64) []int64 { return ds }

// distance is the greatest difference of elements, relative to the greatest element where that is above 1; infinities and
// NaNs must agree.
func distance(t testing.TB, got, want *ir.Tensor) float64 {
	t.Helper()
	require.Equal(t, want.Shape, got.Shape)
	worst, size := 0.0, 1.0
	for i, w := range want.Data {
		g := got.Data[i]
		switch {
		case g == w || g != g && w != w:
		case math.IsNaN(g) || math.IsInf(g, 0) || math.IsNaN(w) || math.IsInf(w, 0):
			return math.Inf(1)
		default:
			worst = max(worst, math.Abs(g-w))
		}
		if !math.IsInf(w, 0) && w == w {
			size = max(size, math.Abs(w))
		}
	}
	return worst / size
}

var (
	inf = math.Inf(1)
	nan = math.NaN()
)
