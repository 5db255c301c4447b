package blu

import (
	"runtime"
	"sync"
)

// matmulNT computes c[m, n] = a[m, k] * b[n, k]^T in float64, rows of c spread over the processors. Every element is one sum
// in order of k, so that the result does not depend on how the work is cut.
func matmulNT(c, a, b []float64, m, n, k int) {
	const perWorker = 1 << 18 // products worth a goroutine
	workers := min(runtime.GOMAXPROCS(0), m, m*n*k/perWorker)
	if workers <= 1 {
		matmulRows(c, a, b, n, k)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		lo, hi := m*w/workers, m*(w+1)/workers
		wg.Go(func() { matmulRows(c[lo*n:hi*n], a[lo*k:hi*k], b, n, k) })
	}
	wg.Wait()
}

// matmulRows multiplies all rows of a with b, in blocks of b's rows that stay in cache, two rows by four at a time.
func matmulRows(c, a, b []float64, n, k int) {
	if n == 0 {
		return
	}
	block := max(4, (1<<15)/max(k, 1)) // rows of b in 256 KiB
	for j0 := 0; j0 < n; j0 += block {
		j1 := min(j0+block, n)
		i, m := 0, len(c)/n
		for ; i+2 <= m; i += 2 {
			j := j0
			for ; j+4 <= j1; j += 4 {
				dot2x4(c[i*n+j:], c[(i+1)*n+j:], a[i*k:(i+1)*k], a[(i+1)*k:(i+2)*k], b[j*k:(j+4)*k], k)
			}
			for ; j < j1; j++ {
				c[i*n+j] = dotProduct(a[i*k:(i+1)*k], b[j*k:(j+1)*k])
				c[(i+1)*n+j] = dotProduct(a[(i+1)*k:(i+2)*k], b[j*k:(j+1)*k])
			}
		}
		for ; i < m; i++ {
			for j := j0; j < j1; j++ {
				c[i*n+j] = dotProduct(a[i*k:(i+1)*k], b[j*k:(j+1)*k])
			}
		}
	}
}

// dot2x4 is eight dot products at once: x0 and x1 with four rows of b.
func dot2x4(c0, c1, x0, x1, b []float64, k int) {
	b0, b1, b2, b3 := b[:k], b[k:2*k], b[2*k:3*k], b[3*k:4*k]
	x0, x1 = x0[:k], x1[:k]
	var s00, s01, s02, s03, s10, s11, s12, s13 float64
	for i, p := range b0 {
		q, r, s := b1[i], b2[i], b3[i]
		u, v := x0[i], x1[i]
		s00 += u * p
		s01 += u * q
		s02 += u * r
		s03 += u * s
		s10 += v * p
		s11 += v * q
		s12 += v * r
		s13 += v * s
	}
	c0[0], c0[1], c0[2], c0[3] = s00, s01, s02, s03
	c1[0], c1[1], c1[2], c1[3] = s10, s11, s12, s13
}

// dotProduct is the sum of products of two rows of equal length.
func dotProduct(x, y []float64) float64 {
	y = y[:len(x)]
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}
