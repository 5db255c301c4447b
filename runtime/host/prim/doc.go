// Package prim holds the CPU primitives: the routines that the host target's
// bytecode calls on cache-sized blocks, a float32 matrix product, and the
// worker pool that runs them. It knows slices, strides and instruction sets; it
// may not know tensors, shapes, bytecode, artifacts or training.
//
// # Choosing an instruction set
//
//	k := prim.Detect()              // the best this processor runs
//	k, err := prim.ForISA("avx2")   // "avx512", "avx2" or "go"
//
// A Kernels is immutable and may be shared by any number of goroutines. Every
// instruction set gives the same bits: all of them evaluate the same
// expressions with the same fused multiply-adds in the same order (the vector
// code and the portable Go of the element-wise functions are generated from one
// definition each, see internal/asmgen).
//
// # Contracts that hold throughout
//
//   - Lengths are taken from dst (or mask); a source that is too short panics as a
//     slice expression does, before memory is touched. Nothing outside the slices is
//     read or written, and nothing needs alignment.
//   - dst may be the same slice as a source of the same element size
//     (in place), unless said otherwise; partial overlap is not allowed.
//   - Results never depend on the number of workers, nor on the instruction set; of a
//     NaN, only that it is one is promised.
//   - Zero lengths are no-ops.
//   - Max and Min propagate NaN. Comparisons with NaN are false, except Ne.
//   - Denormal operands and results are honoured (no flush to zero).
//   - A mask is a []uint32 of 0 or ^uint32(0), as wide as the float32 it
//     selects. Bits and Floats reinterpret a block in place.
//
// # Worker pool
//
//	p := prim.NewPool(n)                   n <= 0: GOMAXPROCS
//	p.N() int                              workers, the caller included
//	p.Run(tasks, func(worker, task int))   returns when all tasks are done
//	p.Close()
//
// # Matrix products
//
//	e := prim.NewEngine(k, p)              owns packing buffers; one call at a time
//	e.Gemm(&prim.Gemm{M, N, K, A, B, C, LDA, LDB, LDC, TransA, TransB, Accumulate, Epilogue})
//	e.GemmBatch(&prim.Gemm{...}, prim.Batch{{Count, StrideA, StrideB, StrideC}, ...})    any number of axes
//	g.Check() error   g.CheckBatch(b) error                                  what a verifier calls once
//
// Small products on blocks already in L1 or L2, on the calling goroutine:
//
//	k.DotNN(m, n, kk, a, lda, b, ldb, c, ldc, accumulate)            C = A B
//	k.DotTN(m, n, kk, a, lda, b, ldb, c, ldc, accumulate)            C = A^T B
//	k.DotNT(m, n, kk, a, lda, b, ldb, c, ldc, accumulate, scratch)   C = A B^T, scratch: DotScratch floats
//
// # Element-wise functions of float32 blocks
//
//	k.Unary(op, dst, x)                dst[i] = op(x[i])
//	k.Binary(op, dst, x, y)            dst[i] = op(x[i], y[i])
//	k.BinaryVS(op, dst, x, s)          dst[i] = op(x[i], s)
//	k.BinarySV(op, dst, s, y)          dst[i] = op(s, y[i])
//	k.FMA(dst, x, y, z)                dst[i] = x[i]*y[i] + z[i], one rounding
//	k.FMAVSV(dst, x, s, z)   k.FMAVVS(dst, x, y, t)   k.FMAVSS(dst, x, s, t)
//	k.Compare(op, mask, x, y)   k.CompareVS(op, mask, x, s)
//	k.Select(dst, mask, x, y)   k.SelectVS(dst, mask, x, s)   k.SelectSV(dst, mask, s, y)   k.SelectSS(dst, mask, s, t)
//	k.Fill(dst, s)   k.Iota(dst, start, step)
//
// UnaryOp: Neg Abs Square Sqrt Rsqrt Recip Exp Expm1 Log Log1p Tanh Erf Sigmoid Sin Cos
// Floor Ceil Trunc RoundEven Sign Relu Silu GeluTanh GeluErf RoundBF16, and the
// derivatives DSilu DGeluTanh DGeluErf at x.
//
// BinaryOp: Add Sub Mul Div Max Min CopySign Pow.
//
// CompareOp: Eq Ne Lt Le Gt Ge.
//
// # Integer blocks and masks
//
//	k.BinaryI32(op, dst, x, y)   k.BinaryI32VS(op, dst, x, s)   k.BinaryI32SV(op, dst, s, y)
//	k.CompareI32(op, mask, x, y)   k.CompareI32VS(op, mask, x, s)
//	k.FillI32(dst, s)   k.IotaI32(dst, start, step)
//	k.MaskToFloat(dst, mask)   k.MaskFromBytes(mask, b)   k.MaskToBytes(b, mask)
//
// IntOp: AddI SubI MulI MaxI MinI AndI OrI XorI. Select and its kin move 32-bit lanes,
// so they serve int32 through Floats; masks combine as integers, see BinaryI32.
//
// # Blocks [rows, cols] with broadcast operands
//
// An Operand is Rows(data, stride), PerRow(data, stride), PerCol(data) or Scalar(data).
//
//	k.UnaryRows(op, rows, cols, dst, x)            k.BinaryRows(op, rows, cols, dst, x, y)
//	k.CompareRows(op, rows, cols, mask, x, y)      k.SelectRows(rows, cols, dst, mask, x, y)
//	k.BinaryI32Rows(op, rows, cols, dst, x, y)     k.CompareI32Rows(op, rows, cols, mask, x, y)
//	k.CopyRows(rows, cols, dst, x)
//
// # Reductions
//
// Float32 in 32 partial sums within 1024 elements (32 rows of a column), float64 beyond.
//
//	k.Sum(x) float64             k.SumSquares(x) float64    k.Dot(x, y) float64
//	k.Max(x) float32             k.Min(x) float32           k.ArgMax(x) int
//	k.ExpSum(dst, x, scale, shift) float64              dst[i] = exp(x[i]*scale + shift); returns the sum
//	k.RowSum(dst, x, rows, cols, stride)                dst[r] = sum of row r
//	k.RowMax(dst, x, rows, cols, stride)                k.RowMin likewise
//	k.RowDot(dst, x, y, rows, cols, xs, ys)
//	k.ColSum(acc []float64, x, rows, cols, stride)      acc[c] += sum of column c
//	k.ColDot(acc []float64, x, y, rows, cols, xs, ys)   acc[c] += sum over r of x[r,c]*y[r,c]
//	k.ColMax(dst, x, rows, cols, stride)                k.ColMin likewise
//
// # Data movement and conversion
//
//	k.ToBF16(dst []uint16, x)   k.FromBF16(dst, x []uint16)   k.RoundBF16(dst, x)
//	k.ToF16(dst []uint16, x)    k.FromF16(dst, x []uint16)
//	k.ToI32(dst []int32, x)     k.FromI32(dst, x []int32)
//	k.Transpose(dst, dstStride, src, srcStride, rows, cols)
//	k.GatherRows(dst, dstStride, table, tableStride, rows, cols, idx) error
//	k.ScatterAddRows(table, tableStride, rows, src, srcStride, cols, idx) error
//
// # Random numbers
//
//	k.PhiloxU32(dst []uint32, seed, stream, start)        first word of each counter
//	k.Uniform(dst, seed, stream, start)                   [0, 1), 24 bits
//	k.Normal(dst, seed, stream, start, mean, std)         Box and Muller in float64
//
// # Optimizer
//
//	k.AdamW(newP, newM, newV, p, m, v, g, &prim.AdamW{...})
package prim
