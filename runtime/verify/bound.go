package verify

import (
	"cmp"
	"math"
	"math/rand/v2"

	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/runtime/ref"
)

// How far a result computed in float32 may be from the exact one follows from what rounding would do to it. An error e of a
// result y is within bounds when
//
//	norm(e) <= 8 sqrt(n) max(u norm(y), norm(y' - y))
//
// with u = 2^-24, the unit roundoff of float32; y' the same function in float64, but with every argument and every
// intermediate result changed by a random u or -u of itself (Monte Carlo arithmetic: Parker, 1997; and by underflow), which is what rounding
// would do to it, cancellation and all: the bound of a sum that is exactly zero follows from the size of its terms; and n the
// largest number of terms in one of its sums, since the rounding errors of a sum that is added up one after the other grow with
// the square root of their number. Bounds are not met by chance: a wrong constant, index or operation is off by orders of magnitude.
//
// Where products of precision tf32 are among a function's operations, changes are by tf32's roundoff, 2^-11, and n is 1. So it is
// with attention in bf16, which rounds what exists within it only, weights and the gradients of scores: half of bfloat16's, 2^-9.
//
// The last evaluation rounds every intermediate result to the nearest float32 instead: numbers that differ in float64 and don't in float32
// are equal there only, and a row has two greatest elements. It moves results by no more than the others, but for such choices.
//
// A result that is stored in 16 bits is rounded once more, to numbers that are up to s of themselves apart (2^-7 in bfloat16); so is one that is
// rounded to 16 bits and stored in float32, as the operands of products are for CPUs in bf16. What lies
// near the middle of two may become either; of elements that are off by as much as 8 sqrt(n) u of themselves a part p = 16 sqrt(n) u / s is
// that near, and one may always be. So the bound's square has another term, s^2 (max y^2 + p norm(y)^2): evaluations with roundings of one u hardly show it.
//
// An element that such changes make infinite or no number, or the contrary, is loose: sqrt(x - y) at x = y, say. Nothing
// follows for it, so it is left out of both norms, and counted.

// roundoff is the unit roundoff of float32.
const roundoff = 1.0 / (1 << 24)

// rounding makes evaluations with random roundings.
type rounding struct {
	random *rand.Rand
	growth float64 // the factor of the bound
	unit   float64 // by how much of itself a number is changed; 0: roundoff
	near   bool    // results are rounded to the nearest float32, and arguments, which are float32, are not changed
}

// tf32Roundoff is the unit roundoff of tf32, in which products of that precision read their operands. It is so much more than
// what sums are off by that these don't count.
const tf32Roundoff = 1.0 / (1 << 11)

// bf16Roundoff is that of bfloat16.
const bf16Roundoff = 1.0 / (1 << 8)

// unitOf is the unit roundoff of what a function computes.
func unitOf(f *ir.Op) float64 {
	unit := roundoff
	ir.Walk(f, func(op *ir.Op) ir.WalkResult {
		switch op.Attrs().Str(blu.PrecisionAttr) {
		case "tf32":
			unit = max(unit, tf32Roundoff)
		case "bf16":
			if op.Is(blu.Attention) || op.Is(blu.AttentionGrad) {
				unit = max(unit, bf16Roundoff/2)
			}
		}
		return ir.Advance
	})
	return unit
}

// Result is ref.Change's.
func (r *rounding) Result(op *ir.Op, x *ir.Tensor) *ir.Tensor {
	unit := cmp.Or(r.unit, roundoff)
	switch {
	case op == nil && r.near:
		return x
	case op == nil:
		return jittered(x, r.random, unit)
	}
	if unit == roundoff {
		r.growth = max(r.growth, growth(op))
	}
	switch {
	case !rounds(op):
		return x
	case r.near:
		return nearest(x)
	}
	x = jittered(x, r.random, unit)
	switch op.Def().Name {
	case "cross_entropy", "log_softmax": // log(1 + e) of a small e knows e to a roundoff of 1
		for i := range x.Data {
			x.Data[i] += roundoff * (2*r.random.Float64() - 1)
		}
	}
	return x
}

// Operand is ref.Change's.
func (r *rounding) Operand(_ *ir.Op, _ int, x *ir.Tensor) *ir.Tensor { return x }

var _ ref.Change = &rounding{}

// growth is the factor of the bound of an operation's results.
func growth(op *ir.Op) float64 {
	n := float64(terms(op))
	if op.Def().Name == "scatter_add" {
		// It adds in order, and often equal terms, whose errors are equal too: they grow with their number.
		return math.Max(8*math.Sqrt(n), n)
	}
	return 8 * math.Sqrt(n)
}

// rounds reports whether the results of an operation are rounded: computed, not chosen, moved or counted.
func rounds(op *ir.Op) bool {
	switch op.Def().Name {
	case "select", "gather", "pad", "concat", "slice", "constant", "iota", "max", "min", "neg", "abs", "reduce_max", "reduce_min":
		return false
	}
	return !op.Has(ir.View)
}

// smallestNormal is float32's.
const smallestNormal = 0x1p-126

// jittered is a tensor of floating-point numbers with every element changed by so much of itself, up or down, and by what
// is lost of it where float32 underflows.
func jittered(t *ir.Tensor, r *rand.Rand, unit float64) *ir.Tensor {
	if !ir.IsFloat(t.Elem) {
		return t
	}
	j := &ir.Tensor{Shape: t.Shape, Elem: t.Elem, Data: make([]float64, len(t.Data))}
	factors := [2]float64{1 + unit, 1 - unit}
	var bits uint64
	for i, v := range t.Data {
		if i%64 == 0 {
			bits = r.Uint64()
		}
		v *= factors[bits>>(i%64)&1]
		if math.Abs(v) < smallestNormal {
			v = float64(float32(v)) // underflow: a multiple of 2^-149
		}
		j.Data[i] = v
	}
	return j
}

// nearest is a tensor of floating-point numbers rounded to float32.
func nearest(t *ir.Tensor) *ir.Tensor {
	if !ir.IsFloat(t.Elem) {
		return t
	}
	y := &ir.Tensor{Shape: t.Shape, Elem: t.Elem, Data: make([]float64, len(t.Data))}
	for i, v := range t.Data {
		y.Data[i] = float64(float32(v))
	}
	return y
}

// terms is the largest number of terms in a sum that an operation adds up: at most as many elements of an operand as there
// are for each element of the smallest result, or, where it has an inner dimension that no result shows, as that is long.
func terms(op *ir.Op) int64 {
	if op.Has(ir.View) || op.Has(ir.Terminator) || op.Has(ir.Elementwise) {
		return 1
	}
	smallest := int64(math.MaxInt64)
	for _, r := range op.Results() {
		smallest = min(smallest, max(1, ir.NumElements(r.Shape())))
	}
	most := int64(1)
	for _, v := range op.Operands() {
		most = max(most, ir.NumElements(v.Shape())/smallest)
		for _, n := range v.Shape() {
			most = max(most, n)
		}
	}
	return most
}

// expected is what a result should be, and what is known of how rounding moves it.
type expected struct {
	value     []float64
	tolerance float64 // what is allowed in proportion to it in any case
	growth    float64 // 8 sqrt(n); 0 where nothing is known to be rounded
	response  float64 // the largest norm(y' - y) of the evaluations that were added
	loose     []bool  // by element; nil: none is
	spacing   float64 // of the numbers it is rounded to in the end, in proportion to them; 0: float32's
}

// spacingOf is how far apart the numbers of a 16-bit type are at most, in proportion to them; 0 of other types.
func spacingOf(t ir.Type) float64 {
	if f, ok := t.(*ir.FloatType); ok {
		switch f.Kind {
		case ir.BF16:
			return 1.0 / (1 << 7)
		case ir.F16:
			return 1.0 / (1 << 10)
		}
	}
	return 0
}

// lastSpacing is the spacing of the numbers that a function's result was rounded to last: those of its type, or of another that it
// had before it was widened or moved. What a function was given is exact, and so are the numbers nearest to it.
func lastSpacing(result *ir.Value) float64 {
	own := spacingOf(result.Elem())
	spacing, v := own, result
	for v.DefinedBy(blu.Cast) || v.Op() != nil && v.Op().Has(ir.View) {
		v = v.Op().Operand(0)
		spacing = max(spacing, spacingOf(v.Elem()))
	}
	if v.Op() == nil {
		return own
	}
	return spacing
}

// add takes note of an evaluation with roundings.
func (e *expected) add(rounded []float64) {
	sum := 0.0
	for i, y := range e.value {
		d := distance(rounded[i], y)
		if math.IsInf(d, 1) {
			if e.loose == nil {
				e.loose = make([]bool, len(e.value))
			}
			e.loose[i] = true
			continue
		}
		sum += d * d
	}
	e.response = math.Max(e.response, math.Sqrt(sum))
}

// Error is how far the elements of a result are from what they should be, and how far they may be, all in the Euclidean norm.
type Error struct {
	Elements int
	Loose    int     // elements for which nothing follows from the function in float64
	Norm     float64 // of what the others should be
	Error    float64 // of the difference
	Bound    float64 // for Error
}

// Off reports whether the error is beyond its bound.
func (e Error) Off() bool { return !(e.Error <= e.Bound) }

// Relative is the error in proportion to what should be: +Inf where that is zero and the error isn't.
func (e Error) Relative() float64 { return ratio(e.Error, e.Norm) }

// Share is the error in proportion to its bound.
func (e Error) Share() float64 { return ratio(e.Error, e.Bound) }

// of is the error of a result.
func (e *expected) of(got []float64) Error {
	r := Error{Elements: len(e.value)}
	largest := 0.0
	for i, y := range e.value {
		if e.loose != nil && e.loose[i] {
			r.Loose++
			continue
		}
		d := distance(got[i], y)
		r.Error += d * d
		if !math.IsNaN(y) && !math.IsInf(y, 0) {
			r.Norm += y * y
			largest = math.Max(largest, y*y)
		}
	}
	r.Error, r.Norm = math.Sqrt(r.Error), math.Sqrt(r.Norm)
	r.Bound = math.Max(e.tolerance*r.Norm, e.growth*math.Max(roundoff*r.Norm, e.response))
	if e.spacing > 0 && e.growth > 0 {
		near := math.Min(1, 2*e.growth*roundoff/e.spacing)
		r.Bound = math.Hypot(r.Bound, e.spacing*math.Sqrt(largest+near*r.Norm*r.Norm))
	}
	return r
}

// ratio is x / y, 0 where x is.
func ratio(x, y float64) float64 {
	if x == 0 {
		return 0
	}
	return x / y
}

// distance is 0 for equal infinities and for two that are no numbers, +Inf where only one is a number.
func distance(x, y float64) float64 {
	switch {
	case x == y, math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x), math.IsNaN(y):
		return math.Inf(1)
	}
	return math.Abs(x - y)
}
