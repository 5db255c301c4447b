package tile_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/arith"
	"blutrain/dialects/builtin"
	"blutrain/dialects/scf"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// The kernels the dialect was designed against, at sizes that no block divides, compared with plain loops in float64.

func load(t *testing.T, name string) *ir.Interp {
	t.Helper()
	path := filepath.Join("..", "..", "test", "lit", "tile", name)
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	return parse(t, string(src))
}

func parse(t *testing.T, src string) *ir.Interp {
	t.Helper()
	c := ir.NewContext(builtin.Dialect, arith.Dialect, scf.Dialect, tile.Dialect)
	module, err := ir.Parse(c, "kernels.mlir", []byte(src))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, module))
	return &ir.Interp{Ctx: c, Module: module}
}

// run evaluates a kernel on tensors of its inputs' shapes.
func run(t *testing.T, in *ir.Interp, kernel string, inputs ...[]float64) [][]float64 {
	t.Helper()
	k := in.Symbol(kernel)
	require.NotNil(t, k)
	ins, _ := tile.Refs(k)
	var args []ir.Datum
	for i, v := range ins {
		require.Len(t, inputs[i], int(ir.NumElements(v.Shape())), "input %d", i)
		args = append(args, &ir.Tensor{Shape: v.Shape(), Elem: v.Elem(), Data: inputs[i]})
	}
	out, err := tile.Run(in, k, args)
	require.NoError(t, err)
	var data [][]float64
	for _, d := range out {
		data = append(data, d.(*ir.Tensor).Data)
	}
	return data
}

func normal(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func near(t *testing.T, what string, want, got []float64) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-11*(1+math.Abs(want[i])), "%s[%d]", what, i)
	}
}

func gelu(x float64) (y, dy float64) {
	const c0, c1 = 0.7978845608028654, 0.044715
	t := math.Tanh(c0 * x * (1 + c1*x*x))
	return x / 2 * (1 + t), (1+t)/2 + x/2*(1-t*t)*c0*(1+3*c1*x*x)
}

func TestGemmBiasGelu(t *testing.T) {
	const m, n, k = 19, 37, 23
	r := rand.New(rand.NewPCG(1, 2))
	planes := func(rows int) (high, low []float64) {
		for range rows * k {
			x := r.NormFloat64()
			h := ir.F16Value(ir.F16Bits(x))
			high, low = append(high, h), append(low, ir.F16Value(ir.F16Bits((x-h)*4096)))
		}
		return high, low
	}
	ah, al := planes(m)
	bh, bl := planes(n)
	bias := normal(r, n)
	pre, y := make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum := 0.0
			for p := range k {
				sum += ah[i*k+p]*bh[j*k+p] + (ah[i*k+p]*bl[j*k+p]+al[i*k+p]*bh[j*k+p])/4096
			}
			pre[i*n+j] = sum + bias[j]
			y[i*n+j], _ = gelu(pre[i*n+j])
		}
	}
	out := run(t, load(t, "gemm_bias_gelu.mlir"), "gemm_bias_gelu", ah, al, bh, bl, bias)
	near(t, "pre", pre, out[0])
	near(t, "y", y, out[1])
}

func TestGemmDgeluColsum(t *testing.T) {
	const m, n, k = 19, 29, 37
	r := rand.New(rand.NewPCG(3, 4))
	dy, w, pre := normal(r, m*k), normal(r, n*k), normal(r, m*n)
	dpre, db := make([]float64, m*n), make([]float64, n)
	for i := range m {
		for j := range n {
			sum := 0.0
			for p := range k {
				sum += dy[i*k+p] * w[j*k+p]
			}
			_, d := gelu(pre[i*n+j])
			dpre[i*n+j] = sum * d
			db[j] += sum * d
		}
	}
	in := load(t, "gemm_dgelu_colsum.mlir")
	out := run(t, in, "gemm_dgelu_colsum", dy, w, pre)
	near(t, "dpre", dpre, out[0])
	near(t, "db", db, run(t, in, "sum_partials", out[1])[0])
}

func TestAttentionGrad(t *testing.T) {
	const b, h, hk, s, d, scale = 2, 4, 2, 13, 6, 0.4
	r := rand.New(rand.NewPCG(5, 6))
	q, k, v, do := normal(r, b*h*s*d), normal(r, b*hk*s*d), normal(r, b*hk*s*d), normal(r, b*h*s*d)
	o, lse := make([]float64, b*h*s*d), make([]float64, b*h*s)
	dq, dk, dv := make([]float64, b*h*s*d), make([]float64, b*hk*s*d), make([]float64, b*hk*s*d)
	dot := func(x, y []float64) (sum float64) {
		for i := range d {
			sum += x[i] * y[i]
		}
		return sum
	}
	for head := range b * h {
		kv := head / h * hk * s * d
		kv += head % h / (h / hk) * s * d
		for i := range s {
			at := (head*s + i) * d
			p, total := make([]float64, i+1), 0.0
			for j := range p {
				p[j] = math.Exp(scale * dot(q[at:], k[kv+j*d:]))
				total += p[j]
			}
			lse[head*s+i] = math.Log(total)
			for j := range p {
				p[j] /= total
				for e := range d {
					o[at+e] += p[j] * v[kv+j*d+e]
				}
			}
			delta := dot(do[at:], o[at:])
			for j := range p {
				ds := p[j] * (dot(do[at:], v[kv+j*d:]) - delta) * scale
				for e := range d {
					dv[kv+j*d+e] += p[j] * do[at+e]
					dk[kv+j*d+e] += ds * q[at+e]
					dq[at+e] += ds * k[kv+j*d+e]
				}
			}
		}
	}
	out := run(t, load(t, "attention_grad.mlir"), "attention_grad", q, k, v, o, lse, do)
	near(t, "dq", dq, out[0])
	near(t, "dk", dk, out[1])
	near(t, "dv", dv, out[2])
}

func TestClassifier(t *testing.T) {
	const n, v, c, ignore = 11, 23, 6, -1
	r := rand.New(rand.NewPCG(7, 8))
	h, w, targets := normal(r, n*c), normal(r, v*c), make([]float64, n)
	loss, count := 0.0, 0.0
	lse, dh, dw := make([]float64, n), make([]float64, n*c), make([]float64, v*c)
	for i := range n {
		targets[i] = float64(r.IntN(v))
		if i%4 == 2 {
			targets[i] = ignore
		}
		z, total := make([]float64, v), 0.0
		for j := range v {
			for e := range c {
				z[j] += h[i*c+e] * w[j*c+e]
			}
			total += math.Exp(z[j])
		}
		lse[i] = math.Log(total)
		if targets[i] == ignore {
			continue
		}
		loss += lse[i] - z[int(targets[i])]
		count++
		for j := range v {
			dz := math.Exp(z[j] - lse[i])
			if j == int(targets[i]) {
				dz--
			}
			for e := range c {
				dh[i*c+e] += dz * w[j*c+e]
				dw[j*c+e] += dz * h[i*c+e]
			}
		}
	}
	in := load(t, "classifier.mlir")
	out := run(t, in, "classifier_rows", h, w, targets)
	sum := func(x []float64) []float64 {
		s := 0.0
		for _, v := range x {
			s += v
		}
		return []float64{s}
	}
	near(t, "loss", []float64{loss}, sum(out[0]))
	near(t, "count", []float64{count}, sum(out[1]))
	near(t, "lse", lse, out[2])
	near(t, "dh", dh, out[3])
	near(t, "dw", dw, run(t, in, "classifier_weights", h, w, targets, lse)[0])
}

func TestLayernormGrad(t *testing.T) {
	const n, c = 29, 10
	r := rand.New(rand.NewPCG(9, 10))
	x, gain, dy := normal(r, n*c), normal(r, c), normal(r, n*c)
	mean, rstd := make([]float64, n), make([]float64, n)
	dx, dg, db := make([]float64, n*c), make([]float64, c), make([]float64, c)
	for i := range n {
		row, d := x[i*c:(i+1)*c], dy[i*c:(i+1)*c]
		for _, v := range row {
			mean[i] += v / c
		}
		variance := 0.0
		for _, v := range row {
			variance += (v - mean[i]) * (v - mean[i]) / c
		}
		rstd[i] = 1 / math.Sqrt(variance+1e-5)
		m1, m2 := 0.0, 0.0
		for j, v := range row {
			hat := (v - mean[i]) * rstd[i]
			m1 += d[j] * gain[j] / c
			m2 += d[j] * gain[j] * hat / c
			dg[j] += d[j] * hat
			db[j] += d[j]
		}
		for j, v := range row {
			dx[i*c+j] = rstd[i] * (d[j]*gain[j] - m1 - (v-mean[i])*rstd[i]*m2)
		}
	}
	in := load(t, "layernorm_grad.mlir")
	out := run(t, in, "layernorm_grad", x, gain, mean, rstd, dy)
	near(t, "dx", dx, out[0])
	sums := run(t, in, "sum_panels", out[1], out[2])
	near(t, "dg", dg, sums[0])
	near(t, "db", db, sums[1])
}
