package autodiff

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/ir"
)

func number(b *blu.Builder, like *ir.Value, v float64) *ir.Value {
	return b.SplatLike(like, v)
}

// Points where no derivative exists, and values that are not taken: the gradient of sum(f) is what the package says.
func TestSpecialPoints(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		body func(b *blu.Builder, x *ir.Value) *ir.Value
		x    []float64
		want []float64
	}{
		{"relu", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Max(x, number(b, x, 0)) }, []float64{-1, 0, 2}, []float64{0, 0, 1}},
		{"abs", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Abs(x) }, []float64{-3, 0, 3}, []float64{-1, 0, 1}},
		{"max of ties is shared", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.ReduceMax(x, []int64{0}) },
			[]float64{1, 4, 4, 4}, []float64{0, 1. / 3, 1. / 3, 1. / 3}},
		{"norm of zero", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Sqrt(b.ReduceSum(b.Mul(x, x), []int64{0})) },
			[]float64{0, 0}, []float64{0, 0}},
		{"norm", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Sqrt(b.ReduceSum(b.Mul(x, x), []int64{0})) },
			[]float64{3, 4}, []float64{0.6, 0.8}},
		{"square at zero", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Pow(x, number(b, x, 2)) }, []float64{0, 3}, []float64{0, 6}},
		{"to the zeroth at zero", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Pow(x, number(b, x, 0)) }, []float64{0, 3}, []float64{0, 0}},
		{"zero to the x", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Pow(number(b, x, 0), x) }, []float64{1, 0}, []float64{0, 0}},
		{"sqrt not taken", func(b *blu.Builder, x *ir.Value) *ir.Value {
			return b.Select(b.Compare(x, number(b, x, 0.5), "gt"), b.Sqrt(x), number(b, x, 1))
		}, []float64{0, 4, -1}, []float64{0, 0.25, 0}},
		{"log not taken", func(b *blu.Builder, x *ir.Value) *ir.Value {
			return b.Select(b.Compare(x, number(b, x, 0), "gt"), b.Log(x), x)
		}, []float64{0, 4, -1}, []float64{1, 0.25, 1}},
		{"quotient not taken", func(b *blu.Builder, x *ir.Value) *ir.Value {
			sinc := b.Div(b.Sin(x), x)
			return b.Select(b.Compare(x, number(b, x, 0), "eq"), number(b, x, 1), sinc)
		}, []float64{0, math.Pi}, []float64{0, -1 / math.Pi}},
		{"overflow not taken", func(b *blu.Builder, x *ir.Value) *ir.Value {
			return b.Select(b.Compare(x, number(b, x, 80), "lt"), b.Mul(b.Exp(x), b.Exp(x)), x)
		}, []float64{1000, 0}, []float64{1, 2}},
		{"nested under sums and shapes", func(b *blu.Builder, x *ir.Value) *ir.Value {
			y := b.ReduceSum(b.ReshapeTo(b.Div(number(b, x, 1), x), 2, 1), []int64{1})
			return b.Select(b.Compare(x, number(b, x, 0), "eq"), x, y)
		}, []float64{0, 2}, []float64{1, -0.25}},
		{"not taken by max", func(b *blu.Builder, x *ir.Value) *ir.Value {
			return b.Max(b.Rsqrt(x), number(b, x, inf))
		}, []float64{0, 4}, []float64{0, 0}},
		{"the taken side keeps its infinity", func(b *blu.Builder, x *ir.Value) *ir.Value {
			return b.Select(b.Compare(x, number(b, x, 0.5), "lt"), b.Log(x), x)
		}, []float64{0, 4}, []float64{inf, 1}},
		{"a path around the select counts", func(b *blu.Builder, x *ir.Value) *ir.Value {
			s := b.Sin(x)
			return b.Add(s, b.Select(b.Compare(x, number(b, x, 0.5), "lt"), s, x))
		}, []float64{0, math.Pi}, []float64{2, 0}},
		{"masked softmax", func(b *blu.Builder, x *ir.Value) *ir.Value {
			y := b.Softmax(b.ReshapeTo(x, 2, 2), 1)
			return b.Mul(y, y)
		}, []float64{-inf, -inf, 0, -inf}, []float64{0, 0, 0, 0}},
		{"softmax far from one another", func(b *blu.Builder, x *ir.Value) *ir.Value { return b.Mul(x, b.Softmax(x, 0)) },
			[]float64{1e300, 0, -1e300}, []float64{1, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape := int64(len(c.x))
			got := gradientAt(t, []input{dims(shape)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
				return single(c.body(b, in[0]))
			}, c.x)[0]
			for i := range c.want {
				if math.IsInf(c.want[i], 0) {
					require.Equal(t, c.want[i], got[i], "%v", got)
				} else {
					require.InDelta(t, c.want[i], got[i], 1e-12, "%v", got)
				}
			}
		})
	}
}

// Ties of two operands: the second takes the gradient, none is lost.
func TestTiesOfTwo(t *testing.T) {
	for name, f := range map[string]func(b *blu.Builder, x, y *ir.Value) *ir.Value{
		"max": func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Max(x, y) },
		"min": func(b *blu.Builder, x, y *ir.Value) *ir.Value { return b.Min(x, y) },
	} {
		ds := gradientAt(t, []input{dims(1), dims(1)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			return single(f(b, in[0], in[1]))
		}, []float64{2}, []float64{2})
		require.Equal(t, [][]float64{{0}, {1}}, ds, name)
	}
}

// A batch whose targets are all ignored: sum and count are 0, and so is the gradient.
func TestEverythingIgnored(t *testing.T) {
	in := []input{dims(2, 3), indices([]int64{2}, -1, -1)}
	ds := gradientAt(t, in, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return b.CrossEntropy(in[0], in[1], -1).Results()[:1]
	}, []float64{1, 2, 3, 4, 5, 6}, []float64{-1, -1})
	require.Equal(t, make([]float64, 6), ds[0])
}

// One value used in many places gets the sum of what they give.
func TestContributionsAdd(t *testing.T) {
	ds := gradientAt(t, []input{dims(3, 2), indices([]int64{2}, 2, 2)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		rows := b.Gather(in[0], in[1])                                      // 2x2
		return single(b.Dot(rows, in[0], nil, nil, []int64{1}, []int64{1})) // tied: 2x3
	}, []float64{1, 2, 3, 4, 5, 6}, []float64{2, 2})
	// y = [r2; r2] Wt:  dW = [2 r2; 2 r2; 2 r2], and row 2 gets 2 (w0 + w1 + w2) from its use as embedding.
	require.Equal(t, []float64{10, 12, 10, 12, 10 + 18, 12 + 24}, ds[0])
}

// What the outputs don't depend on gets zeros.
func TestUnusedArgument(t *testing.T) {
	ds := gradientAt(t, []input{dims(2), dims(2)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		return single(b.Mul(in[0], b.StopGradient(in[1])))
	}, []float64{1, 2}, []float64{3, 4})
	require.Equal(t, [][]float64{{3, 4}, {0, 0}}, ds)
}

// A value that a select takes on one of its ways only needs no guard: what is not taken there counts elsewhere.
func TestNoGuardBesideASelect(t *testing.T) {
	p := newProgram(t, []input{dims(3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		y := b.Exp(in[0])
		return single(b.Add(y, b.Select(b.Compare(in[0], number(b, y, 0), "gt"), y, in[0])))
	})
	comparisons := 0
	for op := range p.vjp(p.fn).Body().Ops() {
		if op.Is(blu.Compare) {
			comparisons++
		}
	}
	require.Equal(t, 1, comparisons)
}

// Seeds that are padded with other than zeros are added, not joined.
func TestSeedsWithBorders(t *testing.T) {
	c := dialects.NewContext()
	f := newFunction(c, "f", c.Unknown())
	half := c.Tensor([]int64{2}, c.F64())
	x, u, v := f.arg(c.Tensor([]int64{4}, c.F64()), f.Loc), f.arg(half, f.Loc), f.arg(half, f.Loc)
	seeds := []*ir.Value{f.Pad(u, []int64{0}, []int64{2}, 7), f.Pad(v, []int64{2}, []int64{0}, 7)}
	ds, err := Backward(c, f.body, []*ir.Value{x, x}, seeds, []*ir.Value{x})
	require.NoError(t, err)
	f.result(ds[0])
	fn := f.finish()
	interp := ir.Interp{Ctx: c}
	out, err := interp.NewFrame().Run(fn.Body(), []ir.Datum{tensor(c, make([]float64, 4)), tensor(c, []float64{1, 2}), tensor(c, []float64{3, 4})})
	require.NoError(t, err)
	require.Equal(t, []float64{8, 9, 10, 11}, out[0].(*ir.Tensor).Data)
}
