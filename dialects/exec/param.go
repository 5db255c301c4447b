package exec

import (
	"fmt"

	"blutrain/dialects/mem"
	"blutrain/ir"
)

// Param is a parameter of a kernel: an address, a tensor map that describes what is there to the copy engine, or a number,
// by which kernels differ that share their code.
type Param struct {
	Ref    int   // the reference of the launch it is about; -1: the launch's scratch memory
	Offset int64 // bytes from there
	Map    *Map
	Value  *int64 // the number; nil: it is an address or a tensor map
}

// Map describes boxes of a tensor that the copy engine moves to shared memory under the 128-byte swizzle. The contiguous
// dimension comes first.
type Map struct {
	Elem    string  // bf16, f16, f32, or tf32: float32 that is rounded on the way
	Dims    []int64 // elements
	Strides []int64 // bytes, of all dimensions but the first
	Box     []int64 // elements
}

// elemBytes is the size of what a map's elements are in memory.
var elemBytes = map[string]int64{"bf16": 2, "f16": 2, "f32": 4, "tf32": 4}

// Attr is the parameter as an attribute: {ref = 0}, {scratch = 4096}, {ref = 1, map = "bf16", dims = ...}, {value = 7}.
func (p Param) Attr(c *ir.Context) ir.Attr {
	if p.Value != nil {
		return c.Dict(ir.NamedAttr{Name: "value", Value: c.Int64(*p.Value)})
	}
	var entries []ir.NamedAttr
	add := func(name string, a ir.Attr) { entries = append(entries, ir.NamedAttr{Name: name, Value: a}) }
	if p.Map != nil {
		add("box", c.I64s(p.Map.Box...))
		add("dims", c.I64s(p.Map.Dims...))
		add("map", c.String(p.Map.Elem))
	}
	if p.Ref >= 0 {
		if p.Offset != 0 {
			add("offset", c.Int64(p.Offset))
		}
		add("ref", c.Int64(int64(p.Ref)))
	} else {
		add("scratch", c.Int64(p.Offset))
	}
	if p.Map != nil {
		add("strides", c.I64s(p.Map.Strides...))
	}
	return c.Dict(entries...)
}

// Params reads a list of parameters from an attribute; nil where there is none.
func Params(op *ir.Op, name string) ([]Param, error) {
	a := op.Attr(name)
	if a == nil {
		return nil, nil
	}
	list, ok := a.(*ir.ArrayAttr)
	if !ok {
		return nil, fmt.Errorf("%s is no list", name)
	}
	params := make([]Param, len(list.Elems))
	for i, e := range list.Elems {
		d, ok := e.(*ir.DictAttr)
		if !ok {
			return nil, fmt.Errorf("parameter %d is no dictionary", i)
		}
		a := ir.Attrs(d.Entries)
		p := Param{Ref: -1}
		if v, ok := a.Int("value"); ok {
			if len(d.Entries) > 1 {
				return nil, fmt.Errorf("parameter %d is a number and something else", i)
			}
			p.Value = &v
			params[i] = p
			continue
		}
		scratch, inScratch := a.Int("scratch")
		ref, isRef := a.Int("ref")
		if inScratch == isRef {
			return nil, fmt.Errorf("parameter %d names a reference or a place in scratch memory, one of them", i)
		}
		p.Offset = scratch
		if isRef {
			p.Ref, p.Offset = int(ref), a.IntOr("offset", 0)
		}
		if elem := a.Str("map"); elem != "" {
			p.Map = &Map{Elem: elem, Dims: a.Ints("dims"), Strides: a.Ints("strides"), Box: a.Ints("box")}
		}
		params[i] = p
	}
	return params, nil
}

// check reports why a parameter isn't one, of a kernel with references of these types and so many bytes of scratch memory.
func (p Param) check(refs []ir.Attr, scratch int64) error {
	if p.Value != nil {
		return nil
	}
	if p.Ref >= len(refs) || p.Ref < -1 || p.Offset < 0 {
		return fmt.Errorf("offset %d in reference %d of %d", p.Offset, p.Ref, len(refs))
	}
	bytes := scratch
	if p.Ref >= 0 {
		bytes = reach(refs[p.Ref].(*ir.TypeAttr).Type.(*ir.MemRefType))
	}
	left := bytes - p.Offset
	if p.Map != nil {
		if err := p.Map.check(); err != nil {
			return err
		}
		left = without(left, p.Map.Dims[0], elemBytes[p.Map.Elem])
		for i, s := range p.Map.Strides {
			left = without(left, p.Map.Dims[i+1]-1, s)
		}
	}
	if left < 0 {
		return fmt.Errorf("it ends beyond the %d bytes that there are", bytes)
	}
	return nil
}

// without is what is left of some bytes without n pieces; negative where they are more, however many.
func without(left, n, each int64) int64 {
	if each > 0 && n > left/each {
		return -1
	}
	return left - n*each
}

// reach is how many bytes a reference's elements span.
func reach(t *ir.MemRefType) int64 {
	strides, _ := mem.Layout(t)
	n := int64(1)
	for i, s := range strides {
		n += (t.Shape[i] - 1) * s
	}
	return n * ir.ByteSize(t.Elem)
}

func (m *Map) check() error {
	size := elemBytes[m.Elem]
	if size == 0 {
		return fmt.Errorf("no elements of type %q in tensor maps", m.Elem)
	}
	if n := len(m.Dims); n < 1 || n > 5 || len(m.Strides) != n-1 || len(m.Box) != n {
		return fmt.Errorf("a tensor map of %d dimensions, %d strides, a box of %d", n, len(m.Strides), len(m.Box))
	}
	for i, n := range m.Dims {
		if n < 1 || n > 1<<32 || m.Box[i] < 1 || m.Box[i] > 256 {
			return fmt.Errorf("a tensor map over %v in boxes of %v; a box has 1 to 256 in each dimension", m.Dims, m.Box)
		}
	}
	if row := m.Box[0] * size; row%16 != 0 || row > 128 {
		return fmt.Errorf("boxes with rows of %d bytes; a multiple of 16, at most 128", row)
	}
	for _, s := range m.Strides {
		if s < 1 || s%16 != 0 || s >= 1<<40 {
			return fmt.Errorf("a stride of %d bytes; a multiple of 16", s)
		}
	}
	return nil
}
