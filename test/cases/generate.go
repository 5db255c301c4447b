package cases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator writes a random model: parameters, a function that computes with them and with tokens, a loss, a train block. What it
// writes is right, stays in numbers of moderate size, and uses most of the built-in functions.
type generator struct {
	*rand.Rand
	b, s, v, c int // batch, tokens, vocabulary, channels
	wide       bool
	params     []string
	lines      []string
	values     []operand
}

// operand is a float tensor of the program.
type operand struct {
	name  string
	shape []int
}

// RandomModel is the text of a model; the same for the same seed.
func RandomModel(seed uint64) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 77))}
	g.b, g.s, g.v, g.c = 1+g.IntN(3), 1+g.IntN(6), 2+g.IntN(9), 2*(1+g.IntN(4))
	g.add([]int{g.b, g.s, g.c}, "%s[tokens]", g.param(g.v, g.c))
	for len(g.lines) < 4+g.IntN(14) {
		g.step()
	}
	return g.model()
}

func (g *generator) model() string {
	last := g.values[len(g.values)-1]
	loss := fmt.Sprintf("return (%s, 2.0)", g.total())
	if len(last.shape) == 3 && last.shape[0] == g.b && last.shape[1] == g.s && g.IntN(2) == 0 {
		loss = fmt.Sprintf("return cross_entropy(linear(%s, %s), targets, ignore: 0)", last.name, g.param(g.v, last.shape[2]))
	}
	optimizer := []string{"sgd(lr: 0.1, momentum: 0.9)", "adamw(lr: 0.01, weight_decay: 0.1 where rank >= 2)", "sgd(lr: 0.1, momentum: 0.5, nesterov: true)"}[g.IntN(3)]
	return fmt.Sprintf("model m(V = %d) {\n%s\n  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {\n%s\n    %s\n  }\n}\n"+
		"train m {\n  minimize loss\n  batch B = %d, S = %d\n  optimizer %s\n  clip global_norm 1.0\n}\n",
		g.v, strings.Join(g.params, "\n"), strings.Join(g.lines, "\n"), loss, g.b, g.s, optimizer)
}

// total uses every value, so that none is dead.
func (g *generator) total() string {
	var terms []string
	for _, v := range g.values {
		reduction := []string{"mean", "sum", "norm"}[g.IntN(3)]
		terms = append(terms, fmt.Sprintf("%s(tanh(%s))", reduction, v.name))
	}
	return strings.Join(terms, " + ")
}

// param declares a parameter and gives its name.
func (g *generator) param(shape ...int) string {
	name := fmt.Sprintf("p%d", len(g.params))
	g.params = append(g.params, fmt.Sprintf("  param %s: f32%s = normal(mean: 0.2, std: 0.6)", name, list(shape)))
	return name
}

func list(shape []int) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ") }

// add writes a statement.
func (g *generator) add(shape []int, format string, args ...any) {
	if g.wide && elements(shape) > most {
		return
	}
	name := fmt.Sprintf("x%d", len(g.lines))
	g.lines = append(g.lines, fmt.Sprintf("    let %s = %s", name, fmt.Sprintf(format, args...)))
	g.values = append(g.values, operand{name, shape})
}

// pick is a value, the newest most likely.
func (g *generator) pick() operand {
	i := len(g.values) - 1
	for i > 0 && g.IntN(3) == 0 {
		i--
	}
	return g.values[i]
}

// like is an operand that goes with x: another value or a parameter of its shape, or one with some sizes 1.
func (g *generator) like(x operand) string {
	for range 3 {
		if y := g.values[g.IntN(len(g.values))]; slices.Equal(x.shape, y.shape) {
			return y.name
		}
	}
	shape := slices.Clone(x.shape)
	for i := range shape {
		if g.IntN(3) == 0 {
			shape[i] = 1
		}
	}
	return g.param(shape...)
}

func (g *generator) step() {
	x := g.pick()
	choices := []func(operand){g.unary, g.unary, g.binary, g.binary, g.reduce, g.view, g.view, g.product, g.layer, g.layer, g.select_}
	choices[g.IntN(len(choices))](x)
}

func (g *generator) unary(x operand) {
	forms := []string{
		"exp(tanh(%s))", "log(square(%s) + 0.5)", "sqrt(abs(%s) + 0.5)", "rsqrt(square(%s) + 0.5)", "sin(%s)", "cos(%s)", "tanh(%s)", "erf(%s)", "abs(%s)",
		"square(tanh(%s))", "relu(%s)", "sigmoid(%s)", "silu(%s)", "gelu(%s)", "gelu(%s, approximate: \"erf\")", "-%s", "%s * 0.7 - 0.1", "1.0 / (square(%s) + 1.0)",
		"pow(abs(%s) + 0.5, 1.7)", "dropout(%s, p: 0.25)", "stop_gradient(%s)",
	}
	g.add(x.shape, forms[g.IntN(len(forms))], x.name)
}

func (g *generator) binary(x operand) {
	forms := []string{"%s + %s", "%s - %s", "tanh(%s) * %s", "maximum(%s, %s)", "minimum(%s, %s)", "%s / (square(%s) + 1.0)", "pow(abs(tanh(%s)) + 0.5, tanh(%s))"}
	g.add(x.shape, forms[g.IntN(len(forms))], x.name, g.like(x))
}

func (g *generator) select_(x operand) {
	forms := []string{"where(%[1]s > 0.1, %[1]s, %[2]s * 0.5 + %[1]s)", "where(%[2]s + %[1]s <= 0.3, tanh(%[2]s) + %[1]s, sin(%[1]s))", "where(!(%[1]s < -0.2), sqrt(abs(%[1]s) + 0.1), %[2]s + %[1]s)"}
	g.add(x.shape, forms[g.IntN(len(forms))], x.name, g.like(x))
}

func (g *generator) reduce(x operand) {
	if len(x.shape) == 0 {
		g.unary(x)
		return
	}
	axis := g.IntN(len(x.shape))
	switch name := []string{"sum", "mean", "var", "max", "min", "norm", "softmax", "log_softmax"}[g.IntN(8)]; {
	case strings.HasSuffix(name, "softmax"):
		g.add(x.shape, "%s(%s, axis: %d)", name, x.name, axis)
	case g.IntN(2) == 0: // spread again, so that there's enough left to work on
		g.add(x.shape, "%[1]s - %[2]s(%[1]s, axis: %[3]d, keep: true)", x.name, name, axis)
	case g.IntN(2) == 0:
		shape := slices.Clone(x.shape)
		shape[axis] = 1
		g.add(shape, "%s(%s, axis: %d, keep: true)", name, x.name, axis)
	default:
		g.add(slices.Delete(slices.Clone(x.shape), axis, axis+1), "%s(%s, axis: %d)", name, x.name, axis)
	}
}

func (g *generator) view(x operand) {
	rank := len(x.shape)
	if rank == 0 {
		g.unary(x)
		return
	}
	axis := g.IntN(rank)
	n := x.shape[axis]
	with := func(size int) []int {
		shape := slices.Clone(x.shape)
		shape[axis] = size
		return shape
	}
	switch g.IntN(9) {
	case 0:
		perm, shape := g.Perm(rank), make([]int, rank)
		for i, p := range perm {
			shape[i] = x.shape[p]
		}
		g.add(shape, "transpose(%s, %s)", x.name, list(perm))
	case 1:
		total := 1
		for _, n := range x.shape {
			total *= n
		}
		g.add([]int{total}, "reshape(%s, [-1])", x.name)
	case 2:
		low := g.IntN(n)
		high := low + 1 + g.IntN(n-low)
		g.add(with(high-low), "slice(%s, axis: %d, start: %d, end: %d)", x.name, axis, low, high)
	case 3:
		low, high := g.IntN(3), g.IntN(3)
		g.add(with(n+low+high), "pad(%s, axis: %d, low: %d, high: %d, value: 0.5)", x.name, axis, low, high)
	case 4:
		g.add(with(2*n), "concat(%s, %s * 0.5, axis: %d)", x.name, x.name, axis)
	case 5:
		g.add(slices.Insert(slices.Clone(x.shape), axis, 1), "unsqueeze(%s, axis: %d)", x.name, axis)
	case 6:
		g.add(append([]int{2}, x.shape...), "broadcast(%s, %s)", x.name, list(append([]int{2}, x.shape...)))
	case 7:
		if n%2 != 0 {
			g.unary(x)
			return
		}
		g.lines = append(g.lines, fmt.Sprintf("    let (a%[1]d, b%[1]d) = split(%[2]s, axis: %[3]d)", len(g.lines), x.name, axis))
		g.add(with(n/2), "a%[1]d * 0.5 - tanh(b%[1]d)", len(g.lines)-1)
	case 8:
		g.add(slices.Delete(slices.Clone(x.shape), 0, 1), "%s[%d]", x.name, g.IntN(x.shape[0]))
	}
}

func (g *generator) product(x operand) {
	rank := len(x.shape)
	if rank == 0 {
		g.unary(x)
		return
	}
	k, n := x.shape[rank-1], 1+g.IntN(7)
	shape := append(slices.Clone(x.shape[:rank-1]), n)
	switch {
	case g.IntN(3) == 0:
		g.add(shape, "linear(%s, %s, %s)", x.name, g.param(n, k), g.param(n))
	case g.IntN(2) == 0 || rank < 2:
		g.add(shape, "gelu(linear(%s, %s))", x.name, g.param(n, k))
	case rank == 3:
		g.add([]int{x.shape[0], n, x.shape[1]}, "einsum(\"bsc,nc->bns\", %s, %s)", x.name, g.param(n, k))
	default:
		m := x.shape[rank-2]
		perm := make([]int, rank)
		for i := range perm {
			perm[i] = i
		}
		perm[rank-1], perm[rank-2] = rank-2, rank-1
		g.add(append(slices.Clone(x.shape[:rank-1]), m), "tanh(matmul(%s, transpose(%s, %s)))", x.name, x.name, list(perm))
	}
}

func (g *generator) layer(x operand) {
	rank := len(x.shape)
	if rank == 0 {
		g.unary(x)
		return
	}
	n := x.shape[rank-1]
	switch choice := g.IntN(6); {
	case choice == 0:
		g.add(x.shape, "layernorm(%s, %s, %s, eps: 0.01)", x.name, g.param(n), g.param(n))
	case choice == 1:
		g.add(x.shape, "rmsnorm(%s, %s, eps: 0.01)", x.name, g.param(n))
	case rank == 3 && n%2 == 0 && choice == 2:
		g.add(x.shape, "merge(attention(heads(%[1]s, 2), heads(tanh(%[1]s), 2), heads(sin(%[1]s), 1 + 1), causal: %[2]t))", x.name, g.IntN(2) == 0)
	case rank == 3 && n%4 == 0 && choice == 3:
		g.add(x.shape, "merge(rope(heads(%s, 2)))", x.name)
	case rank == 4 && x.shape[2] >= 2 && n >= 2 && choice <= 4:
		g.add([]int{x.shape[0], 3, x.shape[2], n}, "conv2d(%s, %s, %s, padding: 1)", x.name, g.param(3, x.shape[1], 3, 3), g.param(3))
	case rank == 4 && x.shape[2] >= 2 && n >= 2:
		g.add([]int{x.shape[0], x.shape[1], x.shape[2] / 2, n / 2}, "%s(%s, size: 2)", []string{"max_pool", "avg_pool"}[g.IntN(2)], x.name)
	default:
		g.add(append([]int{g.b, g.s}, n), "(%s + one_hot(tokens, %d)) * 0.5", g.param(g.b, g.s, n), n)
	}
}
