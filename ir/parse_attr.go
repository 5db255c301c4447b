package ir

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
)

// attr reads an attribute.
func (p *parser) attr() Attr {
	p.enter()
	a := p.newAttr()
	p.depth--
	return a
}

func (p *parser) newAttr() Attr {
	c := p.ctx
	switch ch := p.peek(); {
	case ch == '"':
		return c.String(p.keep(p.quoted()))
	case ch == '[':
		p.pos++
		return c.Array(p.attrList(']')...)
	case ch == '{':
		return c.Dict(p.dict(nil)...)
	case ch == '@':
		return p.symbolRef()
	case ch == '#':
		return p.dialectAttr()
	case ch == '-' || isDigit(ch):
		return p.number()
	case ch == '!' || ch == '(':
		return c.TypeAttr(p.typ())
	}
	start := p.pos
	switch w := p.peekWord(); w {
	case "true", "false":
		p.pos += len(w)
		return c.Bool(w == "true")
	case "unit":
		p.pos += len(w)
		return c.unit
	case "array":
		p.pos += len(w)
		return p.denseArray()
	case "dense":
		p.pos += len(w)
		return p.dense(start)
	case "dense_resource":
		p.pos += len(w)
		return p.elided(start)
	case "strided":
		p.pos += len(w)
		return p.strided()
	case "":
		p.expected("an attribute")
	}
	if !p.startsType() {
		p.expected("an attribute")
	}
	return c.TypeAttr(p.typ())
}

// startsType reports whether the word at the cursor is the start of a type.
func (p *parser) startsType() bool {
	switch w := p.peekWord(); w {
	case "tensor", "vector", "memref", "index", "none":
		return true
	default:
		return p.scalarType(w) != nil
	}
}

// attrList reads attributes up to and including the closing character.
func (p *parser) attrList(closing byte) []Attr {
	var as []Attr
	if p.accept(closing) {
		return nil
	}
	for {
		as = append(as, p.attr())
		if p.accept(closing) {
			return as
		}
		p.separator(closing)
	}
}

// dict reads {name = attr, name} and appends to as, without duplicates.
func (p *parser) dict(as []NamedAttr) []NamedAttr {
	p.expect('{')
	if p.accept('}') {
		return as
	}
	for {
		p.skip()
		at := p.pos
		a := p.namedAttr()
		for i := range as {
			if as[i].Name == a.Name {
				p.fail(at, "attribute %s is given twice", a.Name)
			}
		}
		as = append(as, a)
		if p.accept('}') {
			return as
		}
		p.separator('}')
	}
}

func (p *parser) namedAttr() NamedAttr {
	var name string
	if p.peek() == '"' {
		if name = p.keep(p.quoted()); name == "" {
			p.fail(p.pos-2, "expected an attribute name, found an empty one")
		}
	} else {
		name = p.keep(p.word("an attribute name"))
	}
	if !p.accept('=') {
		return NamedAttr{name, p.ctx.unit}
	}
	return NamedAttr{name, p.attr()}
}

func (p *parser) symbolRef() Attr {
	path := []string{p.symbolName()}
	for p.acceptStr("::") {
		path = append(path, p.symbolName())
	}
	return p.ctx.Symbol(path...)
}

// symbolName reads @name or @"name".
func (p *parser) symbolName() string {
	p.expect('@')
	if p.at(0) == '"' {
		at := p.pos
		name := p.keep(p.quoted())
		if name == "" {
			p.fail(at, "expected the name of a symbol, found an empty one")
		}
		return name
	}
	w := p.peekWord()
	if w == "" {
		p.expected("the name of a symbol")
	}
	p.pos += len(w)
	return p.keep(w)
}

func (p *parser) dialectAttr() Attr {
	p.pos++ // '#'
	dialect, name := p.dialectName("attribute")
	if p.at(0) != '<' {
		return p.ctx.DialectAttr(dialect, name, nil)
	}
	p.pos++
	params, named := p.params(true)
	return p.ctx.DialectAttr(dialect, name, params, named...)
}

// params reads parameters up to '>': attributes, then, where allowed, name = attribute.
func (p *parser) params(names bool) (params []Attr, named []NamedAttr) {
	if p.accept('>') {
		return nil, nil
	}
	for {
		if names && p.startsName() {
			named = append(named, p.namedAttr())
		} else if len(named) > 0 {
			p.expected("a named parameter after a named one")
		} else {
			params = append(params, p.attr())
		}
		if p.accept('>') {
			return params, named
		}
		p.separator('>')
	}
}

// startsName reports whether a named parameter comes next: a word or string followed by '='.
func (p *parser) startsName() bool {
	p.skip()
	start := p.pos
	defer func() { p.pos = start }()
	if p.peek() == '"' {
		p.quoted()
	} else {
		p.pos += len(p.peekWord())
	}
	return p.pos > start && p.peek() == '='
}

// literal is the number at the cursor as it is written: sign, digits, and whether it is decimal with a point or
// hexadecimal.
func (p *parser) literal() (s string, float, hexadecimal bool) {
	p.skip()
	start := p.pos
	if p.at(0) == '-' {
		p.pos++
	}
	if p.at(0) == '0' && p.at(1) == 'x' && isHex(p.at(2)) {
		for p.pos += 2; isHex(p.at(0)); {
			p.pos++
		}
		return p.src[start:p.pos], false, true
	}
	if !isDigit(p.at(0)) {
		p.expected("a number")
	}
	p.passDigits()
	if p.at(0) == '.' {
		float = true
		p.pos++
		p.passDigits()
		if e := p.at(0); e == 'e' || e == 'E' {
			n := 1
			if s := p.at(1); s == '+' || s == '-' {
				n = 2
			}
			if isDigit(p.at(n)) {
				p.pos += n
				p.passDigits()
			}
		}
	}
	return p.src[start:p.pos], float, false
}

func (p *parser) passDigits() {
	for isDigit(p.at(0)) {
		p.pos++
	}
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// number reads a number with its type; without one it is an i64 or f64.
func (p *parser) number() Attr {
	at := p.pos
	lit, float, hexadecimal := p.literal()
	var t Type
	switch {
	case p.accept(':'):
		p.skip()
		typeAt := p.pos
		t = p.typ()
		if _, float := t.(*FloatType); !float && !isIntegerType(t) {
			p.fail(typeAt, "a number has an integer, index or floating-point type, not %s", t)
		}
	case float:
		t = p.ctx.F64()
	default:
		t = p.ctx.I64()
	}
	if _, ok := t.(*FloatType); ok {
		return p.ctx.FloatAttr(p.floatValue(at, lit, float, hexadecimal, t), t)
	}
	return p.ctx.Integer(p.intValue(at, lit, float, t), t)
}

func isIntegerType(t Type) bool {
	switch t.(type) {
	case *IntegerType, *IndexType:
		return true
	}
	return false
}

func (p *parser) floatValue(at int, lit string, float, hexadecimal bool, t Type) float64 {
	if hexadecimal {
		size := int(ByteSize(t))
		bits, err := strconv.ParseUint(strings.TrimPrefix(lit, "0x"), 16, 8*size)
		if err != nil {
			p.fail(at, "%s is not the %d bytes of a number of type %s", lit, size, t)
		}
		raw := make([]byte, size)
		for i := range raw {
			raw[i] = byte(bits >> (8 * i))
		}
		return DecodeElement(t, string(raw))
	}
	if !float {
		p.fail(at, "expected a decimal point in a number of type %s, found %s", t, lit)
	}
	v, err := strconv.ParseFloat(lit, floatBits(t))
	if err != nil || math.IsInf(DecodeElement(t, string(EncodeElement(nil, t, v))), 0) {
		p.fail(at, "%s is out of the range of type %s", lit, t)
	}
	return v
}

func (p *parser) intValue(at int, lit string, float bool, t Type) int64 {
	if float {
		p.fail(at, "%s is not an integer, as type %s wants", lit, t)
	}
	width, sign := 64, Signed
	if i, ok := t.(*IntegerType); ok {
		width, sign = i.Width, i.Sign
	}
	digits, base := lit, 10
	if h, ok := strings.CutPrefix(lit, "0x"); ok {
		digits, base = h, 16
	}
	if v, err := strconv.ParseInt(digits, base, width); err == nil && (sign != Unsigned || v >= 0) {
		if width == 1 { // -1 is 1 in one bit
			return v & 1
		}
		return v
	}
	u, err := strconv.ParseUint(digits, base, width)
	if err != nil || sign == Signed && base == 10 {
		p.fail(at, "%s is out of the range of type %s", lit, t)
	}
	if sign == Unsigned || width == 1 {
		return int64(u)
	}
	shift := 64 - width
	return int64(u<<shift) >> shift
}

// boolOrInt reads one element of an integer type, true and false for i1.
func (p *parser) boolOrInt(t Type) int64 {
	if isBool(t) {
		switch {
		case p.acceptWord("true"):
			return 1
		case p.acceptWord("false"):
			return 0
		}
		p.expected("true or false")
	}
	p.skip()
	at := p.pos
	lit, float, _ := p.literal()
	return p.intValue(at, lit, float, t)
}

func (p *parser) floatElement(t Type) float64 {
	p.skip()
	at := p.pos
	lit, float, hexadecimal := p.literal()
	return p.floatValue(at, lit, float, hexadecimal, t)
}

// denseArray reads <i64: 1, 2> after array.
func (p *parser) denseArray() Attr {
	p.expect('<')
	at := p.pos
	elem := p.typ()
	_, float := elem.(*FloatType)
	if _, ok := elem.(*IntegerType); !ok && !float {
		p.fail(at, "an array has elements of an integer or floating-point type, not %s", elem)
	}
	var ints []int64
	var floats []float64
	if p.accept(':') {
		for {
			if float {
				floats = append(floats, p.floatElement(elem))
			} else {
				ints = append(ints, p.boolOrInt(elem))
			}
			if p.peek() == '>' {
				break
			}
			p.separator('>')
		}
	}
	p.expect('>')
	if float {
		return p.ctx.DenseFloats(elem, floats...)
	}
	return p.ctx.DenseInts(elem, ints...)
}

// dense reads <...> : type after dense, which starts at offset at. The elements come before the type that says how to
// read them, so that it is read first.
func (p *parser) dense(at int) Attr {
	p.expect('<')
	body := p.pos
	p.passDense(at)
	p.expect('>')
	p.expect(':')
	p.skip()
	typeAt := p.pos
	t := p.typ()
	shape, elem := p.denseType(typeAt, t)
	end := p.pos
	p.pos = body
	var raw []byte
	switch p.peek() {
	case '"':
		raw = p.hexElements(elem, shape)
	case '>':
		if NumElements(shape) != 0 {
			p.fail(p.pos, "expected %d elements of %s, found none", NumElements(shape), t)
		}
		raw = []byte{}
	case '[':
		raw = p.nested(raw, shape, elem, t)
	default:
		raw = p.element(raw, elem)
		if NumElements(shape) == 0 {
			raw = []byte{}
		}
	}
	if p.peek() != '>' {
		p.expected("'>' after the elements of a constant")
	}
	p.pos = end
	return p.ctx.Dense(t, raw)
}

// maxElements bounds the size of a type with a constant, in elements.
const maxElements = 1 << 40

// denseType checks that constants of type t can be.
func (p *parser) denseType(at int, t Type) ([]int64, Type) {
	shape, ok := Shape(t)
	if !ok {
		p.fail(at, "a constant has a type with a shape, not %s", t)
	}
	elem := Elem(t)
	if _, float := elem.(*FloatType); !float && !isIntegerType(elem) {
		p.fail(at, "a constant has elements of an integer, index or floating-point type, not %s", elem)
	}
	if !boundedShape(shape) {
		p.fail(at, "a constant has known dimensions and at most 2^40 elements, not the shape of %s", t)
	}
	return shape, elem
}

// boundedShape reports whether all dimensions are known and their product is at most maxElements.
func boundedShape(shape []int64) bool {
	n := int64(1)
	for _, d := range shape {
		if d == Dynamic || d > maxElements {
			return false
		}
		if d == 0 {
			return !slices.Contains(shape, Dynamic)
		}
		if n *= d; n > maxElements {
			return false
		}
	}
	return true
}

// passDense moves to the '>' that closes a constant; its elements have no brackets of that kind.
func (p *parser) passDense(at int) {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case '>':
			return
		case '"':
			p.quoted()
		default:
			p.pos++
		}
	}
	p.fail(at, "constant without end: expected '>'")
}

func (p *parser) hexElements(elem Type, shape []int64) []byte {
	at := p.pos
	s, ok := strings.CutPrefix(p.quoted(), "0x")
	if !ok {
		p.fail(at, `expected "0x..."`)
	}
	raw, err := hex.DecodeString(s)
	if err != nil {
		p.fail(at, "expected an even number of hexadecimal digits")
	}
	size := ByteSize(elem)
	if n := int64(len(raw)); n != size && n != size*NumElements(shape) {
		p.fail(at, "expected %d bytes, one for each element or for all, found %d", size*NumElements(shape), n)
	}
	if isBool(elem) {
		for _, b := range raw {
			if b > 1 {
				p.fail(at, "expected bytes 0 and 1 for elements of type i1, found %d", b)
			}
		}
	}
	return raw
}

func (p *parser) nested(raw []byte, shape []int64, elem, t Type) []byte {
	if len(shape) == 0 {
		return p.element(raw, elem)
	}
	if p.peek() != '[' {
		p.expected("'[' that starts a row of " + t.String())
	}
	at := p.pos
	p.pos++
	n := int64(0)
	for p.peek() != ']' {
		if n > 0 {
			p.separator(']')
		}
		if n++; n > shape[0] {
			break
		}
		raw = p.nested(raw, shape[1:], elem, t)
	}
	if n != shape[0] {
		p.fail(at, "expected %d entries in this row of %s, found %s", shape[0], t, countFound(n, shape[0]))
	}
	p.expect(']')
	return raw
}

func countFound(n, want int64) string {
	if n > want {
		return "more"
	}
	return strconv.FormatInt(n, 10)
}

func (p *parser) element(raw []byte, elem Type) []byte {
	if _, ok := elem.(*FloatType); ok {
		return EncodeElement(raw, elem, p.floatElement(elem))
	}
	return EncodeInt(raw, elem, p.boolOrInt(elem))
}

func (p *parser) elided(at int) Attr {
	p.expect('<')
	if !p.acceptWord("__elided__") {
		p.fail(p.pos, "expected __elided__: other resources are not read")
	}
	p.expect('>')
	p.expect(':')
	p.skip()
	typeAt := p.pos
	t := p.typ()
	p.denseType(typeAt, t)
	return p.ctx.Elided(t)
}

func (p *parser) strided() Attr {
	p.expect('<')
	p.expect('[')
	var strides []int64
	for !p.accept(']') {
		if len(strides) > 0 {
			p.separator(']')
		}
		strides = append(strides, p.stride())
	}
	offset := int64(0)
	if p.accept(',') {
		if !p.acceptWord("offset") {
			p.expected("offset")
		}
		p.expect(':')
		offset = p.stride()
	}
	p.expect('>')
	return p.ctx.Strided(strides, offset)
}

// stride reads a number, which may be negative, or '?'.
func (p *parser) stride() int64 {
	if p.accept('?') {
		return Dynamic
	}
	if p.accept('-') {
		return -p.digits("a stride")
	}
	return p.digits("a stride, an offset or '?'")
}
