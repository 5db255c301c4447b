// Package shape holds what the checker of .blu files knows of values before they exist: sizes that are numbers and
// remember the names they came from, element types, tensor types, and constants.
//
// A size is checked as a number and told as an expression. The expression is kept in a normal form, so that what
// the person reads is short: H*(C/H) is C, C + C is 2*C. The package knows nothing of the syntax tree or the IR.
package shape

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Bounds of an expression: terms, names in a term, exponents. A longer one is told as its number.
const (
	maxTerms = 12
	maxExp   = 8
)

// poly is a sum of terms in normal form: terms sorted, none with coefficient zero, no two with the same powers.
// Exponents may be negative, so that C/H is a term; a quotient by a sum has no normal form here.
type poly []term

// term is num/den times a product of powers, sorted by name. num/den is reduced and den > 0.
type term struct {
	num, den int64
	powers   []power
}

// power is a name, what it stands for, and its exponent.
type power struct {
	name  string
	value int64
	exp   int
}

func constant(n int64) poly {
	if n == 0 {
		return poly{}
	}
	return poly{{num: n, den: 1}}
}

func variable(name string, value int64) poly {
	return poly{{num: 1, den: 1, powers: []power{{name, value, 1}}}}
}

// comparePowers orders terms: higher degree first, then by name, so that 4*C + 1 reads as written.
func comparePowers(a, b []power) int {
	degree := func(ps []power) (d int) {
		for _, p := range ps {
			d += p.exp
		}
		return d
	}
	byPower := func(x, y power) int { return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(y.exp, x.exp)) }
	return cmp.Or(cmp.Compare(degree(b), degree(a)), slices.CompareFunc(a, b, byPower))
}

// add, mul and div return ok = false when the result has no normal form, is too long, or overflows.

func add(a, b poly) (poly, bool) {
	sum := slices.Clone(a)
	for _, t := range b {
		i, found := slices.BinarySearchFunc(sum, t, func(x, y term) int { return comparePowers(x.powers, y.powers) })
		if !found {
			sum = slices.Insert(sum, i, t)
			continue
		}
		num, den, ok := addFractions(sum[i].num, sum[i].den, t.num, t.den)
		switch {
		case !ok:
			return nil, false
		case num == 0:
			sum = slices.Delete(sum, i, i+1)
		default:
			sum[i].num, sum[i].den = num, den
		}
	}
	return sum, len(sum) <= maxTerms
}

func mul(a, b poly) (poly, bool) {
	product := poly{}
	for _, x := range a {
		for _, y := range b {
			t, ok := mulTerms(x, y)
			if !ok {
				return nil, false
			}
			if product, ok = add(product, poly{t}); !ok {
				return nil, false
			}
		}
	}
	return product, true
}

func div(a, b poly) (poly, bool) {
	if len(b) != 1 {
		return nil, false
	}
	inverse := term{num: b[0].den, den: b[0].num}
	if inverse.den < 0 {
		inverse.num, inverse.den = -inverse.num, -inverse.den
	}
	for _, p := range b[0].powers {
		inverse.powers = append(inverse.powers, power{p.name, p.value, -p.exp})
	}
	return mul(a, poly{inverse})
}

func mulTerms(a, b term) (term, bool) {
	num, ok1 := MulInt(a.num, b.num)
	den, ok2 := MulInt(a.den, b.den)
	if !ok1 || !ok2 {
		return term{}, false
	}
	t := term{powers: slices.Clone(a.powers)}
	t.num, t.den = reduce(num, den)
	for _, p := range b.powers {
		i, found := slices.BinarySearchFunc(t.powers, p, func(x, y power) int { return cmp.Compare(x.name, y.name) })
		switch {
		case !found:
			t.powers = slices.Insert(t.powers, i, p)
		case t.powers[i].exp+p.exp == 0:
			t.powers = slices.Delete(t.powers, i, i+1)
		default:
			t.powers[i].exp += p.exp
		}
	}
	tooHigh := slices.ContainsFunc(t.powers, func(p power) bool { return max(p.exp, -p.exp) > maxExp })
	return t, len(t.powers) <= maxTerms && !tooHigh
}

func addFractions(an, ad, bn, bd int64) (num, den int64, ok bool) {
	x, ok1 := MulInt(an, bd)
	y, ok2 := MulInt(bn, ad)
	den, ok3 := MulInt(ad, bd)
	num, ok4 := AddInt(x, y)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return 0, 0, false
	}
	num, den = reduce(num, den)
	return num, den, true
}

func reduce(num, den int64) (int64, int64) {
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		a = -a
	}
	if a == 0 {
		return 0, 1
	}
	return num / a, den / a
}

// substitute replaces names by expressions.
func (p poly) substitute(by map[string]poly) (poly, bool) {
	sum := poly{}
	for _, t := range p {
		product := poly{{num: t.num, den: t.den}}
		ok := true
		for _, w := range t.powers {
			value, found := by[w.name]
			if !found {
				value = variable(w.name, w.value)
			}
			for n := w.exp; n > 0 && ok; n-- {
				product, ok = mul(product, value)
			}
			for n := w.exp; n < 0 && ok; n++ {
				product, ok = div(product, value)
			}
		}
		if ok {
			sum, ok = add(sum, product)
		}
		if !ok {
			return nil, false
		}
	}
	return sum, true
}

// names lists the names, each once, in the order in which String tells them.
func (p poly) names() (names []power) {
	for _, t := range p {
		for _, w := range t.powers {
			if !slices.ContainsFunc(names, func(n power) bool { return n.name == w.name }) {
				names = append(names, w)
			}
		}
	}
	return names
}

// isName tells whether the expression is one name and nothing else.
func (p poly) isName() bool {
	return len(p) == 1 && p[0].num == 1 && p[0].den == 1 && len(p[0].powers) == 1 && p[0].powers[0].exp == 1
}

func (p poly) String() string {
	if len(p) == 0 {
		return "0"
	}
	var b strings.Builder
	for i, t := range p {
		text := t.magnitude()
		switch {
		case i == 0 && t.num < 0:
			b.WriteString("-")
		case t.num < 0:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		b.WriteString(text)
	}
	return b.String()
}

// magnitude tells a term without its sign: 4*C, C/H, 3*C/(2*H).
func (t term) magnitude() string {
	var above, below []string
	if n := strconv.FormatInt(t.num, 10); strings.TrimPrefix(n, "-") != "1" {
		above = append(above, strings.TrimPrefix(n, "-"))
	}
	if t.den != 1 {
		below = append(below, strconv.FormatInt(t.den, 10))
	}
	for _, p := range t.powers {
		for n := p.exp; n > 0; n-- {
			above = append(above, p.name)
		}
		for n := p.exp; n < 0; n++ {
			below = append(below, p.name)
		}
	}
	text := strings.Join(above, "*")
	if text == "" {
		text = "1"
	}
	switch len(below) {
	case 0:
		return text
	case 1:
		return text + "/" + below[0]
	}
	return text + "/(" + strings.Join(below, "*") + ")"
}

// AddInt is a + b, and whether it fits.
func AddInt(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

// MulInt is a * b, and whether it fits.
func MulInt(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	if hi != 0 || lo > 1<<63-1 && !(negative && lo == 1<<63) {
		return 0, false
	}
	if negative {
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
