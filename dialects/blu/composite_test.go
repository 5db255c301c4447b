package blu

import (
	"fmt"
	"slices"
	"testing"

	"blutrain/ir"
	"github.com/stretchr/testify/require"
)

// A composite case is one operation on some operands, in f64.
type compositeCase struct {
	name string
	in   func(n *bench) []*ir.Tensor
	make func(b *Builder, in []*ir.Value) *ir.Op
}

func normals(shapes ...[]int64) func(n *bench) []*ir.Tensor {
	return func(n *bench) []*ir.Tensor {
		var xs []*ir.Tensor
		for i, s := range shapes {
			xs = append(xs, n.normal(uint64(i+1), s...))
		}
		return xs
	}
}

func compositeCases() []compositeCase {
	var cases []compositeCase
	add := func(name string, in func(n *bench) []*ir.Tensor, make func(b *Builder, in []*ir.Value) *ir.Op) {
		cases = append(cases, compositeCase{name, in, make})
	}
	for axis := range int64(3) {
		axis := axis
		add(fmt.Sprintf("softmax axis %d", axis), normals(dims(2, 3, 4)), func(b *Builder, in []*ir.Value) *ir.Op { return b.Softmax(in[0], axis).Op() })
		add(fmt.Sprintf("log_softmax axis %d", axis), normals(dims(2, 3, 4)), func(b *Builder, in []*ir.Value) *ir.Op { return b.LogSoftmax(in[0], axis).Op() })
	}
	special := func(n *bench) []*ir.Tensor {
		return []*ir.Tensor{n.f64(dims(5, 3), -inf, -inf, -inf, -inf, 1, 2, 1e300, 0, -1e300, nan, 1, 2, inf, 1, 2)}
	}
	add("softmax specials", special, func(b *Builder, in []*ir.Value) *ir.Op { return b.Softmax(in[0], 1).Op() })
	add("log_softmax specials", special, func(b *Builder, in []*ir.Value) *ir.Op { return b.LogSoftmax(in[0], 1).Op() })
	add("softmax of nothing", normals(dims(2, 0)), func(b *Builder, in []*ir.Value) *ir.Op { return b.Softmax(in[0], 1).Op() })

	rows, row := dims(2, 5, 6), dims(6)
	stats := dims(2, 5)
	add("layernorm", normals(rows, row, row), func(b *Builder, in []*ir.Value) *ir.Op { return b.Layernorm(in[0], in[1], in[2], 1e-5).Op })
	add("layernorm of one row", normals(row, row, row), func(b *Builder, in []*ir.Value) *ir.Op { return b.Layernorm(in[0], in[1], in[2], 1e-5).Op })
	add("layernorm of no rows", normals(dims(0, 6), row, row), func(b *Builder, in []*ir.Value) *ir.Op { return b.Layernorm(in[0], in[1], in[2], 1e-5).Op })
	add("layernorm_grad", normals(rows, row, stats, stats, rows), func(b *Builder, in []*ir.Value) *ir.Op {
		return b.LayernormGrad(in[0], in[1], in[2], in[3], in[4]).Op
	})
	add("rmsnorm", normals(rows, row), func(b *Builder, in []*ir.Value) *ir.Op { return b.Rmsnorm(in[0], in[1], 1e-5).Op })
	add("rmsnorm_grad", normals(rows, row, stats, rows), func(b *Builder, in []*ir.Value) *ir.Op { return b.RmsnormGrad(in[0], in[1], in[2], in[3]).Op })

	line := func(n *bench) []*ir.Tensor {
		x := n.f64(dims(161))
		for i := range x.Data {
			x.Data[i] = float64(i-80) / 8
		}
		return []*ir.Tensor{x, n.normal(1, 161)}
	}
	for _, kind := range []string{GeluTanh, GeluErf} {
		add("gelu "+kind, line, func(b *Builder, in []*ir.Value) *ir.Op { return b.Gelu(in[0], kind).Op() })
		add("gelu_grad "+kind, line, func(b *Builder, in []*ir.Value) *ir.Op { return b.GeluGrad(in[0], in[1], kind).Op() })
	}
	add("silu", line, func(b *Builder, in []*ir.Value) *ir.Op { return b.Silu(in[0]).Op() })
	add("silu_grad", line, func(b *Builder, in []*ir.Value) *ir.Op { return b.SiluGrad(in[0], in[1]).Op() })

	for _, inverse := range []bool{false, true} {
		add(fmt.Sprintf("rope inverse %v", inverse), normals(dims(2, 3, 5, 8)), func(b *Builder, in []*ir.Value) *ir.Op { return b.Rope(in[0], 10000, inverse).Op() })
	}
	add("rope of no features", normals(dims(5, 0)), func(b *Builder, in []*ir.Value) *ir.Op { return b.Rope(in[0], 10000, false).Op() })
	cases = append(cases, attentionCases()...)

	targets := func(shape []int64, values ...float64) func(n *bench) []*ir.Tensor {
		return func(n *bench) []*ir.Tensor {
			return []*ir.Tensor{n.normal(1, append(shape, 5)...), n.i32(shape, values...), n.normal(2, shape...), n.normal(3)}
		}
	}
	entropy := func(b *Builder, in []*ir.Value) *ir.Op { return b.CrossEntropy(in[0], in[1], -1).Op }
	entropyGrad := func(b *Builder, in []*ir.Value) *ir.Op {
		return b.CrossEntropyGrad(in[0], in[1], in[2], in[3], -1).Op()
	}
	add("cross_entropy", targets(dims(2, 3), 0, -1, 4, 2, -1, 1), entropy)
	add("cross_entropy of one row", targets(dims(), 3), entropy)
	add("cross_entropy of no rows", targets(dims(0)), entropy)
	add("cross_entropy all ignored", targets(dims(2), -1, -1), entropy)
	add("cross_entropy_grad", targets(dims(2, 3), 0, -1, 4, 2, -1, 1), entropyGrad)
	add("cross_entropy_grad all ignored", targets(dims(2), -1, -1), entropyGrad)

	accumulate := func(first float64) func(n *bench) []*ir.Tensor {
		return func(n *bench) []*ir.Tensor {
			return []*ir.Tensor{n.f64(dims(3), 1, nan, inf), n.f64(dims(3), 1, 2, 3), n.i1(nil, first)}
		}
	}
	for _, first := range []float64{0, 1} {
		add(fmt.Sprintf("accumulate first %v", first), accumulate(first), func(b *Builder, in []*ir.Value) *ir.Op { return b.Accumulate(in[0], in[1], in[2]).Op() })
	}
	add("sum_squares", normals(dims(2, 3), dims(), dims(4), dims(0, 2)), func(b *Builder, in []*ir.Value) *ir.Op { return b.SumSquares(in).Op() })
	add("sum_squares of nothing", normals(), func(b *Builder, in []*ir.Value) *ir.Op { return b.SumSquares(in).Op() })

	for _, step := range []float64{1, 2, 1000} {
		for _, beta := range []float64{0, 0.999} {
			add(fmt.Sprintf("adamw step %v beta %v", step, beta), func(n *bench) []*ir.Tensor {
				v := n.normal(3, 2, 3)
				for i := range v.Data {
					v.Data[i] *= v.Data[i]
				}
				return []*ir.Tensor{n.normal(1, 2, 3), n.normal(2, 2, 3), v, n.normal(4, 2, 3), n.f64(nil, 0.01), n.f64(nil, 0.25), n.f64(nil, step)}
			}, func(b *Builder, in []*ir.Value) *ir.Op {
				return b.Adamw(in[0], in[1], in[2], in[3], in[4], in[5], in[6], beta, beta, 1e-8, 0.1).Op
			})
		}
	}
	for _, nesterov := range []bool{false, true} {
		add(fmt.Sprintf("sgd nesterov %v", nesterov), normals(dims(2, 3), dims(2, 3), dims(2, 3), dims(), dims()), func(b *Builder, in []*ir.Value) *ir.Op {
			return b.Sgd(in[0], in[1], in[2], in[3], in[4], 0.9, nesterov, 0.01).Op
		})
	}
	return cases
}

func attentionCases() []compositeCase {
	var cases []compositeCase
	for _, s := range []struct{ b, h, hk, s, t, d, e int64 }{
		{2, 2, 2, 5, 5, 4, 4}, {1, 6, 2, 4, 7, 4, 3}, {1, 2, 1, 7, 4, 2, 2}, {1, 1, 1, 3, 0, 2, 2}, {1, 1, 1, 0, 3, 2, 2}, {0, 2, 2, 3, 3, 2, 2}, {1, 0, 0, 3, 3, 2, 2},
	} {
		for _, causal := range []bool{false, true} {
			q, k, v := dims(s.b, s.h, s.s, s.d), dims(s.b, s.hk, s.t, s.d), dims(s.b, s.hk, s.t, s.e)
			name := fmt.Sprintf("causal %v of %v", causal, s)
			cases = append(cases, compositeCase{"attention " + name, normals(q, k, v), func(b *Builder, in []*ir.Value) *ir.Op {
				return b.Attention(in[0], in[1], in[2], causal, 0.7).Op
			}})
			// The gradient is asked about an o and lse that belong together: its forms differ in how they'd use others.
			cases = append(cases, compositeCase{"attention_grad " + name, func(n *bench) []*ir.Tensor {
				forward := newBench(n.t)
				in := normals(q, k, v)(forward)
				vs := forward.argsOf(in)
				a := forward.b.Attention(vs[0], vs[1], vs[2], causal, 0.7)
				out := forward.eval(a.O(), a.Lse())
				for _, x := range append(in, out...) {
					x.Elem = n.ctx.F64()
				}
				return append(in, out[0], out[1], n.normal(9, out[0].Shape...))
			}, func(b *Builder, in []*ir.Value) *ir.Op {
				return b.AttentionGrad(in[0], in[1], in[2], in[3], in[4], in[5], causal, 0.7).Op
			}})
		}
	}
	return cases
}

// What a composite means and what it is made of are the same function, and it is made of primitives.
func TestDecompose(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range compositeCases() {
		t.Run(c.name, func(t *testing.T) {
			n := newBench(t)
			op := c.make(n.b, n.argsOf(c.in(n)))
			tested[op.Name()] = true
			parts := Decompose[op.Name()](n.b, op)
			for p := range n.block.Ops() {
				require.True(t, p == op || Decompose[p.Name()] == nil, "%s is made of %s, which is a composite", op.Name(), p.Name())
			}
			got := n.eval(append(op.Results(), parts...)...)
			whole, pieces := got[:len(parts)], got[len(parts):]
			for i := range whole {
				require.Equal(t, op.Result(i).Type(), parts[i].Type(), "result %d", i)
				require.LessOrEqual(t, distance(t, pieces[i], whole[i]), 1e-12, "result %d", i)
			}
		})
	}
	for name := range Decompose {
		require.True(t, tested[name], "no case for %s", name)
	}
}

// In bf16 the decompositions compute in f32, and the types still fit.
func TestDecomposeNarrow(t *testing.T) {
	statistics := []string{"mean", "rstd", "lse", "dsum"} // f32 for bf16
	for _, c := range compositeCases() {
		wide := newBench(t)
		def := c.make(wide.b, wide.argsOf(c.in(wide))).Def()
		n := newBench(t)
		in := c.in(n)
		for i, x := range in {
			switch {
			case !ir.IsFloat(x.Elem):
			case slices.Contains(statistics, def.Operands[min(i, len(def.Operands)-1)].Name):
				x.Elem = n.ctx.F32()
			default:
				x.Elem = n.ctx.Float(ir.BF16)
			}
		}
		op := c.make(n.b, n.argsOf(in))
		for i, v := range Decompose[op.Name()](n.b, op) {
			require.Equal(t, op.Result(i).Type(), v.Type(), "%s, result %d", c.name, i)
		}
		for p := range n.block.Ops() {
			require.NoError(t, ir.Verify(n.ctx, p), c.name)
		}
	}
}

// The gradients are the slopes of the functions, by central differences in float64.
func TestGradientsAgainstDifferences(t *testing.T) {
	type forward struct {
		in   func(n *bench) []*ir.Tensor
		op   func(b *Builder, in []*ir.Value) []*ir.Value // all results; the first is differentiated
		grad func(b *Builder, in, y []*ir.Value, dy *ir.Value) []*ir.Value
	}
	attention := func(causal bool, q, k, v []int64) forward {
		return forward{in: normals(q, k, v),
			op: func(b *Builder, in []*ir.Value) []*ir.Value {
				return b.Attention(in[0], in[1], in[2], causal, 0.6).Results()
			},
			grad: func(b *Builder, in, y []*ir.Value, dy *ir.Value) []*ir.Value {
				return b.AttentionGrad(in[0], in[1], in[2], y[0], y[1], dy, causal, 0.6).Results()
			}}
	}
	unary := func(make func(b *Builder, x *ir.Value) *ir.Value, grad func(b *Builder, x, dy *ir.Value) *ir.Value) forward {
		return forward{in: normals(dims(3, 4)),
			op:   func(b *Builder, in []*ir.Value) []*ir.Value { return []*ir.Value{make(b, in[0])} },
			grad: func(b *Builder, in, y []*ir.Value, dy *ir.Value) []*ir.Value { return []*ir.Value{grad(b, in[0], dy)} }}
	}
	cases := map[string]forward{
		"layernorm": {in: normals(dims(2, 3, 5), dims(5), dims(5)),
			op: func(b *Builder, in []*ir.Value) []*ir.Value { return b.Layernorm(in[0], in[1], in[2], 1e-5).Results() },
			grad: func(b *Builder, in, y []*ir.Value, dy *ir.Value) []*ir.Value {
				return b.LayernormGrad(in[0], in[1], y[1], y[2], dy).Results()
			}},
		"rmsnorm": {in: normals(dims(2, 3, 5), dims(5)),
			op: func(b *Builder, in []*ir.Value) []*ir.Value { return b.Rmsnorm(in[0], in[1], 1e-5).Results() },
			grad: func(b *Builder, in, y []*ir.Value, dy *ir.Value) []*ir.Value {
				return b.RmsnormGrad(in[0], in[1], y[1], dy).Results()
			}},
		"gelu tanh": unary(func(b *Builder, x *ir.Value) *ir.Value { return b.Gelu(x, GeluTanh) },
			func(b *Builder, x, dy *ir.Value) *ir.Value { return b.GeluGrad(x, dy, GeluTanh) }),
		"gelu erf": unary(func(b *Builder, x *ir.Value) *ir.Value { return b.Gelu(x, GeluErf) },
			func(b *Builder, x, dy *ir.Value) *ir.Value { return b.GeluGrad(x, dy, GeluErf) }),
		"silu": unary(func(b *Builder, x *ir.Value) *ir.Value { return b.Silu(x) },
			func(b *Builder, x, dy *ir.Value) *ir.Value { return b.SiluGrad(x, dy) }),
		"rope": unary(func(b *Builder, x *ir.Value) *ir.Value { return b.Rope(x, 100, false) },
			func(b *Builder, x, dy *ir.Value) *ir.Value { return b.Rope(dy, 100, true) }),
		"cross entropy": {in: normals(dims(4, 5)),
			op: func(b *Builder, in []*ir.Value) []*ir.Value {
				return b.CrossEntropy(in[0], b.targets(4, 0, -1, 4), -1).Results()
			},
			grad: func(b *Builder, in, y []*ir.Value, dy *ir.Value) []*ir.Value {
				return []*ir.Value{b.CrossEntropyGrad(in[0], b.targets(4, 0, -1, 4), y[2], dy, -1)}
			}},
		"attention":         attention(false, dims(1, 2, 3, 4), dims(1, 2, 5, 4), dims(1, 2, 5, 3)),
		"attention causal":  attention(true, dims(1, 2, 5, 4), dims(1, 2, 5, 4), dims(1, 2, 5, 3)),
		"attention grouped": attention(true, dims(2, 4, 5, 4), dims(2, 2, 3, 4), dims(2, 2, 3, 4)), // queries 0 and 1 see nothing
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n := newBench(t)
			in := c.in(n)
			vs := n.argsOf(in)
			y := c.op(n.b, vs)
			ct := n.normal(99, y[0].Shape()...)
			grads := n.eval(c.grad(n.b, vs, y, n.arg(ct))...)
			// value is the sum of y * ct.
			value := func() float64 {
				return dotProduct(n.eval(y[0])[0].Data, ct.Data)
			}
			for i, x := range in[:len(grads)] {
				for k := range x.Data {
					const h = 1e-5
					was := x.Data[k]
					x.Data[k] = was + h
					up := value()
					x.Data[k] = was - h
					down := value()
					x.Data[k] = was
					require.InDelta(t, (up-down)/(2*h), grads[i].Data[k], 1e-7*max(1, abs(grads[i].Data[k])), "operand %d, element %d", i, k)
				}
			}
		})
	}
}

func abs(x float64) float64 { return max(x, -x) }

// targets is a constant of four target classes.
func (b *Builder) targets(values ...float64) *ir.Value {
	return b.Constant(DenseOf(b.Ctx, &ir.Tensor{Shape: []int64{int64(len(values))}, Elem: b.Ctx.I32(), Data: values}))
}
