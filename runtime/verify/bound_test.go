package verify

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
)

// A product of operands that were rounded to tf32 is within the bounds of precision tf32, and not of float32; one that is
// off by a hundredth is in neither.
func TestBoundsOfTF32(t *testing.T) {
	const m, k = 16, 64
	text := `builtin.module @m {
  func.func @f(%a: tensor<16x64xf32>, %b: tensor<16x64xf32>) -> (tensor<16x16xf32>) {
    %y = blu.dot %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>PRECISION} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x16xf32>
    func.return %y : (tensor<16x16xf32>) -> ()
  }
}`
	r := rand.New(rand.NewPCG(1, 2))
	c := dialects.NewContext()
	a, b := ir.NewTensor(c.F32(), m, k), ir.NewTensor(c.F32(), m, k)
	for _, x := range []*ir.Tensor{a, b} {
		for i := range x.Data {
			x.Data[i] = float64(float32(r.NormFloat64()))
		}
	}
	product := func(round func(float64) float64) []float64 {
		y := make([]float64, m*m)
		for i := range m {
			for j := range m {
				for d := range k {
					y[i*m+j] += round(a.Data[i*k+d]) * round(b.Data[j*k+d])
				}
			}
		}
		return y
	}
	exact := product(func(x float64) float64 { return x })
	narrow := product(func(x float64) float64 {
		return float64(math.Float32frombits((math.Float32bits(float32(x)) + 0x1000) &^ 0x1fff))
	})
	wrong := make([]float64, len(exact))
	for i, y := range exact {
		wrong[i] = 1.01 * y
	}
	for precision, want := range map[string][2]bool{"": {true, true}, `, blu.precision = "tf32"`: {false, true}} {
		module, err := ir.Parse(c, "m.mlir", []byte(strings.Replace(text, "PRECISION", precision, 1)))
		require.NoError(t, err)
		f := ir.LookupSymbol(module, "f")
		e := &evaluation{oracle: &oracle{ctx: c, module: module}, body: f.Body(), args: []ir.Datum{a, b}, want: []*expected{{value: exact}}}
		for range 4 {
			require.NoError(t, e.round(r, false))
		}
		require.Equal(t, want, [2]bool{e.want[0].of(narrow).Off(), e.want[0].of(wrong).Off()}, precision)
	}
}

// Two elements that are equal in float32 only are both the greatest of their row: a kernel that counts two is right, and only there.
func TestBoundsOfTies(t *testing.T) {
	text := `builtin.module @m {
  func.func @f(%x: tensor<3x2xf32>) -> (tensor<3xf32>) {
    %one = blu.constant {value = dense<1.0> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %zero = blu.constant {value = dense<0.0> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %y = blu.add %x, %one : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %m = blu.reduce_max %y {axes = array<i64: 1>, keep} : (tensor<3x2xf32>) -> tensor<3x1xf32>
    %b = blu.broadcast %m {axes = array<i64: 0, 1>, shape = array<i64: 3, 2>} : (tensor<3x1xf32>) -> tensor<3x2xf32>
    %e = blu.compare %y, %b {predicate = "eq"} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xi1>
    %s = blu.select %e, %one, %zero : (tensor<3x2xi1>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %n = blu.reduce_sum %s {axes = array<i64: 1>} : (tensor<3x2xf32>) -> tensor<3xf32>
    func.return %n : (tensor<3xf32>) -> ()
  }
}`
	c := dialects.NewContext()
	module, err := ir.Parse(c, "m.mlir", []byte(text))
	require.NoError(t, err)
	o := &oracle{ctx: c, module: module}
	for _, x := range []struct {
		in  []float32
		got []float32
		off bool
	}{
		{[]float32{1, 2, 0x1p-30, 0x1p-31, 4, 3}, []float32{1, 2, 1}, false}, // 1 + 2^-30 is 1
		{[]float32{1, 2, 0x1p-20, 0x1p-21, 4, 3}, []float32{1, 2, 1}, true},  // 1 + 2^-20 is not
	} {
		e, err := o.evaluate("f", []runtime.Array{runtime.Array(formats.FromFloat32s(x.in, 3, 2))})
		require.NoError(t, err)
		got := []runtime.Array{runtime.Array(formats.FromFloat32s(x.got, 3))}
		r := rand.New(rand.NewPCG(1, 2))
		for i := 0; i < draws && !e.holds(got); i++ {
			require.NoError(t, e.round(r, i == draws-1))
		}
		require.Equal(t, x.off, !e.holds(got), "%v", x.in)
	}
}
