package prim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The block products give the bits of Gemm, and write nothing else.
func TestDot(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		p := NewPool(1)
		e := NewEngine(k, p)
		r := rand.New(rand.NewPCG(7, 8))
		scratch := make([]float32, DotScratch)
		sizes := [][3]int{{64, 64, 64}, {1, 1, 1}, {2, 70, 600}, {0, 3, 2}, {3, 2, 0}}
		for range 150 {
			sizes = append(sizes, [3]int{1 + r.IntN(67), 1 + r.IntN(67), 1 + r.IntN(67)})
		}
		for _, s := range sizes {
			x := randomGemm(r, s[0], s[1], s[2])
			x.batch.Count = 1
			g := x.g
			got := append([]float32{}, x.c0...)
			switch {
			case g.TransA:
				k.DotTN(g.M, g.N, g.K, g.A, g.LDA, g.B, g.LDB, got, g.LDC, g.Accumulate)
			case g.TransB:
				k.DotNT(g.M, g.N, g.K, g.A, g.LDA, g.B, g.LDB, got, g.LDC, g.Accumulate, scratch)
			default:
				k.DotNN(g.M, g.N, g.K, g.A, g.LDA, g.B, g.LDB, got, g.LDC, g.Accumulate)
			}
			e.Gemm(&g)
			for i := range got {
				require.Equal(t, math.Float32bits(g.C[i]), math.Float32bits(got[i]), "%v at %d", x, i)
			}
		}
	})
}

func BenchmarkDot(b *testing.B) {
	const n = 64
	k := Detect()
	x, y, z := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	scratch := make([]float32, DotScratch)
	for name, f := range map[string]func(){
		"NN": func() { k.DotNN(n, n, n, x, n, y, n, z, n, true) },
		"TN": func() { k.DotTN(n, n, n, x, n, y, n, z, n, true) },
		"NT": func() { k.DotNT(n, n, n, x, n, y, n, z, n, true, scratch) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(2*n*n*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflop/s")
		})
	}
}
