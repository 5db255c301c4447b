package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Op is an operation. It is made by a Builder or by Context.NewOp, lives in at most one block, and is linked into it.
type Op struct {
	def        *OpDef
	block      *Block
	prev, next *Op
	loc        *Location
	attrs      []NamedAttr // sorted by name
	operands   []Use
	results    []Value
	nested     *nested // nil for most operations
	order      int32   // position within the block while the block's order is valid
}

// nested is what only operations with regions or successors have.
type nested struct {
	regions    []*Region
	successors []*Block
}

// OpState is everything an operation is made of.
type OpState struct {
	Loc        *Location
	Operands   []*Value
	Attrs      []NamedAttr // in any order
	Results    []Type
	Regions    int // number of empty regions to make
	Successors []*Block
}

// NewOp makes a detached operation. It does not check it: Verify does.
func (c *Context) NewOp(def *OpDef, s OpState) *Op {
	op := &Op{def: def, loc: s.Loc}
	if op.loc == nil {
		op.loc = c.unknown
	}
	c.init(op, s)
	return op
}

// init gives a new operation all but its location and definition.
func (c *Context) init(op *Op, s OpState) {
	if len(s.Attrs) > 0 {
		op.attrs = sortedAttrs(s.Attrs)
	}
	if len(s.Operands) > 0 {
		op.operands = make([]Use, len(s.Operands))
		for i, v := range s.Operands {
			op.operands[i].owner = op
			op.operands[i].Set(v)
		}
	}
	if len(s.Results) > 0 {
		op.results = make([]Value, len(s.Results))
		for i, t := range s.Results {
			op.results[i] = Value{typ: t, op: op, index: int32(i)}
		}
	}
	if len(s.Successors) > 0 {
		if op.nested == nil {
			op.nested = &nested{}
		}
		op.nested.successors = slices.Clone(s.Successors)
	}
	for range s.Regions {
		op.AddRegion()
	}
}

// Def is the operation's definition.
func (op *Op) Def() *OpDef { return op.def }

// Is reports whether op is not nil and has that definition.
func (op *Op) Is(def *OpDef) bool { return op != nil && op.def == def }

// Name is the full name: "blu.add".
func (op *Op) Name() string { return op.def.full }

// Has reports whether the operation's definition has all the given traits.
func (op *Op) Has(t Traits) bool { return op.def.Traits&t == t }

// Loc is where the operation came from.
func (op *Op) Loc() *Location { return op.loc }

// SetLoc changes the location.
func (op *Op) SetLoc(l *Location) { op.loc = l }

// Block is the block the operation is in, or nil.
func (op *Op) Block() *Block { return op.block }

// Prev is the operation before this one in its block, or nil.
func (op *Op) Prev() *Op { return op.prev }

// Next is the operation after this one in its block, or nil.
func (op *Op) Next() *Op { return op.next }

// Parent is the operation whose region holds this one, or nil.
func (op *Op) Parent() *Op {
	if op.block == nil || op.block.region == nil {
		return nil
	}
	return op.block.region.parent
}

// ParentOfKind is the nearest enclosing operation of that definition, or nil.
func (op *Op) ParentOfKind(def *OpDef) *Op {
	for p := op.Parent(); p != nil; p = p.Parent() {
		if p.def == def {
			return p
		}
	}
	return nil
}

// NumOperands counts the operands.
func (op *Op) NumOperands() int { return len(op.operands) }

// Operand is the i-th operand.
func (op *Op) Operand(i int) *Value { return op.operands[i].value }

// OperandUse is the slot of the i-th operand.
func (op *Op) OperandUse(i int) *Use { return &op.operands[i] }

// SetOperand replaces the i-th operand.
func (op *Op) SetOperand(i int, v *Value) { op.operands[i].Set(v) }

// Operands copies the operands into a new slice.
func (op *Op) Operands() []*Value {
	vs := make([]*Value, len(op.operands))
	for i := range op.operands {
		vs[i] = op.operands[i].value
	}
	return vs
}

// SetOperands replaces all operands; their number may change.
func (op *Op) SetOperands(vs []*Value) {
	for i := range op.operands {
		op.operands[i].Set(nil)
	}
	op.operands = make([]Use, len(vs))
	for i, v := range vs {
		op.operands[i].owner = op
		op.operands[i].Set(v)
	}
}

// NumResults counts the results.
func (op *Op) NumResults() int { return len(op.results) }

// Result is the i-th result.
func (op *Op) Result(i int) *Value { return &op.results[i] }

// Results copies pointers to the results into a new slice.
func (op *Op) Results() []*Value {
	vs := make([]*Value, len(op.results))
	for i := range op.results {
		vs[i] = &op.results[i]
	}
	return vs
}

// ResultTypes lists the types of the results.
func (op *Op) ResultTypes() []Type {
	ts := make([]Type, len(op.results))
	for i := range op.results {
		ts[i] = op.results[i].typ
	}
	return ts
}

// Unused reports whether no result is used.
func (op *Op) Unused() bool {
	for i := range op.results {
		if op.results[i].first != nil {
			return false
		}
	}
	return true
}

// Attrs is the operation's attributes, sorted by name; not to be changed by the caller.
func (op *Op) Attrs() Attrs { return op.attrs }

// Attr is the attribute of that name, or nil.
func (op *Op) Attr(name string) Attr { return Attrs(op.attrs).Get(name) }

// SetAttr sets or replaces an attribute; nil removes it.
func (op *Op) SetAttr(name string, a Attr) {
	i, found := slices.BinarySearchFunc(op.attrs, name, func(e NamedAttr, n string) int { return strings.Compare(e.Name, n) })
	attrs := slices.Clone(op.attrs)
	switch {
	case a == nil && found:
		attrs = slices.Delete(attrs, i, i+1)
	case a == nil:
		return
	case found:
		attrs[i].Value = a
	default:
		attrs = slices.Insert(attrs, i, NamedAttr{name, a})
	}
	op.attrs = attrs
}

// Regions is the operation's regions; not to be changed by the caller.
func (op *Op) Regions() []*Region {
	if op.nested == nil {
		return nil
	}
	return op.nested.regions
}

// Region is the i-th region.
func (op *Op) Region(i int) *Region { return op.nested.regions[i] }

// AddRegion appends an empty region.
func (op *Op) AddRegion() *Region {
	if op.nested == nil {
		op.nested = &nested{}
	}
	r := &Region{parent: op}
	op.nested.regions = append(op.nested.regions, r)
	return r
}

// Successors is the blocks a terminator may jump to; not to be changed by the caller.
func (op *Op) Successors() []*Block {
	if op.nested == nil {
		return nil
	}
	return op.nested.successors
}

// Body is the first block of the first region, or nil.
func (op *Op) Body() *Block {
	if op.nested == nil || len(op.nested.regions) == 0 {
		return nil
	}
	return op.nested.regions[0].First()
}

// Remove unlinks the operation from its block without destroying it.
func (op *Op) Remove() {
	b := op.block
	if b == nil {
		return
	}
	if op.prev != nil {
		op.prev.next = op.next
	} else {
		b.first = op.next
	}
	if op.next != nil {
		op.next.prev = op.prev
	} else {
		b.last = op.prev
	}
	op.block, op.prev, op.next = nil, nil, nil
}

// Erase unlinks the operation, drops its operands and everything inside its regions. It panics when a result is still
// used from outside.
func (op *Op) Erase() {
	if !op.Unused() {
		panic(fmt.Sprintf("ir: erasing %s, whose results are still used", op.Name()))
	}
	op.dropReferences()
	op.Remove()
}

// dropReferences takes the operation and all that is nested in it out of every use chain.
func (op *Op) dropReferences() {
	for i := range op.operands {
		op.operands[i].Set(nil)
	}
	for _, r := range op.Regions() {
		for _, b := range r.blocks {
			for o := b.last; o != nil; o = o.prev {
				o.dropReferences()
			}
		}
	}
}

// ReplaceWith makes users of the results use vs, and erases the operation.
func (op *Op) ReplaceWith(vs ...*Value) {
	if len(vs) != len(op.results) {
		panic(fmt.Sprintf("ir: replacing %d results of %s by %d values", len(op.results), op.Name(), len(vs)))
	}
	for i, v := range vs {
		op.results[i].ReplaceAllUsesWith(v)
	}
	op.Erase()
}

// MoveBefore unlinks the operation and puts it before other.
func (op *Op) MoveBefore(other *Op) {
	if op == other {
		return
	}
	op.Remove()
	other.block.insert(op, other)
}

// MoveToEnd unlinks the operation and appends it to b.
func (op *Op) MoveToEnd(b *Block) {
	op.Remove()
	b.insert(op, nil)
}

// IsBefore reports whether op comes before other in the same block.
func (op *Op) IsBefore(other *Op) bool {
	if op.block == nil || op.block != other.block {
		panic("ir: IsBefore of operations in different blocks")
	}
	op.block.number()
	return op.order < other.order
}

// IsAncestorOf reports whether op is other or encloses it.
func (op *Op) IsAncestorOf(other *Op) bool {
	for o := other; o != nil; o = o.Parent() {
		if o == op {
			return true
		}
	}
	return false
}

// Clone copies the operation with its regions. Operands found in mapping are replaced; results and block arguments of
// the original are added to it. The copy is detached.
func (op *Op) Clone(c *Context, mapping map[*Value]*Value) *Op {
	operands := make([]*Value, len(op.operands))
	for i := range op.operands {
		operands[i] = mapped(mapping, op.operands[i].value)
	}
	n := c.NewOp(op.def, OpState{Loc: op.loc, Operands: operands, Results: op.ResultTypes(), Successors: op.Successors()})
	n.attrs = op.attrs
	for i := range op.results {
		mapping[&op.results[i]] = &n.results[i]
	}
	for _, r := range op.Regions() {
		r.cloneInto(c, n.AddRegion(), mapping)
	}
	return n
}

func mapped(mapping map[*Value]*Value, v *Value) *Value {
	if w, ok := mapping[v]; ok {
		return w
	}
	return v
}

// Attrs is a sorted list of named attributes with typed access.
type Attrs []NamedAttr

// Get is the attribute of that name, or nil.
func (as Attrs) Get(name string) Attr {
	for i := range as { // lists are short: a scan beats a binary search
		if as[i].Name == name {
			return as[i].Value
		}
	}
	return nil
}

// Int is an integer attribute's value; ok is false when it is absent or of another kind.
func (as Attrs) Int(name string) (v int64, ok bool) {
	a, ok := as.Get(name).(*IntegerAttr)
	if !ok {
		return 0, false
	}
	return a.Value, true
}

// IntOr is an integer attribute's value, or def when absent.
func (as Attrs) IntOr(name string, def int64) int64 {
	if v, ok := as.Int(name); ok {
		return v
	}
	return def
}

// Bool is true when the attribute is true or a unit attribute.
func (as Attrs) Bool(name string) bool {
	switch a := as.Get(name).(type) {
	case *UnitAttr:
		return true
	case *IntegerAttr:
		return a.Value != 0
	}
	return false
}

// FloatOr is a floating-point attribute's value, or def when absent.
func (as Attrs) FloatOr(name string, def float64) float64 {
	if a, ok := as.Get(name).(*FloatAttr); ok {
		return a.Value
	}
	return def
}

// Str is a string attribute's value, or "" when absent.
func (as Attrs) Str(name string) string {
	if a, ok := as.Get(name).(*StringAttr); ok {
		return a.Value
	}
	return ""
}

// Ints is the elements of a dense integer array attribute, or nil when absent.
func (as Attrs) Ints(name string) []int64 {
	if a, ok := as.Get(name).(*DenseArrayAttr); ok {
		return a.Ints
	}
	return nil
}

// Sym is the root name of a symbol reference attribute, or "" when absent.
func (as Attrs) Sym(name string) string {
	if a, ok := as.Get(name).(*SymbolRefAttr); ok {
		return a.Path[0]
	}
	return ""
}
