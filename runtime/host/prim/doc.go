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
//   - Lengths are taken from dst; a source that is too short panics as a slice
//     expression does, before memory is touched. Nothing outside the slices is
//     read or written, and nothing needs alignment.
//   - dst may be the same slice as a source of the same element size
//     (in place), unless said otherwise; partial overlap is not allowed.
//   - Results never depend on the number of workers.
//   - Zero lengths are no-ops.
//   - Max and Min propagate NaN. Comparisons with NaN are false, except Ne.
//   - Denormal inputs and results are honoured (no flush to zero).
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
//	e.Gemm(&prim.Gemm{M, N, K, A, LDA, TransA, B, LDB, TransB, C, LDC, Accumulate, Epilogue})
//	e.GemmBatch(&prim.Gemm{...}, prim.Batch{Count, StrideA, StrideB, StrideC})
//	g.Check() error                        what a verifier calls once
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
//	k.UnaryRows(op, rows, cols, dst, x)
//	k.BinaryRows(op, rows, cols, dst, x, y)    operands: Rows, PerRow, PerCol, Scalar
//	k.FMA(dst, x, y, z)                dst[i] = x[i]*y[i] + z[i], one rounding
//	k.FMAVSV(dst, x, s, z)             dst[i] = x[i]*s + z[i]
//	k.FMAVSS(dst, x, s, t)             dst[i] = x[i]*s + t
//	k.Compare(op, mask, x, y)   k.CompareVS(op, mask, x, s)
//	k.Select(dst, mask, x, y)   k.SelectVS(dst, mask, x, s)   k.SelectSV(dst, mask, s, y)
//	k.Fill(dst, s)   k.Copy is Go's copy
//
// UnaryOp:  Neg Abs Square Sqrt Rsqrt Recip Exp Expm1 Log Log1p Tanh Erf Sigmoid Sin Cos
// Floor Ceil Trunc RoundEven Sign Relu Silu GeluTanh GeluErf
// and derivatives SigmoidGrad.. as functions of x (DTanh DSigmoid DSilu DGeluTanh DGeluErf).
//
// BinaryOp: Add Sub Mul Div Max Min Pow CopySign
//
// CompareOp: Eq Ne Lt Le Gt Ge
//
// # Integer blocks and masks
//
//	k.BinaryI32(op, dst, x, y)   k.BinaryI32VS(op, dst, x, s)      AddI SubI MulI MaxI MinI AndI OrI XorI
//	k.CompareI32(op, mask, x, y) k.CompareI32VS(op, mask, x, s)
//	k.MaskToFloat(dst, mask)     k.MaskFromBytes(mask, b)   k.MaskToBytes(b, mask)
//	k.IotaI32(dst, start, step)  k.Iota(dst, start, step)
//
// Select and its kin move 32-bit lanes, so they serve int32 through Floats.
//
// # Rows: blocks [rows, cols] whose rows start stride elements apart
//
//	k.Sum(x) float64             k.SumSquares(x) float64    k.Dot(x, y) float64
//	k.Max(x) float32             k.Min(x) float32           k.ArgMax(x) int
//	k.RowSum(dst, x, rows, cols, stride)       dst[r] = sum of row r
//	k.RowMax(dst, x, rows, cols, stride)       k.RowMin
//	k.RowDot(dst, x, y, rows, cols, xs, ys)
//	k.ColSum(acc []float64, x, rows, cols, stride)      acc[c] += sum of column c
//	k.ColDot(acc []float64, x, y, rows, cols, xs, ys)   acc[c] += sum_r x[r,c]*y[r,c]
//	k.ExpSum(dst, x, scale, shift) float64     dst[i] = exp(x[i]*scale + shift); returns the sum
//
// # Data movement and conversion
//
//	k.ToBF16(dst []uint16, x)   k.FromBF16(dst, x []uint16)   k.RoundBF16(dst, x)
//	k.ToF16(dst []uint16, x)    k.FromF16(dst, x []uint16)
//	k.ToI32(dst []int32, x)     k.FromI32(dst, x []int32)
//	k.Transpose(dst, dstStride, src, srcStride, rows, cols)
//	k.GatherRows(dst, dstStride, table, tableStride, cols, idx) error
//	k.ScatterAddRows(table, tableStride, src, srcStride, cols, idx) error
//
// # Random numbers
//
//	k.PhiloxU32(dst []uint32, seed, stream, start uint64)
//	k.Uniform(dst, seed, stream, start)        [0, 1), 24 bits
//	k.Normal(dst, seed, stream, start)         Box-Muller in float64
//
// # Optimizer
//
//	k.AdamW(p, m, v, g, &prim.AdamW{...})
package prim
