package gpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/dialects/ptx/emulate"
	"blutrain/dialects/tile"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
)

// Products of precision fp32 on Hopper are of float16 planes, and float32's where planes don't hold a number: row by row
// the error is a few roundings of float32 on all kinds of data, in every layout, and what is infinite or no number is what IEEE
// says. The flag says which of the two computed the result.
func TestPlanes(t *testing.T) {
	const m, n, k = 70, 68, 136
	for _, layout := range []string{"nt", "nn", "tn"} {
		for _, c := range []struct {
			name    string
			change  func(r *rand.Rand, a, b []float64) // a is [m][k], b is [n][k]
			flagged bool
		}{
			{"normal", nil, false},
			{"uniform", func(r *rand.Rand, a, b []float64) { each(a, func(_ int, x float64) float64 { return r.Float64() }) }, false},
			{"lognormal", func(r *rand.Rand, a, b []float64) { each(a, func(_ int, x float64) float64 { return math.Exp(2 * x) }) }, false},
			{"zero rows", func(r *rand.Rand, a, b []float64) { clear(a[:5*k]) }, false},
			{"all zero", func(r *rand.Rand, a, b []float64) { clear(a) }, false},
			{"large and small", func(r *rand.Rand, a, b []float64) { scale(a, 1<<30); scale(b, 1.0/(1<<30)) }, false},
			{"2^85", func(r *rand.Rand, a, b []float64) { scale(a, math.Ldexp(1, 85)); scale(b, math.Ldexp(1, -100)) }, false},
			{"2^85 in b", func(r *rand.Rand, a, b []float64) { scale(a, math.Ldexp(1, -130)); scale(b, math.Ldexp(1, 85)) }, false},
			{"2^95", func(r *rand.Rand, a, b []float64) { scale(a, math.Ldexp(1, 95)); scale(b, math.Ldexp(1, -100)) }, true},
			{"sums that are denormal", func(r *rand.Rand, a, b []float64) { scale(a, math.Ldexp(1, -70)); scale(b, math.Ldexp(1, -70)) }, false},
			{"2^-60 both", func(r *rand.Rand, a, b []float64) { scale(a, math.Ldexp(1, -60)); scale(b, math.Ldexp(1, -50)) }, false},
			{"contraction scaled", func(r *rand.Rand, a, b []float64) {
				each(a, func(i int, x float64) float64 { return math.Ldexp(x, i%k%40-20) })
			}, false},
			{"small in one block only", func(r *rand.Rand, a, b []float64) { scale(a[:64], 1e-9) }, false},
			{"rows scaled", func(r *rand.Rand, a, b []float64) {
				each(a, func(i int, x float64) float64 { return math.Ldexp(x, i/k%40-20) })
			}, false},
			{"columns scaled", func(r *rand.Rand, a, b []float64) {
				each(b, func(i int, x float64) float64 { return math.Ldexp(x, i/k%40-20) })
			}, false},
			{"rows and columns scaled far", func(r *rand.Rand, a, b []float64) {
				each(a, func(i int, x float64) float64 { return math.Ldexp(x, i/k%60*3-130) })
				each(b, func(i int, x float64) float64 { return math.Ldexp(x, i/k%50*3-75) })
			}, false},
			{"probabilities", func(r *rand.Rand, a, b []float64) { // of a vocabulary's columns: most are far below the targets'
				each(a, func(i int, x float64) float64 {
					if i%97 == 0 {
						return -1
					}
					return math.Exp(4*x - 20 - float64(i/k%11))
				})
			}, false},
			{"denormals", func(r *rand.Rand, a, b []float64) { scale(a, math.Ldexp(1, -140)); scale(b, math.Ldexp(1, 80)) }, false},
			{"denormals in b", func(r *rand.Rand, a, b []float64) { scale(a, math.Ldexp(1, 60)); scale(b, math.Ldexp(1, -145)) }, false},
			{"infinity", func(r *rand.Rand, a, b []float64) { a[3*k+7] = math.Inf(1) }, true},
			{"NaN", func(r *rand.Rand, a, b []float64) { b[2*k+1] = math.NaN() }, true},
			{"infinity times zero", func(r *rand.Rand, a, b []float64) { a[7], b[7] = math.Inf(-1), 0 }, true},
		} {
			if testing.Short() && layout != "tn" && !c.flagged {
				continue
			}
			t.Run(layout+" "+c.name, func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(1, 2))
				a, b := normal(r, m*k), normal(r, n*k)
				if c.change != nil {
					c.change(r, a, b)
				}
				each(a, func(_ int, x float64) float64 { return float64(float32(x)) })
				each(b, func(_ int, x float64) float64 { return float64(float32(x)) })
				got, flag := multiply(t, layout, m, n, k, a, b)
				require.Equal(t, c.flagged, flag)
				checkRows(t, m, n, k, a, b, got)
			})
		}
	}
}

func each(xs []float64, f func(i int, x float64) float64) {
	for i, x := range xs {
		xs[i] = f(i, x)
	}
}

func scale(xs []float64, by float64) { each(xs, func(_ int, x float64) float64 { return x * by }) }

func normal(r *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	each(xs, func(int, float64) float64 { return r.NormFloat64() })
	return xs
}

// multiply runs a product of precision fp32 by its template, and says whether its guard found something.
func multiply(t *testing.T, layout string, m, n, k int, a, b []float64) (y []float64, flagged bool) {
	c := dialects.NewContext()
	side := func(mnMajor bool, rows int) string {
		if mnMajor {
			return fmt.Sprintf("memref<%dx%dxf32, strided<[1, %d]>>", rows, k, rows)
		}
		return fmt.Sprintf("memref<%dx%dxf32>", rows, k)
	}
	ta, tb := side(layout == "tn", m), side(layout != "nt", n)
	block := fmt.Sprintf("!tile.block<%dx%dxf32>", m, n)
	text := fmt.Sprintf("tile.kernel @k attributes {grid = array<i64: %d, %d>, outs = 1 : i64, steps = array<i64: %d, %d>} (%%a: %s, %%b: %s, %%y: memref<%dx%dxf32>, %%i: index, %%j: index) {\n"+
		"  %%x = tile.contract %%a, %%b, %%i, %%j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>, precision = \"fp32\"} : (%s, %s, index, index) -> %s {}\n"+
		"  tile.store %%x, %%y, %%i, %%j : (%s, memref<%dx%dxf32>, index, index) -> ()\n  tile.end\n}", m, n, m, n, ta, tb, m, n, ta, tb, block, block, m, n)
	module, err := ir.Parse(c, "k.mlir", []byte("builtin.module @m {\n"+text+"\n}"))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, module))
	kernel := ir.LookupSymbol(module, "k")
	ins, outs := tile.Refs(kernel)
	memory := &emulate.Memory{}
	var refs []any
	var buffers []*emulate.Buffer
	for i, v := range append(ins, outs...) {
		mt := v.Type().(*ir.MemRefType)
		buffers = append(buffers, memory.Alloc(int(bytesOf(mt))))
		if i < 2 {
			x := ir.NewTensor(mt.Elem, mt.Shape...)
			copy(x.Data, [][]float64{a, b}[i])
			fill(buffers[i], mt, x)
		}
		refs = append(refs, buffers[i].Base)
	}
	out := outs[0].Type().(*ir.MemRefType)
	require.NoError(t, lowerptx.Kernel(c, kernel, lowerptx.Options{Target: "sm_90a", Products: "templates"}))
	first := ir.LookupSymbol(module, "k")
	l := &launcher{memory: memory, refs: refs}
	product := ir.LookupSymbol(module, first.Attrs().Sym(lowerptx.ThenAttr))
	require.NotNil(t, product, "the product is not made of planes")
	list, err := exec.Params(product, lowerptx.ParamsAttr)
	require.NoError(t, err)
	for op := first; op != nil; op = ir.LookupSymbol(module, op.Attrs().Sym(lowerptx.ThenAttr)) {
		params, blocks, err := l.parameters(op)
		require.NoError(t, err)
		require.NoError(t, emulate.Launch(memory, op, blocks, params...), ir.SymName(op))
	}
	for i, at := range list[len(list)-2:] { // both operands' flags: a word a tile
		require.Equal(t, -1, at.Ref)
		words := 4 * ((int64([]int{m, n}[i]) + 63) / 64) * ((int64(k) + 63) / 64)
		flagged = flagged || slices.ContainsFunc(l.scratch.Data[at.Offset:at.Offset+words], func(b byte) bool { return b != 0 })
	}
	return read(buffers[2], out).Data, flagged
}

// checkRows holds each row of a product to float64: norm(error) / norm(absA absB). Where few terms are much larger than the
// others the error is that of their own products, without the part of 2^-22 that the planes leave out.
func checkRows(t *testing.T, m, n, k int, a, b, got []float64) {
	for i := range m {
		var off, norm float64
		for j := range n {
			var sum, all float64
			for d := range k {
				p := a[i*k+d] * b[j*k+d]
				sum += p
				all += math.Abs(p)
			}
			g := got[i*n+j]
			if math.IsNaN(sum) || math.IsInf(sum, 0) {
				require.True(t, g == sum || math.IsNaN(g) && math.IsNaN(sum), "[%d, %d]: %g, not %g", i, j, g, sum)
				continue
			}
			off += (g - sum) * (g - sum)
			norm += all * all
		}
		require.LessOrEqual(t, math.Sqrt(off), math.Ldexp(1, -22)*math.Sqrt(norm)+math.Ldexp(float64(n), -149), "row %d", i)
	}
}

// By its worst row, norm(error) / norm(absA absB), and in the Frobenius norm a product of planes is no worse than one chain of
// float32 fused multiply-adds. (Of rows with few terms that count it is up to 2^-22, as TestPlanes says: tensor cores truncate.)
func TestPlanesBesideFloat32(t *testing.T) {
	const m, n, k = 48, 40, 768
	for i, c := range []struct {
		name   string
		change func(r *rand.Rand, a, b []float64)
	}{
		{"normal", func(r *rand.Rand, a, b []float64) {}},
		{"uniform", func(r *rand.Rand, a, b []float64) {
			each(a, func(int, float64) float64 { return r.Float64() })
			each(b, func(int, float64) float64 { return r.Float64() })
		}},
		{"lognormal", func(r *rand.Rand, a, b []float64) {
			each(a, func(_ int, x float64) float64 { return math.Exp(2 * x) })
			each(b, func(_ int, x float64) float64 { return math.Exp(2 * x) })
		}},
		{"rows scaled", func(r *rand.Rand, a, b []float64) {
			each(a, func(i int, x float64) float64 { return math.Ldexp(x, i/k%40-20) })
			each(b, func(i int, x float64) float64 { return math.Ldexp(x, i/k%40-20) })
		}},
		{"contraction scaled", func(r *rand.Rand, a, b []float64) {
			each(a, func(i int, x float64) float64 { return math.Ldexp(x, i%k%40-20) })
		}},
	} {
		layout := []string{"nt", "nn", "tn"}[i%3]
		t.Run(layout+" "+c.name, func(t *testing.T) {
			if testing.Short() && i%3 != 2 {
				t.Skip("by one layout")
			}
			t.Parallel()
			r := rand.New(rand.NewPCG(7, 8))
			a, b := normal(r, m*k), normal(r, n*k)
			c.change(r, a, b)
			each(a, func(_ int, x float64) float64 { return float64(float32(x)) })
			each(b, func(_ int, x float64) float64 { return float64(float32(x)) })
			got, flag := multiply(t, layout, m, n, k, a, b)
			require.False(t, flag)
			chain := make([]float64, m*n)
			for i := range chain {
				sum := float32(0)
				for d := range k { // a product of two float32 is exact in float64, and its sum with one nearly: rounded twice in rare cases
					sum = float32(a[i/n*k+d]*b[i%n*k+d] + float64(sum))
				}
				chain[i] = float64(sum)
			}
			worst, all := rowErrors(m, n, k, a, b, got)
			worstOfChain, allOfChain := rowErrors(m, n, k, a, b, chain)
			require.LessOrEqual(t, worst, worstOfChain)
			require.LessOrEqual(t, all, allOfChain)
			t.Logf("worst row %.1e beside %.1e, all %.1e beside %.1e", worst, worstOfChain, all, allOfChain)
		})
	}
}

// rowErrors is the largest norm(error) / norm(absA absB) of a row, and the error's norm over the result's.
func rowErrors(m, n, k int, a, b, got []float64) (worst, all float64) {
	var off, of float64
	for i := range m {
		var offRow, norm float64
		for j := range n {
			var sum, abs float64
			for d := range k {
				p := a[i*k+d] * b[j*k+d]
				sum += p
				abs += math.Abs(p)
			}
			e := got[i*n+j] - sum
			offRow += e * e
			norm += abs * abs
			of += sum * sum
		}
		off += offRow
		worst = max(worst, math.Sqrt(offRow/norm))
	}
	return worst, math.Sqrt(off / of)
}
