package blu

import (
	"math"
	"testing"

	"blutrain/ir"
	"github.com/stretchr/testify/require"
)

// near says that two lists of numbers are equal to a few units in the last place, NaNs and infinities exactly.
func near(t *testing.T, want, got []float64, msg ...any) {
	t.Helper()
	require.Len(t, got, len(want), msg...)
	for i, w := range want {
		if w != w || math.IsInf(w, 0) {
			require.True(t, w == got[i] || w != w && got[i] != got[i], "element %d: %v, want %v (%v)", i, got[i], w, msg)
			continue
		}
		require.InDelta(t, w, got[i], 4e-16*math.Max(1, math.Abs(w)), "element %d (%v)", i, msg)
	}
}

// Values worked out by hand, or known constants.
func TestElementwise(t *testing.T) {
	third := 1.0 / 3
	unary := map[*ir.OpDef][2][]float64{
		Neg:     {{1, 0, -inf}, {-1, 0, inf}},
		Abs:     {{-2, 0, -inf, nan}, {2, 0, inf, nan}},
		Exp:     {{0, 1, -inf, inf}, {1, math.E, 0, inf}},
		Log:     {{1, math.E, 0, -1}, {0, 1, -inf, nan}},
		Sqrt:    {{4, 0, 2, -1}, {2, 0, math.Sqrt2, nan}},
		Rsqrt:   {{4, 0, inf, -1}, {0.5, inf, 0, nan}},
		Tanh:    {{0, inf, -inf, math.Atanh(0.5)}, {0, 1, -1, 0.5}},
		Erf:     {{0, inf, 0.4769362762044699}, {0, 1, 0.5}}, // the probable error
		Sigmoid: {{0, 1000, -1000, math.Log(2)}, {0.5, 1, 0, 2 * third}},
		Sin:     {{0, math.Pi / 6}, {0, 0.5}},
		Cos:     {{0, math.Pi / 3}, {1, 0.5}},
		Sign:    {{-3, 0, 7, nan}, {-1, 0, 1, nan}},
		Floor:   {{-1.5, 1.5, -0.25}, {-2, 1, -1}},

		StopGradient: {{1, nan}, {1, nan}},
	}
	for def, c := range unary {
		n := newBench(t)
		op := n.b.Create(def, []*ir.Value{n.arg(n.f64(dims(int64(len(c[0]))), c[0]...))})
		near(t, c[1], n.eval(op.Result(0))[0].Data, def.Name)
	}
	binary := map[*ir.OpDef][3][]float64{
		Add: {{1, inf, inf}, {2, 1, -inf}, {3, inf, nan}},
		Sub: {{1, inf}, {2, inf}, {-1, nan}},
		Mul: {{3, 0}, {-2, inf}, {-6, nan}},
		Div: {{1, 1, 0}, {4, 0, 0}, {0.25, inf, nan}},
		Pow: {{2, 0, 9, -8, nan, 1}, {10, 0, 0.5, third, 0, nan}, {1024, 1, 3, nan, 1, 1}},
		Max: {{1, nan, inf, nan}, {2, 1, nan, inf}, {2, nan, nan, nan}},
		Min: {{1, nan, -inf, nan}, {2, 1, nan, -inf}, {1, nan, nan, nan}},
	}
	for def, c := range binary {
		n := newBench(t)
		shape := dims(int64(len(c[0])))
		op := n.b.Create(def, []*ir.Value{n.arg(n.f64(shape, c[0]...)), n.arg(n.f64(shape, c[1]...))})
		near(t, c[2], n.eval(op.Result(0))[0].Data, def.Name)
	}
}

func TestIntegers(t *testing.T) {
	const least, most = -1 << 31, 1<<31 - 1
	for def, c := range map[*ir.OpDef][3][]float64{
		Add: {{most, 2}, {1, 3}, {least, 5}},
		Sub: {{least, 2}, {1, 3}, {most, -1}},
		Mul: {{1 << 16, -3}, {1 << 15, 5}, {least, -15}},
		Div: {{7, -7}, {2, 2}, {3, -3}},
		Max: {{-1, 2}, {-2, 3}, {-1, 3}},
	} {
		n := newBench(t)
		op := n.b.Create(def, []*ir.Value{n.arg(n.i32(dims(2), c[0]...)), n.arg(n.i32(dims(2), c[1]...))})
		near(t, c[2], n.eval(op.Result(0))[0].Data, def.Name)
	}
	n := newBench(t)
	_ = n.b.Div(n.arg(n.i32(dims(3), 1, 2, 3)), n.arg(n.i32(dims(3), 1, 1, 0)))
	_, err := n.tryEval()
	require.ErrorContains(t, err, "integer division by zero at element 2")
}

func TestLogic(t *testing.T) {
	n := newBench(t)
	a, b := n.arg(n.i1(dims(4), 0, 0, 1, 1)), n.arg(n.i1(dims(4), 0, 1, 0, 1))
	out := n.eval(n.b.And(a, b), n.b.Or(a, b), n.b.Not(a))
	near(t, []float64{0, 0, 0, 1}, out[0].Data)
	near(t, []float64{0, 1, 1, 1}, out[1].Data)
	near(t, []float64{1, 1, 0, 0}, out[2].Data)
}

func TestCompareAndSelect(t *testing.T) {
	n := newBench(t)
	a, b := n.arg(n.f64(dims(4), 1, 2, 3, nan)), n.arg(n.f64(dims(4), 2, 2, 2, nan))
	want := map[string][]float64{"eq": {0, 1, 0, 0}, "ne": {1, 0, 1, 1}, "lt": {1, 0, 0, 0}, "le": {1, 1, 0, 0}, "gt": {0, 0, 1, 0}, "ge": {0, 1, 1, 0}}
	for p, w := range want {
		near(t, w, n.eval(n.b.Compare(a, b, p))[0].Data, p)
	}
	taken := n.b.Select(n.b.Compare(a, b, "eq"), n.b.SplatLike(a, nan), b)
	near(t, []float64{2, nan, 2, nan}, n.eval(taken)[0].Data)
}

func TestCast(t *testing.T) {
	n := newBench(t)
	for _, c := range []struct {
		to         ir.Type
		from, want []float64
	}{
		{n.ctx.I32(), []float64{1.9, -1.9, nan, 1e20, -inf}, []float64{1, -1, 0, 1<<31 - 1, -1 << 31}},
		{n.ctx.I1(), []float64{0, 0.5, nan}, []float64{0, 1, 1}},
		{n.ctx.Float(ir.BF16), []float64{1 + 1.0/256, 1 + 3.0/256, 3.4e38}, []float64{1, 1 + 4.0/256, inf}}, // ties to even
		{n.ctx.Float(ir.F16), []float64{65520, 2049, 3e-8}, []float64{inf, 2048, math.Ldexp(1, -24)}},
		{n.ctx.F32(), []float64{0.1}, []float64{0.1}}, // the reference keeps what f32 does not
	} {
		v := n.b.CastTo(n.arg(n.f64(dims(int64(len(c.from))), c.from...)), c.to)
		near(t, c.want, n.eval(v)[0].Data, c.to)
	}
	truth := n.b.CastTo(n.arg(n.i1(dims(2), 0, 1)), n.ctx.F64())
	near(t, []float64{0, 1}, n.eval(truth)[0].Data)
}

func TestShapes(t *testing.T) {
	n := newBench(t)
	x := n.arg(n.f64(dims(2, 3), 1, 2, 3, 4, 5, 6))
	v := n.arg(n.f64(dims(2, 1), 7, 8))
	empty := n.arg(n.f64(dims(2, 0)))
	for _, c := range []struct {
		name string
		v    *ir.Value
		want []float64
	}{
		{"new leading axis", n.b.BroadcastTo(x, dims(1, 2), dims(2, 2, 3)), []float64{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}},
		{"new last axis", n.b.BroadcastTo(x, dims(0, 1), dims(2, 3, 2)), []float64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}},
		{"stretched", n.b.BroadcastTo(v, dims(0, 1), dims(2, 3)), []float64{7, 7, 7, 8, 8, 8}},
		{"scalar", n.b.Fill(n.b.Splat(n.ctx.Tensor(nil, n.ctx.F64()), 5), dims(2)), []float64{5, 5}},
		{"to nothing", n.b.BroadcastTo(v, dims(0, 1), dims(2, 0)), nil},
		{"reshape", n.b.ReshapeTo(x, 3, 2), []float64{1, 2, 3, 4, 5, 6}},
		{"transpose", n.b.Transpose(x, dims(1, 0)), []float64{1, 4, 2, 5, 3, 6}},
		{"slice", n.b.Slice(x, dims(0, 1), dims(2, 3), dims(1, 1)), []float64{2, 3, 5, 6}},
		{"strided slice", n.b.Slice(x, dims(1, 0), dims(2, 3), dims(1, 2)), []float64{4, 6}},
		{"empty slice", n.b.Slice(x, dims(2, 0), dims(2, 3), dims(1, 1)), nil},
		{"pad", n.b.Pad(v, dims(0, 1), dims(1, 1), -1), []float64{-1, 7, -1, -1, 8, -1, -1, -1, -1}},
		{"pad nothing", n.b.Pad(empty, dims(0, 1), dims(0, 0), 3), []float64{3, 3}},
		{"concat", n.b.Concat([]*ir.Value{x, v, empty}, 1), []float64{1, 2, 3, 7, 4, 5, 6, 8}},
		{"iota", n.b.Iota(1, n.ctx.Tensor(dims(2, 3), n.ctx.I32())), []float64{0, 1, 2, 0, 1, 2}},
		{"iota rows", n.b.Iota(0, n.ctx.Tensor(dims(2, 3), n.ctx.F32())), []float64{0, 0, 0, 1, 1, 1}},
	} {
		near(t, c.want, n.eval(c.v)[0].Data, c.name)
	}
}

func TestReductions(t *testing.T) {
	n := newBench(t)
	x := n.arg(n.f64(dims(2, 3), 1, 5, 3, 4, nan, 6))
	y := n.arg(n.f64(dims(2, 1, 3), 1, 2, 3, 4, 5, 6))
	none := n.arg(n.f64(dims(2, 0)))
	ints := n.arg(n.i32(dims(0)))
	for _, c := range []struct {
		name string
		v    *ir.Value
		want []float64
	}{
		{"sum of rows", n.b.ReduceSum(y, dims(2)), []float64{6, 15}},
		{"sum of columns", n.b.ReduceSum(y, dims(0, 1)), []float64{5, 7, 9}},
		{"sum of all", n.b.ReduceSum(y, dims(0, 1, 2)), []float64{21}},
		{"sum of nothing", n.b.ReduceSum(none, dims(1)), []float64{0, 0}},
		{"no sums", n.b.ReduceSum(none, dims(0)), nil},
		{"max with nan", n.b.ReduceMax(x, dims(1)), []float64{5, nan}},
		{"min", n.b.ReduceMin(y, dims(0)), []float64{1, 2, 3}},
		{"max of nothing", n.b.ReduceMax(none, dims(1)), []float64{-inf, -inf}},
		{"min of no integers", n.b.ReduceMin(ints, dims(0)), []float64{1<<31 - 1}},
		{"max of no integers", n.b.ReduceMax(ints, dims(0)), []float64{-1 << 31}},
		{"argmax finds nan", n.b.Argmax(x, 1), []float64{1, 1}},
		{"argmax takes the first", n.b.Argmax(n.arg(n.f64(dims(4), 1, 3, 3, 2)), 0), []float64{1}},
		{"argmax down", n.b.Argmax(y, 0), []float64{1, 1, 1}},
	} {
		near(t, c.want, n.eval(c.v)[0].Data, c.name)
	}
}

// dot equals the plain sum over indices for every way of ordering batch, free and contracted axes.
func TestDot(t *testing.T) {
	n := newBench(t)
	a, b := n.normal(1, 2, 3, 5), n.normal(2, 2, 5, 4) // [b, m, k], [b, k, n]
	want := n.f64(dims(2, 3, 4))
	for i := range int64(2) {
		for m := range int64(3) {
			for c := range int64(4) {
				for k := range int64(5) {
					want.Data[(i*3+m)*4+c] += a.Data[(i*3+m)*5+k] * b.Data[(i*5+k)*4+c]
				}
			}
		}
	}
	lhs, rhs := n.arg(a), n.arg(b)
	place := func(perm []int64, axis int64) []int64 {
		for i, p := range perm {
			if p == axis {
				return dims(int64(i))
			}
		}
		panic("no such axis")
	}
	perms := [][]int64{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for _, p := range perms {
		for _, q := range perms {
			y := n.b.Dot(n.b.Transpose(lhs, p), n.b.Transpose(rhs, q), place(p, 0), place(q, 0), place(p, 2), place(q, 1))
			require.LessOrEqual(t, distance(t, n.eval(y)[0], want), 1e-14)
		}
	}
	outer := n.b.Dot(n.arg(n.f64(dims(2), 1, 2)), n.arg(n.f64(dims(3), 3, 4, 5)), nil, nil, nil, nil)
	near(t, []float64{3, 4, 5, 6, 8, 10}, n.eval(outer)[0].Data)
	nothing := n.b.Dot(n.arg(n.f64(dims(2, 0))), n.arg(n.f64(dims(0, 2))), nil, nil, dims(1), dims(0))
	near(t, []float64{0, 0, 0, 0}, n.eval(nothing)[0].Data)
}

// Large products are cut into blocks and over processors, and stay the same sums.
func TestMatmul(t *testing.T) {
	n := newBench(t)
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 2}, {67, 91, 130}, {130, 700, 97}} {
		m, cols, k := s[0], s[1], s[2]
		a, b := n.normal(1, int64(m*k)).Data, n.normal(2, int64(cols*k)).Data
		c := make([]float64, m*cols)
		matmulNT(c, a, b, m, cols, k)
		for i := range m {
			for j := range cols {
				require.Equal(t, dotProduct(a[i*k:(i+1)*k], b[j*k:(j+1)*k]), c[i*cols+j])
			}
		}
	}
}

func TestGatherAndScatter(t *testing.T) {
	n := newBench(t)
	table := n.arg(n.f64(dims(3, 2), 1, 2, 3, 4, 5, 6))
	indices := n.arg(n.i32(dims(2, 2), 2, 0, 2, 1))
	rows := n.b.Gather(table, indices)
	back := n.b.ScatterAdd(rows, indices, 3)
	out := n.eval(rows, back)
	near(t, []float64{5, 6, 1, 2, 5, 6, 3, 4}, out[0].Data)
	near(t, []float64{1, 2, 3, 4, 10, 12}, out[1].Data)
}

func TestIndicesOutOfRange(t *testing.T) {
	for _, bad := range []float64{-1, 3} {
		n := newBench(t)
		n.b.Gather(n.arg(n.f64(dims(3, 2))), n.arg(n.i32(dims(2, 2), 0, 1, bad, 2)))
		_, err := n.tryEval()
		require.ErrorContains(t, err, "at position [1, 0] is out of range: the table has 3 rows")
		n = newBench(t)
		n.b.ScatterAdd(n.arg(n.f64(dims(2, 2))), n.arg(n.i32(dims(2), 0, bad)), 3)
		_, err = n.tryEval()
		require.ErrorContains(t, err, "at position [1] is out of range")
	}
	for _, bad := range []float64{-2, 5} {
		n := newBench(t)
		n.b.CrossEntropy(n.arg(n.f64(dims(2, 5))), n.arg(n.i32(dims(2), 0, bad)), -1)
		_, err := n.tryEval()
		require.ErrorContains(t, err, "at position [1] is out of range: there are 5 classes, and -1 is what is ignored")
		require.IsType(t, &ir.Error{}, err)
	}
}

func TestSoftmaxSpecials(t *testing.T) {
	n := newBench(t)
	x := n.arg(n.f64(dims(3, 3), -inf, -inf, -inf, 1e300, -1e300, 0, 0, math.Log(2), -inf))
	out := n.eval(n.b.Softmax(x, 1), n.b.LogSoftmax(x, 1))
	near(t, []float64{0, 0, 0, 1, 0, 0, 1.0 / 3, 2.0 / 3, 0}, out[0].Data)
	near(t, []float64{-inf, -inf, -inf, 0, -2e300, -1e300, -math.Log(3), math.Log(2.0 / 3), -inf}, out[1].Data)
}

func TestLayernormRows(t *testing.T) {
	n := newBench(t)
	one, zero := n.arg(n.f64(dims(4), 1, 1, 1, 1)), n.arg(n.f64(dims(4)))
	x := n.arg(n.f64(dims(3, 4), 40000, 40001, 40002, 40003, 7, 7, 7, 7, -1, 1, -1, 1))
	ln := n.b.Layernorm(x, one, zero, 0.25)
	out := n.eval(ln.Y(), ln.Mean(), ln.Rstd())
	r, s := 1/math.Sqrt(1.5), 1/math.Sqrt(1.25)
	near(t, []float64{-1.5 * r, -0.5 * r, 0.5 * r, 1.5 * r, 0, 0, 0, 0, -s, s, -s, s}, out[0].Data)
	near(t, []float64{40001.5, 7, 0}, out[1].Data)
	near(t, []float64{r, 2, s}, out[2].Data)
	rms := n.b.Rmsnorm(n.arg(n.f64(dims(1, 4), 2, 2, -2, 2)), one, 0)
	near(t, []float64{1, 1, -1, 1}, n.eval(rms.Y())[0].Data)
}

func TestAttentionMasks(t *testing.T) {
	n := newBench(t)
	// All scores are 0, so that outputs are means of the values seen; 3 queries, 2 keys: the first query sees none.
	q, k := n.arg(n.f64(dims(1, 1, 3, 1))), n.arg(n.f64(dims(1, 1, 2, 1), 1, 1))
	v := n.arg(n.f64(dims(1, 1, 2, 1), 10, 20))
	a := n.b.Attention(q, k, v, true, 1)
	out := n.eval(a.O(), a.Lse())
	near(t, []float64{0, 10, 15}, out[0].Data)
	near(t, []float64{-inf, 0, math.Log(2)}, out[1].Data)
	require.Equal(t, ir.Type(n.ctx.F64()), out[1].Elem)
	// Two query heads share the one key head; the second looks sharply at key 1.
	grouped := n.b.Attention(n.arg(n.f64(dims(1, 2, 1, 1), 0, 1)), n.arg(n.f64(dims(1, 1, 2, 1), -1e4, 1e4)), v, false, 1)
	near(t, []float64{15, 20}, n.eval(grouped.O())[0].Data)
}

func TestCrossEntropyValues(t *testing.T) {
	n := newBench(t)
	logits := n.arg(n.f64(dims(3, 2), 0, 0, 0, math.Log(3), 1e4, -1e4))
	ce := n.b.CrossEntropy(logits, n.arg(n.i32(dims(3), 1, 0, 0)), -1)
	out := n.eval(ce.Sum(), ce.Count(), ce.Lse())
	near(t, []float64{math.Log(2) + math.Log(4)}, out[0].Data)
	near(t, []float64{3}, out[1].Data)
	near(t, []float64{math.Log(2), math.Log(4), 1e4}, out[2].Data)
	ignored := n.b.CrossEntropy(logits, n.arg(n.i32(dims(3), -100, -100, -100)), -100)
	near(t, []float64{0}, n.eval(ignored.Sum())[0].Data)
	grad := n.b.CrossEntropyGrad(logits, n.arg(n.i32(dims(3), 1, -1, 0)), ce.Lse(), n.arg(n.f64(nil, 2)), -1)
	near(t, []float64{1, -1, 0, 0, 0, 0}, n.eval(grad)[0].Data)
}

func TestRopeTurns(t *testing.T) {
	n := newBench(t)
	// Two pairs with base 1: both turn by s radians at position s.
	x := n.arg(n.f64(dims(2, 4), 1, 0, 0, 1, 1, 0, 0, 1))
	y := n.b.Rope(x, 1, false)
	out := n.eval(y, n.b.Rope(y, 1, true))
	near(t, []float64{1, 0, 0, 1, math.Cos(1), -math.Sin(1), math.Sin(1), math.Cos(1)}, out[0].Data)
	near(t, []float64{1, 0, 0, 1, 1, 0, 0, 1}, out[1].Data)
}

// The first step of Adam moves by lr against the sign of the gradient; decay comes on top.
func TestAdamwFirstStep(t *testing.T) {
	n := newBench(t)
	s := func(v float64) *ir.Value { return n.arg(n.f64(nil, v)) }
	op := n.b.Adamw(n.arg(n.f64(dims(2), 1, 1)), n.arg(n.f64(dims(2))), n.arg(n.f64(dims(2))), n.arg(n.f64(dims(2), 8, -8)), s(0.1), s(0.25), s(1), 0.75, 0.75, 0, 0.5)
	out := n.eval(op.NewP(), op.NewM(), op.NewV())
	near(t, []float64{1 - 0.05 - 0.1, 1 - 0.05 + 0.1}, out[0].Data)
	near(t, []float64{0.5, -0.5}, out[1].Data)
	near(t, []float64{1, 1}, out[2].Data)
}

func TestSgdSteps(t *testing.T) {
	n := newBench(t)
	s := func(v float64) *ir.Value { return n.arg(n.f64(nil, v)) }
	in := func(v float64) *ir.Value { return n.arg(n.f64(dims(1), v)) }
	plain := n.b.Sgd(in(1), in(2), in(8), s(0.5), s(0.25), 0.5, false, 0) // G = 2, buf = 3
	nesterov := n.b.Sgd(in(1), in(2), in(8), s(0.5), s(0.25), 0.5, true, 0)
	decayed := n.b.Sgd(in(1), in(2), in(8), s(0.5), s(0.25), 0, false, 1) // G = 3
	out := n.eval(plain.NewP(), plain.NewBuf(), nesterov.NewP(), decayed.NewP())
	near(t, []float64{1 - 1.5}, out[0].Data)
	near(t, []float64{3}, out[1].Data)
	near(t, []float64{1 - 0.5*(2+1.5)}, out[2].Data)
	near(t, []float64{1 - 1.5}, out[3].Data)
}

func TestSumSquaresIsWide(t *testing.T) {
	n := newBench(t)
	x := n.arg(n.f32(dims(2), 3e30, 4e30)) // the squares are beyond float32
	out := n.eval(n.b.SumSquares([]*ir.Value{x, n.arg(n.f32(dims(0)))}))
	near(t, []float64{25e60}, out[0].Data)
}

func TestElidedConstant(t *testing.T) {
	n := newBench(t)
	n.b.Constant(n.ctx.Elided(n.ctx.Tensor(dims(2), n.ctx.F32())))
	_, err := n.tryEval()
	require.ErrorContains(t, err, "left out")
}
