package verify

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
	"blutrain/runtime/ref"
)

// rectified is sums of what a rectifier passes on of %g, and a sum of differences that are zero: a w - (3 a) (w / 3).
const rectified = `builtin.module @m {
  func.func @f(%a: tensor<64x64x16xf32>, %w: tensor<16xf32>, %g: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
    %x = blu.dot %a, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>PRECISION} : (tensor<64x64x16xf32>, tensor<16xf32>) -> tensor<64x64xf32>
    %zero = blu.constant {value = dense<0.0> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
    %mask = blu.compare %x, %zero {predicate = "gt"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xi1>
    %passed = blu.select %mask, %g, %zero : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %y = blu.reduce_sum %passed {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64xf32>
    %three = blu.constant {value = dense<3.0> : tensor<64x64x16xf32>} : () -> tensor<64x64x16xf32>
    %third = blu.constant {value = dense<3.0> : tensor<16xf32>} : () -> tensor<16xf32>
    %a3 = blu.mul %a, %three : (tensor<64x64x16xf32>, tensor<64x64x16xf32>) -> tensor<64x64x16xf32>
    %w3 = blu.div %w, %third : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %x3 = blu.dot %a3, %w3 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>PRECISION} : (tensor<64x64x16xf32>, tensor<16xf32>) -> tensor<64x64xf32>
    %d = blu.sub %x, %x3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z = blu.reduce_sum %d {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64xf32>
    func.return %y, %z : (tensor<64xf32>, tensor<64xf32>) -> ()
  }
}`

// device computes rectified in float32, its products' operands rounded, and passes on what passes says.
func device(a, w, g []float64, round func(float32) float32, passes func(x float32) bool) (y, z []float64) {
	for i := range 64 {
		var sum, zero float32
		for j := range 64 {
			var x, x3 float32
			for k := range 16 {
				l, r := float32(a[(64*i+j)*16+k]), float32(w[k])
				x += round(l) * round(r)
				x3 += round(3*l) * round(r/3)
			}
			if zero += x - x3; passes(x) {
				sum += float32(g[64*i+j])
			}
		}
		y, z = append(y, float64(sum)), append(z, float64(zero))
	}
	return y, z
}

// Results of a device whose products round are settled, with choices that fell otherwise and with what is left of sums that cancel;
// wrong results aren't, and neither are those of a program whose products don't round.
func TestSettle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	c := dialects.NewContext()
	a, w, g := ir.NewTensor(c.F32(), 64, 64, 16), ir.NewTensor(c.F32(), 16), ir.NewTensor(c.F32(), 64, 64)
	for _, x := range []*ir.Tensor{a, w, g} {
		for i := range x.Data {
			x.Data[i] = float64(float32(r.NormFloat64()))
		}
	}
	for i := range a.Data { // the products of a and w nearly cancel, so that many are next to zero
		if i%16 >= 8 {
			a.Data[i] = float64(float32(0.02*a.Data[i] - a.Data[i-8]))
			w.Data[i%16] = w.Data[i%16-8]
		}
	}
	for k := range 8 { // those of one do, so that any rounding decides
		a.Data[8+k] = -a.Data[k]
	}
	g.Data[0] = 0
	positive := func(x float32) bool { return x > 0 }
	truncated := func(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1<<13 - 1)) }
	for _, precision := range []string{"tf32", "bf16"} {
		nearest := map[string]func(float32) float32{"tf32": nearestTF32, "bf16": nearestBF16}[precision]
		settled := func(y, z []float64, attribute string) [2]bool {
			module, err := ir.Parse(c, "m.mlir", []byte(strings.ReplaceAll(rectified, "PRECISION", attribute)))
			require.NoError(t, err)
			evaluate := func(change ref.Change) (values [][]float64, err error) {
				out, err := ref.Evaluate(c, module, ir.LookupSymbol(module, "f").Body(), []ir.Datum{a, w, g}, change)
				for _, x := range out {
					values = append(values, x.(*ir.Tensor).Data)
				}
				return values, err
			}
			exact, err := evaluate(nil)
			require.NoError(t, err)
			results := []result{{got: y, want: &expected{value: exact[0], tolerance: 1e-3}}, {got: z, want: &expected{value: exact[1], tolerance: 1e-3}}}
			require.True(t, results[0].want.of(y).Off() && results[1].want.of(z).Off(), "exactly it is neither")
			require.NoError(t, settle(results, r, evaluate))
			return [2]bool{!results[0].want.of(y).Off(), !results[1].want.of(z).Off()}
		}
		rounds := `, blu.precision = "` + precision + `"`
		y, z := device(a.Data, w.Data, g.Data, nearest, positive)
		require.Equal(t, [2]bool{true, true}, settled(y, z, rounds), precision)
		require.Equal(t, [2]bool{false, false}, settled(y, z, ""), precision)
		g.Data[0] = 2
		y, z = device(a.Data, w.Data, g.Data, nearest, func(x float32) bool { return x >= 0 })
		require.Equal(t, [2]bool{true, true}, settled(y, z, rounds), precision)
		g.Data[0] = 0
		y, z = device(a.Data, w.Data, g.Data, nearest, positive)
		for i := range y {
			y[i] *= 1.1
			z[i] += 1
		}
		require.Equal(t, [2]bool{false, false}, settled(y, z, rounds), precision)
		y, z = device(a.Data, w.Data, g.Data, nearest, func(x float32) bool { return x < 0 })
		require.Equal(t, [2]bool{false, true}, settled(y, z, rounds), precision)
		if precision == "tf32" { // of other roundings sums that cancel are settled, choices need not be
			_, z = device(a.Data, w.Data, g.Data, truncated, positive)
			require.True(t, settled(y, z, rounds)[1])
		}
	}
}

// deciding is what operations of every kind that choose make of a product whose operands are rounded.
const deciding = `builtin.module @m {
  func.func @f(%a: tensor<64x16xf32>, %w: tensor<32x16xf32>) -> (tensor<64x32xi1>, tensor<64xi32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xi32>) {
    %x = blu.dot %a, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, blu.precision = "bf16"} : (tensor<64x16xf32>, tensor<32x16xf32>) -> tensor<64x32xf32>
    %zero = blu.constant {value = dense<0.0> : tensor<64x32xf32>} : () -> tensor<64x32xf32>
    %many = blu.constant {value = dense<16.0> : tensor<64x32xf32>} : () -> tensor<64x32xf32>
    %x16 = blu.mul %x, %many : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
    %positive = blu.compare %x, %zero {predicate = "gt"} : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xi1>
    %place = blu.argmax %x {axis = 1 : i64} : (tensor<64x32xf32>) -> tensor<64xi32>
    %sign = blu.sign %x : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %below = blu.floor %x16 : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %whole = blu.cast %x16 : (tensor<64x32xf32>) -> tensor<64x32xi32>
    func.return %positive, %place, %sign, %below, %whole : (tensor<64x32xi1>, tensor<64xi32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xi32>) -> ()
  }
}`

// Evaluations near a narrow one make its choices, of every kind: another choice is no measure of how results answer to roundings.
func TestChoicesAreHeld(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	c := dialects.NewContext()
	module, err := ir.Parse(c, "m.mlir", []byte(deciding))
	require.NoError(t, err)
	a, w := ir.NewTensor(c.F32(), 64, 16), ir.NewTensor(c.F32(), 32, 16)
	for _, x := range []*ir.Tensor{a, w} {
		for i := range x.Data {
			x.Data[i] = float64(float32(r.NormFloat64()))
		}
	}
	evaluate := func(change ref.Change) []ir.Datum {
		out, err := ref.Evaluate(c, module, ir.LookupSymbol(module, "f").Body(), []ir.Datum{a, w}, change)
		require.NoError(t, err)
		return out
	}
	n := &narrow{random: r}
	chosen, exact := evaluate(n), evaluate(nil)
	require.Len(t, n.choices, len(chosen))
	held := evaluate(&nearby{random: r, choices: n.choices})
	for i := range chosen {
		require.NotEqual(t, exact[i].(*ir.Tensor).Data, chosen[i].(*ir.Tensor).Data, "roundings decide some of %d", i)
		require.Equal(t, chosen[i].(*ir.Tensor).Data, held[i].(*ir.Tensor).Data, "%d", i)
	}
}
