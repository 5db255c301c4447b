//go:build unix

package prim

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

// nearest16 rounds by search among all finite values of a 16-bit format, ties to
// the even pattern, with overflow where the next value would be.
func nearest16(values []float64, limit float64) func(x float64) (uint16, bool) {
	return func(x float64) (uint16, bool) {
		if math.Abs(x) >= limit {
			return 0, false
		}
		a := math.Abs(x)
		i := sort.SearchFloat64s(values, a)
		if i == len(values) || i > 0 && (a-values[i-1] < values[i]-a || a-values[i-1] == values[i]-a && (i-1)%2 == 0) {
			i--
		}
		return uint16(i), true
	}
}

func TestConvert16(t *testing.T) {
	var bf, f []float64
	for b := range uint32(0x7f80) {
		bf = append(bf, float64(math.Float32frombits(b<<16)))
	}
	for b := range uint32(0x7c00) {
		e, m := int(b>>10), float64(b&0x3ff)
		if e == 0 {
			f = append(f, math.Ldexp(m, -24))
		} else {
			f = append(f, math.Ldexp(1024+m, e-25))
		}
	}
	formats := []struct {
		to    func(k *Kernels, dst []uint16, x []float32)
		from  func(k *Kernels, dst []float32, x []uint16)
		exact []float64
		round func(float64) (uint16, bool)
		inf   uint16
	}{
		{(*Kernels).ToBF16, (*Kernels).FromBF16, bf, nearest16(bf, 0x1.ffp127), 0x7f80},
		{(*Kernels).ToF16, (*Kernels).FromF16, f, nearest16(f, 65520), 0x7c00},
	}
	forEachISA(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(19, 20))
		for _, c := range formats {
			all, wide := make([]uint16, 1<<16), make([]float32, 1<<16)
			for i := range all {
				all[i] = uint16(i)
			}
			c.from(k, wide, all)
			for i, w := range wide {
				switch m := i & 0x7fff; {
				case m > int(c.inf):
					require.True(t, isNaN(w))
				case m == int(c.inf):
					require.True(t, math.IsInf(float64(w), 1-i>>15*2))
				default:
					require.Equal(t, c.exact[m], math.Abs(float64(w)))
					require.Equal(t, i>>15 == 1, math.Signbit(float64(w)))
				}
			}
			x := append([]float32{}, special...)
			for range 20000 {
				x = append(x, math.Float32frombits(r.Uint32()), float32(r.NormFloat64()), float32(r.NormFloat64())*1e-6)
				i := r.IntN(len(c.exact) - 1)
				x = append(x, float32((c.exact[i]+c.exact[i+1])/2)) // ties
			}
			got := make([]uint16, len(x))
			c.to(k, got, x)
			for i, v := range x {
				if isNaN(v) {
					require.Greater(t, got[i]&0x7fff, c.inf)
					continue
				}
				want, ok := c.round(float64(v))
				if !ok {
					want = c.inf
				}
				if math.Signbit(float64(v)) {
					want |= 0x8000
				}
				require.Equal(t, want, got[i], "%x", v)
			}
			back := make([]float32, len(x))
			if c.inf == 0x7f80 { // RoundBF16 is there and back
				k.RoundBF16(back, x)
				again := make([]float32, len(x))
				c.from(k, again, got)
				requireSameBits(t, again, back, "RoundBF16")
			}
		}
	})
}

func TestConvertBounds(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x, h, back := a.floats(r, n), take[uint16](a, n), take[float32](a, n)
		k.ToBF16(h, x)
		k.FromBF16(back, h)
		for i := range x {
			want := []uint16{0}
			toBF16Go(&want[0], &x[i], 1)
			require.Equal(t, want[0], h[i])
		}
		k.ToF16(h, x)
		k.FromF16(back, h)
		for i := range x {
			require.Equal(t, f16(x[i]), h[i])
			require.True(t, sameBits(fromF16(h[i]), back[i]))
		}
		a.check("conversions")
	})
}

func TestConvertI32(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x, i32, back, from := a.floats(r, n), take[int32](a, n), take[float32](a, n), a.ints(r, n)
		for i := range x {
			x[i] *= float32(math.Ldexp(1, r.IntN(34)))
		}
		k.ToI32(i32, x)
		k.FromI32(back, from)
		a.check("int32")
		for i, v := range x {
			want := int32(math.MinInt32)
			if w := math.Trunc(float64(v)); w >= math.MinInt32 && w <= math.MaxInt32 {
				want = int32(w)
			}
			require.Equal(t, want, i32[i], "%g", v)
			require.Equal(t, float32(from[i]), back[i])
		}
	})
}

func TestTransposeGatherScatter(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		a := newArena(t, 4, 1<<16)
		r := rand.New(rand.NewPCG(21, 22))
		for trial := range 100 {
			a.reset(trial%2 == 0)
			rows, cols := 1+r.IntN(67), 1+r.IntN(67)
			ss, ds := cols+r.IntN(3), rows+r.IntN(3)
			src, dst := a.floats(r, span(rows, ss, cols, 1)), take[float32](a, span(cols, ds, rows, 1))
			k.Transpose(dst, ds, src, ss, rows, cols)
			a.check("transpose")
			for i := range dst {
				if c, q := i/ds, i%ds; q < rows {
					require.True(t, sameBits(src[q*ss+c], dst[i]))
				} else {
					require.EqualValues(t, uint32(poison*0x01010101), math.Float32bits(dst[i]))
				}
			}
			testGatherScatter(t, k, a, r, rows, cols)
		}
	})
}

func testGatherScatter(t *testing.T, k *Kernels, a *arena, r *rand.Rand, rows, cols int) {
	t.Helper()
	a.reset(true)
	n := 1 + r.IntN(20)
	table, out := a.normals(r, rows*cols), take[float32](a, n*cols)
	idx := make([]int32, n)
	for i := range idx {
		idx[i] = int32(r.IntN(rows))
	}
	require.NoError(t, k.GatherRows(out, cols, table, cols, rows, cols, idx))
	want := append([]float32{}, table...)
	for i, x := range idx {
		for c := range cols {
			require.Equal(t, table[int(x)*cols+c], out[i*cols+c])
			want[int(x)*cols+c] += out[i*cols+c]
		}
	}
	require.NoError(t, k.ScatterAddRows(table, cols, rows, out, cols, cols, idx))
	require.Equal(t, want, table)
	a.check("gather, scatter")
	idx[n-1] = int32(rows)
	require.ErrorContains(t, k.GatherRows(out, cols, table, cols, rows, cols, idx), "at position")
	idx[n-1] = -1
	require.ErrorContains(t, k.ScatterAddRows(table, cols, rows, out, cols, cols, idx), "index -1 at position")
	require.Equal(t, want, table, "an error writes nothing")
}
