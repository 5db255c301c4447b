package kernels

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

func rng() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

func TestCrossEntropy(t *testing.T) {
	each(t, func() *program {
		r := rng()
		targets := integers(ir.NewContext(), r, 13, 3, 5)
		targets.Data[2], targets.Data[7] = -1, -1
		return build([]*ir.Tensor{normal(r, 3, 5, 13), targets}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			ce := b.CrossEntropy(a[0], a[1], -1)
			one := b.Splat(ce.Result(0).Type(), 1)
			return append(ce.Results(), b.CrossEntropyGrad(a[0], a[1], ce.Result(2), one, -1))
		})
	})
}

func TestAttention(t *testing.T) {
	for _, s := range []struct {
		b, h, hk, s, t, d, e int64
		causal               bool
	}{{2, 2, 2, 7, 7, 4, 4, true}, {1, 4, 2, 5, 9, 3, 2, true}, {2, 3, 1, 6, 4, 2, 5, true}, {1, 2, 1, 7, 5, 3, 3, false}, {1, 1, 1, 1, 1, 1, 1, true}} {
		each(t, func() *program {
			r := rng()
			return build([]*ir.Tensor{normal(r, s.b, s.h, s.s, s.d), normal(r, s.b, s.hk, s.t, s.d), normal(r, s.b, s.hk, s.t, s.e), normal(r, s.b, s.h, s.s, s.e)},
				func(b *blu.Builder, a []*ir.Value) []*ir.Value {
					o := b.Attention(a[0], a[1], a[2], s.causal, 0.7)
					g := b.AttentionGrad(a[0], a[1], a[2], o.Result(0), o.Result(1), a[3], s.causal, 0.7)
					return append(o.Results(), g.Results()...)
				})
		})
	}
}

func TestProducts(t *testing.T) {
	for _, d := range []struct {
		name           string
		l, r           []int64
		lb, rb, lc, rc []int64
	}{
		{"nt", []int64{5, 7}, []int64{6, 7}, nil, nil, []int64{1}, []int64{1}},
		{"nn", []int64{5, 7}, []int64{7, 6}, nil, nil, []int64{1}, []int64{0}},
		{"tn", []int64{7, 5}, []int64{7, 6}, nil, nil, []int64{0}, []int64{0}},
		{"rows of two dimensions", []int64{2, 5, 7}, []int64{6, 7}, nil, nil, []int64{2}, []int64{1}},
		{"contracted over two", []int64{2, 5, 7}, []int64{2, 5, 6}, nil, nil, []int64{0, 1}, []int64{0, 1}},
		{"contracted in another order", []int64{2, 5, 7}, []int64{6, 5, 2}, nil, nil, []int64{0, 1}, []int64{2, 1}},
		{"batched", []int64{2, 3, 5, 7}, []int64{2, 3, 6, 7}, []int64{0, 1}, []int64{0, 1}, []int64{3}, []int64{3}},
		{"batch inside", []int64{5, 2, 7}, []int64{7, 6, 2}, []int64{1}, []int64{2}, []int64{2}, []int64{0}},
		{"vector", []int64{7}, []int64{6, 7}, nil, nil, []int64{0}, []int64{1}},
		{"inner", []int64{7}, []int64{7}, nil, nil, []int64{0}, []int64{0}},
		{"outer", []int64{5}, []int64{6}, nil, nil, nil, nil},
	} {
		t.Run(d.name, func(t *testing.T) {
			each(t, func() *program {
				r := rng()
				return build([]*ir.Tensor{normal(r, d.l...), normal(r, d.r...), normal(r, d.l...)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
					y := b.Dot(a[0], a[1], d.lb, d.rb, d.lc, d.rc)
					z := b.Dot(b.Add(a[0], a[2]), b.Exp(a[1]), d.lb, d.rb, d.lc, d.rc)
					return []*ir.Value{b.Gelu(y, "erf"), y, b.Sub(z, y)}
				})
			})
		})
	}
}

// A linear layer with everything around it: bias, activation, residual, and its gradients with accumulation.
func TestLayer(t *testing.T) {
	each(t, func() *program {
		r := rng()
		first := ir.NewTensor(ir.NewContext().I1())
		first.Data = []float64{0}
		args := []*ir.Tensor{normal(r, 2, 5, 7), normal(r, 6, 7), normal(r, 6), normal(r, 2, 5, 6), normal(r, 6, 7), normal(r, 6), first}
		p := build(args, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			x, w, bias, dy := a[0], a[1], a[2], a[3]
			pre := b.Add(b.Dot(x, w, nil, nil, []int64{2}, []int64{1}), b.BroadcastTo(bias, []int64{2}, []int64{2, 5, 6}))
			y := b.Add(b.Gelu(pre, "tanh"), dy)
			dpre := b.GeluGrad(pre, dy, "tanh")
			dw := b.Dot(x, dpre, nil, nil, []int64{0, 1}, []int64{0, 1})
			dw = b.Transpose(dw, []int64{1, 0})
			return []*ir.Value{
				y, b.Accumulate(a[4], dw, a[6]), b.Accumulate(a[5], b.ReduceSum(dpre, []int64{0, 1}), a[6]),
				b.Dot(dpre, w, nil, nil, []int64{2}, []int64{0}),
			}
		})
		p.loose = 1e-6 // constants are f32
		return p
	})
}

// The attention block: heads are views, and what goes back is joined without copies.
func TestHeads(t *testing.T) {
	each(t, func() *program {
		r := rng()
		const bs, s, h, d = 2, 5, 2, 4
		p := build([]*ir.Tensor{normal(r, bs, s, 3*h*d), normal(r, h*d, h*d), normal(r, bs, s, h*d)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			var heads [3]*ir.Value
			for i := range heads {
				k := int64(i * h * d)
				x := b.Slice(a[0], []int64{0, 0, k}, []int64{bs, s, k + h*d}, []int64{1, 1, 1})
				heads[i] = b.Transpose(b.ReshapeTo(x, bs, s, h, d), []int64{0, 2, 1, 3})
			}
			q, k := b.Rope(heads[0], 10000, false), b.Rope(heads[1], 10000, false)
			o := b.Attention(q, k, heads[2], true, 0.5)
			merge := func(x *ir.Value) *ir.Value { return b.ReshapeTo(b.Transpose(x, []int64{0, 2, 1, 3}), bs, s, h*d) }
			y := b.Dot(merge(o.Result(0)), a[1], nil, nil, []int64{2}, []int64{1})
			do := b.Transpose(b.ReshapeTo(a[2], bs, s, h, d), []int64{0, 2, 1, 3})
			g := b.AttentionGrad(q, k, heads[2], o.Result(0), o.Result(1), do, true, 0.5)
			dqkv := b.Concat([]*ir.Value{merge(b.Rope(g.Result(0), 10000, true)), merge(b.Rope(g.Result(1), 10000, true)), merge(g.Result(2))}, 2)
			return []*ir.Value{y, dqkv, b.ReduceSum(dqkv, []int64{0, 1})}
		})
		p.loose = 1e-6 // the tables of rope are f32
		return p
	})
}

func TestEmbedding(t *testing.T) {
	each(t, func() *program {
		r := rng()
		tokens := integers(ir.NewContext(), r, 11, 2, 5)
		p := build([]*ir.Tensor{normal(r, 11, 6), normal(r, 8, 6), tokens, normal(r, 6), normal(r, 6), normal(r, 2, 5, 6)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			pos := b.Slice(a[1], []int64{0, 0}, []int64{5, 6}, []int64{1, 1})
			x := b.Add(b.Gather(a[0], a[2]), b.BroadcastTo(pos, []int64{1, 2}, []int64{2, 5, 6}))
			ln := b.Layernorm(x, a[3], a[4], 1e-5)
			dpos := b.Pad(b.ReduceSum(a[5], []int64{0}), []int64{0, 0}, []int64{3, 0}, 0)
			return []*ir.Value{x, ln.Result(0), b.ScatterAdd(a[5], a[2], 11), dpos}
		})
		p.loose = 1e-6 // constants are f32
		return p
	})
}

func TestGathers(t *testing.T) {
	each(t, func() *program {
		r := rng()
		c := ir.NewContext()
		return build([]*ir.Tensor{normal(r, 11), normal(r, 4, 3, 2), integers(c, r, 11, 5, 2), integers(c, r, 4), integers(c, r, 3, 7)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			moved := b.Add(a[4], b.Splat(a[4].Type(), 1))
			return []*ir.Value{b.Exp(b.Gather(a[0], a[2])), b.Gather(a[1], a[3]), b.Gather(a[1], moved), b.ScatterAdd(b.Gather(a[0], a[2]), a[2], 11)}
		})
	})
}

func TestOptimizers(t *testing.T) {
	each(t, func() *program {
		r := rng()
		positive := func(shape ...int64) *ir.Tensor {
			x := normal(r, shape...)
			for i := range x.Data {
				x.Data[i] *= x.Data[i]
			}
			return x
		}
		step := ir.NewTensor(nil)
		step.Data = []float64{3}
		args := []*ir.Tensor{normal(r, 5, 7), normal(r, 5, 7), positive(5, 7), normal(r, 5, 7), positive(), positive(), step, normal(r, 9)}
		p := build(args, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			norm := b.Sqrt(b.SumSquares([]*ir.Value{a[3], a[7]}))
			scale := b.Min(b.Splat(norm.Type(), 1), b.Div(a[5], norm))
			w := b.Adamw(a[0], a[1], a[2], a[3], a[4], scale, a[6], 0.9, 0.95, 1e-8, 0.1)
			s := b.Sgd(a[0], a[1], a[3], a[4], scale, 0.9, true, 0.01)
			return append(append(w.Results(), s.Results()...), norm)
		})
		p.loose = 1e-6 // constants are f32
		return p
	})
}

func TestRandomNumbers(t *testing.T) {
	each(t, func() *program {
		r := rng()
		seed := ir.NewTensor(ir.NewContext().I64())
		seed.Data = []float64{12345}
		return build([]*ir.Tensor{seed, normal(r, 3, 5, 7), normal(r, 7, 5)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			t := a[1].Type()
			u := b.RandomUniform(a[0], 5, t)
			kept := b.Compare(u, b.Splat(t, 0.3), "gt")
			dropped := b.Select(kept, a[1], b.Splat(t, 0))
			turned := b.Transpose(b.RandomNormal(a[0], 6, 1, 2, b.Ctx.Tensor([]int64{5, 7}, b.Ctx.F32())), []int64{1, 0})
			return []*ir.Value{dropped, b.Softmax(b.Add(a[1], b.RandomUniform(a[0], 8, t)), 1), b.Add(a[2], turned), b.Splat(t, 4), b.Iota(1, t)}
		})
	})
}

// Random numbers of several shapes from one seed, some of one element: what reads the same seed need not run over the same
// elements.
func TestRandomNumbersOfOneSeed(t *testing.T) {
	each(t, func() *program {
		seed := ir.NewTensor(ir.NewContext().I64())
		seed.Data = []float64{12345}
		return build([]*ir.Tensor{seed}, func(b *blu.Builder, a []*ir.Value) (out []*ir.Value) {
			for i, shape := range [][]int64{{4, 2}, {}, {1, 1}, {3}} {
				one, t := b.Ctx.Tensor([]int64{1}, b.Ctx.F32()), b.Ctx.Tensor(shape, b.Ctx.F32())
				out = append(out, b.Mul(b.RandomUniform(a[0], int64(2*i), one), b.Splat(one, 0.5)), b.RandomNormal(a[0], int64(2*i+1), 0, 1, t))
			}
			return out
		})
	})
}

// A sum over whole rows, then something that looks at the rows as heads: a row that is summed stays whole.
func TestRowsSummedAndCutIntoHeads(t *testing.T) {
	each(t, func() *program {
		r := rng()
		return build([]*ir.Tensor{normal(r, 2, 3, 24), normal(r, 2, 2, 3, 12)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			x := a[0]
			scaled := b.Mul(x, b.Along(b.ReduceSum(b.Mul(x, x), []int64{2}), 2, x.Shape()))
			columns := b.ReduceSum(scaled, []int64{0, 1})
			merged := b.Reshape(b.Transpose(a[1], []int64{0, 2, 1, 3}), x.Type())
			return []*ir.Value{columns, b.Add(scaled, merged)}
		})
	})
}

// The gradient of the logits takes their place, in one pass over rows or in several.
func TestCrossEntropyInPlace(t *testing.T) {
	for name, target := range targets() {
		t.Run(name, func(t *testing.T) {
			r := rng()
			p := build([]*ir.Tensor{normal(r, 40, 13), integers(ir.NewContext(), r, 13, 40)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
				ce := b.CrossEntropy(a[0], a[1], -1)
				return []*ir.Value{ce.Result(0), b.CrossEntropyGrad(a[0], a[1], ce.Result(2), b.Splat(ce.Result(0).Type(), 1), -1)}
			})
			require.NoError(t, Run(p.c, p.module, target))
			k := ir.LookupSymbol(p.module, "cross_entropy_cross_entropy_grad_40x13")
			require.NotNil(t, k)
			ins, _ := tile.Refs(k)
			require.True(t, share.Allowed(k, 0, len(ins)), "%s", k)
		})
	}
}

// classifierProgram is a last layer with its loss and both gradients.
func classifierProgram(targets *ir.Tensor) *program {
	r := rng()
	n := targets.Shape[0]
	return build([]*ir.Tensor{normal(r, n, 6), normal(r, 13, 6), targets}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
		logits := b.Dot(a[0], a[1], nil, nil, []int64{1}, []int64{1})
		ce := b.CrossEntropy(logits, a[2], -1)
		d := b.CrossEntropyGrad(logits, a[2], ce.Result(2), b.Splat(ce.Result(0).Type(), 1), -1)
		dx := b.Dot(d, a[1], nil, nil, []int64{1}, []int64{0})
		dw := b.Dot(d, a[0], nil, nil, []int64{0}, []int64{0})
		return append(ce.Results(), dx, dw)
	})
}

// A classifier is computed chunk by chunk where the target says so, the last chunk being smaller.
func TestClassifier(t *testing.T) {
	each(t, func() *program { return classifierProgram(integers(ir.NewContext(), rng(), 13, 11)) })
}

// A gradient of other targets, or that ignores others, than the loss before it is not computed in that one's chunks.
func TestOtherGradient(t *testing.T) {
	for name, ignore := range map[string]int64{"targets": -1, "ignored": 3} {
		t.Run(name, func(t *testing.T) {
			each(t, func() *program {
				r := rng()
				args := []*ir.Tensor{normal(r, 11, 6), normal(r, 13, 6), integers(ir.NewContext(), r, 13, 11), integers(ir.NewContext(), r, 13, 11)}
				args[2].Data[4] = 3
				return build(args, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
					logits := b.Dot(a[0], a[1], nil, nil, []int64{1}, []int64{1})
					targets := a[2]
					if name == "targets" {
						targets = a[3]
					}
					ce := b.CrossEntropy(logits, a[2], -1)
					d := b.CrossEntropyGrad(logits, targets, ce.Result(2), b.Splat(ce.Result(0).Type(), 1), ignore)
					return append(ce.Results(), b.Dot(d, a[1], nil, nil, []int64{1}, []int64{0}), b.Dot(d, a[0], nil, nil, []int64{0}, []int64{0}))
				})
			})
		})
	}
}

// With bf16 a loss and its gradient read the same rounded logits: the only class there is has a probability of one and no gradient.
func TestOneClass(t *testing.T) {
	each(t, func() *program {
		r := rng()
		return build([]*ir.Tensor{normal(r, 11, 6), normal(r, 1, 6), integers(ir.NewContext(), r, 1, 11)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			logits := b.Dot(a[0], a[1], nil, nil, []int64{1}, []int64{1})
			logits.Op().SetAttr(blu.PrecisionAttr, b.Ctx.String("bf16"))
			ce := b.CrossEntropy(logits, a[2], -1)
			return append(ce.Results()[:2], b.CrossEntropyGrad(logits, a[2], ce.Result(2), b.Splat(ce.Result(0).Type(), 1), -1))
		})
	})
}

// A classifier has as many rows at once as its product says, whatever the target likes.
func TestRowsAtOnce(t *testing.T) {
	for rows, chunks := range map[int64]int{0: 3, 2: 6, 6: 2, 11: 1} {
		p := classifierProgram(integers(ir.NewContext(), rng(), 13, 11))
		if rows > 0 {
			logits := ir.LookupSymbol(p.module, "f").Body().First()
			require.True(t, logits.Is(blu.Dot))
			logits.SetAttr(blu.RowsAttr, p.c.Int64(rows))
		}
		p.check(t, tiny())
		n := 0
		for op := range ir.LookupSymbol(p.module, "f").Body().Ops() {
			if op.Is(tile.Launch) && strings.HasPrefix(op.Attrs().Sym("kernel"), "cross_entropy") {
				n++
			}
		}
		require.Equal(t, chunks, n, "%d rows", rows)
	}
}

// However many rows there are, they are not cut into more chunks than can be compiled in seconds.
func TestChunksOfManyRows(t *testing.T) {
	const most, byDefault = 1024, 2048
	for _, tc := range []struct{ rows, said, want int64 }{
		{most * byDefault, 0, byDefault}, {most*byDefault + 1, 0, byDefault + 1}, {1 << 50, 0, 1 << 40}, {1 << 50, 64, 1 << 40}, {most * 64, 64, 64},
	} {
		build([]*ir.Tensor{{Shape: []int64{tc.rows, 6}}, {Shape: []int64{13, 6}}}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			logits := b.Dot(a[0], a[1], nil, nil, []int64{1}, []int64{1})
			if tc.said > 0 {
				logits.Op().SetAttr(blu.RowsAttr, b.Ctx.Int64(tc.said))
			}
			require.Equal(t, tc.want, RowsAtOnce(logits.Op(), byDefault), "%+v", tc)
			return []*ir.Value{logits}
		})
	}
}

// When no target counts, sum, count and gradients are zero.
func TestEveryTargetIgnored(t *testing.T) {
	each(t, func() *program {
		targets := ir.NewTensor(ir.NewContext().I32(), 11)
		for i := range targets.Data {
			targets.Data[i] = -1
		}
		return classifierProgram(targets)
	})
}

// A target out of range is named with its place among all of them, whatever chunk it is in.
func TestTargetOutOfRange(t *testing.T) {
	for name, target := range targets() {
		t.Run(name, func(t *testing.T) {
			targets := integers(ir.NewContext(), rng(), 13, 11)
			targets.Data[9] = 13
			p := classifierProgram(targets)
			require.NoError(t, Run(p.c, p.module, target))
			_, err := p.call()
			require.ErrorContains(t, err, "index 13 at position 9 is out of range: a row has 13 elements")
		})
	}
}

// What has no elements is a constant or a kernel of no grid points; sums over nothing are zero.
func TestNothing(t *testing.T) {
	each(t, func() *program {
		r := rng()
		return build([]*ir.Tensor{normal(r, 0, 4), normal(r, 4, 0), normal(r, 3)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			y := b.Exp(a[0])
			return []*ir.Value{
				y, b.ReduceSum(y, []int64{0}), b.Dot(a[1], a[0], nil, nil, []int64{1}, []int64{0}), b.Concat([]*ir.Value{a[0], b.ReshapeTo(a[2], 3, 1)}[:1], 0),
				b.Softmax(a[0], 1), b.Transpose(a[1], []int64{1, 0}), b.ReduceMax(a[1], []int64{1}),
			}
		})
	})
}

// Arithmetic on narrow elements is done in f32, and rounded where the program's types say so.
func TestNarrow(t *testing.T) {
	each(t, func() *program {
		r := rng()
		x, w, g := normal(r, 5, 8), normal(r, 8, 8), normal(r, 8)
		for _, a := range []*ir.Tensor{x, w, g} {
			a.Elem = ir.NewContext().Float(ir.BF16)
			for i, v := range a.Data {
				a.Data[i] = ir.DecodeElement(a.Elem, string(ir.EncodeElement(nil, a.Elem, v)))
			}
		}
		p := build([]*ir.Tensor{x, w, g, integers(ir.NewContext(), r, 5, 3)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			h := b.Rmsnorm(a[0], a[2], 1e-5)
			y := b.Gelu(b.Dot(h.Result(0), a[1], nil, nil, []int64{1}, []int64{1}), "tanh")
			return []*ir.Value{b.Add(y, a[0]), b.Gather(a[0], a[3]), b.ReduceSum(y, []int64{0}), b.CastTo(b.Transpose(y, []int64{1, 0}), b.Ctx.F32())}
		})
		p.loose = 0.02
		return p
	})
}
