package prim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func geluInner(x float64) float64 { return math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }

// saturated spares the derivatives inf * 0, far out where they are 0 or 1.
func saturated(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	return max(-1000, min(x, 1000))
}

// unaryCases are the functions in float64 and the error allowed: ulp units in the
// last place of the result, plus abs (for functions whose tails cancel or vanish).
var unaryCases = []struct {
	name string
	op   UnaryOp
	f    func(float64) float64
	ulp  float64
	abs  float64
}{
	{"Neg", Neg, func(x float64) float64 { return -x }, 0, 0},
	{"Abs", Abs, math.Abs, 0, 0},
	{"Square", Square, func(x float64) float64 { return x * x }, 0.5, 0},
	{"Sqrt", Sqrt, math.Sqrt, 0.5, 0},
	{"Rsqrt", Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.5, 0},
	{"Recip", Recip, func(x float64) float64 { return 1 / x }, 0.5, 0},
	{"Exp", Exp, math.Exp, 1, 0},
	{"Expm1", Expm1, math.Expm1, 1.5, 0},
	{"Log", Log, math.Log, 1, 0},
	{"Log1p", Log1p, math.Log1p, 1.5, 0},
	{"Tanh", Tanh, math.Tanh, 2.5, 0},
	{"Erf", Erf, math.Erf, 1, 0},
	{"Sigmoid", Sigmoid, sigmoid, 2.5, 0},
	{"Sin", Sin, math.Sin, 1.5, 0},
	{"Cos", Cos, math.Cos, 1.5, 0},
	{"Floor", Floor, math.Floor, 0, 0},
	{"Ceil", Ceil, math.Ceil, 0, 0},
	{"Trunc", Trunc, math.Trunc, 0, 0},
	{"RoundEven", RoundEven, math.RoundToEven, 0, 0},
	{"Relu", Relu, func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	}, 0, 0},
	{"Silu", Silu, func(x float64) float64 { return x * sigmoid(x) }, 3, 1e-36},
	{"GeluTanh", GeluTanh, func(x float64) float64 { return x * sigmoid(2*geluInner(x)) }, 3, 1e-7},
	{"GeluErf", GeluErf, func(x float64) float64 { return x * normalCDF(x) }, 3, 1e-7},
	{"DSilu", DSilu, func(x float64) float64 {
		x = saturated(x)
		s := sigmoid(x)
		return s * (1 + x*(1-s))
	}, 2, 3e-7},
	{"DGeluTanh", DGeluTanh, func(x float64) float64 {
		x = saturated(x)
		s := sigmoid(2 * geluInner(x))
		return s + x*s*(1-s)*2*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
	}, 2, 3e-7},
	{"DGeluErf", DGeluErf, func(x float64) float64 {
		x = saturated(x)
		return normalCDF(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	}, 2, 3e-7},
}

// ulp32 is the distance between float32 around x.
func ulp32(x float64) float64 {
	x = math.Abs(x)
	if x < 0x1p-126 {
		return 0x1p-149
	}
	return math.Ldexp(1, math.Ilogb(x)-23)
}

// inBlocks goes by blocks, so that a large angle in one does not take the others off
// the vector loop.
func inBlocks(k *Kernels, op UnaryOp, y, x []float32) {
	for len(x) > 0 {
		n := min(len(x), 67)
		k.Unary(op, y[:n], x[:n])
		x, y = x[n:], y[n:]
	}
}

// samples are the float32 that the error is measured on: an even walk over all bit
// patterns, and values where the functions bend.
func samples() []float32 {
	var s []float32
	step := uint64(9973)
	if testing.Short() {
		step = 65521
	}
	for b := uint64(0); b < 1<<32; b += step {
		s = append(s, math.Float32frombits(uint32(b)))
	}
	for x := float32(-110); x < 110; x += 0.0137 {
		s = append(s, x, x*0.1, x*0.01)
	}
	for i := range 1000 { // around multiples of pi/2
		c := float32(float64(i*131) * math.Pi / 2)
		s = append(s, c, math.Nextafter32(c, 0), -c)
	}
	return append(s, special...)
}

var special = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	1, -1, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep127, -0x1.fffffep127, 88.72283, 88.72284, -103.97, -103.98, 1.0000001, 0.99999994}

func TestUnaryError(t *testing.T) {
	x := samples()
	forEachISA(t, func(t *testing.T, k *Kernels) {
		y := make([]float32, len(x))
		for _, c := range unaryCases {
			inBlocks(k, c.op, y, x)
			worst, at := 0.0, float32(0)
			for i, v := range x {
				want := c.f(float64(v))
				if math.IsNaN(want) {
					require.True(t, isNaN(y[i]), "%s(%g) = %g, want NaN", c.name, v, y[i])
					continue
				}
				if w32 := float32(want); math.Float32bits(w32) == math.Float32bits(y[i]) {
					if d := math.Abs(float64(w32)-want) / ulp32(want); !math.IsInf(want, 0) && d > worst && !math.IsInf(d, 0) {
						worst, at = d, v
					}
					continue
				}
				got := float64(y[i])
				if math.IsInf(got, 0) && !math.IsInf(want, 0) {
					got = math.Copysign(0x1p128, got)
				}
				d := math.Abs(got - want)
				if u := (d - c.abs) / ulp32(want); u > worst || math.IsNaN(u) {
					worst, at = u, v
				}
				if want == 0 && d == 0 && c.ulp == 0 && c.name != "Relu" {
					t.Fatalf("%s(%g) = %g, want %g", c.name, v, got, want) // sign of zero
				}
			}
			t.Logf("%-10s %.3f ulp (at %g), past %g", c.name, worst, at, c.abs)
			if !(worst <= c.ulp) && !(c.ulp == 0 && worst == 0) {
				t.Errorf("%s: error %.3f ulp at %g, allowed %g", c.name, worst, at, c.ulp)
			}
		}
	})
}

// All instruction sets give the same bits, wherever an element is in its vector.
func TestUnaryBits(t *testing.T) {
	x := samples()
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		x = append(x, float32(r.NormFloat64()))
	}
	want, got := make([]float32, len(x)), make([]float32, len(x))
	gok, _ := ForISA("go")
	for op := range numUnary {
		inBlocks(gok, op, want, x)
		for _, name := range ISAs() {
			k, _ := ForISA(name)
			inBlocks(k, op, got, x)
			requireSameBits(t, want, got, "op %d on %s", op, name)
			inBlocks(k, op, got[3:], x[3:])
			requireSameBits(t, want[3:], got[3:], "op %d on %s, shifted", op, name)
			k.Unary(op, got, x)
			requireSameBits(t, want, got, "op %d on %s, at once", op, name)
		}
	}
}

// requireSameBits compares blocks bit by bit; any NaN equals any other.
func requireSameBits(t *testing.T, want, got []float32, format string, args ...any) {
	t.Helper()
	require.Equal(t, len(want), len(got))
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) && !(isNaN(want[i]) && isNaN(got[i])) {
			require.Failf(t, "bits differ", "[%d] %x, want %x; "+format, append([]any{i, got[i], want[i]}, args...)...)
		}
	}
}
