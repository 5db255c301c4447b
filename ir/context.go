package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Context owns what is shared by everything compiled together: interned types, attributes and locations, and the
// registered dialects. It is not safe for concurrent use.
type Context struct {
	dialects map[string]*Dialect
	ops      map[string]*OpDef // by full name, unregistered ones included
	// AllowUnregistered makes unknown operations an opaque OpDef instead of an error.
	AllowUnregistered bool

	types map[string]Type
	attrs map[string]Attr
	locs  map[string]*fileLocs
	file  *fileLocs // the one last asked for
	multi map[string]*Location
	ids   map[any]uint64 // interned pointer to a number, for keys of composites
	key   []byte

	index   *IndexType
	none    *NoneType
	floats  [len(floatNames)]*FloatType
	ints    map[IntegerType]*IntegerType
	intAttr map[intKey]*IntegerAttr
	strAttr map[string]*StringAttr
	unit    *UnitAttr
	unknown *Location
}

type intKey struct {
	value int64
	typ   Type
}

// NewContext makes a context with the given dialects registered.
func NewContext(dialects ...*Dialect) *Context {
	c := &Context{
		dialects: map[string]*Dialect{}, ops: map[string]*OpDef{},
		types: map[string]Type{}, attrs: map[string]Attr{}, locs: map[string]*fileLocs{}, multi: map[string]*Location{},
		ids: map[any]uint64{}, ints: map[IntegerType]*IntegerType{}, intAttr: map[intKey]*IntegerAttr{}, strAttr: map[string]*StringAttr{},
		index: &IndexType{}, none: &NoneType{}, unit: &UnitAttr{}, unknown: unknownLoc,
	}
	for k := range floatNames {
		c.floats[k] = &FloatType{FloatKind(k)}
	}
	for _, d := range dialects {
		c.Register(d)
	}
	return c
}

// Register adds a dialect. Two dialects of one name are a programming error and panic.
func (c *Context) Register(d *Dialect) {
	if c.dialects[d.Name] != nil {
		panic("ir: dialect " + d.Name + " registered twice")
	}
	c.dialects[d.Name] = d
	for _, def := range d.Ops {
		if def.FullName() != d.Name+"."+def.Name {
			panic(fmt.Sprintf("ir: op %s.%s was not made with Define(%q, ...)", d.Name, def.Name, d.Name))
		}
		if c.ops[def.FullName()] != nil {
			panic("ir: op " + def.FullName() + " registered twice")
		}
		c.ops[def.FullName()] = def
	}
}

// Dialect is the registered dialect of that name, or nil.
func (c *Context) Dialect(name string) *Dialect { return c.dialects[name] }

// Dialects lists the registered dialects by name.
func (c *Context) Dialects() []*Dialect {
	var ds []*Dialect
	for _, d := range c.dialects {
		ds = append(ds, d)
	}
	slices.SortFunc(ds, func(a, b *Dialect) int { return strings.Compare(a.Name, b.Name) })
	return ds
}

// LookupOp is the definition of a full name such as "blu.add", or nil. With AllowUnregistered, an unknown name gets an
// opaque definition.
func (c *Context) LookupOp(name string) *OpDef {
	if def := c.ops[name]; def != nil {
		return def
	}
	dialect, op, ok := strings.Cut(name, ".")
	if !c.AllowUnregistered || !ok {
		return nil
	}
	def := Define(dialect, OpDef{Name: op, Traits: Unregistered})
	c.ops[name] = def
	return def
}

// Composite types and attributes are interned by a key of their parts' numbers: a tag, then for each part its length
// or number. Keys never depend on addresses.

func (c *Context) start(tag byte) { c.key = append(c.key[:0], tag) }
func (c *Context) num(n int64)    { c.key = binary.AppendVarint(c.key, n) }
func (c *Context) str(s string) {
	c.num(int64(len(s)))
	c.key = append(c.key, s...)
}
func (c *Context) ref(p any) {
	id, ok := c.ids[p]
	if !ok {
		id = uint64(len(c.ids) + 1)
		c.ids[p] = id
	}
	c.key = binary.AppendUvarint(c.key, id)
}
func (c *Context) refType(t Type) {
	if t == nil {
		c.num(0)
		return
	}
	c.ref(t)
}
func (c *Context) refAttr(a Attr) {
	if a == nil {
		c.num(0)
		return
	}
	c.ref(a)
}
func (c *Context) nums(ns []int64) {
	c.num(int64(len(ns)))
	for _, n := range ns {
		c.num(n)
	}
}
func (c *Context) refTypes(ts []Type) {
	c.num(int64(len(ts)))
	for _, t := range ts {
		c.ref(t)
	}
}
func (c *Context) refAttrs(as []Attr) {
	c.num(int64(len(as)))
	for _, a := range as {
		c.ref(a)
	}
}
func (c *Context) refNamed(as []NamedAttr) {
	c.num(int64(len(as)))
	for _, a := range as {
		c.str(a.Name)
		c.ref(a.Value)
	}
}

func internType[T Type](c *Context, make func() T) T {
	if t, ok := c.types[string(c.key)]; ok {
		return t.(T)
	}
	t := make()
	c.types[string(c.key)] = t
	return t
}

func internAttr[T Attr](c *Context, make func() T) T {
	if a, ok := c.attrs[string(c.key)]; ok {
		return a.(T)
	}
	a := make()
	c.attrs[string(c.key)] = a
	return a
}

// Index is the index type.
func (c *Context) Index() *IndexType { return c.index }

// None is the none type.
func (c *Context) None() *NoneType { return c.none }

// Float is the floating-point type of that kind.
func (c *Context) Float(k FloatKind) *FloatType { return c.floats[k] }

// F32 is the type f32.
func (c *Context) F32() *FloatType { return c.floats[F32] }

// F64 is the type f64.
func (c *Context) F64() *FloatType { return c.floats[F64] }

// Int is the signless integer type of that width in bits.
func (c *Context) Int(width int) *IntegerType { return c.IntSigned(width, Signless) }

// I1 is the type of truth values.
func (c *Context) I1() *IntegerType { return c.Int(1) }

// I32 is the type i32.
func (c *Context) I32() *IntegerType { return c.Int(32) }

// I64 is the type i64.
func (c *Context) I64() *IntegerType { return c.Int(64) }

// IntSigned is an integer type with a signedness.
func (c *Context) IntSigned(width int, sign Signedness) *IntegerType {
	k := IntegerType{width, sign}
	if t := c.ints[k]; t != nil {
		return t
	}
	t := &k
	c.ints[k] = t
	return t
}

// Tensor is tensor<shape x elem>.
func (c *Context) Tensor(shape []int64, elem Type) *TensorType {
	return c.TensorEncoded(shape, elem, nil)
}

// TensorEncoded is tensor<shape x elem, encoding>.
func (c *Context) TensorEncoded(shape []int64, elem Type, encoding Attr) *TensorType {
	c.start('t')
	c.nums(shape)
	c.ref(elem)
	c.refAttr(encoding)
	return internType(c, func() *TensorType { return &TensorType{slices.Clone(shape), elem, encoding} })
}

// Vector is vector<shape x elem>.
func (c *Context) Vector(shape []int64, elem Type) *VectorType {
	c.start('v')
	c.nums(shape)
	c.ref(elem)
	return internType(c, func() *VectorType { return &VectorType{slices.Clone(shape), elem} })
}

// MemRef is memref<shape x elem>, row-major.
func (c *Context) MemRef(shape []int64, elem Type) *MemRefType {
	return c.MemRefWith(shape, elem, nil, nil)
}

// MemRefWith is a memref with a layout and memory space, each of which may be nil. A strided layout that is row-major
// without offset is the same type as no layout.
func (c *Context) MemRefWith(shape []int64, elem Type, layout, space Attr) *MemRefType {
	if s, ok := layout.(*StridedAttr); ok && s.Offset == 0 && slices.Equal(s.Strides, RowMajor(shape)) {
		layout = nil
	}
	c.start('m')
	c.nums(shape)
	c.ref(elem)
	c.refAttr(layout)
	c.refAttr(space)
	return internType(c, func() *MemRefType { return &MemRefType{slices.Clone(shape), elem, layout, space} })
}

// RowMajor is the strides, in elements, of a dense row-major tensor.
func RowMajor(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= shape[i]
	}
	return strides
}

// Func is the function type (inputs) -> (results).
func (c *Context) Func(inputs, results []Type) *FunctionType {
	c.start('f')
	c.refTypes(inputs)
	c.refTypes(results)
	return internType(c, func() *FunctionType { return &FunctionType{slices.Clone(inputs), slices.Clone(results)} })
}

// DialectType is !dialect.name<...>; shape and elem may be nil, params empty. A first parameter that is a type is the
// element type of an empty shape, since both are written alike.
func (c *Context) DialectType(dialect, name string, shape []int64, elem Type, params ...Attr) *DialectType {
	if len(params) > 0 && elem == nil {
		if t, ok := params[0].(*TypeAttr); ok {
			shape, elem, params = nil, t.Type, params[1:]
		}
	}
	c.start('d')
	c.str(dialect)
	c.str(name)
	c.nums(shape)
	c.refType(elem)
	c.refAttrs(params)
	return internType(c, func() *DialectType {
		return &DialectType{dialect, name, slices.Clone(shape), elem, slices.Clone(params)}
	})
}

// Unit is the unit attribute.
func (c *Context) Unit() *UnitAttr { return c.unit }

// Integer is value : typ.
func (c *Context) Integer(value int64, typ Type) *IntegerAttr {
	k := intKey{value, typ}
	if a := c.intAttr[k]; a != nil {
		return a
	}
	a := &IntegerAttr{value, typ}
	c.intAttr[k] = a
	return a
}

// Int64 is value : i64.
func (c *Context) Int64(value int64) *IntegerAttr { return c.Integer(value, c.I64()) }

// Bool is true or false.
func (c *Context) Bool(v bool) *IntegerAttr {
	if v {
		return c.Integer(1, c.I1())
	}
	return c.Integer(0, c.I1())
}

// FloatAttr is value : typ, rounded to that type.
func (c *Context) FloatAttr(value float64, typ Type) *FloatAttr {
	value = DecodeElement(typ, string(EncodeElement(nil, typ, value)))
	c.start('F')
	c.key = binary.LittleEndian.AppendUint64(c.key, math.Float64bits(value))
	c.ref(typ)
	return internAttr(c, func() *FloatAttr { return &FloatAttr{value, typ} })
}

// String is a string attribute.
func (c *Context) String(s string) *StringAttr {
	if a := c.strAttr[s]; a != nil {
		return a
	}
	a := &StringAttr{s}
	c.strAttr[s] = a
	return a
}

// TypeAttr wraps a type.
func (c *Context) TypeAttr(t Type) *TypeAttr {
	c.start('T')
	c.ref(t)
	return internAttr(c, func() *TypeAttr { return &TypeAttr{t} })
}

// Array is a list of attributes.
func (c *Context) Array(elems ...Attr) *ArrayAttr {
	c.start('A')
	c.refAttrs(elems)
	return internAttr(c, func() *ArrayAttr { return &ArrayAttr{slices.Clone(elems)} })
}

// Strings is an array of string attributes.
func (c *Context) Strings(ss ...string) *ArrayAttr {
	elems := make([]Attr, len(ss))
	for i, s := range ss {
		elems[i] = c.String(s)
	}
	return c.Array(elems...)
}

// Dict is a dictionary; entries are sorted by name, and must differ in name.
func (c *Context) Dict(entries ...NamedAttr) *DictAttr {
	entries = sortedAttrs(entries)
	c.start('D')
	c.refNamed(entries)
	return internAttr(c, func() *DictAttr { return &DictAttr{entries} })
}

// Symbol is @root::@nested....
func (c *Context) Symbol(path ...string) *SymbolRefAttr {
	c.start('S')
	c.num(int64(len(path)))
	for _, p := range path {
		c.str(p)
	}
	return internAttr(c, func() *SymbolRefAttr { return &SymbolRefAttr{slices.Clone(path)} })
}

// I64s is array<i64: ...>.
func (c *Context) I64s(ns ...int64) *DenseArrayAttr { return c.DenseInts(c.I64(), ns...) }

// DenseInts is array<elem: ...> of integers or truth values.
func (c *Context) DenseInts(elem Type, ns ...int64) *DenseArrayAttr {
	c.start('I')
	c.ref(elem)
	c.nums(ns)
	return internAttr(c, func() *DenseArrayAttr { return &DenseArrayAttr{Elem: elem, Ints: slices.Clone(ns)} })
}

// DenseFloats is array<elem: ...> of floating-point numbers, rounded to that type.
func (c *Context) DenseFloats(elem Type, vs ...float64) *DenseArrayAttr {
	c.start('L')
	c.ref(elem)
	vs = slices.Clone(vs)
	for i, v := range vs {
		vs[i] = DecodeElement(elem, string(EncodeElement(nil, elem, v)))
	}
	for _, v := range vs {
		c.key = binary.LittleEndian.AppendUint64(c.key, math.Float64bits(v))
	}
	return internAttr(c, func() *DenseArrayAttr { return &DenseArrayAttr{Elem: elem, Floats: vs} })
}

// Splat is a tensor constant with one value everywhere.
func (c *Context) Splat(typ Type, value float64) *DenseAttr {
	return c.Dense(typ, EncodeElement(nil, Elem(typ), value))
}

// Dense is a tensor constant of little-endian elements, or of one element, which stands for all. A constant whose
// elements all have the same bits becomes a splat. It panics when raw has another length.
func (c *Context) Dense(typ Type, raw []byte) *DenseAttr {
	shape, ok := Shape(typ)
	size := int(ByteSize(Elem(typ)))
	n := int(NumElements(shape))
	if !ok || len(raw) != size && len(raw) != n*size {
		panic(fmt.Sprintf("ir: dense constant of type %s with %d bytes", typ, len(raw)))
	}
	splat := n > 0
	for i := size; i < len(raw) && splat; i += size {
		splat = string(raw[i:i+size]) == string(raw[:size])
	}
	if splat {
		raw = raw[:size]
	}
	if n == 0 {
		raw = nil
	}
	c.start('E')
	c.ref(typ)
	c.key = append(c.key, raw...)
	return internAttr(c, func() *DenseAttr { return &DenseAttr{typ, splat, string(raw)} })
}

// Elided is a tensor constant whose value was left out.
func (c *Context) Elided(typ Type) *ElidedAttr {
	c.start('e')
	c.ref(typ)
	return internAttr(c, func() *ElidedAttr { return &ElidedAttr{typ} })
}

// Strided is a memref layout, strides and offset in elements.
func (c *Context) Strided(strides []int64, offset int64) *StridedAttr {
	c.start('s')
	c.nums(strides)
	c.num(offset)
	return internAttr(c, func() *StridedAttr { return &StridedAttr{slices.Clone(strides), offset} })
}

// DialectAttr is #dialect.name<params, named>; the named ones keep their order.
func (c *Context) DialectAttr(dialect, name string, params []Attr, named ...NamedAttr) *DialectAttr {
	c.start('X')
	c.str(dialect)
	c.str(name)
	c.refAttrs(params)
	c.refNamed(named)
	return internAttr(c, func() *DialectAttr {
		return &DialectAttr{dialect, name, slices.Clone(params), slices.Clone(named)}
	})
}

// Unknown is the location nothing is known of.
func (c *Context) Unknown() *Location { return c.unknown }

// NameLoc is a named location; child may be nil.
func (c *Context) NameLoc(name string, child *Location) *Location {
	if child == nil {
		return c.multiLoc(LocName, name)
	}
	return c.multiLoc(LocName, name, child)
}

// CallSite is callee as inlined at caller.
func (c *Context) CallSite(callee, caller *Location) *Location {
	return c.multiLoc(LocCallSite, "", callee, caller)
}

// Fused is several places that became one; equal and unknown ones are dropped, and one alone is itself.
func (c *Context) Fused(locs ...*Location) *Location {
	var distinct []*Location
	for _, l := range locs {
		if l != nil && l != c.unknown && !slices.Contains(distinct, l) {
			distinct = append(distinct, l)
		}
	}
	switch len(distinct) {
	case 0:
		return c.unknown
	case 1:
		return distinct[0]
	}
	return c.multiLoc(LocFused, "", distinct...)
}

func (c *Context) multiLoc(kind LocKind, name string, children ...*Location) *Location {
	c.start(byte(kind))
	c.str(name)
	for _, l := range children {
		c.ref(l)
	}
	if l := c.multi[string(c.key)]; l != nil {
		return l
	}
	l := &Location{Kind: kind, File: name, Children: slices.Clone(children)}
	c.multi[string(c.key)] = l
	return l
}

func sortedAttrs(entries []NamedAttr) []NamedAttr {
	entries = slices.Clone(entries)
	byName := func(a, b NamedAttr) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(entries, byName) {
		slices.SortStableFunc(entries, byName)
	}
	for i := 1; i < len(entries); i++ {
		if entries[i].Name == entries[i-1].Name {
			panic("ir: attribute " + entries[i].Name + " given twice")
		}
	}
	return entries
}
