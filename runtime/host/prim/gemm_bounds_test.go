//go:build unix

package prim

import (
	"math/rand/v2"
	"testing"
)

// Products on operands that end, or begin, at forbidden memory.
func TestGemmBounds(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		p := NewPool(2)
		defer p.Close()
		e := NewEngine(k, p)
		a := newArena(t, 5, 70*600*4)
		r := rand.New(rand.NewPCG(23, 24))
		scratch := make([]float32, DotScratch)
		for trial := range 120 {
			m, n, kk := 1+r.IntN(67), 1+r.IntN(67), 1+r.IntN(67)
			if trial%10 == 0 {
				kk += 500
			}
			if trial%7 == 3 { // few rows, and columns enough for their kernels
				m, n, kk = 1+r.IntN(4), 1+r.IntN(200), 1+r.IntN(200)
			}
			a.reset(trial%2 == 0)
			g := &Gemm{M: m, N: n, K: kk, LDA: kk, LDB: n, LDC: n, Accumulate: trial%3 == 0}
			switch trial / 2 % 3 {
			case 0:
				g.TransA, g.LDA = true, m
			case 1:
				g.TransB, g.LDB = true, kk
			}
			g.A, g.B, g.C = a.normals(r, m*kk), a.normals(r, kk*n), a.normals(r, m*n)
			c := take[float32](a, m*n)
			copy(c, g.C)
			e.Gemm(g)
			switch {
			case g.TransA:
				k.DotTN(m, n, kk, g.A, g.LDA, g.B, g.LDB, c, n, g.Accumulate)
			case g.TransB:
				k.DotNT(m, n, kk, g.A, g.LDA, g.B, g.LDB, c, n, g.Accumulate, scratch)
			default:
				k.DotNN(m, n, kk, g.A, g.LDA, g.B, g.LDB, c, n, g.Accumulate)
			}
			a.check("gemm")
			requireSameBits(t, g.C, c, "%dx%dx%d", m, n, kk)
		}
	})
}
