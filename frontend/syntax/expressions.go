package syntax

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// precedence of the binary operators; higher binds tighter.
var precedence = map[kind]int{
	"||": 1, "&&": 2,
	"==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3,
	"+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}

func (p *parser) expr() Expr { return p.binary(1) }

func (p *parser) binary(least int) Expr {
	p.enter()
	defer p.leave()
	x := p.unary()
	for n := 0; ; n++ {
		op := p.tok()
		prec := precedence[op.kind]
		if prec < least {
			return x
		}
		if n == maxChain {
			p.fail(op.Span, "more than %d operators in a row", maxChain)
		}
		p.next()
		if op.kind == "*" && p.is("*") && p.tok().Start == op.End {
			p.fail(Span{op.Start, p.tok().End}, "there is no '**': a power is pow(x, y), a square square(x)")
		}
		y := p.binary(prec + 1)
		x = &Binary{Span: Span{x.Pos().Start, y.Pos().End}, Op: string(op.kind), OpPos: op.Span, X: x, Y: y}
		if prec == 3 && precedence[p.tok().kind] == 3 {
			p.fail(p.tok().Span, "comparisons do not chain: join two with &&")
		}
	}
}

func (p *parser) unary() Expr {
	if !p.is("-") && !p.is("!") {
		return p.postfix()
	}
	p.enter()
	defer p.leave()
	op := p.next()
	op.role = roleUnary
	x := p.unary()
	return &Unary{Span: Span{op.Start, x.Pos().End}, Op: string(op.kind), X: x}
}

// postfix reads calls, indices and members. Each must begin on the line where what it applies to ends, so that a
// line is never taken for the continuation of the one above.
func (p *parser) postfix() Expr {
	x := p.primary()
	for n := 0; ; n++ {
		if n > maxChain {
			p.fail(p.tok().Span, "more than %d calls and indices in a row", maxChain)
		}
		start := x.Pos().Start
		switch {
		case p.newline():
			return x
		case p.is("("):
			p.tok().role = rolePostfix
			c := &Call{Fun: x}
			p.checkCallee(x)
			p.list("(", ")", "the arguments of "+calleeName(x), func() { c.Args = append(c.Args, p.arg()) })
			c.Span = p.spanFrom(start)
			x = c
		case p.is("["):
			p.tok().role = rolePostfix
			e := &Index{X: x}
			p.list("[", "]", "the index", func() { e.Indices = append(e.Indices, p.indexItem()) })
			e.Span = p.spanFrom(start)
			if len(e.Indices) == 0 {
				p.errorf(e.Span, "an index is missing between the brackets")
			}
			x = e
		case p.is("."):
			p.next()
			e := &Select{X: x, Name: p.ident("a name after '.'")}
			e.Span = p.spanFrom(start)
			x = e
		default:
			return x
		}
	}
}

func (p *parser) checkCallee(x Expr) {
	switch x.(type) {
	case *Name, *Select:
		return
	}
	p.fail(p.tok().Span, "only a name can be called: write an operator before '('")
}

func calleeName(x Expr) string {
	switch x := x.(type) {
	case *Name:
		return x.Name
	case *Select:
		return calleeName(x.X) + "." + x.Name.Name
	}
	return "the call"
}

func (p *parser) arg() *Arg {
	start := p.tok().Start
	a := &Arg{}
	if p.is(kIdent) && p.peek().kind == ":" {
		name := p.ident("a name")
		a.Name = &name
		p.next()
	}
	a.Value = p.expr()
	if p.is(kIdent) && p.tok().text == "where" {
		p.next()
		a.Where = p.expr()
	}
	a.Span = p.spanFrom(start)
	return a
}

func (p *parser) indexItem() *IndexItem {
	start := p.tok().Start
	i := &IndexItem{}
	if !p.is(":") {
		i.Low = p.expr()
	}
	if p.is(":") {
		p.tok().role = roleTight
		p.next()
		i.Slice = true
		if !p.is(",") && !p.is("]") {
			i.High = p.expr()
		}
	}
	i.Span = p.spanFrom(start)
	return i
}

func (p *parser) primary() Expr {
	t := p.tok()
	switch t.kind {
	case kIdent:
		p.next()
		return &Name{t.Span, t.text}
	case kInt, kFloat:
		p.next()
		return p.number(t)
	case kString:
		p.next()
		return p.str(t)
	case "true", "false":
		p.next()
		return &Bool{t.Span, t.kind == "true"}
	case "(":
		return p.parens()
	case "[":
		l := &List{}
		p.list("[", "]", "the list", func() { l.Elems = append(l.Elems, p.expr()) })
		l.Span = p.spanFrom(t.Start)
		return l
	}
	p.failExpected("an expression")
	return nil
}

// parens reads "(x)" or a tuple "(a, b)".
func (p *parser) parens() Expr {
	start := p.tok().Start
	var elems []Expr
	last := p.list("(", ")", "the parentheses", func() { elems = append(elems, p.expr()) })
	s := p.spanFrom(start)
	switch len(elems) {
	case 0:
		p.fail(s, "expected an expression between the parentheses")
	case 1:
		last.role = roleNone
		return &Paren{s, elems[0]}
	}
	return &Tuple{s, elems}
}

func (p *parser) number(t *token) *Number {
	n := &Number{Span: t.Span, Text: strings.ReplaceAll(t.text, "_", ""), Float: t.kind == kFloat}
	if !n.Float {
		v, err := strconv.ParseInt(n.Text, 10, 64)
		if err != nil {
			p.errorf(t.Span, "integer %s is out of range: the largest is %d", t.text, math.MaxInt64)
		}
		n.Int, n.Value = v, float64(v)
		return n
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil {
		p.errorf(t.Span, "number %s is out of range: the largest is %g", t.text, math.MaxFloat64)
	}
	n.Value = v
	return n
}

func (p *parser) str(t *token) *String {
	v, err := unquote(t.text)
	if err != nil {
		p.errorf(t.Span, "%v", err)
	}
	return &String{t.Span, v}
}

// unquote undoes \" and \\, the only escapes.
func unquote(text string) (string, error) {
	var b strings.Builder
	inner := text[1 : len(text)-1]
	if !utf8.ValidString(inner) {
		return "", fmt.Errorf("the string is not valid UTF-8")
	}
	for i := 0; i < len(inner); i++ {
		if inner[i] == '\\' {
			i++
			if inner[i] != '"' && inner[i] != '\\' {
				r, _ := utf8.DecodeRuneInString(inner[i:])
				return "", fmt.Errorf(`unknown escape \%c in a string: there are \" and \\`, r)
			}
		}
		b.WriteByte(inner[i])
	}
	return b.String(), nil
}
