package syntax

import (
	"blutrain/ir/diag"
)

func (p *parser) stmts(what string, start diag.Pos) *Block {
	b := &Block{}
	from := p.tok().Start
	ends := func() bool { return p.is("model") || p.is("train") || p.atWord(memberWords) }
	p.block(what, start, p.stopAtStmt, ends, func() { b.Stmts = append(b.Stmts, p.stmt()) })
	b.Span = p.spanFrom(from)
	return b
}

func (p *parser) stmt() Stmt {
	start := p.tok().Start
	switch p.tok().kind {
	case "let":
		return p.let()
	case "for":
		return p.forStmt()
	case "if":
		return p.ifStmt()
	case "return":
		p.next()
		if p.newline() || p.is("}") {
			p.failExpected("a value to return")
		}
		r := &Return{Value: p.expr()}
		r.Span = p.spanFrom(start)
		return r
	case kIdent:
		if p.peek().kind == "=" {
			name := p.ident("a name")
			p.next()
			a := &Assign{Name: name, Value: p.expr()}
			a.Span = p.spanFrom(start)
			return a
		}
		if p.peek().kind == "(" || p.peek().kind == "." {
			p.fail(p.tok().Span, "a value must be used: write let NAME = ... or return ...")
		}
		p.otherAssignments()
	}
	p.failExpectedStart(stmtWords, ", or NAME = ...")
	return nil
}

// otherAssignments reports what other languages write for let and for assignments: var x = ..., x += ...
func (p *parser) otherAssignments() {
	name, op := p.tok(), p.peek()
	at, prev := p.at, p.prev
	p.next()
	after := p.peek()
	p.at, p.prev = at, prev
	switch {
	case after.kind != "=":
	case op.kind == kIdent:
		p.fail(name.Span, "a name is given to a value by let: let %s = ...", op.text)
	case precedence[op.kind] >= precedence["+"] && after.Start == op.End:
		p.fail(Span{op.Start, after.End}, "there is no '%s=': write %s = %s %s ...", op.kind, name.text, name.text, op.kind)
	}
}

func (p *parser) let() *Let {
	start := p.next().Start
	l := &Let{}
	if p.is("(") {
		l.Tuple = true
		open := p.tok().Start
		p.list("(", ")", "the names", func() { l.Names = append(l.Names, p.ident("a name")) })
		if len(l.Names) < 2 {
			p.errorf(p.spanFrom(open), "a tuple has at least two elements: write let NAME = ...")
		}
	} else {
		l.Names = []Ident{p.ident("a name, or names in parentheses")}
	}
	p.expect("=", "'=' and a value")
	l.Value = p.expr()
	l.Span = p.spanFrom(start)
	return l
}

func (p *parser) forStmt() *For {
	start := p.next().Start
	f := &For{Name: p.ident("a name for the loop's variable")}
	p.expect("in", "'in' and what to loop over")
	f.Over = p.expr()
	if p.is("..") {
		p.tok().role = roleTight
		p.next()
		f.High = p.expr()
	}
	f.Body = p.stmts("the loop over "+f.Name.Name, start)
	f.Span = p.spanFrom(start)
	return f
}

func (p *parser) ifStmt() *If {
	p.enter()
	defer p.leave()
	start := p.next().Start
	s := &If{Cond: p.expr()}
	s.Then = p.stmts("the if", start)
	if p.is("else") {
		from := p.next().Start
		if p.is("if") {
			s.Else = p.ifStmt()
		} else {
			s.Else = p.stmts("the else", from)
		}
	}
	s.Span = p.spanFrom(start)
	return s
}
