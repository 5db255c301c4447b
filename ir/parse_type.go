package ir

import (
	"strconv"
	"strings"
)

// parser reads IR text. Parse is its only entrance.
type parser struct {
	text
	words  map[string]string // names kept by the IR, so that it doesn't hold on to the source
	types  map[string]Type   // by spelling, for those without nested brackets
	scope  *scope
	blocks *blocks
	// Scratch space for the parts of an operation.
	operands []operand
	attrs    []NamedAttr
	ins      []Type
	outs     []Type
	values   []*Value
}

// keep copies a piece of the source, once for each spelling.
func (p *parser) keep(s string) string {
	if w, ok := p.words[s]; ok {
		return w
	}
	s = strings.Clone(s)
	p.words[s] = s
	return s
}

// typ reads a type. Most types of a program are a few spellings over and over: those are looked up.
func (p *parser) typ() Type {
	p.skip()
	start := p.pos
	if end := p.plainType(); end > start {
		if t, ok := p.types[p.src[start:end]]; ok {
			p.pos = end
			return t
		}
	}
	p.enter()
	t := p.newType()
	p.depth--
	p.types[strings.Clone(p.src[start:p.pos])] = t
	return t
}

// plainType is the end of a type spelled word or word<shape and word>, or -1.
func (p *parser) plainType() int {
	i := p.pos
	for i < len(p.src) && (isWord(p.src[i]) || p.src[i] == '!') {
		i++
	}
	if i == len(p.src) || p.src[i] != '<' {
		return i
	}
	for i++; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '>':
			return i + 1
		case !isWord(c) && c != '?':
			return -1
		}
	}
	return -1
}

func (p *parser) newType() Type {
	c := p.ctx
	switch p.peek() {
	case '(':
		return p.functionType()
	case '!':
		return p.dialectType()
	}
	start := p.pos
	w := p.word("a type")
	switch w {
	case "index":
		return c.index
	case "none":
		return c.none
	case "tensor":
		return p.tensorType()
	case "vector":
		p.expect('<')
		shape, elem := p.shape()
		for i, d := range shape {
			if d == Dynamic {
				p.fail(start, "dimension %d of a vector must be a number", i)
			}
		}
		p.expect('>')
		return c.Vector(shape, elem)
	case "memref":
		return p.memrefType()
	}
	if t := p.scalarType(w); t != nil {
		return t
	}
	p.pos = start
	p.expected("a type")
	return nil
}

// scalarType is the floating-point or integer type spelled w, or nil.
func (p *parser) scalarType(w string) Type {
	for k, name := range floatNames {
		if w == name {
			return p.ctx.floats[k]
		}
	}
	digits, sign := strings.CutPrefix(w, "si")
	kind := Signed
	if !sign {
		if digits, sign = strings.CutPrefix(w, "ui"); sign {
			kind = Unsigned
		} else if digits, sign = strings.CutPrefix(w, "i"); sign {
			kind = Signless
		}
	}
	if !sign || digits == "" || digits[0] == '0' {
		return nil
	}
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return nil
		}
	}
	width, err := strconv.Atoi(digits)
	if err != nil || width > 64 {
		p.fail(p.pos-len(w), "integer type %s is wider than 64 bits", w)
	}
	return p.ctx.IntSigned(width, kind)
}

func (p *parser) functionType() *FunctionType {
	ins, outs := p.signature(nil, nil)
	return p.ctx.Func(ins, outs)
}

// signature reads (types) -> types and appends to the given slices.
func (p *parser) signature(ins, outs []Type) ([]Type, []Type) {
	p.expect('(')
	ins = p.typeList(ins, ')')
	p.expectStr("->")
	if p.accept('(') {
		return ins, p.typeList(outs, ')')
	}
	return ins, append(outs, p.typ())
}

// typeList reads types up to and including the closing character.
func (p *parser) typeList(ts []Type, closing byte) []Type {
	if p.accept(closing) {
		return ts
	}
	for {
		ts = append(ts, p.typ())
		if p.accept(closing) {
			return ts
		}
		p.separator(closing)
	}
}

// separator reads the comma of a list that didn't end.
func (p *parser) separator(closing byte) {
	if !p.accept(',') {
		p.expected("',' or '" + string(closing) + "'")
	}
}

func (p *parser) tensorType() Type {
	p.expect('<')
	shape, elem := p.shape()
	var encoding Attr
	if p.accept(',') {
		encoding = p.attr()
	}
	p.expect('>')
	return p.ctx.TensorEncoded(shape, elem, encoding)
}

func (p *parser) memrefType() Type {
	p.expect('<')
	shape, elem := p.shape()
	var layout, space Attr
	if p.accept(',') {
		p.skip()
		at := p.pos
		a := p.attr()
		if s, ok := a.(*StridedAttr); ok {
			if len(s.Strides) != len(shape) {
				p.fail(at, "strided layout has %d strides, the memref %d dimensions", len(s.Strides), len(shape))
			}
			layout = a
			if p.accept(',') {
				space = p.attr()
			}
		} else {
			space = a
		}
	}
	p.expect('>')
	return p.ctx.MemRefWith(shape, elem, layout, space)
}

// shape reads 2x?xf32.
func (p *parser) shape() ([]int64, Type) {
	p.skip()
	var shape []int64
	for {
		d, ok := p.dim()
		if !ok {
			return shape, p.typ()
		}
		shape = append(shape, d)
	}
}

// dim reads one dimension with its 'x'; ok is false where none stands, and the cursor stays.
func (p *parser) dim() (d int64, ok bool) {
	if p.at(0) == '?' {
		p.pos++
		if p.at(0) != 'x' {
			p.expected("'x' after a dimension")
		}
		p.pos++
		return Dynamic, true
	}
	end := p.pos
	for end < len(p.src) && isDigit(p.src[end]) {
		end++
	}
	if end == p.pos {
		return 0, false
	}
	d, err := strconv.ParseInt(p.src[p.pos:end], 10, 64)
	if err != nil {
		p.fail(p.pos, "dimension is too large: %s", p.src[p.pos:end])
	}
	p.pos = end
	if p.at(0) != 'x' {
		p.expected("'x' after a dimension")
	}
	p.pos++
	return d, true
}

// dialectType reads !dialect.name<shape and type or attributes>.
func (p *parser) dialectType() Type {
	p.pos++ // '!'
	dialect, name := p.dialectName("type")
	if p.at(0) != '<' {
		return p.ctx.DialectType(dialect, name, nil, nil)
	}
	p.pos++
	var shape []int64
	var elem Type
	if p.looksLikeShape() {
		shape, elem = p.shape()
		if !p.accept(',') {
			p.expect('>')
			return p.ctx.DialectType(dialect, name, shape, elem)
		}
	}
	params, _ := p.params(false)
	return p.ctx.DialectType(dialect, name, shape, elem, params...)
}

// looksLikeShape tells the shape at the start of a dialect type's parameters, such as 0xf32 or ?x4xf32, from an
// attribute, such as 64 : i64 or 0x7FC00000 : f32.
func (p *parser) looksLikeShape() bool {
	if p.at(0) == '?' {
		return true
	}
	n := 0
	for isDigit(p.at(n)) {
		n++
	}
	if n == 0 || p.at(n) != 'x' {
		return false
	}
	end := n + 1
	for isWord(p.at(end)) {
		end++
	}
	rest := p.src[p.pos+n+1 : p.pos+end]
	_, err := strconv.ParseUint(rest, 16, 64)
	return err != nil || p.scalarType(rest) != nil
}

// dialectName reads dialect.name after '!' or '#'.
func (p *parser) dialectName(what string) (dialect, name string) {
	w := p.peekWord()
	dialect, name, ok := strings.Cut(w, ".")
	if !ok || dialect == "" || name == "" {
		p.expected("the name of a dialect's " + what + ", as in tile.block")
	}
	p.pos += len(w)
	return p.keep(dialect), p.keep(name)
}
