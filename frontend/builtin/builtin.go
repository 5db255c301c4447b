// Package builtin is the table of what .blu programs can call: one row a built-in, with its parameters, their
// defaults, a line of documentation, the rule that computes its result's type, and the IR that it becomes.
//
// Operators are rows too. The package knows types and the blu dialect, and nothing of names, scopes or syntax trees:
// the checker binds arguments to parameters and asks a row what comes out; the emitter asks the same row for IR.
package builtin

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"blutrain/frontend/shape"
	"blutrain/ir"
	"blutrain/ir/diag"
)

// Kind is what a parameter takes.
type Kind uint8

// The kinds of parameters: tensors of some element types, then constants.
const (
	Tensor    Kind = iota // any element type
	Float                 // f32, f64, bf16, f16
	Number                // a float or an integer type
	Integer               // i32, i64
	Boolean               // bool
	Tensors               // one or more tensors of any element type
	IntArg                // an integer
	NumArg                // a number
	BoolArg               // true or false
	StringArg             // a string
	DTypeArg              // an element type
	AxisArg               // the number of a dimension, negative from the end
	AxesArg               // one axis or a list of them
	DimsArg               // a list of sizes
)

var kindNames = [...]string{
	"tensor", "float tensor", "number tensor", "integer tensor", "bool tensor", "tensors",
	"integer", "number", "truth value", "string", "dtype", "axis", "axis or list of axes", "list of sizes",
}

// String is the kind as the reference names it.
func (k Kind) String() string { return kindNames[k] }

// IsTensor tells the kinds that take tensors.
func (k Kind) IsTensor() bool { return k <= Tensors }

// WithArticle is the kind in a sentence: "an integer".
func (k Kind) WithArticle() string {
	if strings.ContainsRune("aeiou", rune(k.String()[0])) {
		return "an " + k.String()
	}
	return "a " + k.String()
}

// Accepts tells whether a tensor's elements may be of type d.
func (k Kind) Accepts(d shape.DType) bool {
	switch k {
	case Float:
		return d.IsFloat()
	case Number:
		return d.IsFloat() || d.IsInt()
	case Integer:
		return d.IsInt()
	case Boolean:
		return d == shape.Bool
	}
	return true
}

// Param is one parameter of a built-in.
type Param struct {
	Name string
	Kind Kind
	// Adopts lets a constant stand for the tensor; it takes the element type of the row's other adopting tensors.
	Adopts bool
	// Optional lets the argument be left out without a default.
	Optional bool
	// Default is the constant that is meant when the argument is left out; NoConst makes the argument required.
	Default shape.Const
	// Choices are the strings that a StringArg may be.
	Choices []string
}

// Required tells whether the argument may not be left out.
func (p Param) Required() bool { return !p.Optional && p.Default.Kind == shape.NoConst }

// Row is one built-in.
type Row struct {
	Name   string
	Params []Param
	Result string // the result's type, for the reference
	Doc    string
	// Infer computes the type of the result, or reports and returns the type of a value in error.
	Infer func(c *Call) shape.Type
	// Fold computes the value when every tensor argument is a constant; nil when the built-in needs tensors.
	Fold func(args []float64) float64
	// Emit builds the IR of a call that Infer accepted.
	Emit func(e *Emitter) []*ir.Value
	// Random marks what draws random numbers.
	Random bool
}

// Rows goes over the built-ins that programs call by name.
func Rows() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for _, s := range Table {
			for _, r := range s.Rows {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Lookup finds a built-in that can be called by name, nil when there is none.
func Lookup(name string) *Row {
	for r := range Rows() {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Arg is what a call gives for one parameter.
type Arg struct {
	Given bool
	At    diag.Range
	Text  string // what the person wrote, when it is a name
	Type  shape.Type
	Const shape.Const
	Decl  *Decl // where Text was declared
	List  []Arg // of a Tensors parameter
}

// IsConst tells whether a constant was given, or stands as default.
func (a Arg) IsConst() bool { return a.Const.Kind != shape.NoConst }

// Decl is a place that an error can point to: "fc_w is declared f32[4*C, C] here".
type Decl struct {
	At   diag.Range
	Name string
	What string // "is declared f32[4*C, C]"
}

// Call is a use of a row with its arguments bound to the row's parameters, in order.
type Call struct {
	Row  *Row
	At   diag.Range
	Args []Arg
	// Parts is the number of names that take the result apart, 0 when it is not.
	Parts int
	// Index holds the items of x[...], for the row Index.
	Index  []IndexItem
	Result shape.Type
	// Report takes the errors of Infer.
	Report func(r diag.Range, message string) *diag.Diagnostic
}

func (c *Call) index(name string) int {
	i := slices.IndexFunc(c.Row.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("builtin: %s has no parameter %s", c.Row.Name, name))
	}
	return i
}

func (c *Call) arg(name string) *Arg { return &c.Args[c.index(name)] }

// has tells whether an optional argument is there.
func (c *Call) has(name string) bool { a := c.arg(name); return a.Given || a.IsConst() }

func (c *Call) typ(name string) shape.Type { return c.arg(name).Type }
func (c *Call) int(name string) shape.Int  { return c.arg(name).Const.Int }
func (c *Call) num(name string) float64    { return c.arg(name).Const.Number() }
func (c *Call) bool(name string) bool      { return c.arg(name).Const.Bool }
func (c *Call) str(name string) string     { return c.arg(name).Const.Str }
func (c *Call) dtype(name string) shape.DType {
	return c.arg(name).Const.DType
}

// ints are the integers of a list argument, or the single one of an axis argument.
func (c *Call) ints(name string) []shape.Int {
	a := c.arg(name).Const
	if a.Kind == shape.IntConst {
		return []shape.Int{a.Int}
	}
	var out []shape.Int
	for _, e := range a.List {
		out = append(out, e.Int)
	}
	return out
}

// place is where an error about an argument points: the argument, or the call when it was left out.
func (c *Call) place(name string) diag.Range {
	if name != "" {
		if a := c.arg(name); a.Given {
			return a.At
		}
	}
	return c.At
}

// fail reports an error at an argument; sizes in args are told as shape.Sprintf does. It returns the type of a value
// in error, so that Infer can end with it.
func (c *Call) fail(param, format string, args ...any) shape.Type {
	c.failAt(c.place(param), format, args...)
	return shape.Type{}
}

func (c *Call) failAt(r diag.Range, format string, args ...any) *diag.Diagnostic {
	return c.Report(r, c.Row.Name+": "+shape.Sprintf(format, args...))
}

// clash is fail for an error that lies between an argument and others: notes point at where the others were
// declared, for the error itself points at the argument; at its own declaration when there are no others.
func (c *Call) clash(param string, others []string, format string, args ...any) shape.Type {
	d := c.failAt(c.place(param), format, args...)
	if c.notes(d, others...); len(d.Notes) == 0 {
		c.notes(d, param)
	}
	return shape.Type{}
}

func (c *Call) notes(d *diag.Diagnostic, params ...string) {
	var noted []*Decl
	for _, p := range params {
		a := c.arg(p)
		if a.Decl == nil || slices.ContainsFunc(noted, func(n *Decl) bool { return n.At == a.Decl.At }) {
			continue
		}
		noted = append(noted, a.Decl)
		d.Note(a.Decl.At, "%s %s here", a.Decl.Name, a.Decl.What)
	}
}

// axis is an axis argument from 0, or reports one that x does not have.
func (c *Call) axis(name string, rank int) (int, bool) {
	axes, ok := c.axes(name, rank)
	if !ok {
		return 0, false
	}
	return axes[0], true
}

// axes are the axes of an argument from 0, in increasing order; all of them when the argument was left out.
func (c *Call) axes(name string, rank int) ([]int, bool) {
	if !c.has(name) {
		all := make([]int, rank)
		for i := range all {
			all[i] = i
		}
		return all, true
	}
	var out []int
	for _, v := range c.ints(name) {
		a := v.N
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) {
			c.fail(name, "axis %d is out of range: there are %d dimensions", v.N, rank)
			return nil, false
		}
		if slices.Contains(out, int(a)) {
			c.fail(name, "axis %d is given twice", v.N)
			return nil, false
		}
		out = append(out, int(a))
	}
	slices.Sort(out)
	return out, true
}

// sizes are the dimensions of a list argument, each at least 1.
func (c *Call) sizes(name string) ([]shape.Int, bool) {
	dims := c.ints(name)
	for _, d := range dims {
		if d.N < 1 {
			c.fail(name, "a size must be at least 1, this is %v", d)
			return nil, false
		}
	}
	return dims, true
}

// rank reports a tensor that has not exactly n dimensions.
func (c *Call) rank(name string, n int, layout string) bool {
	if t := c.typ(name); t.Rank() != n {
		c.clash(name, nil, "%s is %v, expected %s %s", name, t, plural(n, "dimension"), layout)
		return false
	}
	return true
}

// least reports a tensor that has fewer than n dimensions.
func (c *Call) least(name string, n int) bool {
	if t := c.typ(name); t.Rank() < n {
		c.clash(name, nil, "%s is %v, expected at least %s", name, t, plural(n, "dimension"))
		return false
	}
	return true
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sameDType reports tensors of different element types.
func (c *Call) sameDType(names ...string) bool {
	first := c.typ(names[0])
	for _, n := range names[1:] {
		a := c.arg(n)
		if a.Given && a.Type.DType != first.DType {
			c.clash(n, names[:1], "%s is %s, %s is %s: cast one of them", names[0], first.DType, n, a.Type.DType)
			return false
		}
	}
	return true
}

// product multiplies sizes, or reports that the product does not fit.
func (c *Call) product(dims []shape.Int) (shape.Int, bool) {
	p := shape.Lit(1)
	for _, d := range dims {
		var err error
		if p, err = shape.Mul(p, d); err != nil {
			c.fail("", "%s", err)
			return p, false
		}
	}
	return p, true
}
