package builtin

import (
	"slices"
	"strings"

	"blutrain/dialects/blu"
	"blutrain/frontend/shape"
	"blutrain/ir"
)

func inferLinear(c *Call) shape.Type {
	x, w := c.typ("x"), c.typ("w")
	if !c.least("x", 1) || !c.rank("w", 2, "[outputs, inputs]") || !c.sameDType("x", "w", "b") {
		return shape.Type{}
	}
	in := x.Dims[x.Rank()-1]
	if in.N != w.Dims[1].N {
		return c.clash("x", []string{"w"}, "x has %v, w expects %v", shape.Count{Of: in, Noun: "channels"}, w.Dims[1])
	}
	if c.has("b") {
		if !c.rank("b", 1, "[outputs]") {
			return shape.Type{}
		}
		if b := c.typ("b").Dims[0]; b.N != w.Dims[0].N {
			return c.clash("b", []string{"w"}, "b has %v, w gives %v", shape.Count{Of: b, Noun: "channels"}, w.Dims[0])
		}
	}
	return x.WithDims(append(slices.Clone(x.Dims[:x.Rank()-1]), w.Dims[0])...)
}

func inferMatmul(c *Call) shape.Type {
	x, y := c.typ("x"), c.typ("y")
	if !c.least("x", 2) || !c.least("y", 2) || !c.sameDType("x", "y") {
		return shape.Type{}
	}
	if y.Rank() != 2 && y.Rank() != x.Rank() {
		return c.clash("y", []string{"x"}, "x is %v, y is %v: y has 2 dimensions, or as many as x", x, y)
	}
	k, rows := x.Dims[x.Rank()-1], y.Dims[y.Rank()-2]
	if k.N != rows.N {
		return c.clash("y", []string{"x"}, "x has %v, y has %v", shape.Count{Of: k, Noun: "columns"}, shape.Count{Of: rows, Noun: "rows"})
	}
	for i, d := range y.Dims[:y.Rank()-2] {
		if d.N != x.Dims[i].N {
			return c.clash("y", []string{"x"}, "dimension %d of x is %v, of y it is %v", i, x.Dims[i], d)
		}
	}
	return x.WithDims(append(slices.Clone(x.Dims[:x.Rank()-1]), y.Dims[y.Rank()-1])...)
}

// emitLinear is dot(x, w) over the inputs, plus b along the outputs.
func emitLinear(e *Emitter) []*ir.Value {
	x, w := e.val("x"), e.val("w")
	last := len(x.Shape()) - 1
	y := e.dot(x, w, nil, nil, []int64{int64(last)}, []int64{1})
	if b := e.val("b"); b != nil {
		y = e.one(blu.Add, y, e.broadcast(b, y.Shape(), []int64{int64(last)}))
	}
	return []*ir.Value{y}
}

func emitMatmul(e *Emitter) []*ir.Value {
	x, y := e.val("x"), e.val("y")
	r := int64(len(x.Shape()))
	if len(y.Shape()) == 2 {
		return []*ir.Value{e.dot(x, y, nil, nil, []int64{r - 1}, []int64{0})}
	}
	batch := counting(int(r - 2))
	return []*ir.Value{e.dot(x, y, batch, batch, []int64{r - 1}, []int64{r - 2})}
}

// equation is a parsed einsum specification.
type equation struct {
	inputs []string
	output string
}

// parseEquation reads "ab,bc->ac". A letter stands once in each operand, and those of the result stand in some operand.
func (c *Call) parseEquation() (eq equation, ok bool) {
	left, right, found := strings.Cut(strings.ReplaceAll(c.str("spec"), " ", ""), "->")
	if !found {
		c.fail("spec", `expected operands, ->, result, such as "bsc,oc->bso"`)
		return eq, false
	}
	eq = equation{strings.Split(left, ","), right}
	for _, part := range append(slices.Clone(eq.inputs), right) {
		for i, l := range part {
			if !('a' <= l && l <= 'z' || 'A' <= l && l <= 'Z') {
				c.fail("spec", "expected letters, found %q", l)
				return eq, false
			}
			if strings.ContainsRune(part[:i], l) {
				c.fail("spec", "%c stands twice in %q", l, part)
				return eq, false
			}
		}
	}
	for _, l := range right {
		if !strings.ContainsRune(left, l) {
			c.fail("spec", "%c of the result stands in no operand", l)
			return eq, false
		}
	}
	return eq, true
}

func inferEinsum(c *Call) shape.Type {
	eq, ok := c.parseEquation()
	if !ok {
		return shape.Type{}
	}
	xs := c.arg("xs").List
	if len(xs) != len(eq.inputs) {
		return c.fail("spec", "the equation has %s, the call gives %d", plural(len(eq.inputs), "operand"), len(xs))
	}
	size, of := map[rune]shape.Int{}, map[rune]int{}
	for i, x := range xs {
		t := x.Type
		if !t.DType.IsFloat() || t.DType != xs[0].Type.DType {
			c.failAt(x.At, "operand %d is %v: operands are of one float type", i+1, t)
			return shape.Type{}
		}
		if t.Rank() != len(eq.inputs[i]) {
			c.failAt(x.At, "operand %d is %v, the equation gives it %s (%s)", i+1, t, plural(len(eq.inputs[i]), "dimension"), eq.inputs[i])
			return shape.Type{}
		}
		for j, l := range eq.inputs[i] {
			if d, seen := size[l]; seen && d.N != t.Dims[j].N {
				c.failAt(x.At, "%c is %v in operand %d and %v in operand %d", l, d, of[l]+1, t.Dims[j], i+1)
				return shape.Type{}
			} else if !seen {
				size[l], of[l] = t.Dims[j], i
			}
		}
	}
	var dims []shape.Int
	for _, l := range eq.output {
		dims = append(dims, size[l])
	}
	return xs[0].Type.WithDims(dims...)
}

// emitEinsum multiplies the operands from left to right; a letter is summed as soon as nothing after needs it.
func emitEinsum(e *Emitter) []*ir.Value {
	eq, _ := e.Call.parseEquation()
	xs := e.vals("xs")
	acc, letters := xs[0], eq.inputs[0]
	for i := 1; i <= len(xs); i++ {
		rest := eq.output + strings.Join(eq.inputs[i:], "")
		if i == len(xs) {
			acc, letters = e.sumOut(acc, letters, rest)
			break
		}
		y, yLetters := xs[i], eq.inputs[i]
		later := eq.output + strings.Join(eq.inputs[min(i+1, len(xs)):], "")
		acc, letters = e.sumOut(acc, letters, later+yLetters)
		y, yLetters = e.sumOut(y, yLetters, later+letters)
		acc, letters = e.product(acc, letters, y, yLetters, later)
	}
	perm := make([]int64, len(letters))
	for i, l := range eq.output {
		perm[i] = int64(strings.IndexRune(letters, l))
	}
	return []*ir.Value{e.transpose(acc, perm)}
}

// sumOut sums the letters of x that are not among those to keep.
func (e *Emitter) sumOut(x *ir.Value, letters, keep string) (*ir.Value, string) {
	var axes []int
	left := ""
	for i, l := range letters {
		if strings.ContainsRune(keep, l) {
			left += string(l)
		} else {
			axes = append(axes, i)
		}
	}
	if axes == nil {
		return x, letters
	}
	return e.one(blu.ReduceSum, x, e.axesAttr("axes", axes)), left
}

// product is x times y: letters of both are batch dimensions where they are kept, else contracted.
func (e *Emitter) product(x *ir.Value, xl string, y *ir.Value, yl, keep string) (*ir.Value, string) {
	var xBatch, yBatch, xSum, ySum []int64
	batch, xFree, yFree := "", "", ""
	for i, l := range xl {
		j := strings.IndexRune(yl, l)
		switch {
		case j < 0:
			xFree += string(l)
		case strings.ContainsRune(keep, l):
			batch += string(l)
			xBatch, yBatch = append(xBatch, int64(i)), append(yBatch, int64(j))
		default:
			xSum, ySum = append(xSum, int64(i)), append(ySum, int64(j))
		}
	}
	for _, l := range yl {
		if !strings.ContainsRune(xl, l) {
			yFree += string(l)
		}
	}
	return e.dot(x, y, xBatch, yBatch, xSum, ySum), batch + xFree + yFree
}
