// Package sema gives a .blu syntax tree its meaning: it resolves names, computes every size, dtype and shape, unrolls
// what is static, and returns a Program whose every expression has its type. A tree that has no meaning gives
// diagnostics instead, all of them in one run, in source order.
//
// Functions are checked where they are used: an exported function with the sizes of the batch, any other with the
// sizes of each call. What a function says of itself is in the names of its own head; its callers see the result in
// theirs.
//
// The package knows the built-ins as a table and nothing of IR.
package sema

import (
	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/ir/diag"
)

// Program is a model that has been checked.
type Program struct {
	Name    string
	At      diag.Range
	Args    []NamedConst // arguments of the model, with their values
	Batch   []NamedConst // sizes that functions are compiled for: those of the train block, then those set
	Params  []*Param     // one for each parameter of each layer, in the order of declaration
	Exports []*Function  // the model's functions that can be called from outside
	Train   *Train       // nil when the file has no train block
}

// NamedConst is a constant with its name.
type NamedConst struct {
	Name  string
	Value shape.Const
}

// Param is a parameter of the model: of layer 3 of h, ln1_g is called "h.3.ln1_g".
type Param struct {
	Name  string
	At    diag.Range
	Type  shape.Type
	Init  Init
	Decay float64 // weight decay, 0 for none
}

// Init says what a parameter holds before the first step.
type Init struct {
	Kind   string // "normal", "uniform", "zeros", "ones" or "constant"
	Values []NamedNumber
	Text   string // as written
}

// NamedNumber is a number with its name.
type NamedNumber struct {
	Name  string
	Value float64
}

// Train is a checked train block.
type Train struct {
	At         diag.Range
	Minimize   *Function
	Batch      []NamedConst // B, S, ... in the order written
	Accumulate int64
	Optimizer  Method  // "adamw" or "sgd"
	Schedule   Method  // "constant", "linear", "cosine" or "wsd"
	ClipNorm   float64 // 0: no clipping
}

// Method is a kind with its numbers, all of them, defaults filled in.
type Method struct {
	Kind   string
	Values []NamedNumber
}

// Function is a function with concrete sizes.
type Function struct {
	Name     string // "loss", "block.forward"
	At       diag.Range
	Params   []*Var // tensors; static parameters are constants in the body
	Body     []*Let
	Result   Expr
	Type     shape.Type // of the result
	Exported bool
	Random   bool // draws random numbers, itself or in what it calls

	state state
}

type state uint8

const (
	unchecked state = iota
	checking
	checked
	broken // has errors of its own
)

// Var is a value with a name. It never changes: a name that is given a new value is another Var.
type Var struct {
	Name string
	At   diag.Range
	Type shape.Type
}

// Let computes a value and names it. A tuple is taken apart into several names; a nil name drops its element.
type Let struct {
	Vars  []*Var
	Value Expr
}

// Expr is *Const, *Use, *Read, *Builtin, *CallFunc or *TupleExpr: a value with its type.
type Expr interface {
	Type() shape.Type
	At() diag.Range
}

// typed is what every expression has.
type typed struct {
	typ shape.Type
	at  diag.Range
}

func (t typed) Type() shape.Type { return t.typ }
func (t typed) At() diag.Range   { return t.at }

// Const is a constant that stands as a scalar tensor.
type Const struct {
	typed
	Value shape.Const
}

// Use is the value of a Var.
type Use struct {
	typed
	Var *Var
}

// Place names parameters and layers: relative to the layer that a module's function is called on, or, when Root, to
// the model.
type Place struct {
	Root bool
	Path string
}

// Join is a place within p.
func (p Place) Join(name string) Place {
	if p.Path == "" {
		return Place{p.Root, name}
	}
	if name == "" {
		return p
	}
	return Place{p.Root, p.Path + "." + name}
}

// In is the place q as seen by a function called on the layer at p.
func (q Place) In(p Place) Place {
	if q.Root {
		return q
	}
	return p.Join(q.Path)
}

// Read is the value of a parameter.
type Read struct {
	typed
	Place Place
}

// Builtin is a call of a built-in or the use of an operator. Args has the tensor arguments by parameter; those that
// are constants have none.
type Builtin struct {
	typed
	Call *builtin.Call
	Args [][]Expr
}

// CallFunc is a call of a function of the file, on the layer at Self when it belongs to a module.
type CallFunc struct {
	typed
	Func *Function
	Self Place
	Args []Expr
}

// TupleExpr is "(a, b)".
type TupleExpr struct {
	typed
	Elems []Expr
}

// Options are what the command line adds to a file.
type Options struct {
	// Set gives arguments of the model and sizes of the batch other values.
	Set map[string]float64
	// Truths gives arguments of the model that are truth values others.
	Truths map[string]bool
}

// Check gives a file its meaning. The program is nil when there are errors.
func Check(file *syntax.File, opts Options) (*Program, diag.List) {
	c := newChecker(file, opts)
	p := c.check()
	if c.diags.HasErrors() {
		c.diags.Sort()
		return nil, c.diags
	}
	c.warnings.Sort()
	return p, c.warnings
}
