// Package kinds holds the type constraints that the tables of several dialects share: named sets of types such as
// "floating-point tensor". It knows types only, no operation. The constraints are constants in all but name: nothing
// changes them.
package kinds

import (
	"math"
	"math/bits"

	"blutrain/ir"
)

// Tensors of any rank. Shapes are static, and the bytes of every tensor can be counted in 63 bits.
var (
	AnyTensor    = tensorOf("tensor", func(ir.Type) bool { return true })
	FloatTensor  = tensorOf("floating-point tensor", isFloat)
	IntTensor    = tensorOf("integer tensor", isInt)
	BoolTensor   = tensorOf("tensor of truth values (i1)", isBool)
	NumberTensor = tensorOf("tensor of numbers", func(t ir.Type) bool { return isFloat(t) || isInt(t) })
)

// Tensors without dimensions.
var (
	AnyScalar   = scalarOf("scalar tensor", func(ir.Type) bool { return true })
	FloatScalar = scalarOf("floating-point scalar tensor", isFloat)
	IntScalar   = scalarOf("integer scalar tensor", isInt)
	BoolScalar  = scalarOf("scalar tensor of a truth value (i1)", isBool)
)

// Any accepts every type.
var Any = ir.Constraint{Doc: "any type", OK: func(ir.Type) bool { return true }}

func tensorOf(doc string, elem func(ir.Type) bool) ir.Constraint {
	return ir.Constraint{Doc: doc, OK: func(t ir.Type) bool {
		tt, ok := t.(*ir.TensorType)
		return ok && countable(tt.Shape) && elem(tt.Elem)
	}}
}

func scalarOf(doc string, elem func(ir.Type) bool) ir.Constraint {
	return ir.Constraint{Doc: doc, OK: func(t ir.Type) bool {
		tt, ok := t.(*ir.TensorType)
		return ok && len(tt.Shape) == 0 && elem(tt.Elem)
	}}
}

// countable reports whether the shape is static and its size in bytes, at eight an element, fits an int64. Zero
// dimensions do not excuse the others: strides are products of them.
func countable(shape []int64) bool {
	size := uint64(8)
	for _, d := range shape {
		if d < 0 {
			return false
		}
		hi, lo := bits.Mul64(size, uint64(max(d, 1)))
		if hi != 0 || lo > math.MaxInt64 {
			return false
		}
		size = lo
	}
	return true
}

func isFloat(t ir.Type) bool { _, ok := t.(*ir.FloatType); return ok }

func isInt(t ir.Type) bool {
	i, ok := t.(*ir.IntegerType)
	return ok && i.Width > 1 && i.Sign == ir.Signless
}

func isBool(t ir.Type) bool {
	i, ok := t.(*ir.IntegerType)
	return ok && i.Width == 1 && i.Sign == ir.Signless
}

// Scalars of builtin types, not in a tensor.
var (
	Index     = ir.Constraint{Doc: "index", OK: isIndex}
	I1        = ir.Constraint{Doc: "truth value (i1)", OK: isBool}
	IndexLike = ir.Constraint{Doc: "index or signless integer", OK: func(t ir.Type) bool { return isIndex(t) || isInt(t) }}
)

// Numbers and vectors and tensors of them, of any shape: what arith works on.
var (
	IntegerLike = ir.Constraint{Doc: "signless integer or index, or a vector or tensor of them", OK: likeOf(func(t ir.Type) bool {
		return isIndex(t) || isInt(t) || isBool(t)
	})}
	FloatLike = ir.Constraint{Doc: "floating-point number, or a vector or tensor of them", OK: likeOf(isFloat)}
	BoolLike  = ir.Constraint{Doc: "truth value (i1), or a vector or tensor of them", OK: likeOf(isBool)}
)

func isIndex(t ir.Type) bool { _, ok := t.(*ir.IndexType); return ok }

// likeOf accepts what elem accepts and vectors and tensors of that.
func likeOf(elem func(ir.Type) bool) func(ir.Type) bool {
	return func(t ir.Type) bool {
		switch t.(type) {
		case *ir.TensorType, *ir.VectorType:
			return elem(ir.Elem(t))
		}
		return elem(t)
	}
}
