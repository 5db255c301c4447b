package ir

import (
	"strconv"
)

// PrintOptions says how IR is written. The zero value writes the short form without locations, with large constants
// elided.
type PrintOptions struct {
	// Generic writes every operation in MLIR's generic form, which upstream's tools read.
	Generic bool
	// Locations writes where every operation and block argument came from.
	Locations bool
	// ElideAbove is the number of elements above which a constant that is no splat is written as
	// dense_resource<__elided__>: 0 is 16, negative is never.
	ElideAbove int
}

// Print writes op and everything in it, as text that Parse reads. It numbers the values as it goes, so that IR must
// not be printed from two goroutines at once.
//
// The short form of an operation is
//
//	%r:2 = dialect.name [private] @sym %x, %y [^bb1] {attr = 1 : i64} : (type, type) -> (type, type) loc(...)
//
// with what is empty left out: a symbol's visibility and name, operands, successors, attributes, and the signature of
// an operation that has neither operands nor results. The attributes of an operation with regions follow the word
// attributes, and the regions follow the signature, each as (%arg0: type) { ... } with the arguments of its first
// block. A function-like operation has its type in its head instead:
//
//	func.func private @name(%arg0: type {attrs}) -> (type {attrs}) attributes {attr} { ... }
//
// Operations that don't have the shape their definition asks for, and unregistered ones, are written generically.
func Print(op *Op, o PrintOptions) []byte {
	if o.ElideAbove == 0 {
		o.ElideAbove = 16
	}
	p := &printer{PrintOptions: o}
	if n := numberFor(op); op.nested != nil {
		p.b = make([]byte, 0, 128*n) // few operations take less text
	}
	p.op(op)
	p.b = append(p.b, '\n')
	return p.b
}

// String is the operation in its short form, without locations.
func (op *Op) String() string {
	b := Print(op, PrintOptions{})
	return string(b[:len(b)-1])
}

// ValueName is what v prints as: "%3#1".
func ValueName(v *Value) string {
	if v.op != nil {
		numberFor(v.op)
	} else if p := v.block.ParentOp(); p != nil {
		numberFor(p)
	}
	return string((&printer{}).value(nil, v))
}

// Names numbers what is within op, an isolated one, and gives the names of its values as ValueName does: at once, as long as
// nothing within changes.
func Names(op *Op) func(v *Value) string {
	numberFor(op)
	return func(v *Value) string { return string((&printer{}).value(nil, v)) }
}

type printer struct {
	PrintOptions
	b      []byte
	indent int
}

func (p *printer) str(s string) { p.b = append(p.b, s...) }

func (p *printer) newline() {
	p.b = append(p.b, '\n')
	for range p.indent {
		p.b = append(p.b, "  "...)
	}
}

func (p *printer) value(b []byte, v *Value) []byte {
	if v == nil {
		return append(b, "%null"...)
	}
	b = append(b, '%')
	if v.op == nil {
		if v.num < 0 {
			return strconv.AppendInt(append(b, "arg"...), int64(-v.num-1), 10)
		}
		return strconv.AppendInt(b, int64(v.num), 10)
	}
	b = strconv.AppendInt(b, int64(v.op.results[0].num), 10)
	if len(v.op.results) > 1 {
		b = strconv.AppendInt(append(b, '#'), int64(v.index), 10)
	}
	return b
}

func (p *printer) op(op *Op) {
	if n := len(op.results); n > 0 {
		p.b = strconv.AppendInt(append(p.b, '%'), int64(op.results[0].num), 10)
		if n > 1 {
			p.b = strconv.AppendInt(append(p.b, ':'), int64(n), 10)
		}
		p.str(" = ")
	}
	switch {
	case p.Generic || op.Has(Unregistered) || !fitsRegions(op):
		p.generic(op)
	case !op.Has(FunctionLike):
		p.short(op)
	case isFunction(op):
		p.function(op)
	default:
		p.generic(op)
	}
	if p.Locations {
		p.loc(op.loc)
	}
}

// fitsRegions reports whether op has the regions of its definition, none of them without its one block.
func fitsRegions(op *Op) bool {
	rs := op.Regions()
	if len(rs) != len(op.def.Regions) {
		return false
	}
	for i, r := range rs {
		if op.def.Regions[i].Arity == One && len(r.blocks) == 0 {
			return false
		}
	}
	return true
}

func (p *printer) loc(l *Location) {
	p.str(" loc(")
	p.b = l.appendTo(p.b)
	p.b = append(p.b, ')')
}

func (p *printer) generic(op *Op) {
	p.b = appendQuoted(p.b, op.def.full)
	p.b = append(p.b, '(')
	p.operands(op)
	p.b = append(p.b, ')')
	p.successors(op)
	inherent, rest := op.attrs, []NamedAttr(nil)
	if op.Has(Properties) {
		inherent, rest = splitInherent(op)
		if len(inherent) > 0 {
			p.str(" <")
			p.dict(inherent)
			p.b = append(p.b, '>')
		}
	} else {
		inherent, rest = nil, inherent
	}
	for i, r := range op.Regions() {
		if i == 0 {
			p.str(" (")
		} else {
			p.str(", ")
		}
		p.region(r, true, false)
	}
	if len(op.Regions()) > 0 {
		p.b = append(p.b, ')')
	}
	if len(rest) > 0 {
		p.b = append(p.b, ' ')
		p.dict(rest)
	}
	p.signature(op)
}

// splitInherent separates the attributes that the definition lists from the others.
func splitInherent(op *Op) (inherent, others []NamedAttr) {
	for _, a := range op.attrs {
		if op.def.attr(a.Name) != nil {
			inherent = append(inherent, a)
		} else {
			others = append(others, a)
		}
	}
	return inherent, others
}

func (p *printer) short(op *Op) {
	p.str(op.def.full)
	symbol := op.Has(Symbol) && p.symbol(op)
	if len(op.operands) > 0 {
		p.b = append(p.b, ' ')
		p.operands(op)
	}
	p.successors(op)
	p.attributes(op, func(name string) bool {
		return symbol && (name == "sym_name" || name == "sym_visibility" && visibility(op) != "")
	})
	if len(op.operands)+len(op.results) > 0 {
		p.signature(op)
	}
	for i, r := range op.Regions() {
		p.b = append(p.b, ' ')
		if b := r.First(); b != nil && len(b.args) > 0 {
			p.b = append(p.b, '(')
			p.blockArgs(b, nil)
			p.str(") ")
		}
		p.region(r, false, op.def.Regions[i].Arity == One)
	}
}

// symbol writes the visibility and the name of a symbol; false when it has no name.
func (p *printer) symbol(op *Op) bool {
	name, ok := op.Attr("sym_name").(*StringAttr)
	if !ok || name.Value == "" {
		return false
	}
	p.b = append(p.b, ' ')
	if v := visibility(op); v != "" {
		p.str(v)
		p.b = append(p.b, ' ')
	}
	p.b = appendSymbol(p.b, name.Value)
	return true
}

// visibility is "private" or "nested" for a symbol that says so, and "" for others.
func visibility(op *Op) string {
	switch v := op.Attrs().Str("sym_visibility"); v {
	case "private", "nested":
		return v
	}
	return ""
}

// isFunction reports whether a function-like operation can be written with its type in its head.
func isFunction(op *Op) bool {
	t := FuncType(op)
	if t == nil || SymName(op) == "" || len(op.operands)+len(op.results)+len(op.Successors()) > 0 {
		return false
	}
	if !argDicts(op.Attr("arg_attrs"), len(t.Inputs)) || !argDicts(op.Attr("res_attrs"), len(t.Results)) {
		return false
	}
	body := op.Body()
	if body == nil {
		return true
	}
	if len(body.args) != len(t.Inputs) {
		return false
	}
	for i, a := range body.args {
		if a.typ != t.Inputs[i] {
			return false
		}
	}
	return true
}

// argDicts reports whether a is nil or an array of n dictionaries, not all empty.
func argDicts(a Attr, n int) bool {
	if a == nil {
		return true
	}
	if !dictionaries(a, n) {
		return false
	}
	for _, e := range a.(*ArrayAttr).Elems {
		if len(e.(*DictAttr).Entries) > 0 {
			return true
		}
	}
	return false
}

// dictionaries reports whether a is an array of n dictionaries.
func dictionaries(a Attr, n int) bool {
	array, ok := a.(*ArrayAttr)
	if !ok || len(array.Elems) != n {
		return false
	}
	for _, e := range array.Elems {
		if _, ok := e.(*DictAttr); !ok {
			return false
		}
	}
	return true
}

// FuncType is the function_type of a function-like operation, or nil.
func FuncType(op *Op) *FunctionType {
	if a, ok := op.Attr("function_type").(*TypeAttr); ok {
		if t, ok := a.Type.(*FunctionType); ok {
			return t
		}
	}
	return nil
}

func (p *printer) function(op *Op) {
	p.str(op.def.full)
	p.symbol(op)
	t := FuncType(op)
	p.b = append(p.b, '(')
	args, _ := op.Attr("arg_attrs").(*ArrayAttr)
	if body := op.Body(); body != nil {
		p.blockArgs(body, args)
	} else {
		p.typesWith(t.Inputs, args)
	}
	p.b = append(p.b, ')')
	if len(t.Results) > 0 {
		p.str(" -> ")
		p.resultTypes(t.Results, op)
	}
	p.attributes(op, func(name string) bool {
		switch name {
		case "sym_name", "function_type", "arg_attrs", "res_attrs":
			return true
		}
		return name == "sym_visibility" && visibility(op) != ""
	})
	if op.Body() != nil {
		p.b = append(p.b, ' ')
		p.region(op.Region(0), false, false)
	}
}

func (p *printer) resultTypes(ts []Type, op *Op) {
	attrs, _ := op.Attr("res_attrs").(*ArrayAttr)
	if len(ts) == 1 && attrs == nil {
		if _, nested := ts[0].(*FunctionType); !nested {
			p.b = ts[0].appendTo(p.b)
			return
		}
	}
	p.b = append(p.b, '(')
	p.typesWith(ts, attrs)
	p.b = append(p.b, ')')
}

// typesWith writes types, each followed by its dictionary where that isn't empty.
func (p *printer) typesWith(ts []Type, dicts *ArrayAttr) {
	for i, t := range ts {
		if i > 0 {
			p.str(", ")
		}
		p.b = t.appendTo(p.b)
		p.argDict(dicts, i)
	}
}

func (p *printer) argDict(dicts *ArrayAttr, i int) {
	if dicts == nil {
		return
	}
	if d := dicts.Elems[i].(*DictAttr); len(d.Entries) > 0 {
		p.b = append(p.b, ' ')
		p.dict(d.Entries)
	}
}

func (p *printer) blockArgs(b *Block, dicts *ArrayAttr) {
	for i, a := range b.args {
		if i > 0 {
			p.str(", ")
		}
		p.b = p.value(p.b, a)
		p.str(": ")
		p.b = a.typ.appendTo(p.b)
		p.argDict(dicts, i)
		if p.Locations {
			p.loc(b.argLocs[i])
		}
	}
}

func (p *printer) operands(op *Op) {
	for i := range op.operands {
		if i > 0 {
			p.str(", ")
		}
		p.b = p.value(p.b, op.operands[i].value)
	}
}

func (p *printer) successors(op *Op) {
	for i, s := range op.Successors() {
		if i == 0 {
			p.str(" [")
		} else {
			p.str(", ")
		}
		p.label(s)
	}
	if len(op.Successors()) > 0 {
		p.b = append(p.b, ']')
	}
}

func (p *printer) label(b *Block) {
	p.str("^bb")
	p.b = strconv.AppendInt(p.b, int64(b.num), 10)
}

// attributes writes those that hide doesn't name, in the place where the short form has them.
func (p *printer) attributes(op *Op, hide func(name string) bool) {
	shown := op.attrs
	for i, a := range op.attrs {
		if hide(a.Name) {
			shown = make([]NamedAttr, 0, len(op.attrs))
			for j, a := range op.attrs {
				if j < i || !hide(a.Name) {
					shown = append(shown, a)
				}
			}
			break
		}
	}
	if len(shown) == 0 {
		return
	}
	if op.nested != nil && len(op.nested.regions) > 0 {
		p.str(" attributes")
	}
	p.b = append(p.b, ' ')
	p.dict(shown)
}

func (p *printer) signature(op *Op) {
	p.str(" : (")
	for i := range op.operands {
		if i > 0 {
			p.str(", ")
		}
		if v := op.operands[i].value; v != nil {
			p.b = v.typ.appendTo(p.b)
		} else {
			p.str("none")
		}
	}
	p.str(") -> ")
	if len(op.results) == 1 {
		if _, nested := op.results[0].typ.(*FunctionType); !nested {
			p.b = op.results[0].typ.appendTo(p.b)
			return
		}
	}
	p.b = append(p.b, '(')
	for i := range op.results {
		if i > 0 {
			p.str(", ")
		}
		p.b = op.results[i].typ.appendTo(p.b)
	}
	p.b = append(p.b, ')')
}

// region writes { ... }. The first block has a label when that says something: its arguments, unless they are written
// elsewhere, or that it is there at all, unless that is sure.
func (p *printer) region(r *Region, argsInLabel, sure bool) {
	p.b = append(p.b, '{')
	if sure && len(r.blocks) == 1 && r.blocks[0].first == nil {
		p.b = append(p.b, '}')
		return
	}
	for i, b := range r.blocks {
		args := len(b.args) > 0
		if i > 0 || argsInLabel && args || b.first == nil && (argsInLabel || !args && !sure) {
			p.newline()
			p.label(b)
			if args && (i > 0 || argsInLabel) {
				p.b = append(p.b, '(')
				p.blockArgs(b, nil)
				p.b = append(p.b, ')')
			}
			p.b = append(p.b, ':')
		}
		p.indent++
		for op := b.first; op != nil; op = op.next {
			p.newline()
			p.op(op)
		}
		p.indent--
	}
	if len(r.blocks) > 0 {
		p.newline()
	}
	p.b = append(p.b, '}')
}

func (p *printer) dict(entries []NamedAttr) {
	p.b = append(p.b, '{')
	for i, e := range entries {
		if i > 0 {
			p.str(", ")
		}
		p.named(e)
	}
	p.b = append(p.b, '}')
}

func (p *printer) named(e NamedAttr) {
	if _, unit := e.Value.(*UnitAttr); unit {
		p.b = appendNamed(p.b, e)
		return
	}
	p.b = appendAttrName(p.b, e.Name)
	p.str(" = ")
	p.attr(e.Value)
}

// attr writes an attribute, constants inside lists and dictionaries elided too.
func (p *printer) attr(a Attr) {
	switch a := a.(type) {
	case *DenseAttr:
		if shape, _ := Shape(a.Type); p.ElideAbove >= 0 && !a.Splat && NumElements(shape) > int64(p.ElideAbove) {
			p.b = (&ElidedAttr{a.Type}).appendTo(p.b)
			return
		}
	case *ArrayAttr:
		p.b = append(p.b, '[')
		for i, e := range a.Elems {
			if i > 0 {
				p.str(", ")
			}
			p.attr(e)
		}
		p.b = append(p.b, ']')
		return
	case *DictAttr:
		p.dict(a.Entries)
		return
	}
	p.b = a.appendTo(p.b)
}
