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
	"blutrain/runtime/ref"
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

// A number that lies next to the middle of two bfloat16s may be rounded to either, one that doesn't may not.
func TestBoundsOfRoundedResults(t *testing.T) {
	y := make([]float64, 4096)
	for i := range y {
		y[i] = 1 + float64(i%128)/128
	}
	e := &expected{value: y, growth: 8, spacing: spacingOf(ir.NewContext().Float(ir.BF16))}
	other := append([]float64(nil), y...)
	other[5] += 1.0 / 128
	require.False(t, e.of(other).Off(), "one was rounded the other way")
	for i := range other {
		other[i] = y[i] * (1 + 1.0/256)
	}
	require.True(t, e.of(other).Off(), "all are off by half of their spacing")
	e.spacing = 0
	other = append(other[:0], y...)
	other[5] += 1.0 / 128
	require.True(t, e.of(other).Off(), "float32 has numbers between")
}

// What is stored in float32 and was rounded to bfloat16 last may be off by its spacing where it lies next to the middle of two, also when no
// random rounding happened to show that. What is an argument is exact.
func TestSpacingOfWhatIsStoredInFloat32(t *testing.T) {
	text := `builtin.module @m {
  func.func @f(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<8x8xf32>, tensor<64xf32>, tensor<64xbf16>, tensor<64xf32>) {
    %y = blu.exp %x : (tensor<64xf32>) -> tensor<64xf32>
    %n = blu.cast %y : (tensor<64xf32>) -> tensor<64xbf16>
    %w = blu.cast %n : (tensor<64xbf16>) -> tensor<64xf32>
    %r = blu.reshape %w : (tensor<64xf32>) -> tensor<8x8xf32>
    %a = blu.cast %x : (tensor<64xf32>) -> tensor<64xbf16>
    %b = blu.cast %a : (tensor<64xbf16>) -> tensor<64xf32>
    func.return %y, %r, %b, %a, %w : (tensor<64xf32>, tensor<8x8xf32>, tensor<64xf32>, tensor<64xbf16>, tensor<64xf32>) -> ()
  }
}`
	c := dialects.NewContext()
	module, err := ir.Parse(c, "m.mlir", []byte(text))
	require.NoError(t, err)
	var spacings []float64
	for _, v := range ir.LookupSymbol(module, "f").Body().Terminator().Operands() {
		spacings = append(spacings, lastSpacing(v))
	}
	const bf16 = 1.0 / 128
	require.Equal(t, []float64{0, bf16, 0, bf16, bf16}, spacings)

	x := make([]float32, 64)
	x[0] = float32(math.Log(1 + 1.0/256 - 0x1p-22)) // exp is four roundoffs of float32 below the middle of 1 and the next bfloat16
	o := &oracle{ctx: c, module: module}
	e, err := o.evaluate("f", []runtime.Array{runtime.Array(formats.FromFloat32s(x, 64))})
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range draws {
		require.NoError(t, e.round(r, i == draws-1))
	}
	got := append([]float64(nil), e.want[1].value...)
	require.Equal(t, 1.0, got[0])
	got[0] += bf16
	require.False(t, e.want[1].of(got).Off(), "one was rounded the other way")
	got[1], got[2] = got[1]+bf16, got[2]+bf16
	require.True(t, e.want[1].of(got).Off(), "three are not next to the middle")
	require.True(t, e.want[2].of(append([]float64{bf16}, e.want[2].value[1:]...)).Off(), "nothing rounds an argument otherwise")
}

// Attention whose operands, weights and results are rounded to bfloat16 is within the bounds of precision bf16; one with a scale
// that is off by a fifth is not.
func TestBoundsOfAttention(t *testing.T) {
	const s, d = 24, 16
	text := `builtin.module @m {
  func.func @f(%q: tensor<1x1x24x16xbf16>, %k: tensor<1x1x24x16xbf16>, %v: tensor<1x1x24x16xbf16>) -> (tensor<1x1x24x16xbf16>, tensor<1x1x24xf32>) {
    %o:2 = blu.attention %q, %k, %v {blu.precision = "bf16", causal = true, scale = 0.25} : (tensor<1x1x24x16xbf16>, tensor<1x1x24x16xbf16>, tensor<1x1x24x16xbf16>) -> (tensor<1x1x24x16xbf16>, tensor<1x1x24xf32>)
    func.return %o#0, %o#1 : (tensor<1x1x24x16xbf16>, tensor<1x1x24xf32>) -> ()
  }
}`
	r := rand.New(rand.NewPCG(3, 2))
	c := dialects.NewContext()
	bf16 := func(x float64) float64 {
		return ir.DecodeElement(c.Float(ir.BF16), string(ir.EncodeElement(nil, c.Float(ir.BF16), x)))
	}
	exactly := func(x float64) float64 { return x }
	var args []ir.Datum
	var xs [3][]float64
	for i := range xs {
		x := ir.NewTensor(c.Float(ir.BF16), 1, 1, s, d)
		for j := range x.Data {
			x.Data[j] = bf16(r.NormFloat64())
		}
		args, xs[i] = append(args, x), x.Data
	}
	attend := func(scale float64, round func(float64) float64) []float64 {
		o := make([]float64, s*d)
		for i := range s {
			p, sum := make([]float64, i+1), 0.0
			for j := range p {
				for f := range d {
					p[j] += scale * xs[0][i*d+f] * xs[1][j*d+f]
				}
				p[j] = math.Exp(p[j])
				sum += p[j]
			}
			for f := range d {
				for j := range p {
					o[i*d+f] += round(p[j]) * xs[2][j*d+f]
				}
				o[i*d+f] = round(o[i*d+f] / sum)
			}
		}
		return o
	}
	module, err := ir.Parse(c, "m.mlir", []byte(text))
	require.NoError(t, err)
	f := ir.LookupSymbol(module, "f")
	e := &evaluation{oracle: &oracle{ctx: c, module: module}, body: f.Body(), args: args}
	results, err := ref.Evaluate(c, module, f.Body(), args, nil)
	require.NoError(t, err)
	for _, x := range results {
		e.want = append(e.want, &expected{value: x.(*ir.Tensor).Data})
	}
	for range 4 {
		require.NoError(t, e.round(r, false))
	}
	require.False(t, e.want[0].of(attend(0.25, exactly)).Off())
	require.False(t, e.want[0].of(attend(0.25, bf16)).Off())
	require.True(t, e.want[0].of(attend(0.3, exactly)).Off())
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
