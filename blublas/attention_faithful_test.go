package blublas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
)

// single is attention and its gradients in float32, every product and sum rounded, terms in order.
func (a Attention) single(q, k, v, do []float64) exact {
	d := a.Features
	n, m := a.Queries, a.Keys
	f := func(x []float64) []float32 {
		y := make([]float32, len(x))
		for i := range x {
			y[i] = float32(x[i])
		}
		return y
	}
	Q, K, V, G := f(q), f(k), f(v), f(do)
	dot := func(x, y []float32) (s float32) {
		for i := range x {
			s = float32(math.FMA(float64(x[i]), float64(y[i]), float64(s)))
		}
		return s
	}
	axpy := func(y []float32, c float32, x []float32) {
		for i := range y {
			y[i] = float32(math.FMA(float64(c), float64(x[i]), float64(y[i])))
		}
	}
	row := func(x []float32, i int) []float32 { return x[i*d : (i+1)*d] }
	o, dq, dk, dv := make([]float32, n*d), make([]float32, n*d), make([]float32, m*d), make([]float32, m*d)
	for i := range n {
		s := make([]float32, m)
		top := float32(math.Inf(-1))
		for t := range m {
			s[t] = dot(row(Q, i), row(K, t)) * float32(a.Scale)
			top = max(top, s[t])
		}
		var sum float32
		for t := range m {
			s[t] = float32(math.Exp(float64(s[t] - top)))
			sum += s[t]
		}
		for t := range m {
			axpy(row(o, i), s[t]/sum, row(V, t))
		}
		delta := dot(row(o, i), row(G, i))
		lse := top + float32(math.Log(float64(sum)))
		for t := range m {
			p := float32(math.Exp(float64(dot(row(Q, i), row(K, t))*float32(a.Scale) - lse)))
			ds := p * (dot(row(G, i), row(V, t)) - delta) * float32(a.Scale)
			axpy(row(dv, t), p, row(G, i))
			axpy(row(dq, i), ds, row(K, t))
			axpy(row(dk, t), ds, row(Q, i))
		}
	}
	w := func(x []float32) []float64 {
		y := make([]float64, len(x))
		for i := range x {
			y[i] = float64(x[i])
		}
		return y
	}
	return exact{o: w(o), dq: w(dq), dk: w(dk), dv: w(dv)}
}

// TF32x3's and FP16x3's errors are like float32's, also where many keys or queries are added up: tensor cores round sums toward zero, so
// that a chain of them alone would be ten times off at a thousand.
func TestAttentionIsFaithful(t *testing.T) {
	warps, groups := AttentionBlock{Warps: 1, Tiles: 1, Columns: 32, Stages: 2, PerSM: 1}, AttentionBlock{Tiles: 1, Columns: 64, Stages: 2, PerSM: 1, Consumers: 1, Held: true}
	for _, s := range []struct {
		queries, keys int
		precision     Precision
		block         AttentionBlock
	}{{16, 640, TF32x3, warps}, {640, 16, TF32x3, warps}, {96, 96, TF32x3, warps}, {16, 640, FP16x3, groups}, {640, 16, FP16x3, groups}, {96, 96, FP16x3, groups}} {
		t.Run(fmt.Sprint(s.precision, s.queries, s.keys), func(t *testing.T) {
			t.Parallel()
			a := Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: s.queries, Keys: s.keys, Features: 64, Scale: 0.125, Precision: s.precision, Target: ptx.SM90A, Block: s.block}
			q, kv, qkv := packed(1, 1, s.queries, 64), packed(2, 1, s.keys, 64), packed(3, 1, s.queries, 64)
			a.Q, a.O, a.DO, a.DQ, a.K, a.V, a.DK, a.DV = qkv, q, q, qkv, kv, kv, kv, kv
			e := a.prepare(rand.New(rand.NewPCG(5, 7)))
			for _, kernel := range a.kernels(t) {
				require.NoError(t, e.launch(kernel), kernel.Name)
			}
			single := a.single(e.q.read(t), e.k.read(t), e.v.read(t), e.do.read(t))
			for _, x := range []struct {
				name              string
				got, want, single []float64
			}{{"o", e.o.read(t), e.want.o, single.o}, {"dq", e.dq.read(t), e.want.dq, single.dq}, {"dk", e.dk.read(t), e.want.dk, single.dk}, {"dv", e.dv.read(t), e.want.dv, single.dv}} {
				ours, theirs := apart(x.got, x.want), apart(x.single, x.want)
				t.Logf("%s: %.2e, float32 %.2e", x.name, ours, theirs)
				require.LessOrEqual(t, ours, 1.5*theirs, x.name)
			}
		})
	}
}

// apart is the norm of a difference over that of what should be.
func apart(got, want []float64) float64 {
	var e, n float64
	for i := range want {
		e += (got[i] - want[i]) * (got[i] - want[i])
		n += want[i] * want[i]
	}
	return math.Sqrt(e / n)
}
