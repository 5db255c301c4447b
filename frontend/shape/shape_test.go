package shape

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func must(t *testing.T) func(Int, error) Int {
	return func(a Int, err error) Int {
		require.NoError(t, err)
		return a
	}
}

func TestExpressionsReadAsWritten(t *testing.T) {
	ok := must(t)
	c, h, s := Named("C", 768), Named("H", 12), Named("S", 1024)
	head := ok(Div(c, h))
	tests := []struct {
		got  Int
		n    int64
		text string
	}{
		{ok(Mul(Lit(4), c)), 3072, "4*C"},
		{ok(Mul(c, Lit(4))), 3072, "4*C"},
		{ok(Add(c, c)), 1536, "2*C"},
		{head, 64, "C/H"},
		{ok(Mul(h, head)), 768, "C"},
		{ok(Sub(s, Lit(1))), 1023, "S - 1"},
		{ok(Sub(Lit(1), s)), -1023, "-S + 1"},
		{ok(Sub(s, s)), 0, "0"},
		{ok(Div(ok(Mul(Lit(3), c)), ok(Mul(Lit(2), h)))), 96, "3*C/(2*H)"},
		{ok(Div(ok(Add(c, s)), Lit(2))), 896, "C/2 + S/2"},
		{ok(Div(s, ok(Add(h, Lit(4))))), 64, "64"}, // a quotient by a sum is told as its number
		{ok(Mod(s, h)), 4, "4"},
		{ok(Neg(c)), -768, "-C"},
		{Bindings{"K": ok(Mul(Lit(3), c))}.In(ok(Add(Named("K", 2304), Lit(1)))), 2305, "3*C + 1"},
		{Bindings{"K": ok(Mul(Lit(3), c))}.In(ok(Div(Named("K", 2304), Lit(3)))), 768, "C"},
	}
	for _, test := range tests {
		require.Equal(t, test.text, test.got.String())
		require.Equal(t, test.n, test.got.N, test.text)
	}
}

func TestArithmeticIsChecked(t *testing.T) {
	c, h, huge := Named("C", 768), Named("H", 5), Named("N", math.MaxInt64)
	for _, test := range []struct {
		f    func(a, b Int) (Int, error)
		a, b Int
		want string
	}{
		{Div, c, h, "768 (C = 768) is not divisible by 5 (H = 5)"},
		{Div, c, Lit(0), "division by zero: 768 (C = 768) / 0"},
		{Mod, c, Lit(0), "division by zero: 768 (C = 768) % 0"},
		{Mul, huge, Lit(2), "9223372036854775807 (N = 9223372036854775807) * 2 does not fit 64 bits"},
		{Add, huge, Lit(1), "9223372036854775807 (N = 9223372036854775807) + 1 does not fit 64 bits"},
		{Sub, Lit(-2), huge, "-2 - 9223372036854775807 (N = 9223372036854775807) does not fit 64 bits"},
		{Div, Lit(math.MinInt64), Lit(-1), "-9223372036854775808 / -1 does not fit 64 bits"},
	} {
		_, err := test.f(test.a, test.b)
		require.EqualError(t, err, test.want)
	}
}

// TestNormalFormKeepsValues checks random expressions: what is told evaluates to the number.
func TestNormalFormKeepsValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		a := Lit(1)
		for range rng.IntN(12) {
			b := []Int{Lit(rng.Int64N(9) - 4), Named("C", 24), Named("H", 3), Named("S", -2)}[rng.IntN(4)]
			f := []func(a, b Int) (Int, error){Add, Sub, Mul, Div}[rng.IntN(4)]
			if next, err := f(a, b); err == nil {
				a = next
			}
		}
		require.Equal(t, float64(a.N), evaluate(a.expr), a.String())
	}
}

func evaluate(p poly) (sum float64) {
	for _, t := range p {
		v := float64(t.num) / float64(t.den)
		for _, w := range t.powers {
			v *= math.Pow(float64(w.value), float64(w.exp))
		}
		sum += v
	}
	return math.Round(sum*1e6) / 1e6
}

func TestSprintf(t *testing.T) {
	c, h := Named("C", 768), Named("H", 12)
	c4, _ := Mul(Lit(4), c)
	head, _ := Div(c, h)
	require.Equal(t, "x has 768 channels (C = 768), w expects 3072 (4*C)", Sprintf("x has %v, w expects %v", Count{c, "channels"}, c4))
	require.Equal(t, "3072 (4*C), 64 (C/H); C = 768, H = 12", Sprintf("%v, %v", c4, head))
	require.Equal(t, "is f32[7, 4*C]; C = 768", Sprintf("is %v", Tensor(F32, Lit(7), c4)))
	require.Equal(t, "7 of (f32[C], i32)", Sprintf("%v of %s", Lit(7), Tuple(Tensor(F32, c), Tensor(I32)).String()))
	require.Equal(t, "plain 3 x", Sprintf("plain %d %s", 3, "x"))
}

func TestConstantsAdoptADType(t *testing.T) {
	for _, test := range []struct {
		c    Const
		d    DType
		want string
	}{
		{IntOf(Lit(2)), F32, ""},
		{IntOf(Lit(1<<24 + 1)), F32, "16777217 is not exact in f32: write it as a number, with a point"},
		{IntOf(Lit(257)), BF16, "257 is not exact in bf16: write it as a number, with a point"},
		{IntOf(Lit(2049)), F16, "2049 is not exact in f16: write it as a number, with a point"},
		{IntOf(Named("C", 1<<24+1)), F64, ""},
		{FloatOf(0.1), F32, ""},
		{FloatOf(1e39), F32, "1e+39 does not fit f32"},
		{FloatOf(65521), F16, "65521 does not fit f16"},
		{FloatOf(0.5), I32, "0.5 is not an integer, and i32 holds integers only"},
		{IntOf(Lit(1 << 31)), I32, "2147483648 does not fit i32"},
		{IntOf(Lit(1 << 31)), I64, ""},
		{IntOf(Lit(1)), Bool, "1 is not a bool: write true or false, or compare"},
		{BoolOf(true), Bool, ""},
		{BoolOf(true), F32, "a truth value cannot be f32"},
		{StringOf("a"), F32, "a string cannot be f32"},
	} {
		if err := test.c.Fits(test.d); test.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, test.want)
		}
	}
}

func TestArith(t *testing.T) {
	i := func(n int64) Const { return IntOf(Lit(n)) }
	for _, test := range []struct {
		x    Const
		op   string
		y    Const
		want string
	}{
		{i(7), "%", i(4), "3"}, {i(8), "/", i(4), "2"}, {i(1), "/", FloatOf(4), "0.25"}, {i(1), "<", i(2), "true"},
		{FloatOf(1.5), "+", i(1), "2.5"}, {BoolOf(true), "&&", BoolOf(false), "false"}, {StringOf("a"), "==", StringOf("a"), "true"},
		{DTypeOf(F32), "!=", DTypeOf(F64), "true"},
		{i(7), "/", i(4), "error: 7 is not divisible by 4"},
		{FloatOf(1), "/", i(0), "error: 1 / 0 is not a finite number"},
		{FloatOf(1), "%", i(2), "error: % is for integers"},
		{BoolOf(true), "+", i(1), "error: + between a truth value and an integer has no meaning"},
		{i(1), "&&", i(1), "error: && between numbers has no meaning"},
	} {
		got, err := Arith(test.op, test.x, test.y)
		if err != nil {
			require.Equal(t, test.want, "error: "+err.Error())
		} else {
			require.Equal(t, test.want, got.String())
		}
	}
}
