package ir

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// Attr is a compile-time constant attached to an operation. Attributes are immutable and interned in a Context.
type Attr interface {
	String() string
	appendTo(b []byte) []byte
	isAttr()
}

// AttrType is the type of the constant an attribute is, or nil for attributes without one.
func AttrType(a Attr) Type {
	switch a := a.(type) {
	case *IntegerAttr:
		return a.Type
	case *FloatAttr:
		return a.Type
	case *DenseAttr:
		return a.Type
	case *ElidedAttr:
		return a.Type
	}
	return nil
}

// NamedAttr is one entry of an operation's attributes, which are sorted by name.
type NamedAttr struct {
	Name  string
	Value Attr
}

// UnitAttr says something by being there.
type UnitAttr struct{}

// IntegerAttr is an integer or, with type i1, true or false.
type IntegerAttr struct {
	Value int64
	Type  Type
}

// FloatAttr is a floating-point number, printed exactly.
type FloatAttr struct {
	Value float64
	Type  Type
}

// StringAttr is a string of bytes.
type StringAttr struct{ Value string }

// TypeAttr is a type used as an attribute.
type TypeAttr struct{ Type Type }

// ArrayAttr is a list of attributes.
type ArrayAttr struct{ Elems []Attr }

// DictAttr is a sorted list of named attributes.
type DictAttr struct{ Entries []NamedAttr }

// SymbolRefAttr refers to a symbol: @root or @root::@nested.
type SymbolRefAttr struct{ Path []string }

// DenseArrayAttr is array<i64: 1, 2>. Integer and i1 elements are in Ints, floating-point ones in Floats.
type DenseArrayAttr struct {
	Elem   Type
	Ints   []int64
	Floats []float64
}

// DenseAttr is dense<...> : tensor<...>. Raw holds the elements little-endian in row-major order, one element when
// Splat; an i1 takes a byte.
type DenseAttr struct {
	Type  Type
	Splat bool
	Raw   string
}

// ElidedAttr stands for a constant left out of a dump: dense_resource<__elided__> : tensor<...>. It has a type and no
// value; a module that has one can't be compiled on.
type ElidedAttr struct{ Type Type }

// StridedAttr is a memref layout: strided<[768, 1], offset: 64>, in elements.
type StridedAttr struct {
	Strides []int64
	Offset  int64
}

// DialectAttr is #dialect.name<...>: positional parameters, then named ones.
type DialectAttr struct {
	Dialect, Name string
	Params        []Attr
	Named         []NamedAttr
}

func (*UnitAttr) isAttr()       {}
func (*IntegerAttr) isAttr()    {}
func (*FloatAttr) isAttr()      {}
func (*StringAttr) isAttr()     {}
func (*TypeAttr) isAttr()       {}
func (*ArrayAttr) isAttr()      {}
func (*DictAttr) isAttr()       {}
func (*SymbolRefAttr) isAttr()  {}
func (*DenseArrayAttr) isAttr() {}
func (*DenseAttr) isAttr()      {}
func (*ElidedAttr) isAttr()     {}
func (*StridedAttr) isAttr()    {}
func (*DialectAttr) isAttr()    {}

func (a *UnitAttr) String() string       { return "unit" }
func (a *IntegerAttr) String() string    { return string(a.appendTo(nil)) }
func (a *FloatAttr) String() string      { return string(a.appendTo(nil)) }
func (a *StringAttr) String() string     { return string(a.appendTo(nil)) }
func (a *TypeAttr) String() string       { return a.Type.String() }
func (a *ArrayAttr) String() string      { return string(a.appendTo(nil)) }
func (a *DictAttr) String() string       { return string(a.appendTo(nil)) }
func (a *SymbolRefAttr) String() string  { return string(a.appendTo(nil)) }
func (a *DenseArrayAttr) String() string { return string(a.appendTo(nil)) }
func (a *DenseAttr) String() string      { return string(a.appendTo(nil)) }
func (a *ElidedAttr) String() string     { return string(a.appendTo(nil)) }
func (a *StridedAttr) String() string    { return string(a.appendTo(nil)) }
func (a *DialectAttr) String() string    { return string(a.appendTo(nil)) }

func (a *UnitAttr) appendTo(b []byte) []byte { return append(b, "unit"...) }

func (a *IntegerAttr) appendTo(b []byte) []byte {
	if isBool(a.Type) {
		return strconv.AppendBool(b, a.Value != 0)
	}
	b = appendInt(b, a.Value, a.Type)
	b = append(b, " : "...)
	return a.Type.appendTo(b)
}

// appendInt writes an integer of type t, whose bits are those of v.
func appendInt(b []byte, v int64, t Type) []byte {
	if i, ok := t.(*IntegerType); ok && i.Sign == Unsigned {
		return strconv.AppendUint(b, uint64(v), 10)
	}
	return strconv.AppendInt(b, v, 10)
}

func isBool(t Type) bool {
	i, ok := t.(*IntegerType)
	return ok && i.Width == 1 && i.Sign == Signless
}

func (a *FloatAttr) appendTo(b []byte) []byte {
	b = appendFloat(b, a.Value, a.Type)
	b = append(b, " : "...)
	return a.Type.appendTo(b)
}

// appendFloat writes a literal that reads back as the same bits: shortest decimal with a point and an exponent, or
// the bits in hexadecimal for infinities and NaNs, which have no decimal spelling.
func appendFloat(b []byte, v float64, t Type) []byte {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return appendFloatBits(b, v, t)
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'e', -1, floatBits(t))
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = slices.Insert(b, start+bytes.IndexByte(b[start:], 'e'), '.', '0')
	}
	return b
}

// floatBits is the precision in which decimals of type t are written and read: that of the type where Go has it. The
// narrower types' values are exact in either.
func floatBits(t Type) int {
	if f, ok := t.(*FloatType); ok && f.Kind == F32 {
		return 32
	}
	return 64
}

func appendFloatBits(b []byte, v float64, t Type) []byte {
	const digits = "0123456789ABCDEF"
	raw := EncodeElement(nil, t, v)
	b = append(b, "0x"...)
	for i := len(raw) - 1; i >= 0; i-- {
		b = append(b, digits[raw[i]>>4], digits[raw[i]&15])
	}
	return b
}

func (a *StringAttr) appendTo(b []byte) []byte { return appendQuoted(b, a.Value) }

// appendQuoted writes MLIR's string literal: printable ASCII as it is, the rest as \HH.
func appendQuoted(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			b = append(b, `\"`...)
		case c == '\\':
			b = append(b, `\\`...)
		case c >= 0x20 && c < 0x7f:
			b = append(b, c)
		default:
			b = append(b, '\\', digits[c>>4], digits[c&15])
		}
	}
	return append(b, '"')
}

func (a *TypeAttr) appendTo(b []byte) []byte { return a.Type.appendTo(b) }

func (a *ArrayAttr) appendTo(b []byte) []byte {
	b = append(b, '[')
	b = appendAttrs(b, a.Elems)
	return append(b, ']')
}

func appendAttrs(b []byte, as []Attr) []byte {
	for i, e := range as {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = e.appendTo(b)
	}
	return b
}

func (a *DictAttr) appendTo(b []byte) []byte { return appendDict(b, a.Entries) }

func appendDict(b []byte, entries []NamedAttr) []byte {
	b = append(b, '{')
	for i, e := range entries {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendNamed(b, e)
	}
	return append(b, '}')
}

func appendNamed(b []byte, e NamedAttr) []byte {
	b = appendAttrName(b, e.Name)
	if _, unit := e.Value.(*UnitAttr); unit {
		return b
	}
	b = append(b, " = "...)
	return e.Value.appendTo(b)
}

func appendAttrName(b []byte, name string) []byte {
	if isBareID(name) {
		return append(b, name...)
	}
	return appendQuoted(b, name)
}

// isBareID reports whether s can be written without quotes as an attribute name: [A-Za-z_][A-Za-z0-9_$.]*.
func isBareID(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '$' || c == '.')) {
			return false
		}
	}
	return s != ""
}

func (a *SymbolRefAttr) appendTo(b []byte) []byte {
	for i, p := range a.Path {
		if i > 0 {
			b = append(b, "::"...)
		}
		b = appendSymbol(b, p)
	}
	return b
}

// Root is the outermost name.
func (a *SymbolRefAttr) Root() string { return a.Path[0] }

// appendSymbol writes @name, quoted where it is no bare identifier.
func appendSymbol(b []byte, name string) []byte {
	b = append(b, '@')
	if isBareID(name) {
		return append(b, name...)
	}
	return appendQuoted(b, name)
}

func (a *DenseArrayAttr) appendTo(b []byte) []byte {
	b = append(b, "array<"...)
	b = a.Elem.appendTo(b)
	n := len(a.Ints) + len(a.Floats)
	for i := range n {
		if i == 0 {
			b = append(b, ": "...)
		} else {
			b = append(b, ", "...)
		}
		switch {
		case isBool(a.Elem):
			b = strconv.AppendBool(b, a.Ints[i] != 0)
		case len(a.Floats) > 0:
			b = appendFloat(b, a.Floats[i], a.Elem)
		default:
			b = appendInt(b, a.Ints[i], a.Elem)
		}
	}
	return append(b, '>')
}

func (a *DenseAttr) appendTo(b []byte) []byte {
	shape, _ := Shape(a.Type)
	elem := Elem(a.Type)
	b = append(b, "dense<"...)
	size := int(ByteSize(elem))
	switch {
	case a.Splat:
		b = appendElement(b, elem, a.Raw)
	case len(a.Raw) == 0:
	case len(a.Raw) <= 64*size:
		b = appendNested(b, shape, elem, a.Raw, size)
	default:
		b = append(b, `"0x`...)
		const digits = "0123456789ABCDEF"
		for i := 0; i < len(a.Raw); i++ {
			b = append(b, digits[a.Raw[i]>>4], digits[a.Raw[i]&15])
		}
		b = append(b, '"')
	}
	b = append(b, "> : "...)
	return a.Type.appendTo(b)
}

func appendNested(b []byte, shape []int64, elem Type, raw string, size int) []byte {
	if len(shape) == 0 {
		return appendElement(b, elem, raw)
	}
	b = append(b, '[')
	step := int(NumElements(shape[1:])) * size
	for i := range int(shape[0]) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendNested(b, shape[1:], elem, raw[i*step:(i+1)*step], size)
	}
	return append(b, ']')
}

func appendElement(b []byte, elem Type, raw string) []byte {
	switch {
	case isBool(elem):
		return strconv.AppendBool(b, raw[0] != 0)
	case IsFloat(elem):
		return appendFloat(b, DecodeElement(elem, raw), elem)
	}
	return appendInt(b, DecodeInt(elem, raw), elem)
}

func (a *ElidedAttr) appendTo(b []byte) []byte {
	b = append(b, "dense_resource<__elided__> : "...)
	return a.Type.appendTo(b)
}

func (a *StridedAttr) appendTo(b []byte) []byte {
	b = append(b, "strided<["...)
	for i, s := range a.Strides {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendDim(b, s)
	}
	b = append(b, ']')
	if a.Offset != 0 {
		b = append(b, ", offset: "...)
		b = appendDim(b, a.Offset)
	}
	return append(b, '>')
}

func (a *DialectAttr) appendTo(b []byte) []byte {
	b = append(b, '#')
	b = append(b, a.Dialect...)
	b = append(b, '.')
	b = append(b, a.Name...)
	if len(a.Params)+len(a.Named) == 0 {
		return b
	}
	b = append(b, '<')
	b = appendAttrs(b, a.Params)
	for i, e := range a.Named {
		if i > 0 || len(a.Params) > 0 {
			b = append(b, ", "...)
		}
		b = appendAttrName(b, e.Name)
		b = append(b, " = "...)
		b = e.Value.appendTo(b)
	}
	return append(b, '>')
}

// EncodeElement appends the little-endian bytes of v as an element of type t, rounded to nearest even.
func EncodeElement(b []byte, t Type, v float64) []byte {
	switch t := t.(type) {
	case *FloatType:
		switch t.Kind {
		case F64:
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case F32, TF32:
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case BF16:
			return binary.LittleEndian.AppendUint16(b, BF16Bits(v))
		case F16:
			return binary.LittleEndian.AppendUint16(b, F16Bits(v))
		}
	case *IntegerType, *IndexType:
		return EncodeInt(b, t, int64(v))
	}
	panic("ir: no elements of type " + t.String())
}

// EncodeInt appends the little-endian bytes of the integer v as an element of the integer or index type t.
func EncodeInt(b []byte, t Type, v int64) []byte {
	for range ByteSize(t) {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

// DecodeElement reads one element of type t from the start of raw. Integers are sign-extended unless unsigned or i1,
// and rounded beyond 2^53.
func DecodeElement(t Type, raw string) float64 {
	f, ok := t.(*FloatType)
	if !ok {
		v := DecodeInt(t, raw)
		if i, ok := t.(*IntegerType); ok && i.Sign == Unsigned {
			return float64(uint64(v))
		}
		return float64(v)
	}
	u := loadBits(raw[:ByteSize(t)])
	switch f.Kind {
	case F64:
		return math.Float64frombits(u)
	case F32, TF32:
		return float64(math.Float32frombits(uint32(u)))
	case BF16:
		return float64(math.Float32frombits(uint32(u) << 16))
	}
	return F16Value(uint16(u))
}

// DecodeInt reads one element of the integer or index type t from the start of raw, sign-extended unless unsigned or
// i1.
func DecodeInt(t Type, raw string) int64 {
	size := int(ByteSize(t))
	u := loadBits(raw[:size])
	if i, ok := t.(*IntegerType); ok && (i.Sign == Unsigned || i.Width == 1) {
		return int64(u)
	}
	shift := 64 - 8*size
	return int64(u<<shift) >> shift
}

// loadBits reads a little-endian number of up to eight bytes.
func loadBits(raw string) uint64 {
	var u uint64
	for i := len(raw) - 1; i >= 0; i-- {
		u = u<<8 | uint64(raw[i])
	}
	return u
}
