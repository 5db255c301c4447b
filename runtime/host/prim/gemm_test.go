package prim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// forEachISA runs a test for each instruction set that this processor has.
func forEachISA(t *testing.T, f func(t *testing.T, k *Kernels)) {
	for _, name := range ISAs() {
		t.Run(name, func(t *testing.T) {
			k, err := ForISA(name)
			require.NoError(t, err)
			require.Equal(t, name, k.ISA())
			f(t, k)
		})
	}
}

func TestForISARefusesUnknown(t *testing.T) {
	_, err := ForISA("mmx")
	require.ErrorContains(t, err, `"mmx"`)
}

func TestFMA32(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	any32 := func() float32 { return math.Float32frombits(r.Uint32()) }
	near := func() float32 { // few bits, small exponents: sums that tie
		return float32(r.IntN(1<<13)-1<<12) * float32(math.Ldexp(1, r.IntN(24)-12))
	}
	check := func(x, y, z float32) {
		got, want := fma32(x, y, z), fmaExact(x, y, z)
		if math.Float32bits(got) != math.Float32bits(want) && !(got != got && want != want) {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", x, y, z, got, want)
		}
	}
	for range 200000 {
		check(any32(), any32(), any32())
		check(near(), near(), near())
		check(near(), near()*0x1p-70, near()*0x1p-120)
		check(near()*0x1p-70, near()*0x1p-70, near()*0x1p-140) // denormal
		x, y := near(), near()
		check(x, y, -x*y)
	}
}

// gemmCase is a product on windows of larger arrays that hold a poison.
type gemmCase struct {
	g      Gemm
	batch  BatchAxis
	c0     []float32 // C before
	tail   int       // elements after the last of C
	poison float32
}

func randomGemm(r *rand.Rand, m, n, k int) *gemmCase {
	x := &gemmCase{poison: math.Float32frombits(0x7fc0dead)}
	x.batch = BatchAxis{Count: 1}
	if r.IntN(4) == 0 {
		x.batch.Count = 1 + r.IntN(4)
	}
	g := &x.g
	g.M, g.N, g.K = m, n, k
	switch r.IntN(3) {
	case 0:
		g.TransA = true
	case 1:
		g.TransB = true
	}
	g.Accumulate = r.IntN(2) == 0
	shape := func(rows, cols int, trans bool) (s []float32, ld, stride int) {
		if trans {
			rows, cols = cols, rows
		}
		ld = max(1, cols+r.IntN(2)*r.IntN(9))
		stride = max(1, rows*ld+r.IntN(5))
		off := r.IntN(5) // unaligned
		s = make([]float32, off+stride*x.batch.Count)
		for i := range s {
			s[i] = float32(r.NormFloat64())
		}
		return s[off:], ld, stride
	}
	g.A, g.LDA, x.batch.StrideA = shape(m, k, g.TransA)
	g.B, g.LDB, x.batch.StrideB = shape(k, n, g.TransB)
	g.C, g.LDC, x.batch.StrideC = shape(m, n, false)
	for i := range g.C {
		if !x.inC(i) || !g.Accumulate {
			g.C[i] = x.poison
		}
	}
	x.c0 = append([]float32{}, g.C...)
	return x
}

func (x *gemmCase) inC(i int) bool {
	i %= x.batch.StrideC
	return i%x.g.LDC < x.g.N && i/x.g.LDC < x.g.M
}

func (x *gemmCase) String() string {
	return fmt.Sprintf("%dx%dx%d tA=%v tB=%v lda=%d ldb=%d ldc=%d acc=%v batch=%d", x.g.M, x.g.N, x.g.K,
		x.g.TransA, x.g.TransB, x.g.LDA, x.g.LDB, x.g.LDC, x.g.Accumulate, x.batch.Count)
}

// check compares C with the float64 product. A float32 dot product of length k is
// off by at most about k units of sum |a b|; in blocks it is far below.
func (x *gemmCase) check(t *testing.T) {
	t.Helper()
	g := &x.g
	for i, c := range g.C {
		if !x.inC(i) {
			require.Equal(t, math.Float32bits(x.c0[i]), math.Float32bits(c), "%v wrote outside of C at %d", x, i)
			continue
		}
		b, row, col := i/x.batch.StrideC, i%x.batch.StrideC/g.LDC, i%x.batch.StrideC%g.LDC
		var want, size float64
		if g.Accumulate {
			want, size = float64(x.c0[i]), math.Abs(float64(x.c0[i]))
		}
		for p := range g.K {
			ia, ib := row*g.LDA+p, p*g.LDB+col
			if g.TransA {
				ia = p*g.LDA + row
			}
			if g.TransB {
				ib = col*g.LDB + p
			}
			y := float64(g.A[b*x.batch.StrideA+ia]) * float64(g.B[b*x.batch.StrideB+ib])
			want += y
			size += math.Abs(y)
		}
		bound := 0x1p-24 * size * (2 + math.Sqrt(float64(min(g.K, blockK))))
		if d := math.Abs(float64(c) - want); !(d <= bound) {
			t.Fatalf("%v: C[%d][%d, %d] = %g, want %g, off by %.2g, allowed %.2g", x, b, row, col, c, want, d, bound)
		}
	}
}

func TestGemm(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		p := NewPool(2)
		defer p.Close()
		e := NewEngine(k, p)
		r := rand.New(rand.NewPCG(3, 4))
		run := func(m, n, kk int) {
			x := randomGemm(r, m, n, kk)
			seen := newCover(x)
			x.g.Epilogue = seen.mark
			e.GemmBatch(&x.g, Batch{x.batch})
			x.check(t)
			seen.check(t)
		}
		for m := 1; m <= 33; m++ { // every kernel, every tail
			run(m, 1+r.IntN(70), 1+r.IntN(40))
			run(1+r.IntN(33), m, 1+r.IntN(40))
			run(1+r.IntN(33), m+32, 1+r.IntN(40))
			run(1+r.IntN(33), 1+r.IntN(70), m)
		}
		for range 100 {
			run(1+r.IntN(67), 1+r.IntN(67), 1+r.IntN(67))
		}
		for _, s := range [][3]int{{16, 1000, 300}, {130, 257, 513}, {600, 70, 33}, {1, 1, 5000}, {40, 30, 2100}, {0, 3, 3}, {3, 0, 3}, {3, 3, 0}} {
			if k.ISA() == "go" && testing.Short() && s[0]*s[1]*s[2] > 1e6 {
				continue
			}
			run(s[0], s[1], s[2])
		}
	})
}

// cover counts, for each element, how often an epilogue covered it.
type cover struct {
	x *gemmCase
	n [][]byte
}

func newCover(x *gemmCase) *cover {
	c := &cover{x: x}
	for range x.batch.Count {
		c.n = append(c.n, make([]byte, x.g.M*x.g.N))
	}
	return c
}

func (c *cover) mark(_, batch, i0, i1, j0, j1 int) {
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			c.n[batch][i*c.x.g.N+j]++
		}
	}
}

func (c *cover) check(t *testing.T) {
	t.Helper()
	for b := range c.n {
		for i, n := range c.n[b] {
			require.EqualValues(t, 1, n, "%v: epilogue of product %d at %d", c.x, b, i)
		}
	}
}

// The same bits for any instruction set, any number of workers.
func TestGemmBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 12 {
		x := randomGemm(r, 1+r.IntN(150), 1+r.IntN(300), 1+r.IntN(600))
		var want []float32
		for _, name := range ISAs() {
			k, err := ForISA(name)
			require.NoError(t, err)
			for workers := 1; workers <= 3; workers++ {
				p := NewPool(workers)
				copy(x.g.C, x.c0)
				NewEngine(k, p).GemmBatch(&x.g, Batch{x.batch})
				p.Close()
				if want == nil {
					want = append(want, x.g.C...)
				}
				for i := range want {
					require.Equal(t, math.Float32bits(want[i]), math.Float32bits(x.g.C[i]), "%v: %s with %d workers at %d", x, name, workers, i)
				}
			}
		}
	}
}

// A product of few rows, whose kernels are others, gives the bits of the same rows among more.
func TestGemmFewRows(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		p := NewPool(2)
		defer p.Close()
		e, r := NewEngine(k, p), rand.New(rand.NewPCG(9, 10))
		for _, layout := range []struct{ ta, tb bool }{{false, false}, {false, true}, {true, false}} {
			for few := 1; few <= 5; few++ {
				const m = 20
				n, kk := 16+r.IntN(300)+few%2*4000, 4*(1+r.IntN(160))+r.IntN(2)*r.IntN(4) // also in strips of more than maxCols
				g := Gemm{M: m, N: n, K: kk, LDA: kk, LDB: n, LDC: n, TransA: layout.ta, TransB: layout.tb, Accumulate: r.IntN(2) > 0}
				if g.TransA {
					g.LDA = m
				}
				if g.TransB {
					g.LDB = kk
				}
				g.A, g.B, g.C = make([]float32, m*kk), make([]float32, kk*n), make([]float32, m*n)
				for _, x := range [][]float32{g.A, g.B, g.C} {
					for i := range x {
						x[i] = float32(r.NormFloat64())
					}
				}
				part := g
				part.M, part.C = few, append([]float32{}, g.C[:few*n]...)
				e.Gemm(&g)
				e.Gemm(&part)
				for i, got := range part.C {
					require.Equal(t, math.Float32bits(g.C[i]), math.Float32bits(got), "%d rows of %dx%dx%d %v, at %d", few, m, n, kk, layout, i)
				}
			}
		}
	})
}

func TestGemmCheck(t *testing.T) {
	ok := Gemm{M: 2, N: 3, K: 4, A: make([]float32, 8), LDA: 4, B: make([]float32, 12), LDB: 3, C: make([]float32, 6), LDC: 3}
	require.NoError(t, ok.Check())
	for name, change := range map[string]func(*Gemm){
		"A[2, 4] needs 8": func(g *Gemm) { g.A = g.A[:7] },
		"B[4, 3] needs":   func(g *Gemm) { g.LDB = 4 },
		"C[2, 3] needs":   func(g *Gemm) { g.C = nil },
		"rows of C":       func(g *Gemm) { g.LDC = 2 },
		"negative":        func(g *Gemm) { g.M = -1 },
		"transposed":      func(g *Gemm) { g.TransA, g.TransB = true, true },
	} {
		g := ok
		change(&g)
		require.ErrorContains(t, g.Check(), name)
	}
	require.ErrorContains(t, ok.CheckBatch(Batch{{Count: 2}}), "overlap")
}

// Products over two batch axes, with heads side by side in rows, as attention has them.
func TestGemmHeads(t *testing.T) {
	const batch, heads, seq, dim = 2, 3, 37, 20
	const row = heads * dim
	r := rand.New(rand.NewPCG(9, 9))
	q, v := make([]float32, batch*seq*row), make([]float32, batch*seq*row)
	for i := range q {
		q[i], v[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
	}
	forEachISA(t, func(t *testing.T, k *Kernels) {
		p := NewPool(2)
		defer p.Close()
		e := NewEngine(k, p)
		s, o := make([]float32, batch*heads*seq*seq), make([]float32, batch*seq*row)
		in := BatchAxis{heads, dim, dim, seq * seq}
		e.GemmBatch(&Gemm{M: seq, N: seq, K: dim, A: q, LDA: row, B: v, LDB: row, TransB: true, C: s, LDC: seq},
			Batch{{batch, seq * row, seq * row, heads * seq * seq}, in})
		e.GemmBatch(&Gemm{M: seq, N: dim, K: seq, A: s, LDA: seq, B: v, LDB: row, C: o, LDC: row},
			Batch{{batch, heads * seq * seq, seq * row, seq * row}, {heads, seq * seq, dim, dim}})
		ws, wo := make([]float32, seq*seq), make([]float32, seq*row)
		for b := range batch {
			for h := range heads {
				at := b*seq*row + h*dim
				k.DotNT(seq, seq, dim, q[at:], row, v[at:], row, ws, seq, false, make([]float32, DotScratch))
				requireSameBits(t, ws, s[(b*heads+h)*seq*seq:][:seq*seq], "scores of %d, %d", b, h)
				k.DotNN(seq, dim, seq, ws, seq, v[at:], row, wo[h*dim:], row, false)
			}
			requireSameBits(t, wo, o[b*seq*row:][:seq*row], "outputs of %d", b)
		}
	})
}

// Against float64, the error is that of a plain float32 product, which adds in the
// order of K, and lower where K is longer than a block. The rows' errors scatter, being norms of 100 samples.
func TestGemmErrorAgainstPlain(t *testing.T) {
	const m, n = 20, 100
	p := NewPool(1)
	e := NewEngine(Detect(), p)
	r := rand.New(rand.NewPCG(25, 26))
	for _, kk := range []int{64, 256, 768, 3072} {
		for _, d := range []struct {
			name string
			draw func() float32
		}{
			{"normal", func() float32 { return float32(r.NormFloat64()) }},
			{"uniform", r.Float32},
			{"wide", func() float32 { return float32(math.Exp(r.NormFloat64())) }},
		} {
			name, draw := d.name, d.draw
			a, b, c := make([]float32, m*kk), make([]float32, kk*n), make([]float32, m*n)
			for i := range a {
				a[i] = draw()
			}
			for i := range b {
				b[i] = draw()
			}
			e.Gemm(&Gemm{M: m, N: n, K: kk, A: a, LDA: kk, B: b, LDB: n, C: c, LDC: n})
			var ours, plain float64
			for i := range m {
				var rowOurs, rowPlain float64
				for j := range n {
					want, s := 0.0, float32(0)
					for q := range kk {
						x, y := a[i*kk+q], b[q*n+j]
						want += float64(x) * float64(y)
						s += x * y
					}
					rowOurs += (float64(c[i*n+j]) - want) * (float64(c[i*n+j]) - want)
					rowPlain += (float64(s) - want) * (float64(s) - want)
				}
				ours, plain = ours+rowOurs, plain+rowPlain
				require.LessOrEqual(t, math.Sqrt(rowOurs), 1.3*math.Sqrt(rowPlain), "%s, K = %d, row %d", name, kk, i)
			}
			t.Logf("%s, K = %d: %.2f of the plain error", name, kk, math.Sqrt(ours/plain))
			limit := 1.05 // up to blockK it is a plain product, but for the fused steps
			if kk > blockK {
				limit = 0.8
			}
			require.Less(t, math.Sqrt(ours/plain), limit, "%s, K = %d", name, kk)
		}
	}
}
