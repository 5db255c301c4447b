//go:build unix

package prim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// sum64 is the sum of f and of |f|.
func sum64(n int, f func(i int) float64) (s, size float64) {
	for i := range n {
		s, size = s+f(i), size+math.Abs(f(i))
	}
	return s, size
}

// nearSum requires a sum of n terms of the given size to be as good as 32 adds in
// float32 for each partial sum allow.
func nearSum(t *testing.T, what string, want, size, got float64) {
	t.Helper()
	if !(math.Abs(want-got) <= 6*0x1p-24*size) {
		require.Failf(t, what, "%g, want %g, size %g", got, want, size)
	}
}

func TestReductions(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x, y, dst := a.normals(r, n), a.normals(r, n), take[float32](a, n)
		at := func(s []float32, i int) float64 { return float64(s[i]) }
		want, size := sum64(n, func(i int) float64 { return at(x, i) })
		nearSum(t, "Sum", want, size, k.Sum(x))
		want, size = sum64(n, func(i int) float64 { return at(x, i) * at(y, i) })
		nearSum(t, "Dot", want, size, k.Dot(x, y))
		want, _ = sum64(n, func(i int) float64 { return at(x, i) * at(x, i) })
		require.InEpsilon(t, want+1, k.SumSquares(x)+1, 1e-14)
		want, size = sum64(n, func(i int) float64 { return math.Exp(at(x, i)*0.5 - 1) })
		nearSum(t, "ExpSum", want, size, k.ExpSum(dst, x, 0.5, -1))
		for i, d := range dst {
			e := math.Exp(at(x, i)*0.5 - 1)
			require.InDelta(t, e, float64(d), ulp32(e)+e*0x1p-24*math.Abs(at(x, i)*0.5-1)) // the argument is rounded too
		}
		a.check("reductions")
	})
}

func TestReductionBits(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	goKernels, _ := ForISA("go")
	for _, n := range append(sizes(), 2047, 5000) {
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		all := func(k *Kernels) []float64 {
			acc := make([]float64, n)
			k.ColSum(acc, x, 1, n, n)
			k.ColDot(acc, x, y, 1, n, n, n)
			d := make([]float32, n)
			return append(acc, k.Sum(x), k.Dot(x, y), k.SumSquares(x), k.ExpSum(d, x, 2, 1), float64(k.Max(x)), float64(k.Min(x)))
		}
		want := all(goKernels)
		for _, name := range ISAs() {
			k, _ := ForISA(name)
			require.Equal(t, want, all(k), "%s, %d elements", name, n)
		}
	}
}

func TestMaxMin(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x := a.floats(r, n)
		hi, lo, arg := float32(math.Inf(-1)), float32(math.Inf(1)), -1
		for i, v := range x {
			if hi == hi && (v != v || v > hi || arg < 0) {
				arg = i
			}
			hi, lo = max(hi, v), min(lo, v)
		}
		require.True(t, k.Max(x) == hi || hi != hi && k.Max(x) != k.Max(x))
		require.True(t, k.Min(x) == lo || lo != lo && k.Min(x) != k.Min(x))
		require.Equal(t, arg, k.ArgMax(x))
	})
}

func TestRowReductions(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		a := newArena(t, 8, 1<<16)
		r := rand.New(rand.NewPCG(17, 18))
		for trial := range 60 {
			a.reset(trial%2 == 0)
			rows, cols := 1+r.IntN(70), 1+r.IntN(100)
			xs, ys := cols+r.IntN(3), cols+r.IntN(3)
			x, y := a.normals(r, span(rows, xs, cols, 1)), a.normals(r, span(rows, ys, cols, 1))
			at := func(i, j int) float64 { return float64(x[i*xs+j]) }
			prod := func(i, j int) float64 { return at(i, j) * float64(y[i*ys+j]) }
			sum, hi, lo, dot := take[float32](a, rows), take[float32](a, rows), take[float32](a, rows), make([]float32, rows)
			k.RowSum(sum, x, rows, cols, xs)
			k.RowMax(hi, x, rows, cols, xs)
			k.RowMin(lo, x, rows, cols, xs)
			k.RowDot(dot, x, y, rows, cols, xs, ys)
			for i := range rows {
				want, size := sum64(cols, func(j int) float64 { return at(i, j) })
				nearSum(t, "RowSum", want, size, float64(sum[i]))
				want, size = sum64(cols, func(j int) float64 { return prod(i, j) })
				nearSum(t, "RowDot", want, size, float64(dot[i]))
				require.Equal(t, k.Max(x[i*xs:i*xs+cols]), hi[i])
				require.Equal(t, k.Min(x[i*xs:i*xs+cols]), lo[i])
			}
			acc, accDot := take[float64](a, cols), take[float64](a, cols)
			clear(acc)
			clear(accDot)
			k.ColSum(acc, x, rows, cols, xs)
			k.ColDot(accDot, x, y, rows, cols, xs, ys)
			a.check("columns")
			chi, clo := make([]float32, cols), make([]float32, cols)
			k.ColMax(chi, x, rows, cols, xs)
			k.ColMin(clo, x, rows, cols, xs)
			for j := range cols {
				want, size := sum64(rows, func(i int) float64 { return at(i, j) })
				nearSum(t, "ColSum", want, size, acc[j])
				want, size = sum64(rows, func(i int) float64 { return prod(i, j) })
				nearSum(t, "ColDot", want, size, accDot[j])
				top, low := x[j], x[j]
				for i := range rows {
					top, low = max(top, x[i*xs+j]), min(low, x[i*xs+j])
				}
				require.Equal(t, top, chi[j])
				require.Equal(t, low, clo[j])
			}
		}
	})
}
