package ir

import "fmt"

// Traits is what every use of an operation may rely on.
type Traits uint32

const (
	Pure             Traits = 1 << iota // no effect but its results; may be merged, moved and dropped
	Commutative                         // operands may be permuted
	Elementwise                         // each element of the result depends on the same element of each operand
	Terminator                          // ends a block
	Differentiable                      // autodiff has a rule of this name
	SymbolTable                         // its region's operations with sym_name are found by name
	Symbol                              // has a sym_name
	Isolated                            // its regions use no value from outside
	NoTerminator                        // its blocks end without a terminator
	ConstantLike                        // has no operands, and an attribute "value" in its definition
	View                                // its result is another view of its first operand: no work, only strides
	Random                              // depends on a seed; Pure still holds: the same seed gives the same bits
	SameTypes                           // all operands and results have one type
	SegmentedOperand                    // has operandSegmentSizes, one count an operand group
	Properties                          // generic form prints inherent attributes as properties, <{...}>, as upstream wants
	FunctionLike                        // has sym_name, function_type and one region, printed as name @sym(%arg: type) -> type { ... }
	Unregistered                        // made up for an unknown name: nothing is known
)

// OpDef says all there is to know about an operation. A dialect's table holds one literal an operation.
type OpDef struct {
	Name        string // without the dialect
	Summary     string // one line
	Description string // what the operation computes, in Markdown; shapes, units, special values
	Operands    []OperandDef
	Attrs       []AttrDef
	Results     []ResultDef
	Regions     []RegionDef
	Traits      Traits

	// Infer computes the result types from operands and attributes; nil when they can't be inferred. The verifier holds
	// results to it.
	Infer func(c *Context, in InferInput) ([]Type, error)
	// Verify checks what constraints and Infer don't; nil when there is nothing more.
	Verify func(op *Op) error
	// Fold simplifies the operation to existing values or constants; nil slice means no change, and the operation's own
	// results that it was simplified in place. consts[i] is the i-th operand's constant or nil.
	Fold func(c *Context, op *Op, consts []Attr) []FoldResult
	// Eval is the reference semantics in float64.
	Eval EvalFunc

	full, dialect string
}

// Define completes a definition for a dialect's table.
func Define(dialect string, def OpDef) *OpDef {
	def.dialect = dialect
	def.full = dialect + "." + def.Name
	return &def
}

// FullName is the name with its dialect: "blu.add".
func (d *OpDef) FullName() string { return d.full }

// DialectName is the dialect's name.
func (d *OpDef) DialectName() string { return d.dialect }

// attr is the definition of the attribute of that name, or nil.
func (d *OpDef) attr(name string) *AttrDef {
	for i := range d.Attrs {
		if d.Attrs[i].Name == name {
			return &d.Attrs[i]
		}
	}
	return nil
}

// Arity is how many values an operand or result stands for.
type Arity uint8

const (
	One Arity = iota
	Optional
	Variadic
)

// OperandDef is one operand, or a group of them, of an operation.
type OperandDef struct {
	Name  string
	Type  Constraint
	Arity Arity
	Doc   string
}

// ResultDef is one result, or a group of them.
type ResultDef struct {
	Name  string
	Type  Constraint
	Arity Arity
	Doc   string
}

// AttrDef is one attribute.
type AttrDef struct {
	Name     string
	Kind     AttrKind
	Optional bool
	Default  any // int64, float64, bool, string or []int64 by kind; nil: none. What an absent attribute means.
	Doc      string
}

// RegionDef is one region. Every region has exactly one block unless Arity is Variadic (any number of blocks).
type RegionDef struct {
	Name  string
	Arity Arity
	Doc   string
}

// Constraint is a named set of types.
type Constraint struct {
	Doc string // "floating-point tensor"
	OK  func(Type) bool
}

// AttrKind is a named set of attributes.
type AttrKind uint8

const (
	AnyAttr AttrKind = iota
	I64Kind
	I32Kind
	BoolKind
	F64Kind // a FloatAttr of any type
	StringKind
	TypeKind
	SymbolKind
	I64sKind // array<i64: ...>
	ArrayKind
	DictKind
	UnitKind
	DenseKind // DenseAttr or ElidedAttr
)

var attrKindNames = [...]string{
	AnyAttr: "attribute", I64Kind: "64-bit integer", I32Kind: "32-bit integer", BoolKind: "true or false", F64Kind: "floating-point number",
	StringKind: "string", TypeKind: "type", SymbolKind: "symbol", I64sKind: "array of 64-bit integers", ArrayKind: "array", DictKind: "dictionary",
	UnitKind: "unit", DenseKind: "dense constant",
}

func (k AttrKind) String() string { return attrKindNames[k] }

// Accepts reports whether a is of kind k.
func (k AttrKind) Accepts(a Attr) bool {
	switch a := a.(type) {
	case *IntegerAttr:
		t, ok := a.Type.(*IntegerType)
		return k == AnyAttr || ok && (k == I64Kind && t.Width == 64 || k == I32Kind && t.Width == 32 || k == BoolKind && t.Width == 1)
	case *FloatAttr:
		return k == AnyAttr || k == F64Kind
	case *StringAttr:
		return k == AnyAttr || k == StringKind
	case *TypeAttr:
		return k == AnyAttr || k == TypeKind
	case *SymbolRefAttr:
		return k == AnyAttr || k == SymbolKind
	case *DenseArrayAttr:
		t, ok := a.Elem.(*IntegerType)
		return k == AnyAttr || k == I64sKind && ok && t.Width == 64
	case *ArrayAttr:
		return k == AnyAttr || k == ArrayKind
	case *DictAttr:
		return k == AnyAttr || k == DictKind
	case *UnitAttr:
		return k == AnyAttr || k == UnitKind
	case *DenseAttr, *ElidedAttr:
		return k == AnyAttr || k == DenseKind
	}
	return k == AnyAttr
}

// InferInput is what result types are inferred from.
type InferInput struct {
	Operands []*Value
	Attrs    Attrs
}

// FoldResult is a value that already exists or a constant.
type FoldResult struct {
	Value *Value
	Attr  Attr
}

// Dialect is a named set of operations, with the types and attributes only it has.
type Dialect struct {
	Name    string
	Summary string
	Ops     []*OpDef
	// Types and Attrs name the dialect's own, each with a check of its parameters: a type or attribute of the dialect
	// that is not listed is refused.
	Types []TypeDef
	Attrs []AttributeDef
}

// TypeDef is a type of a dialect: !dialect.name<...>.
type TypeDef struct {
	Name, Summary string
	Verify        func(*DialectType) error
}

// AttributeDef is an attribute of a dialect: #dialect.name<...>.
type AttributeDef struct {
	Name, Summary string
	Verify        func(*DialectAttr) error
}

// Error is a failure with the place in the source and in the IR it is about.
type Error struct {
	Loc   *Location
	Op    *Op // may be nil
	Msg   string
	Notes []Note
}

// Note is a remark at another place.
type Note struct {
	Loc *Location
	Msg string
}

func (e *Error) Error() string {
	if s := e.Loc.Source(); s != nil {
		return fmt.Sprintf("%s:%d:%d: error: %s", s.File, s.Line, s.Col, e.Msg)
	}
	return "error: " + e.Msg
}

// Errorf makes an error about an operation, at its location.
func (op *Op) Errorf(format string, args ...any) *Error {
	return &Error{Loc: op.loc, Op: op, Msg: fmt.Sprintf(format, args...)}
}
