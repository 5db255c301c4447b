package blu

import (
	"testing"

	"blutrain/ir"
	"github.com/stretchr/testify/require"
)

// What a person is told about shapes that don't fit.
func TestInferErrors(t *testing.T) {
	n := newBench(t)
	f := func(shape ...int64) *ir.Value { return n.block.AddArg(n.ctx.Tensor(shape, n.ctx.F32()), nil) }
	i := func(shape ...int64) *ir.Value { return n.block.AddArg(n.ctx.Tensor(shape, n.ctx.I32()), nil) }
	attr := func(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Value: a} }
	i64s := func(name string, v ...int64) ir.NamedAttr { return attr(name, n.ctx.I64s(v...)) }
	i64 := func(name string, v int64) ir.NamedAttr { return attr(name, n.ctx.Int64(v)) }
	f64 := func(name string, v float64) ir.NamedAttr { return attr(name, n.ctx.FloatAttr(v, n.ctx.F64())) }
	str := func(name, v string) ir.NamedAttr { return attr(name, n.ctx.String(v)) }
	yes := func(name string) ir.NamedAttr { return attr(name, n.ctx.Bool(true)) }
	slice := func(start, limit, step int64) []ir.NamedAttr {
		return []ir.NamedAttr{i64s("starts", 0, start), i64s("limits", 2, limit), i64s("steps", 1, step)}
	}
	dot := func(lb, rb, lc, rc []int64) []ir.NamedAttr {
		return []ir.NamedAttr{i64s("lhs_batch", lb...), i64s("rhs_batch", rb...), i64s("lhs_contract", lc...), i64s("rhs_contract", rc...)}
	}
	attention := []ir.NamedAttr{yes("causal"), f64("scale", 1)}
	for _, c := range []struct {
		def      *ir.OpDef
		operands []*ir.Value
		attrs    []ir.NamedAttr
		want     string
	}{
		{Add, []*ir.Value{f(2, 3), f(2, 4)}, nil, "a is 2x3, b is 2x4: axis 1 has 3 and 4 elements"},
		{Add, []*ir.Value{f(2, 3), f(3)}, nil, "a is 2x3 (rank 2), b is 3 (rank 1): shapes must be equal"},
		{Add, []*ir.Value{f(2), i(2)}, nil, "a has elements of type f32, b of type i32: cast one of them"},
		{Add, []*ir.Value{f(2)}, nil, "2 operands are needed, not 1"},
		{Exp, []*ir.Value{i(2)}, nil, "x is a tensor<2xi32>, expected: floating-point tensor"},
		{Not, []*ir.Value{i(2)}, nil, "x is a tensor<2xi32>, expected: tensor of truth values (i1)"},
		{Compare, []*ir.Value{f(2), f(2)}, []ir.NamedAttr{str("predicate", "is")}, `predicate is "is", expected one of ["eq" "ne" "lt" "le" "gt" "ge"]`},
		{Compare, []*ir.Value{f(2), f(2)}, nil, `attribute "predicate" is missing`},
		{Select, []*ir.Value{n.arg(n.i1(dims(3))), f(2), f(2)}, nil, "the condition is 3, a is 2: axis 0 has 3 and 2 elements"},
		{Transpose, []*ir.Value{f(2, 3)}, []ir.NamedAttr{i64s("perm", 0)}, "x is 2x3 (rank 2), perm has length 1"},
		{Transpose, []*ir.Value{f(2, 3)}, []ir.NamedAttr{i64s("perm", 0, 0)}, "perm: axis 0 is named twice"},
		{Transpose, []*ir.Value{f(2, 3)}, []ir.NamedAttr{i64s("perm", 0, 2)}, "perm: there is no axis 2: x is 2x3 (rank 2)"},
		{Slice, []*ir.Value{f(2, 3)}, slice(1, 4, 1), "1:4 is no range of axis 1 of x (2x3), which has 3 elements"},
		{Slice, []*ir.Value{f(2, 3)}, slice(2, 1, 1), "2:1 is no range of axis 1"},
		{Slice, []*ir.Value{f(2, 3)}, slice(0, 3, 0), "the step along axis 1 is 0, it must be positive"},
		{Slice, []*ir.Value{f(2)}, slice(0, 3, 1), "x is 2 (rank 1): starts, limits and steps need an entry for each axis, they have 2, 2 and 2"},
		{Pad, []*ir.Value{f(2)}, []ir.NamedAttr{i64s("low", -1), i64s("high", 0), f64("value", 0)}, "the padding of axis 0 is negative: -1 before, 0 after"},
		{Pad, []*ir.Value{f(2)}, []ir.NamedAttr{i64s("low", 1<<62), i64s("high", 1<<62), f64("value", 0)}, "too long"},
		{Concat, []*ir.Value{f(2, 3), f(3, 3)}, []ir.NamedAttr{i64("axis", 1)}, "operand 0 is 2x3, operand 1 is 3x3: they may differ along axis 1 only"},
		{Concat, nil, []ir.NamedAttr{i64("axis", 1)}, "there is nothing to join"},
		{Concat, []*ir.Value{f(2), i(2)}, []ir.NamedAttr{i64("axis", 0)}, "operand 0 has elements of type f32, operand 1 of type i32"},
		{ReduceSum, []*ir.Value{f(2, 3)}, []ir.NamedAttr{i64s("axes", 2)}, "axes: there is no axis 2: x is 2x3 (rank 2)"},
		{ReduceSum, []*ir.Value{f(2, 3)}, []ir.NamedAttr{i64s("axes", 1, 0)}, "axes must ascend, they are [1 0]"},
		{Argmax, []*ir.Value{f(2, 0)}, []ir.NamedAttr{i64("axis", 1)}, "axis 1 of x (2x0) has no elements: there is no greatest"},
		{Dot, []*ir.Value{f(2, 3), f(4, 5)}, dot(nil, nil, dims(1), dims(0)), "contracted axes disagree: axis 1 of lhs (2x3) has 3 elements, axis 0 of rhs (4x5) has 4"},
		{Dot, []*ir.Value{f(2, 3), f(4, 5)}, dot(dims(0), nil, nil, nil), "numbers of batch axes disagree: 1 of lhs, 0 of rhs"},
		{Dot, []*ir.Value{f(2, 3), f(4, 5)}, dot(dims(0), dims(0), dims(0), dims(1)), "batch and contracted axes of lhs: axis 0 is named twice"},
		{Dot, []*ir.Value{f(1 << 40), f(1 << 40)}, dot(nil, nil, nil, nil), "result y would be a tensor<1099511627776x1099511627776xf32>: expected is a floating-point tensor of a size that can be addressed"},
		{Gather, []*ir.Value{f(), i(2)}, nil, "table is scalar: it needs at least 1 axes (rows first)"},
		{Gather, []*ir.Value{f(2), f(2)}, nil, "indices is a tensor<2xf32>, expected: integer tensor"},
		{ScatterAdd, []*ir.Value{f(3, 2), i(2)}, []ir.NamedAttr{i64("rows", 4)}, "the leading part of updates is 3, indices is 2: axis 0 has 3 and 2 elements"},
		{Softmax, []*ir.Value{f(2)}, []ir.NamedAttr{i64("axis", -1)}, "axis: there is no axis -1: x is 2 (rank 1)"},
		{Layernorm, []*ir.Value{f(2, 8), f(4), f(8)}, []ir.NamedAttr{f64("eps", 1e-5)}, "g is 4, expected 8: the last axis of x (2x8) has 8 elements"},
		{Layernorm, []*ir.Value{f(2, 0), f(0), f(0)}, []ir.NamedAttr{f64("eps", 1e-5)}, "the last axis of x (2x0) has no elements: there is no mean"},
		{Rmsnorm, []*ir.Value{f(), f(4)}, []ir.NamedAttr{f64("eps", 1e-5)}, "x is scalar: it needs at least 1 axes (features last)"},
		{Gelu, []*ir.Value{f(2)}, []ir.NamedAttr{str("approximate", "no")}, `approximate is "no", expected one of ["tanh" "erf"]`},
		{Rope, []*ir.Value{f(2, 3)}, []ir.NamedAttr{f64("base", 10000), yes("inverse")}, "the last axis of x (2x3) has 3 elements, which can't be paired"},
		{Rope, []*ir.Value{f(2, 4)}, []ir.NamedAttr{f64("base", 0), yes("inverse")}, "base is 0, it must be positive"},
		{Attention, []*ir.Value{f(1, 3, 4, 8), f(1, 2, 4, 8), f(1, 2, 4, 8)}, attention, "3 query heads can't share 2 key heads evenly"},
		{Attention, []*ir.Value{f(1, 2, 4, 8), f(1, 2, 4, 4), f(1, 2, 4, 8)}, attention, "the features (axis 3) have 8 and 4 elements"},
		{Attention, []*ir.Value{f(1, 2, 4, 8), f(1, 2, 4, 8), f(1, 2, 5, 8)}, attention, "k is 1x2x4x8, v is 1x2x5x8: batch, heads and positions must be equal"},
		{Attention, []*ir.Value{f(2, 4, 8), f(1, 2, 4, 8), f(1, 2, 5, 8)}, attention, "q is 2x4x8 (rank 3), expected [batch, heads, positions, features]"},
		{CrossEntropy, []*ir.Value{f(2, 3, 5), i(2, 5)}, []ir.NamedAttr{i64("ignore", -1)}, "targets is 2x5, expected 2x3: one for each row of the logits (2x3x5)"},
		{Adamw, []*ir.Value{f(2), f(2), f(2), f(3), f(), f(), f()},
			[]ir.NamedAttr{f64("beta1", 0.9), f64("beta2", 0.9), f64("eps", 0), f64("weight_decay", 0)}, "p is 2, g is 3: axis 0 has 2 and 3 elements"},
		{Adamw, []*ir.Value{f(2), f(2), f(2), f(2), f(), f(), f()},
			[]ir.NamedAttr{f64("beta1", 1), f64("beta2", 0.9), f64("eps", 0), f64("weight_decay", 0)}, "beta1 is 1, it must be at least 0 and below 1"},
		{SumSquares, []*ir.Value{f(2), i(2)}, nil, "operand 1 is a tensor<2xi32>, expected: floating-point tensor"},
	} {
		_, err := n.b.TryCreate(c.def, c.operands, c.attrs...)
		require.ErrorContains(t, err, c.want, c.def.Name)
	}
}

// Operations whose result type is given are checked by the verifier.
func TestVerifyErrors(t *testing.T) {
	n := newBench(t)
	x := n.arg(n.f32(dims(2, 3)))
	tensor := func(elem ir.Type, shape ...int64) ir.Type { return n.ctx.Tensor(shape, elem) }
	f32 := n.ctx.F32()
	for _, c := range []struct {
		v    *ir.Value
		want string
	}{
		{n.b.Reshape(x, tensor(f32, 7)), "2x3 has 6 elements, 7 has 7"},
		{n.b.Reshape(x, tensor(n.ctx.I32(), 6)), "x has elements of type f32, the result of type i32"},
		{n.b.Broadcast(x, dims(0, 1), tensor(f32, 2, 4)), "axis 1 of x (2x3) has 3 elements and can't become axis 1 of the result (2x4), which has 4"},
		{n.b.Broadcast(x, dims(1, 0), tensor(f32, 3, 2)), "axes must ascend, they are [1 0]"},
		{n.b.Broadcast(x, dims(0), tensor(f32, 2, 3)), "x is 2x3 (rank 2), axes has length 1"},
		{n.b.Broadcast(x, dims(0, 5), tensor(f32, 2, 3)), "there is no axis 5 in the result, which is 2x3"},
		{n.b.Cast(x, tensor(n.ctx.I32(), 3, 2)), "x is 2x3, the result is 3x2"},
		{n.b.Iota(1, tensor(f32, 3)), "there is no axis 1: the result is 3 (rank 1)"},
		{n.b.RandomNormal(n.arg(n.i32(nil)), 0, 0, 1, tensor(f32, 3)), "seed is i32, expected: i64"},
		{n.b.RandomNormal(n.seed(1), 0, 0, -1, tensor(f32, 3)), "std is -1, it can't be negative"},
	} {
		require.ErrorContains(t, ir.Verify(n.ctx, c.v.Op()), c.want, c.v.Op().Name())
	}
}

func TestStorage(t *testing.T) {
	n := newBench(t)
	typ := n.ctx.Tensor(dims(2, 3), n.ctx.F32())
	entry := func(name string, a ir.Attr) ir.NamedAttr { return ir.NamedAttr{Name: name, Value: a} }
	num := func(v float64) ir.Attr { return n.ctx.FloatAttr(v, n.ctx.F64()) }
	kind := func(k string, more ...ir.NamedAttr) *ir.DictAttr {
		return n.ctx.Dict(append(more, entry("kind", n.ctx.String(k)))...)
	}
	for _, c := range []struct {
		op   *ir.Op
		want string
	}{
		{n.b.Param("w", typ, kind("normal", entry("mean", num(0)), entry("std", num(0.02))), n.ctx.Strings("V", "C"), nil).Op, ""},
		{n.b.Param("w", typ, kind("ones"), nil, num(0.1)).Op, ""},
		{n.b.Param("w", typ, kind("twos"), nil, nil).Op, `parameter @w: there is no initializer "twos"`},
		{n.b.Param("w", typ, kind("uniform", entry("low", num(0))), nil, nil).Op, `initializer uniform needs a finite number "high"`},
		{n.b.Param("w", typ, kind("ones"), n.ctx.Strings("V"), nil).Op, "parameter @w: 1 names for 2 dimensions"},
		{n.b.Param("w", n.ctx.F32(), kind("ones"), nil, nil).Op, "@w has type f32, which is no tensor of static shape"},
		{n.b.Param("w", n.ctx.Tensor(dims(ir.Dynamic), n.ctx.F32()), kind("ones"), nil, nil).Op, "which is no tensor of static shape"},
		{n.b.State("grads/w", typ, RoleGradient, false, nil, nil).Op, ""},
		{n.b.State("grads/w", typ, "grad", false, nil, nil).Op, `state @grads/w: there is no role "grad"`},
	} {
		err := ir.Verify(n.ctx, c.op)
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}
