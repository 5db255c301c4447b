package ir

import (
	"strconv"
	"strings"
)

// Type is the type of a value. Types are immutable and interned in a Context: two types are equal exactly when their
// pointers are. String gives MLIR's spelling.
type Type interface {
	String() string
	appendTo(b []byte) []byte
	isType()
}

// Dynamic marks a dimension, stride or offset whose value is not known at compile time; printed "?".
const Dynamic = int64(-1 << 63)

// Signedness of an integer type. Signless, printed "i32", is what arithmetic uses.
type Signedness uint8

const (
	Signless Signedness = iota
	Signed
	Unsigned
)

// IntegerType is iN, siN or uiN.
type IntegerType struct {
	Width int
	Sign  Signedness
}

// FloatKind names a floating-point format.
type FloatKind uint8

const (
	F64 FloatKind = iota
	F32
	TF32
	F16
	BF16
)

var floatNames = [...]string{F64: "f64", F32: "f32", TF32: "tf32", F16: "f16", BF16: "bf16"}

// FloatType is f64, f32, tf32, f16 or bf16.
type FloatType struct{ Kind FloatKind }

// IndexType is MLIR's index: an integer as wide as an address.
type IndexType struct{}

// NoneType is the unit type.
type NoneType struct{}

// FunctionType is (inputs) -> (results).
type FunctionType struct{ Inputs, Results []Type }

// TensorType is tensor<shape x elem, encoding>: an immutable value. Encoding may be nil.
type TensorType struct {
	Shape    []int64
	Elem     Type
	Encoding Attr
}

// VectorType is vector<shape x elem>.
type VectorType struct {
	Shape []int64
	Elem  Type
}

// MemRefType is memref<shape x elem, layout, space>: a place in memory. Layout is nil (row-major, offset 0) or a
// *StridedAttr; Space may be nil.
type MemRefType struct {
	Shape  []int64
	Elem   Type
	Layout Attr
	Space  Attr
}

// DialectType is !dialect.name, with <...> where it has parameters: optionally a shape and element type first
// (!tile.block<64x32xf32>), then attributes separated by commas.
type DialectType struct {
	Dialect, Name string
	Shape         []int64
	Elem          Type // nil: no shape, Params alone
	Params        []Attr
}

func (*IntegerType) isType()  {}
func (*FloatType) isType()    {}
func (*IndexType) isType()    {}
func (*NoneType) isType()     {}
func (*FunctionType) isType() {}
func (*TensorType) isType()   {}
func (*VectorType) isType()   {}
func (*MemRefType) isType()   {}
func (*DialectType) isType()  {}

func (t *IntegerType) String() string  { return string(t.appendTo(nil)) }
func (t *FloatType) String() string    { return floatNames[t.Kind] }
func (t *IndexType) String() string    { return "index" }
func (t *NoneType) String() string     { return "none" }
func (t *FunctionType) String() string { return string(t.appendTo(nil)) }
func (t *TensorType) String() string   { return string(t.appendTo(nil)) }
func (t *VectorType) String() string   { return string(t.appendTo(nil)) }
func (t *MemRefType) String() string   { return string(t.appendTo(nil)) }
func (t *DialectType) String() string  { return string(t.appendTo(nil)) }

func (t *IntegerType) appendTo(b []byte) []byte {
	switch t.Sign {
	case Signed:
		b = append(b, 's')
	case Unsigned:
		b = append(b, 'u')
	}
	b = append(b, 'i')
	return strconv.AppendInt(b, int64(t.Width), 10)
}
func (t *FloatType) appendTo(b []byte) []byte { return append(b, floatNames[t.Kind]...) }
func (t *IndexType) appendTo(b []byte) []byte { return append(b, "index"...) }
func (t *NoneType) appendTo(b []byte) []byte  { return append(b, "none"...) }

func (t *FunctionType) appendTo(b []byte) []byte {
	b = append(b, '(')
	b = appendTypes(b, t.Inputs)
	b = append(b, ") -> "...)
	if len(t.Results) == 1 {
		if _, nested := t.Results[0].(*FunctionType); !nested {
			return t.Results[0].appendTo(b)
		}
	}
	b = append(b, '(')
	b = appendTypes(b, t.Results)
	return append(b, ')')
}

func (t *TensorType) appendTo(b []byte) []byte {
	b = append(b, "tensor<"...)
	b = appendShape(b, t.Shape)
	b = t.Elem.appendTo(b)
	if t.Encoding != nil {
		b = append(b, ", "...)
		b = t.Encoding.appendTo(b)
	}
	return append(b, '>')
}

func (t *VectorType) appendTo(b []byte) []byte {
	b = append(b, "vector<"...)
	b = appendShape(b, t.Shape)
	b = t.Elem.appendTo(b)
	return append(b, '>')
}

func (t *MemRefType) appendTo(b []byte) []byte {
	b = append(b, "memref<"...)
	b = appendShape(b, t.Shape)
	b = t.Elem.appendTo(b)
	if t.Layout != nil {
		b = append(b, ", "...)
		b = t.Layout.appendTo(b)
	}
	if t.Space != nil {
		b = append(b, ", "...)
		b = t.Space.appendTo(b)
	}
	return append(b, '>')
}

func (t *DialectType) appendTo(b []byte) []byte {
	b = append(b, '!')
	b = append(b, t.Dialect...)
	b = append(b, '.')
	b = append(b, t.Name...)
	if t.Elem == nil && len(t.Params) == 0 {
		return b
	}
	b = append(b, '<')
	if t.Elem != nil {
		b = appendShape(b, t.Shape)
		b = t.Elem.appendTo(b)
	}
	for i, p := range t.Params {
		if i > 0 || t.Elem != nil {
			b = append(b, ", "...)
		}
		b = p.appendTo(b)
	}
	return append(b, '>')
}

func appendTypes(b []byte, ts []Type) []byte {
	for i, t := range ts {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = t.appendTo(b)
	}
	return b
}

// appendShape writes "2x?x" for [2, Dynamic].
func appendShape(b []byte, shape []int64) []byte {
	for _, d := range shape {
		b = appendDim(b, d)
		b = append(b, 'x')
	}
	return b
}

func appendDim(b []byte, d int64) []byte {
	if d == Dynamic {
		return append(b, '?')
	}
	return strconv.AppendInt(b, d, 10)
}

// ShapeString is "2x3x4" for [2, 3, 4] and "scalar" for no dimensions: for messages.
func ShapeString(shape []int64) string {
	if len(shape) == 0 {
		return "scalar"
	}
	return strings.TrimSuffix(string(appendShape(nil, shape)), "x")
}

// Shape is the shape of a shaped type; ok is false for other types.
func Shape(t Type) (shape []int64, ok bool) {
	switch t := t.(type) {
	case *TensorType:
		return t.Shape, true
	case *VectorType:
		return t.Shape, true
	case *MemRefType:
		return t.Shape, true
	case *DialectType:
		return t.Shape, t.Elem != nil
	}
	return nil, false
}

// Elem is the element type of a shaped type, and t itself for others.
func Elem(t Type) Type {
	switch t := t.(type) {
	case *TensorType:
		return t.Elem
	case *VectorType:
		return t.Elem
	case *MemRefType:
		return t.Elem
	case *DialectType:
		if t.Elem != nil {
			return t.Elem
		}
	}
	return t
}

// NumElements is the product of the dimensions, 1 for none. The dimensions must be static.
func NumElements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// IsFloat reports whether t, or its element type, is a floating-point type.
func IsFloat(t Type) bool { _, ok := Elem(t).(*FloatType); return ok }

// IsInteger reports whether t, or its element type, is an integer type (of any width, i1 included) or index.
func IsInteger(t Type) bool {
	switch Elem(t).(type) {
	case *IntegerType, *IndexType:
		return true
	}
	return false
}

// ByteSize is the size of one element of type t in memory, in bytes; i1 takes one byte. It panics for types without one.
func ByteSize(t Type) int64 {
	switch t := t.(type) {
	case *IntegerType:
		return int64(t.Width+7) / 8
	case *FloatType:
		return [...]int64{F64: 8, F32: 4, TF32: 4, F16: 2, BF16: 2}[t.Kind]
	case *IndexType:
		return 8
	}
	panic("ir: ByteSize of " + t.String())
}
