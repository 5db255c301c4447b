package blu

import (
	"strings"
	"testing"

	"blutrain/ir"
	"blutrain/ir/rewrite"
	"github.com/stretchr/testify/require"
)

// fold asks the operation that defines v, with the constants among its operands.
func (n *bench) fold(v *ir.Value) []ir.FoldResult {
	op := v.Op()
	consts := make([]ir.Attr, op.NumOperands())
	for i, x := range op.Operands() {
		if x.DefinedBy(Constant) {
			consts[i] = x.Op().Attr("value")
		}
	}
	if op.Def().Fold == nil {
		return nil
	}
	return op.Def().Fold(n.ctx, op, consts)
}

func TestFoldToOperand(t *testing.T) {
	n := newBench(t)
	x, y := n.arg(n.f64(dims(2, 3))), n.arg(n.f64(dims(2, 3)))
	p := n.arg(n.i1(dims(2, 3)))
	i := n.arg(n.i32(dims(2, 3)))
	num := func(v float64) *ir.Value { return n.b.SplatLike(x, v) }
	yes, no := n.b.SplatLike(p, 1), n.b.SplatLike(p, 0)
	for name, c := range map[string]struct{ v, want *ir.Value }{
		"x + 0":                     {n.b.Add(x, num(0)), x},
		"0 + x":                     {n.b.Add(num(0), x), x},
		"x - 0":                     {n.b.Sub(x, num(0)), x},
		"x * 1":                     {n.b.Mul(x, num(1)), x},
		"1 * x":                     {n.b.Mul(num(1), x), x},
		"x * 0":                     {n.b.Mul(x, num(0)), nil}, // x may be NaN or infinite
		"x - x":                     {n.b.Sub(x, x), nil},
		"x / 1":                     {n.b.Div(x, num(1)), x},
		"x ^ 1":                     {n.b.Pow(x, num(1)), x},
		"max(x, x)":                 {n.b.Max(x, x), x},
		"x + y":                     {n.b.Add(x, y), nil},
		"p and true":                {n.b.And(p, yes), p},
		"false or p":                {n.b.Or(no, p), p},
		"p or p":                    {n.b.Or(p, p), p},
		"not not p":                 {n.b.Not(n.b.Not(p)), p},
		"- - x":                     {n.b.Neg(n.b.Neg(x)), x},
		"select true":               {n.b.Select(yes, x, y), x},
		"select false":              {n.b.Select(no, x, y), y},
		"select of equals":          {n.b.Select(p, x, x), x},
		"cast to the same":          {n.b.Cast(x, x.Type()), x},
		"cast there and back":       {n.b.CastTo(n.b.CastTo(p, n.ctx.F32()), n.ctx.I1()), p},
		"cast that loses":           {n.b.CastTo(n.b.CastTo(x, n.ctx.F32()), n.ctx.F64()), nil},
		"cast of i32 through f32":   {n.b.CastTo(n.b.CastTo(i, n.ctx.F32()), n.ctx.I32()), nil},
		"cast of i32 through f64":   {n.b.CastTo(n.b.CastTo(i, n.ctx.F64()), n.ctx.I32()), i},
		"broadcast to the same":     {n.b.Broadcast(x, dims(0, 1), x.Type()), x},
		"reshape to the same":       {n.b.Reshape(x, x.Type()), x},
		"transpose by the identity": {n.b.Transpose(x, dims(0, 1)), x},
		"slice of all":              {n.b.Slice(x, dims(0, 0), dims(2, 3), dims(1, 1)), x},
		"pad by nothing":            {n.b.Pad(x, dims(0, 0), dims(0, 0), 7), x},
		"concat of one":             {n.b.Concat([]*ir.Value{x}, 0), x},
		"sum over no axes":          {n.b.ReduceSum(x, nil), x},
	} {
		got := n.fold(c.v)
		if c.want == nil {
			require.Nil(t, got, name)
			continue
		}
		require.Len(t, got, 1, name)
		require.Same(t, c.want, got[0].Value, name)
	}
}

func TestFoldToConstant(t *testing.T) {
	n := newBench(t)
	i := n.arg(n.i32(dims(2)))
	p := n.arg(n.i1(dims(2)))
	dense := func(values ...float64) *ir.Value {
		return n.b.Constant(DenseOf(n.ctx, n.f32(dims(int64(len(values))), values...)))
	}
	huge := n.b.Splat(n.ctx.Tensor(dims(1<<40), n.ctx.F32()), 2) // only one element is ever looked at
	for name, c := range map[string]struct {
		v    *ir.Value
		want string
	}{
		"1 + 2":                 {n.b.Add(dense(1, 2), dense(2, 4)), "dense<[3.0e+00, 6.0e+00]> : tensor<2xf32>"},
		"rounded to f32":        {n.b.Div(dense(1), dense(3)), "dense<3.3333334e-01> : tensor<1xf32>"},
		"splats":                {n.b.Mul(huge, huge), "dense<4.0e+00> : tensor<1099511627776xf32>"},
		"sum of a small one":    {n.b.ReduceSum(dense(1, 2, 3), dims(0)), "dense<6.0e+00> : tensor<f32>"},
		"integer * 0":           {n.b.Mul(i, n.b.SplatLike(i, 0)), "dense<0> : tensor<2xi32>"},
		"integer - itself":      {n.b.Sub(i, i), "dense<0> : tensor<2xi32>"},
		"integer == itself":     {n.b.Compare(i, i, "le"), "dense<true> : tensor<2xi1>"},
		"p and false":           {n.b.And(p, n.b.SplatLike(p, 0)), "dense<false> : tensor<2xi1>"},
		"broadcast of a splat":  {n.b.BroadcastTo(dense(3), dims(1), dims(9999, 1)), "dense<3.0e+00> : tensor<9999x1xf32>"},
		"reshape":               {n.b.ReshapeTo(dense(1, 2), 2, 1), "dense<[[1.0e+00], [2.0e+00]]> : tensor<2x1xf32>"},
		"transpose of a splat":  {n.b.Transpose(n.b.Splat(n.ctx.Tensor(dims(2, 3), n.ctx.F32()), 1), dims(1, 0)), "dense<1.0e+00> : tensor<3x2xf32>"},
		"slice of a splat":      {n.b.Slice(huge, dims(5), dims(5000), dims(2)), "dense<2.0e+00> : tensor<2498xf32>"},
		"pad with the same":     {n.b.Pad(huge, dims(1), dims(1), 2), "dense<2.0e+00> : tensor<1099511627778xf32>"},
		"several results, once": {n.b.Softmax(dense(0, 0), 0), "dense<5.0e-01> : tensor<2xf32>"},
	} {
		got := n.fold(c.v)
		require.Len(t, got, 1, name)
		require.NotNil(t, got[0].Attr, name)
		require.Equal(t, c.want, got[0].Attr.String(), name)
	}
	large := n.b.Constant(n.ctx.Dense(n.ctx.Tensor(nil, n.ctx.I64()), []byte{1, 0, 0, 0, 0, 0, 0, 1})) // 2^56 + 1
	require.Nil(t, n.fold(n.b.Add(large, large)), "beyond 2^53 the evaluation is not exact")
	kept := n.fold(n.b.Fill(large, dims(2)))
	require.Equal(t, "dense<72057594037927937> : tensor<2xi64>", kept[0].Attr.String())
	big := n.b.Constant(DenseOf(n.ctx, n.normal(1, foldLimit+1)))
	require.Nil(t, n.fold(n.b.Exp(big)), "large tables are not folded")
	require.Nil(t, n.fold(n.b.RandomUniform(n.arg(n.of(n.ctx.I64(), nil, 1)), 0, n.ctx.Tensor(dims(2), n.ctx.F32()))))
	bad := n.b.Gather(dense(1, 2), n.b.Constant(DenseOf(n.ctx, n.i32(dims(1), 7))))
	require.Nil(t, n.fold(bad), "the error is left for run time")
}

// Rules reach the form that is written, and the values stay the same.
func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(n *bench, x *ir.Value) *ir.Value // x is f64 [2, 3, 4]
		want  string                                // the operations left
	}{
		{"reshapes", func(n *bench, x *ir.Value) *ir.Value { return n.b.ReshapeTo(n.b.ReshapeTo(x, 6, 4), 24) }, "reshape"},
		{"reshapes there and back", func(n *bench, x *ir.Value) *ir.Value { return n.b.ReshapeTo(n.b.ReshapeTo(x, 6, 4), 2, 3, 4) }, ""},
		{"transposes", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.Transpose(n.b.Transpose(x, dims(2, 0, 1)), dims(1, 0, 2))
		}, "transpose"},
		{"transposes there and back", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.Transpose(n.b.Transpose(x, dims(2, 0, 1)), dims(1, 2, 0))
		}, ""},
		{"broadcasts", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.BroadcastTo(n.b.BroadcastTo(x, dims(1, 2, 3), dims(5, 2, 3, 4)), dims(0, 2, 3, 4), dims(5, 2, 2, 3, 4))
		}, "broadcast"},
		{"slices", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.Slice(n.b.Slice(x, dims(0, 1, 0), dims(2, 3, 4), dims(1, 1, 3)), dims(1, 0, 1), dims(2, 2, 2), dims(1, 1, 1))
		}, "slice"},
		{"slices to nothing", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.Slice(n.b.Slice(x, dims(0, 1, 0), dims(2, 3, 4), dims(1, 1, 3)), dims(1, 2, 1), dims(2, 2, 2), dims(1, 1, 1))
		}, "slice"},
		{"empty parts", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.Concat([]*ir.Value{x, n.b.Slice(x, dims(0, 0, 0), dims(2, 0, 4), dims(1, 1, 1)), x}, 1)
		}, "concat"},
		{"nested parts", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.Concat([]*ir.Value{x, n.b.Concat([]*ir.Value{n.b.Exp(x), x}, 1)}, 1)
		}, "exp concat"},
		{"parts across", func(n *bench, x *ir.Value) *ir.Value {
			y := n.b.Concat([]*ir.Value{x, x}, 1)
			return n.b.Concat([]*ir.Value{y, y}, 1)
		}, "concat concat"},
		{"casts that widen", func(n *bench, x *ir.Value) *ir.Value {
			small := n.b.CastTo(x, n.ctx.Float(ir.BF16))
			return n.b.CastTo(n.b.CastTo(small, n.ctx.F32()), n.ctx.F64())
		}, "cast cast"},
		{"casts that round", func(n *bench, x *ir.Value) *ir.Value {
			return n.b.CastTo(n.b.CastTo(x, n.ctx.Float(ir.BF16)), n.ctx.F64())
		}, "cast cast"},
		{"negations", func(n *bench, x *ir.Value) *ir.Value { return n.b.Add(n.b.Neg(x), n.b.Exp(x)) }, "exp sub"},
	} {
		n := newBench(t)
		v := c.build(n, n.arg(n.normal(1, 2, 3, 4)))
		before := n.eval(v)[0]
		keep := n.b.CreateState(n.ctx.LookupOp("test.keep"), ir.OpState{Operands: []*ir.Value{v}})
		_, err := rewrite.Greedy(n.ctx, n.block.ParentOp(), Canonical, rewrite.Options{})
		require.NoError(t, err, c.name)
		v = keep.Operand(0)
		keep.Erase()
		var left []string
		for op := range n.block.Ops() {
			left = append(left, op.Def().Name)
		}
		require.Equal(t, c.want, strings.Join(left, " "), c.name)
		require.Equal(t, before, n.eval(v)[0], c.name)
	}
}
