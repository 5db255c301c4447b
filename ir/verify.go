package ir

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/internal/near"
)

// Verify checks op and everything in it: the structure (links, use chains, terminators, dominance, isolation), every
// operation against its definition (operands, attributes, results, regions, inferred types, its own check), symbols,
// and the dialects' types and attributes. It returns every fault in order, as Errors, or nil.
//
// The operations' own checks run only where all of that is right, those of nested operations first, and the one of an
// operation only where nothing in it is wrong: a check may look at other operations and rely on these.
//
// What a definition doesn't list must be discardable: an attribute with a dialect's name in front, as in blu.phase.
func Verify(c *Context, op *Op) error {
	v := &verifier{ctx: c, dom: NewDominance(), types: map[Type]string{}, attrs: map[Attr]string{}, tables: map[*Op]map[string]*Op{}}
	v.op(op)
	if len(v.errs) == 0 {
		v.ownChecks(op)
	}
	return v.errs.Err()
}

type verifier struct {
	ctx    *Context
	errs   Errors
	dom    *Dominance
	types  map[Type]string // what is wrong with a type, "" for nothing
	attrs  map[Attr]string
	tables map[*Op]map[string]*Op
}

func (v *verifier) errorf(op *Op, format string, args ...any) *Error {
	e := op.Errorf("%s: "+format, append([]any{op.def.full}, args...)...)
	v.errs = append(v.errs, e)
	return e
}

func (v *verifier) op(op *Op) {
	before := len(v.errs)
	v.uses(op)
	v.operands(op)
	v.successors(op)
	v.typesAndAttrs(op)
	if len(v.errs) == before && !op.Has(Unregistered) {
		v.definition(op)
	}
	if op.Has(SymbolTable) {
		v.symbolTable(op)
	}
	for i, r := range op.Regions() {
		v.region(op, i, r)
	}
}

func (v *verifier) ownChecks(op *Op) {
	before := len(v.errs)
	for _, r := range op.Regions() {
		for _, b := range r.blocks {
			for o := b.first; o != nil; o = o.next {
				v.ownChecks(o)
			}
		}
	}
	if len(v.errs) == before && op.def.Verify != nil {
		v.own(op)
	}
}

// own runs the definition's check.
func (v *verifier) own(op *Op) {
	err := op.def.Verify(op)
	switch e := err.(type) {
	case nil:
	case *Error:
		if e.Loc == nil {
			e.Loc, e.Op = op.loc, op
		}
		v.errs = append(v.errs, e)
	default:
		v.errorf(op, "%v", err)
	}
}

// uses checks the use chains that op's operands are in and its results have.
func (v *verifier) uses(op *Op) {
	for i := range op.operands {
		u := &op.operands[i]
		if u.owner != op {
			v.errorf(op, "operand %d belongs to another operation", i)
			continue
		}
		if u.value == nil {
			v.errorf(op, "operand %d has no value", i)
			continue
		}
		linked := u.prev == nil && u.value.first == u || u.prev != nil && u.prev.next == u
		if !linked || u.next != nil && u.next.prev != u {
			v.errorf(op, "operand %d is not in the use chain of its value", i)
		}
	}
	for i := range op.results {
		r := &op.results[i]
		if r.op != op || int(r.index) != i {
			v.errorf(op, "result %d doesn't know its operation", i)
			continue
		}
		v.valueUses(op, fmt.Sprintf("result %d", i), r)
	}
}

func (v *verifier) valueUses(op *Op, what string, val *Value) {
	if val.typ == nil {
		v.errorf(op, "%s has no type", what)
	}
	for u := val.first; u != nil; u = u.next {
		if u.value != val {
			v.errorf(op, "the use chain of %s has a use of another value", what)
			return
		}
		if u.owner.block == nil {
			v.errorf(op, "%s is used by %s, which is in no block", what, u.owner.def.full)
			return
		}
	}
}

// operands checks that every operand has a value where op runs.
func (v *verifier) operands(op *Op) {
	for i := range op.operands {
		val := op.operands[i].value
		if val == nil || op.block == nil || v.dom.Value(val, op) {
			continue
		}
		what := fmt.Sprintf("operand %d, %s,", i, ValueName(val))
		switch def := val.Block(); {
		case def == nil:
			v.errorf(op, "operand %d is a result of %s, which is in no block", i, val.op.def.full)
		case def.region == nil || !encloses(def.region, op):
			v.errorf(op, "%s is defined in a region that this operation is not in", what).WithNote(val.Loc(), "defined here")
		default:
			v.errorf(op, "%s is used before it is defined, or where it may not have been", what).WithNote(val.Loc(), "defined here")
		}
	}
	if op.Parent() != nil {
		v.isolation(op)
	}
}

// isolation checks that no operand comes from outside of an isolated operation.
func (v *verifier) isolation(op *Op) {
	for i := range op.operands {
		val := op.operands[i].value
		if val == nil || val.Block() == nil {
			continue
		}
		for p := op; p != nil && p.block != nil && p.block.region != val.Block().region; {
			p = p.Parent()
			if p != nil && p.Has(Isolated) {
				v.errorf(op, "operand %d comes from outside of %s, whose regions may not use values from outside", i, p.def.full).
					WithNote(val.Loc(), "defined here")
				break
			}
		}
	}
}

// encloses reports whether op is in region r, at any depth.
func encloses(r *Region, op *Op) bool {
	for p := op; p != nil && p.block != nil; p = p.Parent() {
		if p.block.region == r {
			return true
		}
	}
	return false
}

func (v *verifier) successors(op *Op) {
	ss := op.Successors()
	if len(ss) == 0 {
		return
	}
	if !op.Has(Terminator) && !op.Has(Unregistered) {
		v.errorf(op, "has successors but is no terminator")
	}
	for _, s := range ss {
		switch {
		case op.block == nil || s.region != op.block.region || !slices.Contains(s.region.blocks, s):
			v.errorf(op, "jumps to a block of another region")
		case s == s.region.First():
			v.errorf(op, "jumps to the first block of its region")
		}
	}
}

func (v *verifier) region(op *Op, i int, r *Region) {
	if r.parent != op {
		v.errorf(op, "region %d doesn't know its operation", i)
	}
	for _, b := range r.blocks {
		if b.region != r {
			v.errorf(op, "a block of region %d doesn't know its region", i)
			return
		}
		v.block(op, b)
	}
}

func (v *verifier) block(parent *Op, b *Block) {
	for i, a := range b.args {
		if a.block != b || a.op != nil || int(a.index) != i {
			v.errorf(parent, "block argument %d doesn't know its block", i)
			continue
		}
		v.valueUses(parent, fmt.Sprintf("block argument %d", i), a)
		if a.typ != nil {
			v.typ(parent, a.typ)
		}
	}
	needs := !parent.Has(NoTerminator) && !parent.Has(Unregistered)
	if needs && b.last == nil {
		v.errorf(parent, "a block without a terminator: it is empty")
	}
	var prev *Op
	for op := b.first; op != nil; prev, op = op, op.next {
		if op.block != b || op.prev != prev || op.next == nil && b.last != op {
			v.errorf(op, "is not linked into its block")
			return
		}
		if b.ordered && prev != nil && op.order <= prev.order {
			v.errorf(op, "has a wrong place in the order of its block")
		}
		last := op == b.last
		switch {
		case op.Has(Terminator) && !last:
			v.errorf(op, "is a terminator, but not the last of its block")
		case last && needs && !op.Has(Terminator) && !op.Has(Unregistered):
			v.errorf(op, "is the last of its block, where %s needs a terminator", parent.def.full)
		}
		v.op(op)
	}
}

// symbolTable collects the symbols of op, which must have different names.
func (v *verifier) symbolTable(op *Op) {
	table := map[string]*Op{}
	v.tables[op] = table
	if op.Body() == nil {
		return
	}
	for s := range op.Body().Ops() {
		name := SymName(s)
		if name == "" {
			continue
		}
		if first := table[name]; first != nil {
			v.errorf(s, "symbol @%s is defined twice", name).WithNote(first.loc, "first defined here")
			continue
		}
		table[name] = s
	}
}

// symbol checks that a reference from op means something.
func (v *verifier) symbol(op *Op, ref *SymbolRefAttr) {
	var names []string
	tables := false
	for t := op.Parent(); t != nil; t = t.Parent() {
		table := v.tables[t]
		if table == nil {
			continue
		}
		tables = true
		if found := table[ref.Path[0]]; found != nil {
			if nestedSymbol(found, ref.Path[1:]) == nil {
				v.errorf(op, "there is no %s: no such symbol in @%s", ref, ref.Path[0])
			}
			return
		}
		for name := range table {
			names = append(names, name)
		}
	}
	if tables { // op alone, without its module, may refer to anything
		v.errorf(op, "there is no symbol %s%s", ref, near.Suggest(ref.Path[0], names))
	}
}

// typesAndAttrs checks the dialects' own types and attributes wherever op mentions them.
func (v *verifier) typesAndAttrs(op *Op) {
	for i := range op.results {
		if t := op.results[i].typ; t != nil {
			v.typ(op, t)
		}
	}
	for i, a := range op.attrs {
		if i > 0 && op.attrs[i-1].Name >= a.Name {
			v.errorf(op, "attributes are not sorted by name")
		}
		if a.Value == nil {
			v.errorf(op, "attribute %s has no value", a.Name)
			continue
		}
		if msg := v.attrFault(a.Value); msg != "" {
			v.errorf(op, "attribute %s: %s", a.Name, msg)
		}
	}
}

func (v *verifier) typ(op *Op, t Type) {
	if msg := v.typeFault(t); msg != "" {
		v.errorf(op, "%s", msg)
	}
}

// typeFault says what is wrong with a type, or "".
func (v *verifier) typeFault(t Type) string {
	if msg, ok := v.types[t]; ok {
		return msg
	}
	msg := v.newTypeFault(t)
	v.types[t] = msg
	return msg
}

func (v *verifier) newTypeFault(t Type) string {
	switch t := t.(type) {
	case *TensorType:
		return firstFault(v.typeFault(t.Elem), v.optionalFault(t.Encoding))
	case *VectorType:
		return v.typeFault(t.Elem)
	case *MemRefType:
		return firstFault(v.typeFault(t.Elem), v.optionalFault(t.Layout), v.optionalFault(t.Space))
	case *FunctionType:
		for _, p := range slices.Concat(t.Inputs, t.Results) {
			if msg := v.typeFault(p); msg != "" {
				return msg
			}
		}
	case *DialectType:
		if t.Elem != nil {
			if msg := v.typeFault(t.Elem); msg != "" {
				return msg
			}
		}
		for _, p := range t.Params {
			if msg := v.attrFault(p); msg != "" {
				return msg
			}
		}
		return v.dialectTypeFault(t)
	}
	return ""
}

func firstFault(msgs ...string) string {
	for _, m := range msgs {
		if m != "" {
			return m
		}
	}
	return ""
}

func (v *verifier) dialectTypeFault(t *DialectType) string {
	d := v.ctx.dialects[t.Dialect]
	if d == nil {
		return v.unknownDialect("type "+t.String(), t.Dialect)
	}
	var names []string
	for _, def := range d.Types {
		if def.Name == t.Name {
			return faultOf(t.String(), def.Verify, t)
		}
		names = append(names, def.Name)
	}
	return fmt.Sprintf("dialect %s has no type %s%s", t.Dialect, t.Name, near.Suggest(t.Name, names))
}

func (v *verifier) unknownDialect(what, dialect string) string {
	if v.ctx.AllowUnregistered {
		return ""
	}
	return fmt.Sprintf("unknown dialect %s of %s", dialect, what)
}

func faultOf[T any](what string, verify func(T) error, x T) string {
	if verify == nil {
		return ""
	}
	if err := verify(x); err != nil {
		return fmt.Sprintf("%s: %v", what, err)
	}
	return ""
}

func (v *verifier) optionalFault(a Attr) string {
	if a == nil {
		return ""
	}
	return v.attrFault(a)
}

// attrFault says what is wrong with an attribute, or "".
func (v *verifier) attrFault(a Attr) string {
	switch a := a.(type) {
	case *TypeAttr:
		return v.typeFault(a.Type)
	case *DenseAttr:
		return v.typeFault(a.Type)
	case *ArrayAttr, *DictAttr, *DialectAttr:
		if msg, ok := v.attrs[a]; ok {
			return msg
		}
		msg := v.newAttrFault(a)
		v.attrs[a] = msg
		return msg
	}
	return ""
}

func (v *verifier) newAttrFault(a Attr) string {
	var parts []Attr
	var named []NamedAttr
	switch a := a.(type) {
	case *ArrayAttr:
		parts = a.Elems
	case *DictAttr:
		named = a.Entries
	case *DialectAttr:
		parts, named = a.Params, a.Named
	}
	for _, e := range named {
		parts = append(parts[:len(parts):len(parts)], e.Value)
	}
	for _, e := range parts {
		if msg := v.attrFault(e); msg != "" {
			return msg
		}
	}
	if d, ok := a.(*DialectAttr); ok {
		return v.dialectAttrFault(d)
	}
	return ""
}

func (v *verifier) dialectAttrFault(a *DialectAttr) string {
	d := v.ctx.dialects[a.Dialect]
	if d == nil {
		return v.unknownDialect("attribute "+a.String(), a.Dialect)
	}
	var names []string
	for _, def := range d.Attrs {
		if def.Name == a.Name {
			return faultOf(a.String(), def.Verify, a)
		}
		names = append(names, def.Name)
	}
	return fmt.Sprintf("dialect %s has no attribute %s%s", a.Dialect, a.Name, near.Suggest(a.Name, names))
}

// isDiscardable reports whether an attribute may stand on any operation: it has a dialect's name in front.
func isDiscardable(name string) bool {
	dialect, rest, ok := strings.Cut(name, ".")
	return ok && dialect != "" && rest != ""
}
