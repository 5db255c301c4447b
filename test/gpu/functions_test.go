package gpu

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
)

// Functions of float32 are within a few units in the last place of what float64 gives, over all they are used for: where they
// are nearly 0, too, and as they end.
func TestFunctionsAreClose(t *testing.T) {
	upTo := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	density := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
	for _, f := range []struct {
		op       string
		most     float64 // arguments are as far from 0
		want     func(x float64) float64
		ulps     float64 // of the result, 2^-23 of it
		absolute float64 // and as much, where a function crosses 0
	}{
		{"erf %a", 5, math.Erf, 3, 0},
		{"tanh %a", 12, math.Tanh, 3, 0},
		{"sin %a", 1000, math.Sin, 2, 0},
		{"cos %a", 1000, math.Cos, 2, 0},
		{`gelu %a {approximate = "erf"}`, 12, func(x float64) float64 { return x * upTo(x) }, 5, 0},
		{`gelu_grad %a, %one {approximate = "erf"}`, 12, func(x float64) float64 { return upTo(x) + x*density(x) }, 5, 1e-7},
	} {
		t.Run(f.op, func(t *testing.T) {
			const n = 20011
			xs := make([]float64, n)
			for i := range xs { // denser around 0
				s := 2*float64(i)/(n-1) - 1
				xs[i] = float64(float32(f.most * s * math.Abs(s)))
			}
			for i, got := range elementwise32(t, f.op, xs) {
				want := f.want(xs[i])
				require.LessOrEqual(t, math.Abs(got-want), f.ulps*0x1p-23*math.Abs(want)+f.absolute+0x1p-126, "of %g: want %g, got %g", xs[i], want, got)
			}
			ends := []float64{math.NaN(), math.Inf(1), 1e30, -1e30, 0}
			for i, got := range elementwise32(t, f.op, ends) {
				want := f.want(ends[i])
				if math.Abs(ends[i]) > 1e6 && !math.IsInf(ends[i], 0) && (f.op[0] == 's' || f.op[0] == 'c') {
					continue // not reduced
				}
				if math.IsInf(ends[i], 1) && f.op[:5] == "gelu_" {
					want = math.NaN() // infinity times 0, as the definition has it
				}
				require.True(t, got == float64(float32(want)) || math.IsNaN(got) && math.IsNaN(want), "of %g: want %g, got %g", ends[i], want, got)
			}
		})
	}
}

// elementwise32 is what an operation, lowered and emulated, makes of numbers.
func elementwise32(t *testing.T, op string, xs []float64) []float64 {
	name, _, _ := strings.Cut(op, " ")
	operands := "(!tile.block<1x256xf32>)"
	if name == "gelu_grad" {
		operands = "(!tile.block<1x256xf32>, !tile.block<1x256xf32>)"
	}
	text := fmt.Sprintf(`
tile.kernel @k attributes {grid = array<i64: %[1]d>, outs = 1 : i64, steps = array<i64: 256>} (%%x: memref<%[1]dxf32>, %%y: memref<%[1]dxf32>, %%i: index) {
  %%zero = arith.constant {value = 0 : index} : () -> index
  %%a = tile.load %%x, %%i : (memref<%[1]dxf32>, index) -> !tile.block<1x256xf32>
  %%1 = tile.constant {value = 1.0 : f64} : () -> !tile.block<1x1xf32>
  %%one = tile.broadcast %%1, %%zero, %%i : (!tile.block<1x1xf32>, index, index) -> !tile.block<1x256xf32>
  %%c = tile.%[2]s : %[3]s -> !tile.block<1x256xf32>
  tile.store %%c, %%y, %%i : (!tile.block<1x256xf32>, memref<%[1]dxf32>, index) -> ()
  tile.end
}`, len(xs), op, operands)
	c := dialects.NewContext()
	module, err := ir.Parse(c, "k.mlir", []byte(text))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, module))
	lowered := lowerCopy(t, c, module, ir.LookupSymbol(module, "k"), ".lowered", general)
	m := &emulate.Memory{}
	in, out, errors := m.Alloc(4*len(xs)), m.Alloc(4*len(xs)), m.Alloc(8)
	var raw []byte
	for _, x := range xs {
		raw = ir.EncodeElement(raw, c.F32(), x)
	}
	in.Write(0, raw)
	launchChain(t, c, module, lowered, m, []any{in.Base, out.Base}, errors)
	ys := make([]float64, len(xs))
	for i := range ys {
		ys[i] = ir.DecodeElement(c.F32(), string(out.Data[4*i:4*i+4]))
	}
	return ys
}
