package prim

// DotScratch is the length of the scratch that DotNT needs.
const DotScratch = blockK * 32

// DotNN computes C = A B, or C += A B if accumulate is set: A [m, kk], B [kk, n] and
// C [m, n] in rows lda, ldb and ldc apart. It is meant for blocks that lie in the
// first or second level of cache: it packs nothing and runs on the calling
// goroutine. Its result has the bits that Gemm gives.
func (k *Kernels) DotNN(m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	k.dot(m, n, kk, a, lda, 1, b, ldb, 1, c, ldc, accumulate, nil)
}

// DotTN computes C = A^T B, or C += A^T B: A [kk, m], B [kk, n]; see DotNN.
func (k *Kernels) DotTN(m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	k.dot(m, n, kk, a, 1, lda, b, ldb, 1, c, ldc, accumulate, nil)
}

// DotNT computes C = A B^T, or C += A B^T: A [m, kk], B [n, kk]; see DotNN. scratch holds
// DotScratch floats, whatever they are.
func (k *Kernels) DotNT(m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, accumulate bool, scratch []float32) {
	k.dot(m, n, kk, a, lda, 1, b, 1, ldb, c, ldc, accumulate, scratch[:DotScratch])
}

// span is the number of elements from the first to the last of a matrix.
func span(rows, rs, cols, cs int) int { return (rows-1)*rs + (cols-1)*cs + 1 }

// dot multiplies a[i*ars + p*acs] by b[p*brs + j*bcs]. If brs is 1 it transposes b
// through scratch.
func (k *Kernels) dot(m, n, kk int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, accumulate bool, scratch []float32) {
	if m <= 0 || n <= 0 {
		return
	}
	c = c[:span(m, ldc, n, 1)]
	if kk <= 0 {
		for i := 0; i < m && !accumulate; i++ {
			clear(c[i*ldc : i*ldc+n])
		}
		return
	}
	a, b = a[:span(m, ars, kk, acs)], b[:span(kk, brs, n, bcs)]
	t := &k.tile
	panels := ceil(m, t.rows)
	high, extra := m/panels, m%panels
	for p := 0; p < kk; p += blockK {
		depth := min(blockK, kk-p)
		acc := accumulate || p > 0
		for j := 0; j < n; j += t.cols {
			w := min(t.cols, n-j)
			pb, ldb := &b[p*brs+j*bcs], brs
			if scratch != nil {
				for l := 0; l < w; l += t.lanes {
					t.transpose(&scratch[l], t.cols, floatsAt(pb, l*bcs), bcs, min(t.lanes, w-l), depth)
				}
				pb, ldb = &scratch[0], t.cols
			}
			for q, i := 0, 0; q < panels; q++ {
				h := high
				if q < extra {
					h++
				}
				t.direct[h](depth, &a[i*ars+p*acs], ars, acs, pb, ldb, &c[i*ldc+j], ldc, w, acc)
				i += h
			}
		}
	}
}
