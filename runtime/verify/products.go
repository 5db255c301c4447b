package verify

import (
	"math"
	"math/rand/v2"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/runtime/ref"
)

// narrow is an evaluation as a device makes it whose products are of tf32 or bf16: they read their operands rounded to the nearest numbers of
// that precision. All else is exact, or it is changed at random, and what products read too, by a unit of itself.
type narrow struct {
	random   *rand.Rand
	unit     float64      // 0: nothing is changed
	products bool         // it met such a product
	choices  []*ir.Tensor // what operations that choose gave, in their order
}

// Operand is ref.Change's.
func (n *narrow) Operand(op *ir.Op, i int, x *ir.Tensor) *ir.Tensor {
	f := formatOf(op)
	if f == nil || !slices.Contains(blu.ProductOperands(op), i) {
		return x
	}
	n.products = true
	return jittered(f.rounded(x), n.random, n.unit)
}

// Result is ref.Change's.
func (n *narrow) Result(op *ir.Op, x *ir.Tensor) *ir.Tensor {
	switch {
	case op == nil:
		return x
	case chooses(op):
		n.choices = append(n.choices, x)
	case n.unit > 0 && rounds(op):
		return jittered(x, n.random, n.unit)
	}
	return x
}

// nearby is an evaluation near that of a narrow one, with the same choices: what products read and give is changed at random by the
// roundoff of their precision, other results by float32's.
type nearby struct {
	random  *rand.Rand
	choices []*ir.Tensor // those that are still to come
}

// Operand is ref.Change's.
func (n *nearby) Operand(op *ir.Op, i int, x *ir.Tensor) *ir.Tensor {
	f := formatOf(op)
	if f == nil || !slices.Contains(blu.ProductOperands(op), i) {
		return x
	}
	return jittered(f.rounded(x), n.random, f.roundoff)
}

// Result is ref.Change's.
func (n *nearby) Result(op *ir.Op, x *ir.Tensor) *ir.Tensor {
	switch {
	case op == nil:
		return x
	case chooses(op):
		x, n.choices = n.choices[0], n.choices[1:]
		return x
	case !rounds(op):
		return x
	}
	unit := roundoff
	if f := formatOf(op); f != nil {
		unit = f.roundoff
	}
	return jittered(x, n.random, unit)
}

var _, _ ref.Change = &narrow{}, &nearby{}

// chooses reports whether the least change of what an operation reads may have it give something else: whole numbers, truth values among them.
func chooses(op *ir.Op) bool {
	if op.Is(blu.Floor) || op.Is(blu.Sign) {
		return true
	}
	return op.NumOperands() > 0 && ir.IsFloat(op.Operand(0).Elem()) && !ir.IsFloat(op.Result(0).Elem())
}

// format is what a precision's products read.
type format struct {
	roundoff float64
	nearest  func(float32) float32
}

// formatOf is the format of what a product reads rounded; nil: nothing is.
func formatOf(op *ir.Op) *format {
	switch op.Attrs().Str(blu.PrecisionAttr) {
	case "tf32":
		return &format{tf32Roundoff, nearestTF32}
	case "bf16":
		return &format{bf16Roundoff, nearestBF16}
	}
	return nil
}

// rounded is a tensor in a format; it is float32 before.
func (f *format) rounded(x *ir.Tensor) *ir.Tensor {
	y := &ir.Tensor{Shape: x.Shape, Elem: x.Elem, Data: make([]float64, len(x.Data))}
	for i, v := range x.Data {
		y.Data[i] = float64(f.nearest(float32(v)))
	}
	return y
}

func nearestTF32(x float32) float32 {
	u := math.Float32bits(x)
	return math.Float32frombits((u + u>>13&1 + 1<<12 - 1) &^ (1<<13 - 1))
}

func nearestBF16(x float32) float32 {
	return math.Float32frombits(uint32(ir.BF16Bits(float64(x))) << 16)
}
