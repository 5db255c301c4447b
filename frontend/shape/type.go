package shape

import (
	"slices"
	"strings"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types. NoDType is none, the type of a value that is in error.
const (
	NoDType DType = iota
	F32
	F64
	BF16
	F16
	I32
	I64
	Bool
)

var dtypeNames = [...]string{"?", "f32", "f64", "bf16", "f16", "i32", "i64", "bool"}

// DTypes lists the element types.
func DTypes() []DType { return []DType{F32, F64, BF16, F16, I32, I64, Bool} }

// ParseDType finds an element type by its name.
func ParseDType(name string) (DType, bool) {
	i := slices.Index(dtypeNames[1:], name)
	return DType(i + 1), i >= 0
}

func (d DType) String() string { return dtypeNames[d] }

// IsFloat tells the floating types.
func (d DType) IsFloat() bool { return d >= F32 && d <= F16 }

// IsInt tells the integer types; bool is not one.
func (d DType) IsInt() bool { return d == I32 || d == I64 }

// Type is the type of a value: a tensor, or a tuple when Elems is not nil. The zero Type is that of a value in error;
// it fits everywhere, so that one mistake is reported once.
type Type struct {
	DType DType
	Dims  []Int
	Elems []Type
}

// Tensor is a tensor type. Without dimensions it is a scalar.
func Tensor(d DType, dims ...Int) Type { return Type{DType: d, Dims: dims} }

// Tuple is a tuple type.
func Tuple(elems ...Type) Type { return Type{Elems: elems} }

// IsTensor tells a tensor type.
func (t Type) IsTensor() bool { return t.DType != NoDType }

// IsTuple tells a tuple type.
func (t Type) IsTuple() bool { return t.Elems != nil }

// IsError tells the type of a value in error. A tuple with an element in error is not one.
func (t Type) IsError() bool { return !t.IsTensor() && !t.IsTuple() }

// Rank is the number of dimensions.
func (t Type) Rank() int { return len(t.Dims) }

// Sizes are the dimensions as numbers.
func (t Type) Sizes() []int64 {
	sizes := make([]int64, len(t.Dims))
	for i, d := range t.Dims {
		sizes[i] = d.N
	}
	return sizes
}

// Elements is the number of elements, and whether they can be addressed: eight bytes for each must fit 63 bits.
func (t Type) Elements() (int64, bool) {
	n, ok := int64(8), true
	for _, d := range t.Dims {
		if n, ok = MulInt(n, d.N); !ok {
			return 0, false
		}
	}
	return n / 8, true
}

// WithDims is a tensor of the same element type with other dimensions.
func (t Type) WithDims(dims ...Int) Type { return Tensor(t.DType, dims...) }

// WithDType is a tensor of the same dimensions with another element type.
func (t Type) WithDType(d DType) Type { return Type{DType: d, Dims: t.Dims} }

// Same tells whether two types are equal as the machine sees them: by numbers. A type in error equals every type.
func Same(a, b Type) bool {
	switch {
	case a.IsError() || b.IsError():
		return true
	case a.IsTuple() || b.IsTuple():
		return len(a.Elems) == len(b.Elems) && a.IsTuple() == b.IsTuple() && slices.EqualFunc(a.Elems, b.Elems, Same)
	}
	return a.DType == b.DType && SameDims(a.Dims, b.Dims)
}

// SameDims tells whether dimensions are equal as numbers.
func SameDims(a, b []Int) bool {
	return slices.EqualFunc(a, b, func(x, y Int) bool { return x.N == y.N })
}

// InType tells a type in the names of the caller.
func (b Bindings) InType(t Type) Type {
	out := Type{DType: t.DType}
	for _, d := range t.Dims {
		out.Dims = append(out.Dims, b.In(d))
	}
	for _, e := range t.Elems {
		out.Elems = append(out.Elems, b.InType(e))
	}
	return out
}

// String is the type as a person writes it: "f32[B, S, 4*C]".
func (t Type) String() string {
	switch {
	case t.IsTuple():
		return "(" + joinTypes(t.Elems) + ")"
	case len(t.Dims) == 0:
		return t.DType.String()
	}
	return t.DType.String() + DimsString(t.Dims)
}

// DimsString is the dimensions in brackets: "[B, S, 4*C]".
func DimsString(dims []Int) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func joinTypes(types []Type) string {
	parts := make([]string, len(types))
	for i, t := range types {
		parts[i] = t.String()
	}
	return strings.Join(parts, ", ")
}
