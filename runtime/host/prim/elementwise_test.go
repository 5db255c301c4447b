//go:build unix

package prim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnaryBounds(t *testing.T) {
	goKernels, err := ForISA("go")
	require.NoError(t, err)
	for op := range numUnary {
		onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
			x, dst := a.floats(r, n), take[float32](a, n)
			want := make([]float32, n)
			goKernels.Unary(op, want, x)
			k.Unary(op, dst, x)
			a.check("unary")
			requireSameBits(t, want, dst, "op %d", op)
			k.Unary(op, x, x) // in place
			requireSameBits(t, want, x, "op %d in place", op)
		})
	}
}

func maxNaN(x, y float32) float32 { return max(x, y) } // Go's max propagates NaN
func minNaN(x, y float32) float32 { return min(x, y) }

var binaryCases = map[BinaryOp]func(x, y float32) float32{
	Add: func(x, y float32) float32 { return x + y },
	Sub: func(x, y float32) float32 { return x - y },
	Mul: func(x, y float32) float32 { return x * y },
	Div: func(x, y float32) float32 { return x / y },
	Max: maxNaN, Min: minNaN,
	CopySign: func(x, y float32) float32 { return float32(math.Copysign(float64(x), float64(y))) },
	Pow:      func(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) },
}

func TestBinary(t *testing.T) {
	require.Len(t, binaryCases, int(numBinary)+1)
	for op, f := range binaryCases {
		onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
			x, y, dst := a.floats(r, n), a.floats(r, n), take[float32](a, n)
			s := float32(r.NormFloat64())
			same := func(form string, f func(i int) float32) {
				t.Helper()
				a.check(form)
				for i, d := range dst {
					if w := f(i); !sameBits(w, d) && !(w == 0 && d == 0 && (op == Max || op == Min)) {
						require.Failf(t, form, "op %d on %g, %g, s = %g: %g, want %g", op, x[i], y[i], s, d, w)
					}
				}
			}
			k.Binary(op, dst, x, y)
			same("VV", func(i int) float32 { return f(x[i], y[i]) })
			k.BinaryVS(op, dst, x, s)
			same("VS", func(i int) float32 { return f(x[i], s) })
			k.BinarySV(op, dst, s, y)
			same("SV", func(i int) float32 { return f(s, y[i]) })
			copy(dst, x)
			k.Binary(op, dst, dst, y)
			same("in place", func(i int) float32 { return f(x[i], y[i]) })
		})
	}
}

func TestPowIntegralExponents(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	x := append([]float32{}, special...)
	for range 1000 {
		x = append(x, math.Float32frombits(r.Uint32()), float32(r.NormFloat64()))
	}
	k, dst := Detect(), make([]float32, len(x))
	for _, s := range []float32{0, 1, 2, -1, 0.5, 3, -2, 8, -8, 9, 1e30, float32(math.Inf(1)), float32(math.NaN())} {
		k.BinaryVS(Pow, dst, x, s)
		for i, v := range x {
			want := math.Pow(float64(v), float64(s))
			if math.IsNaN(want) {
				require.True(t, isNaN(dst[i]), "%g^%g = %g", v, s, dst[i])
			} else if float32(want) != dst[i] {
				require.InDelta(t, want, float64(dst[i]), 0.5001*ulp32(want), "%g^%g", v, s)
			}
		}
	}
}

func TestFusedMultiplyAdd(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x, y, z, dst := a.floats(r, n), a.floats(r, n), a.floats(r, n), take[float32](a, n)
		s, u := float32(r.NormFloat64()), float32(r.NormFloat64())
		same := func(form string, f func(i int) float32) {
			t.Helper()
			a.check(form)
			for i, d := range dst {
				require.True(t, sameBits(f(i), d), "%s on %g, %g, %g: %g, want %g", form, x[i], y[i], z[i], d, f(i))
			}
		}
		k.FMA(dst, x, y, z)
		same("VVV", func(i int) float32 { return fmaExact(x[i], y[i], z[i]) })
		k.FMAVSV(dst, x, s, z)
		same("VSV", func(i int) float32 { return fmaExact(x[i], s, z[i]) })
		k.FMAVVS(dst, x, y, s)
		same("VVS", func(i int) float32 { return fmaExact(x[i], y[i], s) })
		k.FMAVSS(dst, x, s, u)
		same("VSS", func(i int) float32 { return fmaExact(x[i], s, u) })
	})
}

func compares[T float32 | int32](op CompareOp, x, y T) bool {
	return [numCompare]bool{Eq: x == y, Ne: x != y, Lt: x < y, Le: x <= y, Gt: x > y, Ge: x >= y}[op]
}

func TestCompareAndSelect(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x, y, mask, dst := a.floats(r, n), a.floats(r, n), take[uint32](a, n), take[float32](a, n)
		for i := range x {
			if r.IntN(3) == 0 {
				y[i] = x[i]
			}
		}
		s := float32(0)
		if n > 0 {
			s = x[r.IntN(n)]
		}
		for op := range numCompare {
			k.Compare(op, mask, x, y)
			a.check("compare")
			for i, m := range mask {
				require.Equal(t, maskBits(compares(op, x[i], y[i])), m, "op %d on %g, %g", op, x[i], y[i])
			}
			k.CompareVS(op, mask, x, s)
			a.check("compare scalar")
			for i, m := range mask {
				require.Equal(t, maskBits(compares(op, x[i], s)), m, "op %d on %g, %g", op, x[i], s)
			}
		}
		k.Compare(Lt, mask, x, y)
		check := func(form string, f func(i int) (float32, float32)) {
			t.Helper()
			a.check(form)
			for i, d := range dst {
				yes, no := f(i)
				require.True(t, sameBits(choose(mask[i] != 0, yes, no), d), form)
			}
		}
		k.Select(dst, mask, x, y)
		check("VV", func(i int) (float32, float32) { return x[i], y[i] })
		k.SelectVS(dst, mask, x, s)
		check("VS", func(i int) (float32, float32) { return x[i], s })
		k.SelectSV(dst, mask, s, y)
		check("SV", func(i int) (float32, float32) { return s, y[i] })
		k.SelectSS(dst, mask, s, 7)
		check("SS", func(i int) (float32, float32) { return s, 7 })
		k.MaskToFloat(dst, mask)
		check("float", func(i int) (float32, float32) { return 1, 0 })
		b := take[byte](a, n)
		back := take[uint32](a, n)
		k.MaskToBytes(b, mask)
		k.MaskFromBytes(back, b)
		a.check("bytes")
		for i := range b {
			require.Equal(t, mask[i]&1, uint32(b[i]))
			require.Equal(t, mask[i], back[i])
		}
	})
}

func TestIntegers(t *testing.T) {
	ops := [numInt]func(x, y int32) int32{
		AddI: func(x, y int32) int32 { return x + y }, SubI: func(x, y int32) int32 { return x - y },
		MulI: func(x, y int32) int32 { return x * y },
		MaxI: func(x, y int32) int32 { return max(x, y) }, MinI: func(x, y int32) int32 { return min(x, y) },
		AndI: func(x, y int32) int32 { return x & y }, OrI: func(x, y int32) int32 { return x | y },
		XorI: func(x, y int32) int32 { return x ^ y },
	}
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x, y, dst, mask := a.ints(r, n), a.ints(r, n), take[int32](a, n), take[uint32](a, n)
		s := int32(r.Uint32()) >> r.IntN(32)
		for op, f := range ops {
			k.BinaryI32(IntOp(op), dst, x, y)
			for i, d := range dst {
				require.Equal(t, f(x[i], y[i]), d)
			}
			k.BinaryI32VS(IntOp(op), dst, x, s)
			for i, d := range dst {
				require.Equal(t, f(x[i], s), d)
			}
			k.BinaryI32SV(IntOp(op), dst, s, y)
			for i, d := range dst {
				require.Equal(t, f(s, y[i]), d)
			}
		}
		for op := range numCompare {
			k.CompareI32(op, mask, x, y)
			for i, m := range mask {
				require.Equal(t, maskBits(compares(op, x[i], y[i])), m)
			}
			k.CompareI32VS(op, mask, x, s)
			for i, m := range mask {
				require.Equal(t, maskBits(compares(op, x[i], s)), m)
			}
		}
		k.IotaI32(dst, s, 3)
		for i, d := range dst {
			require.Equal(t, s+3*int32(i), d)
		}
		k.FillI32(dst, s)
		for _, d := range dst {
			require.Equal(t, s, d)
		}
		a.check("integers")
	})
}

func TestFillIota(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		x := take[float32](a, n)
		k.Fill(x, -1.5)
		a.check("fill")
		for _, v := range x {
			require.EqualValues(t, -1.5, v)
		}
		k.Iota(x, 3, 0.5)
		a.check("iota")
		for i, v := range x {
			require.EqualValues(t, 3+0.5*float64(i), v)
		}
	})
}

// operandOf makes one of the four kinds of operand, and what it stands for.
func operandOf(a *arena, r *rand.Rand, kind, rows, cols int) (Operand[float32], func(i, j int) float32) {
	o := Operand[float32]{}
	switch kind {
	case 0:
		stride := cols + r.IntN(2)*r.IntN(4)
		o = Rows(a.floats(r, span(rows, stride, cols, 1)), stride)
	case 1:
		o = PerRow(a.floats(r, 2*rows-1), 2)
	case 2:
		o = PerCol(a.floats(r, cols))
	case 3:
		o = Scalar(a.floats(r, 1))
	}
	return o, func(i, j int) float32 { return o.Data[i*o.Row+j*o.Col] }
}

func TestRows(t *testing.T) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		a := newArena(t, 8, 1<<12)
		r := rand.New(rand.NewPCG(13, 14))
		for trial := range 25 {
			rows, cols := 1+r.IntN(9), 1+r.IntN(70)
			for kind := range 16 {
				a.reset(trial%2 == 0)
				x, fx := operandOf(a, r, kind%4, rows, cols)
				y, fy := operandOf(a, r, kind/4, rows, cols)
				stride := cols + r.IntN(2)*3
				dst := Rows(take[float32](a, span(rows, stride, cols, 1)), stride)
				mask := Rows(take[uint32](a, span(rows, cols, cols, 1)), cols)
				each := func(what string, f func(i, j int) bool) {
					t.Helper()
					a.check(what)
					for i := range rows {
						for j := range cols {
							if f(i, j) {
								continue
							}
							require.Failf(t, "wrong", "%s: kinds %d, %d at %d, %d", what, kind%4, kind/4, i, j)
						}
					}
					for i := range dst.Data {
						if i%stride >= cols {
							require.EqualValues(t, uint32(poison*0x01010101), math.Float32bits(dst.Data[i]), "between rows")
						}
					}
				}
				d := func(i, j int) float32 { return dst.Data[i*stride+j] }
				k.BinaryRows(Sub, rows, cols, dst, x, y)
				each("binary", func(i, j int) bool { return sameBits(d(i, j), fx(i, j)-fy(i, j)) })
				k.UnaryRows(Neg, rows, cols, dst, x)
				each("unary", func(i, j int) bool { return sameBits(d(i, j), -fx(i, j)) })
				k.CopyRows(rows, cols, dst, x)
				each("copy", func(i, j int) bool { return sameBits(d(i, j), fx(i, j)) })
				k.CompareRows(Lt, rows, cols, mask, x, y)
				each("compare", func(i, j int) bool { return mask.Data[i*cols+j] == maskBits(fx(i, j) < fy(i, j)) })
				k.SelectRows(rows, cols, dst, mask, x, y)
				each("select", func(i, j int) bool {
					return sameBits(d(i, j), choose(mask.Data[i*cols+j] != 0, fx(i, j), fy(i, j)))
				})
				rowMask := PerRow(mask.Data, cols)
				k.SelectRows(rows, cols, dst, rowMask, x, y)
				each("select rows", func(i, j int) bool {
					return sameBits(d(i, j), choose(rowMask.at(i) != 0, fx(i, j), fy(i, j)))
				})
				testIntRows(t, k, rows, cols, x, y, mask)
			}
		}
	})
}

// testIntRows does the integer forms on the same bits.
func testIntRows(t *testing.T, k *Kernels, rows, cols int, x, y Operand[float32], mask Operand[uint32]) {
	t.Helper()
	ix := Operand[int32]{intsOfBits(Bits(x.Data)), x.Row, x.Col}
	iy := Operand[int32]{intsOfBits(Bits(y.Data)), y.Row, y.Col}
	dst := Rows(make([]int32, rows*cols), cols)
	k.BinaryI32Rows(SubI, rows, cols, dst, ix, iy)
	k.CompareI32Rows(Gt, rows, cols, mask, ix, iy)
	for i := range rows {
		for j := range cols {
			u, v := ix.Data[i*ix.Row+j*ix.Col], iy.Data[i*iy.Row+j*iy.Col]
			if u-v != dst.Data[i*cols+j] || maskBits(u > v) != mask.Data[i*cols+j] {
				require.Failf(t, "wrong", "integers at %d, %d", i, j)
			}
		}
	}
}

// One routine gives what its operations give one by one, and what float64 gives as nearly.
func TestAdamW(t *testing.T) {
	onBlocks(t, func(k *Kernels, a *arena, r *rand.Rand, n int) {
		p, m, v, g := a.normals(r, n), a.normals(r, n), a.normals(r, n), a.normals(r, n)
		for i := range v {
			m[i], v[i] = m[i]*0.1, v[i]*v[i]*0.01
		}
		const lr, beta1, beta2, weightDecay = 6e-4, 0.9, 0.95, 0.1
		step := float64(1 + r.IntN(50))
		h := &AdamW{GradScale: 0.25, Keep1: beta1, Take1: 1 - beta1, Keep2: beta2, Take2: 1 - beta2, Eps: 1e-8, Decays: r.IntN(2) > 0, Decay: lr * weightDecay,
			Root: float32(1 / math.Sqrt(1-math.Pow(beta2, step))), Step: float32(lr / (1 - math.Pow(beta1, step)))}
		wantP, wantM, wantV := adamWByParts(k, p, m, v, g, h)
		for i := range p {
			gs := 0.25 * float64(g[i])
			mi := beta1*float64(m[i]) + (1-beta1)*gs
			vi := beta2*float64(v[i]) + (1-beta2)*gs*gs
			mHat, vHat := mi/(1-math.Pow(beta1, step)), vi/(1-math.Pow(beta2, step))
			pi := float64(p[i]) - lr*mHat/(math.Sqrt(vHat)+1e-8)
			if h.Decays {
				pi -= lr * weightDecay * float64(p[i])
			}
			require.InDelta(t, pi, float64(wantP[i]), 1.5*ulp32(pi)+1e-9, "p")
			require.InDelta(t, mi, float64(wantM[i]), 1.5*ulp32(beta1*math.Abs(float64(m[i]))+(1-beta1)*math.Abs(gs)), "m") // its terms may cancel
			require.InDelta(t, vi, float64(wantV[i]), 3*ulp32(vi), "v")
		}
		newP := a.normals(r, n)
		k.AdamW(newP, m, v, p, m, v, g, h)
		a.check("adamw")
		requireSameBits(t, wantP, newP, "p")
		requireSameBits(t, wantM, m, "m")
		requireSameBits(t, wantV, v, "v")
	})
}

func adamWByParts(k *Kernels, p, m, v, g []float32, h *AdamW) (newP, newM, newV []float32) {
	n := len(p)
	scaled, x := make([]float32, n), make([]float32, n)
	newP, newM, newV = make([]float32, n), make([]float32, n), make([]float32, n)
	k.BinaryVS(Mul, scaled, g, h.GradScale)
	k.BinaryVS(Mul, x, scaled, h.Take1)
	k.FMAVSV(newM, m, h.Keep1, x)
	k.Binary(Mul, x, scaled, scaled)
	k.BinaryVS(Mul, x, x, h.Take2)
	k.FMAVSV(newV, v, h.Keep2, x)
	copy(newP, p)
	if h.Decays {
		k.FMAVSV(newP, p, -h.Decay, p)
	}
	k.Unary(Sqrt, x, newV)
	k.FMAVSS(x, x, h.Root, h.Eps)
	k.Binary(Div, x, newM, x)
	k.FMAVSV(newP, x, -h.Step, newP)
	return newP, newM, newV
}
