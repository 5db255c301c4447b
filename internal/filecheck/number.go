package filecheck

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// This file reads and evaluates numeric substitution blocks: [[#FORMAT, NAME: == EXPRESSION]], every part optional.

// A format is how a number is written: %u, %d, %x or %X, with # for a leading 0x and .N for at least N digits.
type format struct {
	verb      byte // u, d, x, X; 0 for none
	precision int
	alternate bool
}

func (f format) String() string {
	if f.verb == 0 {
		return "<none>"
	}
	return "%" + string(f.verb)
}

// wildcard is an expression for any number in this format.
func (f format) wildcard() string {
	prefix, first, digit := "", "1-9", "0-9"
	switch f.verb {
	case 'd':
		prefix = "-?"
	case 'x':
		first, digit = "1-9a-f", "0-9a-f"
	case 'X':
		first, digit = "1-9A-F", "0-9A-F"
	}
	if f.alternate {
		prefix = "0x"
	}
	if f.precision > 0 {
		return fmt.Sprintf("%s([%s][%s]*)?[%s]{%d}", prefix, first, digit, digit, f.precision)
	}
	return fmt.Sprintf("%s[%s]+", prefix, digit)
}

// write writes a value in this format.
func (f format) write(v *big.Int) (string, error) {
	sign := ""
	if v.Sign() < 0 {
		if f.verb != 'd' {
			return "", fmt.Errorf("the negative value %s can't be written with %s", v, f)
		}
		sign = "-"
	}
	base := 10
	if f.verb == 'x' || f.verb == 'X' {
		base = 16
	}
	digits := new(big.Int).Abs(v).Text(base)
	if f.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if f.alternate {
		sign += "0x"
	}
	return sign + strings.Repeat("0", max(0, f.precision-len(digits))) + digits, nil
}

// read is the value of a text that wildcard matched.
func (f format) read(text string) *big.Int {
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	base := 10
	if f.verb == 'x' || f.verb == 'X' {
		base = 16
	}
	if f.alternate {
		text = strings.TrimPrefix(text, "0x")
	}
	v, ok := new(big.Int).SetString(text, base)
	if !ok {
		panic(fmt.Sprintf("filecheck: %q matched as a number in format %s", text, f)) // wildcard and read disagree
	}
	if negative {
		v.Neg(v)
	}
	return v
}

// An expr is a numeric expression: a constant, a variable, or an operation on two of them.
type expr struct {
	constant    *big.Int
	variable    *numeric
	op          func(z, x, y *big.Int) error
	left, right *expr
	text        string
	at          loc
}

func (e *expr) eval() (*big.Int, error) {
	switch {
	case e.constant != nil:
		return e.constant, nil
	case e.variable != nil:
		if e.variable.value == nil {
			return nil, errorAt(e.at, "undefined variable: %s", e.variable.name)
		}
		return e.variable.value, nil
	}
	x, err := e.left.eval()
	if err != nil {
		return nil, err
	}
	y, err := e.right.eval()
	if err != nil {
		return nil, err
	}
	z := new(big.Int)
	if err := e.op(z, x, y); err != nil {
		return nil, errorAt(e.at, "%v", err)
	}
	return z, nil
}

// implicitFormat is the format of the variables in the expression, which must agree.
func (e *expr) implicitFormat() (format, error) {
	switch {
	case e.constant != nil:
		return format{}, nil
	case e.variable != nil:
		return e.variable.format, nil
	}
	l, err := e.left.implicitFormat()
	if err != nil {
		return l, err
	}
	r, err := e.right.implicitFormat()
	if err != nil {
		return r, err
	}
	if l.verb != 0 && r.verb != 0 && l != r {
		return l, errorAt(e.at, "implicit format conflict between '%s' (%s) and '%s' (%s), need an explicit format specifier",
			e.left.text, l, e.right.text, r)
	}
	if l.verb == 0 {
		l = r
	}
	return l, nil
}

// A numericBlock is what stands between [[# and ]].
type numericBlock struct {
	format  format
	defines *numeric // nil if it defines none
	expr    *expr    // nil for any number
	text    string
}

// parseNumericBlock reads a numeric block. A legacy block is [[@LINE]] or [[@LINE+n]], written without #.
// Line 0 stands for an option.
func (c *checker) parseNumericBlock(text string, at loc, line int, legacy bool) (*numericBlock, error) {
	b := &numericBlock{text: text}
	p := &numberParser{c: c, rest: text, text: text, at: at, line: line, legacy: legacy}
	explicit, precision, err := p.formatSpec()
	if err != nil {
		return nil, err
	}
	definition, after, defines := strings.Cut(p.rest, ":")
	definitionAt := p.here()
	if defines {
		p.rest = after
	}
	p.skipBlanks()
	constrained := p.eat("==")
	p.skipBlanks()
	p.rest = strings.TrimRight(p.rest, " \t")
	if p.rest != "" {
		if b.expr, err = p.expression(constrained); err != nil {
			return nil, err
		}
	} else if constrained {
		return nil, errorAt(p.here(), "empty numeric expression should not have a constraint")
	}

	b.format = explicit
	if b.format.verb == 0 && b.expr != nil {
		if b.format, err = b.expr.implicitFormat(); err != nil {
			return nil, err
		}
	}
	if b.format.verb == 0 {
		b.format = format{verb: 'u', precision: precision}
	}
	if defines {
		b.defines, err = c.numericDefinition(strings.TrimLeft(definition, " \t"), definitionAt, line, b.format)
	}
	return b, err
}

func (c *checker) numericDefinition(text string, at loc, line int, f format) (*numeric, error) {
	name, rest, err := cutName(text)
	switch {
	case err != nil:
		return nil, errorAt(at, "%v", err)
	case name[0] == '@':
		return nil, errorAt(at, "definition of pseudo numeric variable unsupported")
	case c.vars.textDefined[name]:
		return nil, errorAt(at, "string variable with name '%s' already exists", name)
	case strings.TrimLeft(rest, " \t") != "":
		return nil, errorAt(at, "unexpected characters after numeric variable name")
	}
	v := c.vars.number[name]
	if v == nil {
		return &numeric{name: name, format: f, line: line}, nil
	}
	if v.format != f {
		return nil, errorAt(at, "format different from previous variable definition")
	}
	return v, nil
}

// operations are the functions that an expression can call; + and - are add and sub.
var operations = map[string]func(z, x, y *big.Int) error{
	"add": func(z, x, y *big.Int) error { z.Add(x, y); return nil },
	"sub": func(z, x, y *big.Int) error { z.Sub(x, y); return nil },
	"mul": func(z, x, y *big.Int) error { z.Mul(x, y); return nil },
	"div": func(z, x, y *big.Int) error {
		if y.Sign() == 0 {
			return fmt.Errorf("division by zero")
		}
		z.Quo(x, y)
		return nil
	},
	"max": func(z, x, y *big.Int) error {
		if z.Set(x); x.Cmp(y) < 0 {
			z.Set(y)
		}
		return nil
	},
	"min": func(z, x, y *big.Int) error {
		if z.Set(x); x.Cmp(y) > 0 {
			z.Set(y)
		}
		return nil
	},
}

// numberParser reads one block from left to right.
type numberParser struct {
	c      *checker
	rest   string
	text   string
	at     loc
	line   int
	legacy bool // only [[@LINE]], [[@LINE+n]] and [[@LINE-n]] are allowed
	second bool // past the first operand of a legacy block: only a number is allowed
}

// here is the place of rest, which is always at the end of text but for blanks trimmed off.
func (p *numberParser) here() loc {
	return p.at.plus(strings.LastIndex(p.text, p.rest))
}

func (p *numberParser) eat(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest = rest
	return ok
}

func (p *numberParser) skipBlanks() { p.rest = strings.TrimLeft(p.rest, " \t") }

// formatSpec reads "%FORMAT," where there is one. A precision without a verb is returned alone.
func (p *numberParser) formatSpec() (f format, precision int, err error) {
	comma, paren := strings.IndexByte(p.rest, ','), strings.IndexByte(p.rest, '(')
	if comma < 0 || paren >= 0 && paren < comma {
		return format{}, 0, nil
	}
	at := p.here()
	spec := strings.Trim(p.rest[:comma], " \t")
	p.rest = p.rest[comma+1:]
	bad := func(what string) (format, int, error) { return format{}, 0, errorAt(at, "%s in expression", what) }
	spec, ok := strings.CutPrefix(spec, "%")
	if !ok {
		return bad("invalid matching format specification")
	}
	spec, f.alternate = strings.CutPrefix(spec, "#")
	if after, ok := strings.CutPrefix(spec, "."); ok {
		n := len(after) - len(strings.TrimLeft(after, "0123456789"))
		if precision, err = strconv.Atoi(after[:n]); err != nil || precision > maxRepeat {
			return bad("invalid precision")
		}
		spec = after[n:]
	}
	if spec != "" {
		if f.verb = spec[0]; strings.IndexByte("udxX", f.verb) < 0 {
			return bad("invalid format specifier")
		}
		f.precision = precision
		spec = strings.TrimLeft(spec[1:], " \t")
	}
	if f.alternate && f.verb != 'x' && f.verb != 'X' {
		return bad("alternate form only supported for hex values")
	}
	if spec != "" {
		return bad("invalid matching format specification")
	}
	return f, precision, nil
}

// expression reads operands joined by + and -, to the end of the block.
func (p *numberParser) expression(constrained bool) (*expr, error) {
	what := "operand"
	if !constrained {
		what = "matching constraint or operand"
	}
	e, err := p.operand(what)
	if err != nil {
		return nil, err
	}
	for p.rest != "" {
		if p.second {
			return nil, errorAt(p.here(), "unexpected characters at end of expression '%s'", p.rest)
		}
		p.second = p.legacy
		if e, err = p.binary(e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// binary reads an operator and its right operand. Blanks alone leave the left operand as it is.
func (p *numberParser) binary(left *expr) (*expr, error) {
	p.skipBlanks()
	if p.rest == "" {
		return left, nil
	}
	at := p.here()
	name := ""
	switch {
	case p.eat("+"):
		name = "add"
	case p.eat("-"):
		name = "sub"
	default:
		return nil, errorAt(at, "unsupported operation '%c'", p.rest[0])
	}
	p.skipBlanks()
	if p.rest == "" {
		return nil, errorAt(at, "missing operand in expression")
	}
	right, err := p.operand("operand")
	if err != nil {
		return nil, err
	}
	return &expr{op: operations[name], left: left, right: right, text: p.text, at: at}, nil
}

// operand reads a variable, a call, a number or an expression in parentheses. What is tried is named in the error.
func (p *numberParser) operand(what string) (*expr, error) {
	at := p.here()
	if !p.legacy && strings.HasPrefix(p.rest, "(") {
		return p.parenthesized()
	}
	if !p.second {
		if name, rest, err := cutName(p.rest); err == nil {
			p.rest = rest
			if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "(") {
				if p.legacy {
					return nil, errorAt(at, "unexpected function call")
				}
				return p.call(name, at)
			}
			return p.variable(name, at)
		}
	}
	before := p.rest
	v, rest, ok := cutNumber(p.rest, p.legacy)
	if !ok {
		return nil, errorAt(at, "invalid %s format", what)
	}
	p.rest = rest
	return &expr{constant: v, text: before[:len(before)-len(rest)], at: at}, nil
}

// cutNumber splits an integer off: decimal or, unless only that is wanted, with the prefix 0x, 0b, 0o or 0.
func cutNumber(s string, decimal bool) (v *big.Int, rest string, ok bool) {
	s, negative := strings.CutPrefix(s, "-")
	base, digits := 10, "0123456789"
	lower := strings.ToLower(s)
	switch {
	case decimal:
	case strings.HasPrefix(lower, "0x"):
		base, digits, s = 16, "0123456789abcdefABCDEF", s[2:]
	case strings.HasPrefix(lower, "0b"):
		base, digits, s = 2, "01", s[2:]
	case strings.HasPrefix(lower, "0o"):
		base, digits, s = 8, "01234567", s[2:]
	case len(s) > 1 && s[0] == '0' && isDigit(s[1]):
		base, digits, s = 8, "01234567", s[1:]
	}
	n := len(s) - len(strings.TrimLeft(s, digits))
	if v, ok = new(big.Int).SetString(s[:n], base); ok && negative {
		v.Neg(v)
	}
	return v, s[n:], ok
}

func (p *numberParser) variable(name string, at loc) (*expr, error) {
	if name == "@LINE" {
		line := &numeric{name: name, format: format{verb: 'u'}, value: big.NewInt(int64(p.line))}
		return &expr{variable: line, text: name, at: at}, nil
	}
	if name[0] == '@' {
		return nil, errorAt(at, "invalid pseudo numeric variable '%s'", name)
	}
	v := p.c.vars.number[name]
	if v == nil { // reported when its value is needed
		v = &numeric{name: name, format: format{verb: 'u'}}
		p.c.vars.number[name] = v
	}
	if v.line != 0 && v.line == p.line {
		return nil, errorAt(at, "numeric variable '%s' defined earlier in the same CHECK directive", name)
	}
	return &expr{variable: v, text: name, at: at}, nil
}

func (p *numberParser) parenthesized() (*expr, error) {
	p.eat("(")
	p.skipBlanks()
	if p.rest == "" {
		return nil, errorAt(p.here(), "missing operand in expression")
	}
	e, err := p.argument(")")
	if err == nil && !p.eat(")") {
		err = errorAt(p.here(), "missing ')' at end of nested expression")
	}
	return e, err
}

// argument reads an expression up to one of the characters in stop, or to the end.
func (p *numberParser) argument(stop string) (*expr, error) {
	e, err := p.operand("operand")
	for err == nil {
		p.skipBlanks()
		if p.rest == "" || strings.IndexByte(stop, p.rest[0]) >= 0 {
			break
		}
		e, err = p.binary(e)
	}
	return e, err
}

func (p *numberParser) call(name string, at loc) (*expr, error) {
	op := operations[name]
	if op == nil {
		return nil, errorAt(at, "call to undefined function '%s'", name)
	}
	p.skipBlanks()
	p.eat("(")
	p.skipBlanks()
	var args []*expr
	for more := !strings.HasPrefix(p.rest, ")") && p.rest != ""; more; more = p.eat(",") {
		if p.skipBlanks(); p.rest == "" || p.rest[0] == ',' || p.rest[0] == ')' {
			return nil, errorAt(p.here(), "missing argument")
		}
		arg, err := p.argument(",)")
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	if !p.eat(")") {
		return nil, errorAt(p.here(), "missing ')' at end of call expression")
	}
	if len(args) != 2 {
		return nil, errorAt(at, "function '%s' takes 2 arguments but %d given", name, len(args))
	}
	return &expr{op: op, left: args[0], right: args[1], text: p.text, at: at}, nil
}
