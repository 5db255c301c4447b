package prim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The known answers that come with the generator's paper.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		seed, stream, counter uint64
		want                  [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		keys := newPhiloxKeys(c.seed)
		require.Equal(t, c.want, philox4(&keys, c.counter, c.stream))
	}
}

func TestPhiloxAnyPart(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		const seed, stream = 0x123456789abcdef0, 0xfedcba9876543210
		keys := newPhiloxKeys(seed)
		for _, start := range []uint64{0, 7, 1<<32 - 20, 1<<33 - 1, math.MaxUint64 - 300} {
			for _, n := range []int{0, 1, 15, 16, 17, 33, 200} {
				got, u := make([]uint32, n+1), make([]float32, n)
				got[n] = 0xdead
				k.PhiloxU32(got[:n], seed, stream, start)
				k.Uniform(u, seed, stream, start)
				for i := range n {
					w := philox4(&keys, start+uint64(i), stream)
					require.Equal(t, w[0], got[i], "start %d, %d of %d", start, i, n)
					require.Equal(t, float32(w[0]>>8)*0x1p-24, u[i])
				}
				require.EqualValues(t, 0xdead, got[n])
			}
		}
	})
}

func TestNormal(t *testing.T) {
	const seed, stream, n = 42, 3, 100_000
	var want []float32
	forEachISA(t, func(t *testing.T, k *Kernels) {
		x := make([]float32, n)
		k.Normal(x, seed, stream, 5, 1, 2)
		if want == nil {
			want = x
		}
		requireSameBits(t, want, x, "another instruction set")
		part := make([]float32, 1000)
		k.Normal(part, seed, stream, 5+777, 1, 2)
		requireSameBits(t, x[777:1777], part, "a part")
	})
	keys := newPhiloxKeys(seed)
	var sum, squares, below float64
	for i, v := range want {
		w := philox4(&keys, 5+uint64(i), stream)
		u, a := (float64(w[0])+1)/(1<<32), float64(w[1])/(1<<32)
		require.Equal(t, float32(1+2*math.Sqrt(-2*math.Log(u))*math.Cos(2*math.Pi*a)), v)
		z := (float64(v) - 1) / 2
		sum, squares = sum+z, squares+z*z
		if z < -1 {
			below++
		}
	}
	require.InDelta(t, 0, sum/n, 5/math.Sqrt(n))
	require.InDelta(t, 1, squares/n, 5*math.Sqrt(2.0/n))
	require.InDelta(t, 0.158655, below/n, 5*math.Sqrt(0.16*0.84/n))
}

// The vector code is within what roundNormal allows for.
func TestBoxMullerError(t *testing.T) {
	n := 1 << 20
	if testing.Short() {
		n = 1 << 16
	}
	w0, w1, z := make([]uint32, n), make([]uint32, n), make([]float64, n)
	Detect().PhiloxU32(w0, 1, 1, 0)
	Detect().PhiloxU32(w1, 1, 2, 0)
	copy(w0, []uint32{0, 0, math.MaxUint32, math.MaxUint32, math.MaxUint32 - 1, 1})
	copy(w1, []uint32{0, math.MaxUint32, 0, 1 << 30, 1 << 31, 3 << 30})
	forEachISA(t, func(t *testing.T, k *Kernels) {
		k.boxMuller(&z[0], &w0[0], &w1[0], n)
		worst := 0.0
		for i, v := range z {
			worst = max(worst, math.Abs(v-boxMuller(w0[i], w1[i])))
		}
		t.Logf("largest difference %.2g", worst)
		require.Less(t, worst, 1e-14)
	})
}
