// Package formats holds what the file formats share: element types with their name in each format, tensors as
// little-endian bytes, and the overflow-safe arithmetic on shapes that every reader needs before it trusts a header.
// It knows nothing of models, devices or training.
package formats

import (
	"fmt"
	"strings"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types. Invalid is the zero value, so that a forgotten type is never a valid one.
const (
	Invalid DType = iota
	Bool
	I8
	U8
	I16
	U16
	I32
	U32
	I64
	U64
	F16
	BF16
	F32
	F64
)

// names of one element type: in the IR and on command lines, in safetensors, in npy (without the byte order).
// numpy has no bfloat16; ml_dtypes stores it as two opaque bytes, which is what npy readers see.
var names = [...]struct {
	size                   int
	name, safetensors, npy string
}{
	Invalid: {0, "invalid", "", ""},
	Bool:    {1, "bool", "BOOL", "b1"},
	I8:      {1, "i8", "I8", "i1"},
	U8:      {1, "u8", "U8", "u1"},
	I16:     {2, "i16", "I16", "i2"},
	U16:     {2, "u16", "U16", "u2"},
	I32:     {4, "i32", "I32", "i4"},
	U32:     {4, "u32", "U32", "u4"},
	I64:     {8, "i64", "I64", "i8"},
	U64:     {8, "u64", "U64", "u8"},
	F16:     {2, "f16", "F16", "f2"},
	BF16:    {2, "bf16", "BF16", "V2"},
	F32:     {4, "f32", "F32", "f4"},
	F64:     {8, "f64", "F64", "f8"},
}

// Valid reports whether d is one of the element types.
func (d DType) Valid() bool { return d > Invalid && int(d) < len(names) }

// Size is the number of bytes of one element.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return names[d].size
}

// String is the name in the IR and on command lines: f32, bf16, i64, bool.
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return names[d].name
}

// Of names the type of a tensor as models write it: f32[8, 64], or f32 for a scalar.
func (d DType) Of(shape []int64) string {
	if len(shape) == 0 {
		return d.String()
	}
	return d.String() + strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
}

// Safetensors is the name in a safetensors header: F32, BF16, I64, BOOL.
func (d DType) Safetensors() string {
	if !d.Valid() {
		return ""
	}
	return names[d].safetensors
}

// Npy is the name in an npy header without the byte order: f4, V2 (bfloat16 as ml_dtypes stores it), i8, b1.
func (d DType) Npy() string {
	if !d.Valid() {
		return ""
	}
	return names[d].npy
}

// IsFloat reports whether elements are floating-point numbers.
func (d DType) IsFloat() bool { return d >= F16 && d <= F64 }

// ParseDType reads the name that String prints, and i1, the IR's name of a boolean.
func ParseDType(name string) (DType, error) {
	if name == "i1" {
		return Bool, nil
	}
	return lookup(name, "element type", DType.String)
}

// MarshalText implements encoding.TextMarshaler, for JSON.
func (d DType) MarshalText() ([]byte, error) {
	if !d.Valid() {
		return nil, fmt.Errorf("%s has no name", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *DType) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDType(string(text))
	return err
}

// ParseSafetensors reads the name that Safetensors prints.
func ParseSafetensors(name string) (DType, error) {
	return lookup(name, "safetensors dtype", DType.Safetensors)
}

// ParseNpy reads the name that Npy prints.
func ParseNpy(name string) (DType, error) {
	return lookup(name, "npy dtype", DType.Npy)
}

func lookup(name, what string, of func(DType) string) (DType, error) {
	for d := Bool; d.Valid(); d++ {
		if of(d) == name {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("%s %q is not supported", what, clip(name))
}

// clip keeps a hostile name from flooding an error message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
