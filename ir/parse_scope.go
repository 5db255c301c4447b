package ir

import "strconv"

// scope is the values that can be named inside one isolated operation.
type scope struct {
	outer *scope
	nums  []named          // by number, for names such as %12
	names map[string]named // for the others
	// defined is the names in order of definition, so that those of a region can be forgotten at its end.
	defined []string
	// forward is the values used before their definition, by name.
	forward map[string][]*forwardRef
}

// named is what one name stands for: count consecutive results of an operation, or one block argument.
type named struct {
	value *Value
	count int32
}

// forwardRef stands for one value until it is defined.
type forwardRef struct {
	name  string
	index int
	value *Value
	at    int
}

// maxNumber is how far beyond the numbers seen so far a number may be to be kept in the slice.
const maxNumber = 1 << 16

// number is the number of a name such as 12, or -1.
func number(name string) int {
	if len(name) > 8 || name[0] == '0' && len(name) > 1 {
		return -1
	}
	n := 0
	for i := range len(name) {
		if !isDigit(name[i]) {
			return -1
		}
		n = 10*n + int(name[i]-'0')
	}
	return n
}

func (s *scope) lookup(name string) (named, bool) {
	if n := number(name); n >= 0 && n < len(s.nums) && s.nums[n].value != nil {
		return s.nums[n], true
	}
	v, ok := s.names[name]
	return v, ok
}

func (s *scope) set(name string, v named) {
	s.defined = append(s.defined, name)
	n := number(name)
	switch {
	case n < 0 || n > 2*len(s.nums)+maxNumber:
		s.names[name] = v
		return
	case n >= len(s.nums):
		s.nums = append(s.nums, make([]named, n+1-len(s.nums))...)
	}
	s.nums[n] = v
}

// forget removes the names defined since there were n of them.
func (s *scope) forget(n int) {
	for _, name := range s.defined[n:] {
		if i := number(name); i >= 0 && i < len(s.nums) {
			s.nums[i] = named{}
		}
		delete(s.names, name)
	}
	s.defined = s.defined[:n]
}

func (p *parser) pushScope() {
	p.scope = &scope{outer: p.scope, names: map[string]named{}, forward: map[string][]*forwardRef{}}
}

// popScope ends the scope of an isolated operation: what was used in it must have been defined.
func (p *parser) popScope() {
	var first *forwardRef
	for _, fs := range p.scope.forward { // the earliest: the order of the map doesn't matter
		for _, f := range fs {
			if first == nil || f.at < first.at {
				first = f
			}
		}
	}
	if first != nil {
		p.fail(first.at, "%%%s is used but never defined", first.spelling())
	}
	p.scope = p.scope.outer
}

func (f *forwardRef) spelling() string {
	if f.index > 0 {
		return f.name + "#" + strconv.Itoa(f.index)
	}
	return f.name
}

// define gives a name to values.
func (p *parser) define(at int, name string, v *Value, count int) {
	if _, ok := p.scope.lookup(name); ok {
		p.fail(at, "%%%s is defined twice", name)
	}
	p.scope.set(name, named{v, int32(count)})
	fs := p.scope.forward[name]
	if len(fs) == 0 {
		return
	}
	delete(p.scope.forward, name)
	for _, f := range fs {
		if f.index >= count {
			p.fail(f.at, "%%%s has %d results: there is no #%d", name, count, f.index)
		}
		def := nth(v, f.index)
		if def.typ != f.value.typ {
			p.fail(f.at, "%%%s is used with type %s but defined with type %s", f.spelling(), f.value.typ, def.typ)
		}
		f.value.ReplaceAllUsesWith(def)
	}
}

// nth is the value index places after v among the results v belongs to.
func nth(v *Value, index int) *Value {
	if index == 0 {
		return v
	}
	return &v.op.results[int(v.index)+index]
}

// operand is a use of a value by name: %name or %name#index.
type operand struct {
	at    int
	name  string
	index int
}

// resolve is the value an operand names, with the type its signature gives.
func (p *parser) resolve(o operand, t Type) *Value {
	if d, ok := p.scope.lookup(o.name); ok {
		if o.index >= int(d.count) {
			p.fail(o.at, "%%%s has %d results: there is no #%d", o.name, d.count, o.index)
		}
		v := nth(d.value, o.index)
		if v.typ != t {
			p.fail(o.at, "%%%s has type %s, the signature says %s", o.name, v.typ, t)
		}
		return v
	}
	for _, f := range p.scope.forward[o.name] {
		if f.index == o.index {
			if f.value.typ != t {
				p.fail(o.at, "%%%s is used with type %s and, before, with type %s", f.spelling(), t, f.value.typ)
			}
			return f.value
		}
	}
	f := &forwardRef{p.keep(o.name), o.index, &Value{typ: t}, o.at}
	p.scope.forward[f.name] = append(p.scope.forward[f.name], f)
	return f.value
}

// blocks is the block names of one region.
type blocks struct {
	region *Region
	names  map[string]*blockName
	outer  *blocks
}

type blockName struct {
	block *Block
	at    int // of the first mention
	found bool
	used  bool
}

// block is the block that a label names, which may come later.
func (p *parser) block(at int, name string) *blockName {
	if p.blocks == nil {
		p.fail(at, "^%s outside of a region", name)
	}
	b := p.blocks.names[name]
	if b == nil {
		b = &blockName{block: &Block{region: p.blocks.region}, at: at}
		p.blocks.names[name] = b
	}
	return b
}
