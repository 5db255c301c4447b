package cases

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// WideModel is the text of a random model with more kinds of statements than RandomModel's, and often with sizes of several blocks.
func WideModel(seed uint64) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 78)), wide: true}
	switch g.IntN(4) {
	case 0:
		g.b, g.s, g.v, g.c = 1+g.IntN(3), 20+g.IntN(60), 20+g.IntN(300), 4*(5+g.IntN(20))
	case 1:
		g.b, g.s, g.v, g.c = 1+g.IntN(40), 1, 2+g.IntN(4), 1
	default:
		g.b, g.s, g.v, g.c = 1+g.IntN(4), 1+g.IntN(9), 2+g.IntN(12), 2*(1+g.IntN(6))
	}
	g.add([]int{g.b, g.s, g.c}, "%s[tokens]", g.param(g.v, g.c))
	for len(g.lines) < 4+g.IntN(16) {
		if g.IntN(3) == 0 {
			g.wider(g.pick())
		} else {
			g.step()
		}
	}
	return g.model()
}

// most is how many elements a tensor of a wide model may have.
const most = 60000

func elements(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// wider adds one of the statements that only wide models have.
func (g *generator) wider(x operand) {
	rank := len(x.shape)
	if rank == 0 {
		g.add(x.shape, "where(%[1]s == %[1]s, %[1]s * 0.5, 1.0)", x.name)
		return
	}
	n, before := x.shape[rank-1], slices.Clone(x.shape[:rank-1])
	if n > 200 {
		g.unary(x)
		return
	}
	axis := g.IntN(rank)
	without := slices.Delete(slices.Clone(x.shape), axis, axis+1)
	switch g.IntN(14) {
	case 0: // rows that a maximum chooses
		g.add(append(without, 5), "%s[argmax(stop_gradient(%s), axis: %d)]", g.param(x.shape[axis], 5), x.name, axis)
	case 1: // a parameter used twice
		w := g.param(n, n)
		g.add(x.shape, "linear(tanh(linear(%s, %s)), %[2]s)", x.name, w)
	case 2: // and transposed
		if rank < 2 {
			g.unary(x)
			return
		}
		w := g.param(4, n)
		g.add(x.shape, "matmul(linear(%s, %s), %[2]s)", x.name, w)
	case 3: // layers, each of which is a function of the last
		w := g.param(3, n, n)
		name := fmt.Sprintf("y%d", len(g.lines))
		g.lines = append(g.lines, fmt.Sprintf("    let %s = %s", name, x.name),
			fmt.Sprintf("    for i in 0..3 { %[1]s = %[1]s + tanh(linear(%[1]s, %[2]s[i])) * 0.5 }", name, w))
		g.add(x.shape, "%s * 1.0", name)
	case 4: // a sum over everything, given back to everything
		g.add(x.shape, "%[1]s / (norm(%[1]s) + 1.0)", x.name)
	case 5:
		if elements(x.shape)/n*n*n > most {
			g.unary(x)
			return
		}
		g.add(append(before, n, n), "unsqueeze(%[1]s, axis: -1) * unsqueeze(tanh(%[1]s), axis: -2)", x.name)
	case 6: // two pieces, one of which overlaps the other
		if n < 3 {
			g.unary(x)
			return
		}
		g.add(append(before, n-1), "slice(%[1]s, axis: -1, start: 1) - slice(%[1]s, axis: -1, end: -1)", x.name)
	case 7: // in another order
		g.add(x.shape, "concat(slice(%[1]s, axis: %[2]d, start: %[3]d), slice(%[1]s, axis: %[2]d, end: %[3]d), axis: %[2]d)", x.name, axis, 1+g.IntN(max(1, x.shape[axis]-1)))
		if x.shape[axis] == 1 {
			g.drop()
		}
	case 8:
		g.add(x.shape, "%[1]s * floor(stop_gradient(%[1]s) * 3.0) + sign(stop_gradient(%[1]s))", x.name)
	case 9: // integers that a gradient stops at
		g.add(x.shape, "%[1]s * cast(cast(stop_gradient(%[1]s) * 3.0, i32), f32) * 0.1 + where(%[1]s > 0.2 && !(%[1]s > 0.9), %[1]s, 0.3)", x.name)
	case 10:
		if rank < 2 {
			g.unary(x)
			return
		}
		m := x.shape[rank-2]
		letters := "abcdefgh"[:rank-2]
		g.add(append(slices.Clone(before[:rank-2]), n), "einsum(\"%[1]smn,mk->%[1]sn\", %[2]s, %[3]s)", letters, x.name, g.param(m, 3))
	case 11: // statistics of rows, used beside them
		g.add(x.shape, "(%[1]s - mean(%[1]s, axis: %[2]d, keep: true)) * rsqrt(var(%[1]s, axis: %[2]d, keep: true) + 0.1)", x.name, axis)
	case 12: // grouped queries
		if rank != 3 || n%4 != 0 {
			g.unary(x)
			return
		}
		half := fmt.Sprintf("heads(slice(%s, axis: 2, end: %d), 1)", x.name, n/2)
		g.add(x.shape, "merge(attention(rope(heads(%s, 2), base: 100.0), %s, sin(%s), causal: %t))", x.name, half, half, g.IntN(2) == 0)
		if n/2%2 != 0 {
			g.drop()
		}
	case 13:
		g.add(x.shape, "where(max(%[1]s, axis: %[2]d, keep: true) == %[1]s, %[1]s, tanh(%[1]s))", x.name, axis)
	}
}

// drop takes the last statement back.
func (g *generator) drop() {
	g.lines, g.values = g.lines[:len(g.lines)-1], g.values[:len(g.values)-1]
	g.unary(g.pick())
}
