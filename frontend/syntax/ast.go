// Package syntax reads .blu text: tokens, the syntax tree with its positions, and the formatter.
//
// The parser is written by hand, by recursive descent. A grammar library would be shorter, but the promise made to
// the person who writes a model is that one run reports the errors of every statement, each at the character where
// it is, and that formatting keeps every comment; that needs control over recovery and over the token stream.
//
// The package knows the shape of a program and nothing of its meaning: no names are looked up here.
package syntax

import "blutrain/ir/diag"

// Span is the half-open piece of the text that a node covers.
type Span struct {
	Start, End diag.Pos
}

// Pos is the span itself; nodes embed Span and so have it.
func (s Span) Pos() Span { return s }

// Node is a piece of the tree.
type Node interface{ Pos() Span }

// File is a whole text.
type File struct {
	Span
	Name  string
	Src   string
	Items []Item
}

// Text is what the person wrote in a span.
func (f *File) Text(s Span) string { return f.Src[s.Start.Offset:s.End.Offset] }

// Range places a span in the file.
func (f *File) Range(s Span) diag.Range {
	return diag.Range{File: f.Name, Start: s.Start, End: s.End}
}

// Item is what may stand at the top of a file: *Model, *Train, *Func.
type Item interface {
	Node
	item()
}

// Member is what may stand in a model or a module: *Param, *Module, *Layers, *Func.
type Member interface {
	Node
	member()
}

// Ident is a name where it stands.
type Ident struct {
	Span
	Name string
}

// Model is "model NAME(ARG = DEFAULT, ...) { members }".
type Model struct {
	Span
	Name    Ident
	Args    []*Binding
	Members []Member
}

// Binding is "NAME = VALUE": an argument of a model, a size of a batch.
type Binding struct {
	Span
	Name  Ident
	Value Expr
}

// Param is "param NAME: TYPE = INITIALIZER".
type Param struct {
	Span
	Name Ident
	Type Type
	Init Expr
}

// Module is "module NAME { members }".
type Module struct {
	Span
	Name    Ident
	Members []Member
}

// Layers is "layers NAME: MODULE[COUNT]"; without a count, Count is nil and NAME is one instance.
type Layers struct {
	Span
	Name   Ident
	Module Ident
	Count  Expr
}

// Func is "fn NAME(PARAMETERS) -> RESULT { statements }".
type Func struct {
	Span
	Name   Ident
	Params []*FuncParam
	Result Type
	Body   *Block
}

// FuncParam is "NAME: TYPE" in a function's head.
type FuncParam struct {
	Span
	Name Ident
	Type Type
}

// Type is *TensorType or *TupleType.
type Type interface {
	Node
	typ()
}

// TensorType is "f32[B, S, C]"; without dimensions it is a scalar, or one of the static types int and float.
type TensorType struct {
	Span
	Elem Ident
	Dims []Expr
}

// TupleType is "(f32, f32)".
type TupleType struct {
	Span
	Elems []Type
}

// Train is "train NAME { clauses }".
type Train struct {
	Span
	Name    Ident
	Clauses []Clause
}

// Clause is what may stand in a train block: *Minimize, *Batch, *Optimizer, *Clip.
type Clause interface {
	Node
	clause()
}

// Minimize is "minimize FUNCTION".
type Minimize struct {
	Span
	Func Ident
}

// Batch is "batch B = 16, S = 1024, accumulate = 1".
type Batch struct {
	Span
	Sizes []*Binding
}

// Optimizer is "optimizer NAME(ARGUMENTS)".
type Optimizer struct {
	Span
	Call *Call
}

// Clip is "clip NORM VALUE".
type Clip struct {
	Span
	Norm  Ident
	Value Expr
}

// Block is "{ statements }".
type Block struct {
	Span
	Stmts []Stmt
}

// Stmt is *Let, *Assign, *For, *If or *Return.
type Stmt interface {
	Node
	stmt()
}

// Let is "let NAME = VALUE" or "let (A, B) = VALUE", which takes a tuple apart.
type Let struct {
	Span
	Names []Ident
	Tuple bool
	Value Expr
}

// Assign is "NAME = VALUE", which gives an existing name a new value.
type Assign struct {
	Span
	Name  Ident
	Value Expr
}

// For is "for NAME in LAYERS { ... }", or "for NAME in LOW..HIGH { ... }" when High is not nil.
type For struct {
	Span
	Name Ident
	Over Expr // the layers, or the lower end of the range
	High Expr
	Body *Block
}

// If is "if CONDITION { ... } else { ... }"; Else is nil, a *Block, or another *If.
type If struct {
	Span
	Cond Expr
	Then *Block
	Else Stmt
}

// Return is "return VALUE".
type Return struct {
	Span
	Value Expr
}

// Expr is *Name, *Number, *Bool, *String, *Unary, *Binary, *Call, *Index, *Select, *Tuple, *List or *Paren.
type Expr interface {
	Node
	expr()
}

// Name is a name used as a value.
type Name struct {
	Span
	Name string
}

// Number is an integer or floating literal. Text is as written, without underscores.
type Number struct {
	Span
	Text  string
	Float bool
	Int   int64   // when not Float
	Value float64 // the value, of either kind
}

// Bool is "true" or "false".
type Bool struct {
	Span
	Value bool
}

// String is a string literal, unquoted.
type String struct {
	Span
	Value string
}

// Unary is "-x" or "!x".
type Unary struct {
	Span
	Op string
	X  Expr
}

// Binary is "x OP y". OpPos is where the operator stands.
type Binary struct {
	Span
	Op    string
	OpPos Span
	X, Y  Expr
}

// Call is "FUN(ARGUMENTS)"; Fun is a *Name or a *Select.
type Call struct {
	Span
	Fun  Expr
	Args []*Arg
}

// Arg is "VALUE", "NAME: VALUE" or, in an optimizer, "NAME: VALUE where CONDITION".
type Arg struct {
	Span
	Name  *Ident
	Value Expr
	Where Expr
}

// Index is "x[INDICES]".
type Index struct {
	Span
	X       Expr
	Indices []*IndexItem
}

// IndexItem is "VALUE", or "LOW:HIGH" with either end left out when Slice is set.
type IndexItem struct {
	Span
	Slice bool
	Low   Expr // the value, when not a slice
	High  Expr
}

// Select is "x.NAME".
type Select struct {
	Span
	X    Expr
	Name Ident
}

// Tuple is "(a, b)".
type Tuple struct {
	Span
	Elems []Expr
}

// List is "[a, b]".
type List struct {
	Span
	Elems []Expr
}

// Paren is "(x)".
type Paren struct {
	Span
	X Expr
}

func (*Model) item() {}
func (*Train) item() {}
func (*Func) item()  {}

func (*Param) member()  {}
func (*Module) member() {}
func (*Layers) member() {}
func (*Func) member()   {}

func (*TensorType) typ() {}
func (*TupleType) typ()  {}

func (*Minimize) clause()  {}
func (*Batch) clause()     {}
func (*Optimizer) clause() {}
func (*Clip) clause()      {}

func (*Block) stmt()  {}
func (*Let) stmt()    {}
func (*Assign) stmt() {}
func (*For) stmt()    {}
func (*If) stmt()     {}
func (*Return) stmt() {}

func (*Name) expr()   {}
func (*Number) expr() {}
func (*Bool) expr()   {}
func (*String) expr() {}
func (*Unary) expr()  {}
func (*Binary) expr() {}
func (*Call) expr()   {}
func (*Index) expr()  {}
func (*Select) expr() {}
func (*Tuple) expr()  {}
func (*List) expr()   {}
func (*Paren) expr()  {}

// Unparen strips parentheses.
func Unparen(e Expr) Expr {
	for {
		p, ok := e.(*Paren)
		if !ok {
			return e
		}
		e = p.X
	}
}
