package ir

import (
	"slices"
	"strings"

	"blutrain/internal/near"
)

// Parse reads a module: one builtin.module, or operations that are put into one. It reads the short and the generic form
// of every operation, described at Print. An operation without a location is given its place in the text. file names the
// source in locations and errors. The error is an *Error at the place where the text was not as expected; what the text
// says is not checked beyond that: Verify does.
func Parse(c *Context, file string, src []byte) (module *Op, err error) {
	p := &parser{
		text:  text{ctx: c, file: file, src: string(src), line: 1},
		words: map[string]string{}, types: map[string]Type{},
	}
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(bailout)
			if !ok {
				panic(r)
			}
			module, err = nil, b.err
		}
	}()
	return p.module(), nil
}

// ParseType reads a type, and nothing else.
func ParseType(c *Context, s string) (Type, error) {
	return parseAlone(c, s, (*parser).typ)
}

// ParseAttr reads an attribute, and nothing else.
func ParseAttr(c *Context, s string) (Attr, error) {
	return parseAlone(c, s, (*parser).attr)
}

func parseAlone[T any](c *Context, s string, read func(*parser) T) (v T, err error) {
	p := &parser{text: text{ctx: c, src: s, line: 1}, words: map[string]string{}, types: map[string]Type{}}
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(bailout)
			if !ok {
				panic(r)
			}
			err = b.err
		}
	}()
	v = read(p)
	if p.skip(); p.pos < len(p.src) {
		p.expected("the end")
	}
	return v, nil
}

func (p *parser) module() *Op {
	def := p.ctx.LookupOp("builtin.module")
	if def == nil {
		p.fail(0, "the dialect builtin, which has the module, is not registered")
	}
	m := p.ctx.NewOp(def, OpState{Regions: 1, Loc: p.loc(0)})
	body := m.nested.regions[0].AddBlock()
	p.pushScope()
	for p.peek() != 0 || p.pos < len(p.src) {
		body.Append(p.op())
	}
	p.popScope()
	if only := body.first; only != nil && only == body.last && only.def == def {
		only.Remove()
		return only
	}
	return m
}

// resultName is a name before '=' and the number of results it stands for.
type resultName struct {
	at    int
	name  string
	count int
}

// op reads one operation.
func (p *parser) op() *Op {
	p.skip()
	start := p.pos
	var first resultName
	var more []resultName
	total := 0
	if p.peek() == '%' {
		first = p.resultName()
		total = first.count
		for p.accept(',') {
			r := p.resultName()
			more = append(more, r)
			total += r.count
		}
		p.expect('=')
		p.skip()
	}
	at := p.pos
	var op *Op
	if p.peek() == '"' {
		op = p.generic(at)
	} else {
		op = p.short(at)
	}
	if len(op.results) != total && total > 0 {
		p.fail(start, "%s has %d results, %d are named", op.def.full, len(op.results), total)
	}
	op.loc = p.trailingLoc(at)
	if total > 0 {
		p.define(first.at, first.name, &op.results[0], first.count)
		n := first.count
		for _, r := range more {
			p.define(r.at, r.name, &op.results[n], r.count)
			n += r.count
		}
	}
	return op
}

func (p *parser) resultName() resultName {
	p.skip()
	r := resultName{at: p.pos, count: 1}
	p.expect('%')
	r.name = p.suffix("a name after '%'")
	if number(r.name) < 0 {
		r.name = p.keep(r.name)
	}
	if p.accept(':') {
		p.skip()
		n := p.digits("a number of results")
		if n < 1 || n > 1<<20 {
			p.fail(r.at, "%%%s stands for %d results: expected 1 or more", r.name, n)
		}
		r.count = int(n)
	}
	return r
}

// trailingLoc reads loc(...), or makes a location of the offset where the operation or argument stands.
func (p *parser) trailingLoc(at int) *Location {
	p.skip()
	if !strings.HasPrefix(p.src[p.pos:], "loc(") {
		return p.loc(at)
	}
	p.pos += len("loc(")
	l := p.location()
	p.expect(')')
	return l
}

func (p *parser) location() *Location {
	p.enter()
	defer func() { p.depth-- }()
	switch {
	case p.peek() == '"':
		return p.fileOrName()
	case p.acceptWord("unknown"):
		return p.ctx.unknown
	case p.acceptWord("callsite"):
		p.expect('(')
		callee := p.location()
		if !p.acceptWord("at") {
			p.expected("at")
		}
		caller := p.location()
		p.expect(')')
		return p.ctx.CallSite(callee, caller)
	case p.acceptWord("fused"):
		p.expect('[')
		var locs []*Location
		for !p.accept(']') {
			if len(locs) > 0 {
				p.separator(']')
			}
			locs = append(locs, p.location())
		}
		return p.ctx.Fused(locs...)
	}
	p.expected("a location: \"file\":line:column, \"name\", unknown, callsite or fused")
	return nil
}

func (p *parser) fileOrName() *Location {
	name := p.keep(p.quoted())
	if p.accept(':') {
		line := p.lineNumber("a line")
		p.expect(':')
		return p.ctx.FileLoc(name, line, p.lineNumber("a column"))
	}
	if !p.accept('(') {
		return p.ctx.NameLoc(name, nil)
	}
	child := p.location()
	p.expect(')')
	return p.ctx.NameLoc(name, child)
}

func (p *parser) lineNumber(what string) int {
	p.skip()
	at := p.pos
	n := p.digits(what)
	if n > 1<<31-1 {
		p.fail(at, "%s is too large: %d", what, n)
	}
	return int(n)
}

// lookup is the definition of an operation's name.
func (p *parser) lookup(at int, name string) *OpDef {
	if def := p.ctx.LookupOp(name); def != nil {
		return def
	}
	dialect, _, ok := strings.Cut(name, ".")
	if !ok {
		p.fail(at, "expected an operation, such as func.func, found %q", name)
	}
	d := p.ctx.dialects[dialect]
	if d == nil {
		var names []string
		for _, d := range p.ctx.Dialects() {
			names = append(names, d.Name)
		}
		p.fail(at, "unknown dialect %s of operation %s%s", dialect, name, near.Suggest(dialect, names))
	}
	var names []string
	for _, def := range d.Ops {
		names = append(names, def.full)
	}
	p.fail(at, "unknown operation %s%s", name, near.Suggest(name, names))
	return nil
}

// generic reads "name"(operands)[successors] <{properties}> (regions) {attributes} : signature.
func (p *parser) generic(at int) *Op {
	def := p.lookup(at, p.quoted())
	base := len(p.operands)
	p.expect('(')
	if !p.accept(')') {
		p.operandList()
		p.expect(')')
	}
	s := OpState{Successors: p.successors()}
	var attrs []NamedAttr
	if p.acceptStr("<") {
		attrs = p.dict(attrs)
		p.expect('>')
	}
	op := p.ctx.NewOp(def, OpState{})
	if p.accept('(') {
		p.enterRegions(def)
		for {
			p.region(op.AddRegion(), nil, false)
			if p.accept(')') {
				break
			}
			p.separator(')')
		}
		p.leaveRegions(def)
	}
	if p.peek() == '{' {
		attrs = p.dict(attrs)
	}
	s.Attrs = attrs
	p.finish(op, s, at, base, false)
	return op
}

// finish reads the signature and gives op what was read before.
func (p *parser) finish(op *Op, s OpState, at, base int, mayOmit bool) {
	operands := p.operands[base:]
	var ins, outs []Type
	if mayOmit && len(operands) == 0 && p.peek() != ':' {
		ins, outs = nil, nil
	} else {
		p.expect(':')
		p.skip()
		sigAt := p.pos
		p.ins, p.outs = p.signature(p.ins[:0], p.outs[:0])
		ins, outs = p.ins, p.outs
		if len(ins) != len(operands) {
			p.fail(sigAt, "the signature of %s has %d operand types for %d operands", op.def.full, len(ins), len(operands))
		}
	}
	p.values = p.values[:0]
	for i, o := range operands {
		p.values = append(p.values, p.resolve(o, ins[i]))
	}
	p.operands = p.operands[:base]
	s.Operands, s.Results = p.values, outs
	p.ctx.init(op, s)
}

// operandList reads %a, %b#1 and pushes them.
func (p *parser) operandList() {
	for {
		p.skip()
		at := p.pos
		p.expect('%')
		o := operand{at: at, name: p.suffix("a name after '%'")}
		if p.at(0) == '#' {
			p.pos++
			n := p.digits("the number of a result")
			if n > 1<<20 {
				p.fail(at, "%%%s has no result #%d", o.name, n)
			}
			o.index = int(n)
		}
		p.operands = append(p.operands, o)
		if !p.accept(',') {
			return
		}
	}
}

// startsOperands tells operands from the results of the next operation, which follow an operation without operands
// and signature: results end with '=' or have a number after ':'.
func (p *parser) startsOperands() bool {
	if p.peek() != '%' {
		return false
	}
	start := p.pos
	defer func() { p.pos = start }()
	for p.accept('%') {
		p.suffix("a name after '%'")
		switch p.peek() {
		case '=':
			return false
		case ':':
			p.pos++
			return !isDigit(p.peek())
		case ',':
			p.pos++
			p.skip()
		default:
			return true
		}
	}
	return true
}

func (p *parser) successors() []*Block {
	if !p.accept('[') {
		return nil
	}
	var ss []*Block
	for {
		p.skip()
		at := p.pos
		p.expect('^')
		b := p.block(at, p.keep(p.suffix("a name after '^'")))
		b.used = true
		ss = append(ss, b.block)
		if p.accept(']') {
			return ss
		}
		p.separator(']')
	}
}

// short reads the short form, after Print's description.
func (p *parser) short(at int) *Op {
	name := p.peekWord()
	if name == "" {
		p.expected("an operation")
	}
	def := p.lookup(at, name)
	if def.Traits&Unregistered != 0 {
		p.fail(at, "unregistered operation %s can only be read in the generic form, %q(...)", name, name)
	}
	p.pos += len(name)
	var s OpState
	if def.Traits&Symbol != 0 {
		s.Attrs = p.symbolHead()
	}
	if def.Traits&FunctionLike != 0 {
		return p.function(def, s)
	}
	base := len(p.operands)
	if p.startsOperands() {
		p.operandList()
	}
	s.Successors = p.successors()
	s.Attrs = p.attributes(def, s.Attrs)
	op := p.ctx.NewOp(def, OpState{})
	p.finish(op, s, at, base, true)
	if len(def.Regions) > 0 {
		p.enterRegions(def)
		for _, d := range def.Regions {
			r := op.AddRegion()
			var args []blockArg
			if p.accept('(') {
				args = p.blockArgs(false)
			}
			p.region(r, args, len(args) > 0 || d.Arity == One)
		}
		p.leaveRegions(def)
	}
	return op
}

// symbolHead reads [private] @name.
func (p *parser) symbolHead() []NamedAttr {
	var attrs []NamedAttr
	for _, v := range []string{"private", "nested"} {
		if p.acceptWord(v) {
			attrs = append(attrs, NamedAttr{"sym_visibility", p.ctx.String(v)})
			if p.peek() != '@' {
				p.expected("the name of a symbol")
			}
		}
	}
	if p.peek() == '@' {
		attrs = append(attrs, NamedAttr{"sym_name", p.ctx.String(p.symbolName())})
	}
	return attrs
}

// attributes reads the dictionary of the short form, after the word attributes for operations with regions, and
// appends to as.
func (p *parser) attributes(def *OpDef, as []NamedAttr) []NamedAttr {
	if len(def.Regions) > 0 {
		if !p.acceptWord("attributes") {
			return as
		}
	} else if p.peek() != '{' {
		return as
	}
	if len(as) > 0 {
		return p.dict(as)
	}
	p.attrs = p.dict(p.attrs[:0]) // NewOp copies it
	return p.attrs
}

// function reads @name(args) -> results attributes {...} { body } of a function-like operation.
func (p *parser) function(def *OpDef, s OpState) *Op {
	c := p.ctx
	if len(s.Attrs) == 0 {
		p.expected("the name of a symbol")
	}
	p.expect('(')
	var args []blockArg
	var ins []Type
	var argDicts []Attr
	named := p.peek() == '%'
	if named {
		args = p.blockArgs(true)
		for _, a := range args {
			ins = append(ins, a.typ)
			argDicts = append(argDicts, a.attrs)
		}
	} else {
		ins, argDicts = p.typesWith(')')
	}
	var outs []Type
	var resDicts []Attr
	if p.acceptStr("->") {
		if p.accept('(') {
			outs, resDicts = p.typesWith(')')
		} else {
			outs = []Type{p.typ()}
		}
	}
	s.Attrs = append(s.Attrs, NamedAttr{"function_type", c.TypeAttr(c.Func(ins, outs))})
	s.Attrs = p.appendDicts(s.Attrs, "arg_attrs", argDicts)
	s.Attrs = p.appendDicts(s.Attrs, "res_attrs", resDicts)
	s.Attrs = p.attributes(def, s.Attrs)
	op := c.NewOp(def, s)
	r := op.AddRegion()
	if p.peek() == '{' {
		if !named && len(ins) > 0 {
			p.fail(p.pos, "%s @%s has a body but its arguments have no names", def.full, SymName(op))
		}
		p.enterRegions(def)
		p.region(r, args, true)
		p.leaveRegions(def)
	} else if named {
		p.expected("'{' that starts the body")
	}
	return op
}

// appendDicts adds an array of dictionaries unless all are empty.
func (p *parser) appendDicts(as []NamedAttr, name string, dicts []Attr) []NamedAttr {
	empty := p.ctx.Dict()
	if slices.ContainsFunc(dicts, func(a Attr) bool { return a != Attr(empty) }) {
		return append(as, NamedAttr{name, p.ctx.Array(dicts...)})
	}
	return as
}

// typesWith reads types, each with an optional dictionary, up to and including the closing character.
func (p *parser) typesWith(closing byte) (ts []Type, dicts []Attr) {
	if p.accept(closing) {
		return nil, nil
	}
	for {
		ts = append(ts, p.typ())
		dicts = append(dicts, p.optionalDict())
		if p.accept(closing) {
			return ts, dicts
		}
		p.separator(closing)
	}
}

func (p *parser) optionalDict() Attr {
	if p.peek() != '{' {
		return p.ctx.Dict()
	}
	return p.ctx.Dict(p.dict(nil)...)
}

// blockArg is %name: type {attrs} loc(...).
type blockArg struct {
	at    int
	name  string
	typ   Type
	attrs Attr
	loc   *Location
}

// blockArgs reads arguments after '(' up to and including ')'.
func (p *parser) blockArgs(dicts bool) []blockArg {
	var args []blockArg
	for !p.accept(')') {
		if len(args) > 0 {
			p.separator(')')
		}
		p.skip()
		a := blockArg{at: p.pos}
		p.expect('%')
		a.name = p.suffix("a name after '%'")
		p.expect(':')
		a.typ = p.typ()
		if dicts {
			a.attrs = p.optionalDict()
		}
		a.loc = p.trailingLoc(a.at)
		args = append(args, a)
	}
	return args
}

// enterRegions and leaveRegions surround the regions of one operation.
func (p *parser) enterRegions(def *OpDef) {
	p.enter()
	if def.Traits&Isolated != 0 {
		p.pushScope()
	}
}

func (p *parser) leaveRegions(def *OpDef) {
	if def.Traits&Isolated != 0 {
		p.popScope()
	}
	p.depth--
}

// region reads { blocks }. args are the first block's where they stand before it; entry says that there is a first block
// even if nothing is written.
func (p *parser) region(r *Region, args []blockArg, entry bool) {
	p.blocks = &blocks{region: r, names: map[string]*blockName{}, outer: p.blocks}
	defined := len(p.scope.defined)
	p.expect('{')
	if c := p.peek(); entry || c != '^' && c != '}' {
		if entry && c == '^' && len(args) > 0 {
			p.fail(p.pos, "the arguments of the first block stand before it: expected an operation, found a label")
		}
		if c != '^' {
			b := r.AddBlock()
			p.addArgs(b, args)
			p.ops(b)
		}
	}
	for p.peek() == '^' {
		p.labeled(r)
	}
	p.expect('}')
	p.checkBlocks()
	p.scope.forget(defined)
	p.blocks = p.blocks.outer
}

func (p *parser) addArgs(b *Block, args []blockArg) {
	for _, a := range args {
		p.define(a.at, p.keep(a.name), b.AddArg(a.typ, a.loc), 1)
	}
}

// ops reads operations up to a label or the end of the region.
func (p *parser) ops(b *Block) {
	for {
		switch p.peek() {
		case '^', '}':
			return
		}
		if p.pos == len(p.src) {
			p.expected("an operation or '}'")
		}
		b.Append(p.op())
	}
}

// labeled reads ^name(args): operations.
func (p *parser) labeled(r *Region) {
	at := p.pos
	p.expect('^')
	name := p.suffix("a name after '^'")
	b := p.block(at, p.keep(name))
	if b.found {
		p.fail(at, "^%s is defined twice", name)
	}
	b.found = true
	r.blocks = append(r.blocks, b.block)
	if p.accept('(') {
		p.addArgs(b.block, p.blockArgs(false))
	}
	p.expect(':')
	p.ops(b.block)
}

// checkBlocks fails at the first use of a label that isn't there.
func (p *parser) checkBlocks() {
	first, name := -1, ""
	for n, b := range p.blocks.names { // the earliest: the order of the map doesn't matter
		if !b.found && (first < 0 || b.at < first) {
			first, name = b.at, n
		}
	}
	if first >= 0 {
		p.fail(first, "^%s is used but never defined", name)
	}
	for n, b := range p.blocks.names {
		if b.used && b.block == p.blocks.region.First() {
			p.fail(b.at, "^%s is the first block of its region, which nothing can jump to", n)
		}
	}
}
