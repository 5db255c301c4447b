package host

import (
	"unsafe"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
)

// call is the memory that lasts for one call: inputs, outputs and scalars by space and name.
type call struct {
	d      *device
	places map[slotName][]byte
	pieces []memory // what is guarded, to be freed
}

// Call runs a function.
func (d *device) Call(fn string, in map[string]runtime.Array, scalars runtime.Scalars) (map[string]runtime.Array, error) {
	return d.Trace(fn, in, scalars, nil)
}

// Trace runs a function and shows its steps to a visitor, unless it is nil.
func (d *device) Trace(fn string, in map[string]runtime.Array, scalars runtime.Scalars, visit runtime.Visitor) (map[string]runtime.Array, error) {
	info, err := d.options.CheckCall(d.manifest, fn, in, scalars)
	if err != nil {
		return nil, err
	}
	if err := d.refresher.Calls(d, fn); err != nil {
		return nil, err
	}
	f := d.functions[fn]
	if d.options.Poison {
		poison(d.arena.bytes[:f.arena])
	}
	c := &call{d: d, places: map[slotName][]byte{}}
	defer c.free()
	if err := c.bind(info, in, scalars); err != nil {
		return nil, err
	}
	if err := d.run(f, c.places, visit); err != nil {
		return nil, err
	}
	return c.outputs(info), nil
}

// bind gives inputs, outputs and scalars memory.
func (c *call) bind(info *artifact.Function, in map[string]runtime.Array, scalars runtime.Scalars) error {
	for _, v := range info.Inputs {
		b, err := c.place("input", v)
		if err != nil {
			return err
		}
		copy(b, in[v.Name].Data)
	}
	for _, v := range info.Scalars {
		b, err := c.place("scalar", v)
		if err != nil {
			return err
		}
		encodeScalar(b, v.DType, c.d.options.Scalar(c.d.manifest, scalars, v.Name))
	}
	for _, v := range info.Outputs {
		b, err := c.place("output", v)
		if err != nil {
			return err
		}
		if c.d.options.Poison {
			poison(b)
		}
	}
	return nil
}

// place is memory for one input, output or scalar.
func (c *call) place(space string, v artifact.Value) ([]byte, error) {
	key := slotName{space, v.Name}
	if !c.d.options.Guard {
		c.places[key] = aligned(v.Bytes())
		return c.places[key], nil
	}
	m, err := allocate(v.Bytes(), true, space+" "+v.Name)
	c.places[key], c.pieces = m.bytes, append(c.pieces, m)
	return m.bytes, err
}

// outputs is what the call gives back.
func (c *call) outputs(info *artifact.Function) map[string]runtime.Array {
	out := map[string]runtime.Array{}
	for _, v := range info.Outputs {
		data := c.places[slotName{"output", v.Name}]
		if c.d.options.Guard {
			data = append([]byte{}, data...)
		}
		out[v.Name] = runtime.Array{DType: v.DType, Shape: v.Shape, Data: data}
	}
	return out
}

func (c *call) free() {
	for _, m := range c.pieces {
		_ = m.free() // only what debugging mapped
	}
}

// aligned is n bytes whose first is at a multiple of eight: kernels read them as wider types.
func aligned(n int64) []byte {
	words := make([]uint64, max(1, (n+7)/8))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

// encodeScalar writes a number as the scalar's type.
func encodeScalar(dst []byte, t formats.DType, x float64) {
	c := ir.NewContext()
	elem := ir.Type(c.Int(8 * t.Size()))
	switch t {
	case formats.Bool:
		elem = c.I1()
	case formats.F16:
		elem = c.Float(ir.F16)
	case formats.BF16:
		elem = c.Float(ir.BF16)
	case formats.F32:
		elem = c.F32()
	case formats.F64:
		elem = c.F64()
	}
	copy(dst, ir.EncodeElement(nil, elem, x))
}

// storedType is the stored element type of an IR type; Invalid where tensors have none of it.
func storedType(t ir.Type) formats.DType {
	switch t := t.(type) {
	case *ir.FloatType:
		return map[ir.FloatKind]formats.DType{ir.F64: formats.F64, ir.F32: formats.F32, ir.F16: formats.F16, ir.BF16: formats.BF16}[t.Kind]
	case *ir.IntegerType:
		return map[int]formats.DType{1: formats.Bool, 8: formats.I8, 16: formats.I16, 32: formats.I32, 64: formats.I64}[t.Width]
	}
	return formats.Invalid
}

// poison fills memory with bits that are NaN as float32, float64 and bfloat16, and an index far out of range as int32.
func poison(b []byte) {
	for at := copy(b, []byte{0xc0, 0x7f}); at > 0 && at < len(b); at *= 2 {
		copy(b[at:], b[:at])
	}
}

func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
