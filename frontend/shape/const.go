package shape

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ConstKind is what a constant is.
type ConstKind uint8

// The kinds of constants. An integer is exact and remembers its expression; a number is a float64.
const (
	NoConst ConstKind = iota
	IntConst
	FloatConst
	BoolConst
	StringConst
	DTypeConst
	ListConst // [1, 2] and (1, 2)
)

var constNames = [...]string{"nothing", "an integer", "a number", "a truth value", "a string", "a dtype", "a list"}

func (k ConstKind) String() string { return constNames[k] }

// Const is a value that is known when a model is compiled.
type Const struct {
	Kind  ConstKind
	Int   Int
	Float float64
	Bool  bool
	Str   string
	DType DType
	List  []Const
}

// IntOf, FloatOf, BoolOf, StringOf and DTypeOf make constants.
func IntOf(n Int) Const { return Const{Kind: IntConst, Int: n} }

// FloatOf makes a number.
func FloatOf(v float64) Const { return Const{Kind: FloatConst, Float: v} }

// BoolOf makes a truth value.
func BoolOf(v bool) Const { return Const{Kind: BoolConst, Bool: v} }

// StringOf makes a string.
func StringOf(s string) Const { return Const{Kind: StringConst, Str: s} }

// DTypeOf makes an element type as a value.
func DTypeOf(d DType) Const { return Const{Kind: DTypeConst, DType: d} }

// IsNumber tells integers and numbers.
func (c Const) IsNumber() bool { return c.Kind == IntConst || c.Kind == FloatConst }

// Number is the value of an integer or a number.
func (c Const) Number() float64 {
	if c.Kind == IntConst {
		return float64(c.Int.N)
	}
	return c.Float
}

// String is the constant as a person writes it.
func (c Const) String() string {
	switch c.Kind {
	case IntConst:
		return c.Int.String()
	case FloatConst:
		return strconv.FormatFloat(c.Float, 'g', -1, 64)
	case BoolConst:
		return strconv.FormatBool(c.Bool)
	case StringConst:
		return strconv.Quote(c.Str)
	case DTypeConst:
		return c.DType.String()
	case ListConst:
		parts := make([]string, len(c.List))
		for i, e := range c.List {
			parts[i] = e.String()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "nothing"
}

// Fits says why a constant cannot stand where a tensor of type d does; nil when it can. An integer must be exact
// in d, for rounding it would change what the person wrote; a number takes the nearest value but must stay finite.
func (c Const) Fits(d DType) error {
	switch {
	case c.Kind == BoolConst && d == Bool:
		return nil
	case !c.IsNumber():
		return fmt.Errorf("%s cannot be %s", c.Kind, d)
	case d == Bool:
		return fmt.Errorf("%s is not a bool: write true or false, or compare", c)
	case d.IsInt() && c.Kind == FloatConst:
		return fmt.Errorf("%s is not an integer, and %s holds integers only", c, d)
	case d == I32 && (c.Int.N > math.MaxInt32 || c.Int.N < math.MinInt32):
		return errors.New(Sprintf("%v does not fit i32", c.Int))
	case d == I64 && (c.Int.N > 1<<53 || c.Int.N < -1<<53):
		return errors.New(Sprintf("%v is beyond 2^53, where constants stop being exact", c.Int))
	case d.IsFloat() && c.Kind == IntConst && float64(c.Int.N) != nearest(float64(c.Int.N), d):
		return errors.New(Sprintf("%v is not exact in %v: write it as a number, with a point", c.Int, d.String()))
	case d.IsFloat() && !math.IsInf(c.Number(), 0) && math.IsInf(nearest(c.Number(), d), 0):
		return fmt.Errorf("%s does not fit %s", c, d)
	}
	return nil
}

// nearest rounds to the mantissa of d: 24 bits in f32, 8 in bf16, 11 in f16, whose largest value is 65504.
func nearest(v float64, d DType) float64 {
	switch d {
	case F32:
		return float64(float32(v))
	case BF16:
		b := math.Float32bits(float32(v))
		return float64(math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff))
	case F16:
		if math.Abs(v) >= 65520 {
			return math.Inf(1)
		}
		_, exp := math.Frexp(v)
		unit := math.Ldexp(1, max(exp, -13)-11)
		return math.RoundToEven(v/unit) * unit
	}
	return v
}

// Arith computes x op y on constants: + - * / % on numbers, comparisons, && and || on truth values. Integers stay
// integers, and their division must be exact; an integer and a number give a number.
func Arith(op string, x, y Const) (Const, error) {
	switch {
	case x.Kind == BoolConst && y.Kind == BoolConst:
		return logic(op, x, y)
	case x.Kind == IntConst && y.Kind == IntConst:
		return arithInt(op, x.Int, y.Int)
	case x.IsNumber() && y.IsNumber():
		return arithFloat(op, x.Number(), y.Number())
	case x.Kind == y.Kind && (x.Kind == StringConst || x.Kind == DTypeConst) && (op == "==" || op == "!="):
		return BoolOf((x.String() == y.String()) == (op == "==")), nil
	}
	return Const{}, fmt.Errorf("%s between %s and %s has no meaning", op, x.Kind, y.Kind)
}

func logic(op string, x, y Const) (Const, error) {
	switch op {
	case "&&":
		return BoolOf(x.Bool && y.Bool), nil
	case "||":
		return BoolOf(x.Bool || y.Bool), nil
	case "==":
		return BoolOf(x.Bool == y.Bool), nil
	case "!=":
		return BoolOf(x.Bool != y.Bool), nil
	}
	return Const{}, fmt.Errorf("%s between truth values has no meaning", op)
}

func arithInt(op string, x, y Int) (Const, error) {
	ops := map[string]func(a, b Int) (Int, error){"+": Add, "-": Sub, "*": Mul, "/": Div, "%": Mod}
	if f, ok := ops[op]; ok {
		v, err := f(x, y)
		return IntOf(v), err
	}
	return compare(op, x.N, y.N)
}

func arithFloat(op string, x, y float64) (Const, error) {
	var v float64
	switch op {
	case "+":
		v = x + y
	case "-":
		v = x - y
	case "*":
		v = x * y
	case "/":
		v = x / y
	case "%":
		return Const{}, errors.New("% is for integers")
	default:
		return compare(op, x, y)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Const{}, fmt.Errorf("%g %s %g is not a finite number", x, op, y)
	}
	return FloatOf(v), nil
}

func compare[T int64 | float64](op string, x, y T) (Const, error) {
	switch op {
	case "==":
		return BoolOf(x == y), nil
	case "!=":
		return BoolOf(x != y), nil
	case "<":
		return BoolOf(x < y), nil
	case "<=":
		return BoolOf(x <= y), nil
	case ">":
		return BoolOf(x > y), nil
	case ">=":
		return BoolOf(x >= y), nil
	}
	return Const{}, fmt.Errorf("%s between numbers has no meaning", op)
}
