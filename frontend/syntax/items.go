package syntax

import (
	"blutrain/ir/diag"
)

func (p *parser) parseFile() {
	for !p.is(kEOF) {
		p.attempt(func() {
			p.tok().role = roleStart
			p.file.Items = append(p.file.Items, p.item())
			p.endOfLine()
		}, p.stopAtItem)
		if p.is("}") { // recovery stops at one, and none can stand here
			p.attempt(func() { p.failExpectedStart(itemWords, "") }, p.stopAtItem)
			p.accept("}")
		}
	}
	p.file.Span = Span{diag.Pos{Line: 1, Col: 1}, p.tok().End}
}

func (p *parser) item() Item {
	switch p.tok().kind {
	case "model":
		return p.model()
	case "train":
		return p.train()
	case "fn":
		return p.function()
	case "param", "module", "layers":
		p.fail(p.tok().Span, "'%s' stands in a model, not at the top of a file", p.tok().text)
	}
	p.failExpectedStart(itemWords, "")
	return nil
}

func (p *parser) endOfLine() {
	if !p.newline() && !p.is("}") {
		p.failExpected("end of line")
	}
}

func (p *parser) ident(what string) Ident {
	t := p.expect(kIdent, what)
	return Ident{t.Span, t.text}
}

func (p *parser) model() *Model {
	start := p.next().Start
	m := &Model{Name: p.ident("a name for the model")}
	if p.is("(") {
		p.tok().role = rolePostfix
		p.list("(", ")", "the arguments of model "+m.Name.Name, func() {
			m.Args = append(m.Args, p.binding("an argument, NAME = DEFAULT"))
		})
	}
	p.members(&m.Members, "model "+m.Name.Name, start)
	m.Span = p.spanFrom(start)
	return m
}

func (p *parser) binding(what string) *Binding {
	name := p.ident(what)
	p.expect("=", "'=' and a value for "+name.Name)
	b := &Binding{Name: name, Value: p.expr()}
	b.Span = p.spanFrom(name.Start)
	return b
}

// members reads "{ member ... }". what and start name the thing that the braces belong to, for errors.
func (p *parser) members(list *[]Member, what string, start diag.Pos) {
	p.block(what, start, p.stopAtMember, func() bool { return p.is("model") || p.is("train") }, func() {
		if m := p.member(what); m != nil {
			*list = append(*list, m)
		}
	})
}

// block reads "{ entry ... }", each entry on its own line. ends tells the tokens that cannot stand inside, so that
// a '}' must be missing before them.
func (p *parser) block(what string, start diag.Pos, stop func(int) bool, ends func() bool, entry func()) {
	p.enter()
	defer p.leave()
	p.open(what)
	for !p.is("}") {
		if p.is(kEOF) || p.newline() && ends() {
			p.missingBrace(what, start)
			return
		}
		p.attempt(func() {
			p.tok().role = roleStart
			entry()
			p.endOfLine()
		}, stop)
	}
	p.next()
}

// open reads '{'. A missing one is reported and taken as read, so that the '}' that follows finds its partner.
func (p *parser) open(what string) {
	if p.is("{") {
		p.tok().role = roleBlock
		p.next()
		return
	}
	if p.is(kEOF) || p.is("}") {
		p.failExpected("'{' to begin " + what)
	}
	if s, found := p.found(); !p.is(kIllegal) {
		p.errorf(s, "expected '{' to begin %s, found %s", what, found)
	}
}

// missingBrace reports a block that is not closed, once for all blocks that end at the same place.
func (p *parser) missingBrace(what string, start diag.Pos) {
	if p.missing == p.tok().Start && p.missing.IsValid() {
		return
	}
	p.missing = p.tok().Start
	t := p.tok()
	at := t.Span
	if t.kind == kEOF {
		at = Span{p.prev.End, p.prev.End}
	}
	p.diags.Errorf(p.file.Range(at), "expected '}' to close %s, found %s", what, t.describe()).
		Note(p.file.Range(Span{start, start}), "%s begins here", what)
}

func (p *parser) member(in string) Member {
	switch p.tok().kind {
	case "param":
		return p.param()
	case "module":
		return p.module()
	case "layers":
		return p.layers()
	case "fn":
		return p.function()
	case "let", "for", "if", "return":
		p.fail(p.tok().Span, "'%s' stands in a fn, not directly in %s", p.tok().text, in)
	}
	p.failExpectedStart(memberWords, " in "+in)
	return nil
}

func (p *parser) param() *Param {
	start := p.next().Start
	d := &Param{Name: p.ident("a name for the parameter")}
	p.expect(":", "':' and the type of "+d.Name.Name)
	d.Type = p.typ()
	p.expect("=", "'=' and an initializer for "+d.Name.Name)
	d.Init = p.expr()
	d.Span = p.spanFrom(start)
	return d
}

func (p *parser) module() *Module {
	start := p.next().Start
	m := &Module{Name: p.ident("a name for the module")}
	p.members(&m.Members, "module "+m.Name.Name, start)
	m.Span = p.spanFrom(start)
	return m
}

func (p *parser) layers() *Layers {
	start := p.next().Start
	l := &Layers{Name: p.ident("a name for the layers")}
	p.expect(":", "':' and the module of "+l.Name.Name)
	l.Module = p.ident("the name of a module")
	if p.is("[") {
		p.tok().role = rolePostfix
		p.next()
		l.Count = p.expr()
		p.expect("]", "']' after the number of layers")
	}
	l.Span = p.spanFrom(start)
	return l
}

func (p *parser) function() *Func {
	start := p.next().Start
	f := &Func{Name: p.ident("a name for the function")}
	if !p.is("(") {
		p.failExpected("'(' and the parameters of " + f.Name.Name)
	}
	p.tok().role = rolePostfix
	p.list("(", ")", "the parameters of "+f.Name.Name, func() {
		name := p.ident("a parameter, NAME: TYPE")
		p.expect(":", "':' and the type of "+name.Name)
		d := &FuncParam{Name: name, Type: p.typ()}
		d.Span = p.spanFrom(name.Start)
		f.Params = append(f.Params, d)
	})
	p.expect("->", "'->' and the result type of "+f.Name.Name)
	f.Result = p.typ()
	f.Body = p.stmts("fn "+f.Name.Name, start)
	f.Span = p.spanFrom(start)
	return f
}

func (p *parser) typ() Type {
	p.enter()
	defer p.leave()
	start := p.tok().Start
	if p.is("(") {
		t := &TupleType{}
		p.list("(", ")", "the tuple type", func() { t.Elems = append(t.Elems, p.typ()) })
		t.Span = p.spanFrom(start)
		if len(t.Elems) < 2 {
			p.errorf(t.Span, "a tuple type has at least two elements")
		}
		return t
	}
	t := &TensorType{Elem: p.ident("a type, such as f32[B, C]")}
	if p.is("[") {
		p.tok().role = rolePostfix
		p.list("[", "]", "the dimensions", func() { t.Dims = append(t.Dims, p.expr()) })
	}
	t.Span = p.spanFrom(start)
	return t
}

// list reads "open item, item, close"; the last item may be followed by a comma.
func (p *parser) list(open, close kind, what string, item func()) (last *token) {
	p.expect(open, quote(open))
	for !p.is(close) {
		item()
		if !p.is(close) {
			p.expect(",", "',' or "+quote(close)+" in "+what)
		}
	}
	p.tok().role = roleCloseList
	return p.next()
}

func (p *parser) train() *Train {
	start := p.next().Start
	t := &Train{Name: p.ident("the name of a model")}
	what := "train " + t.Name.Name
	p.block(what, start, p.stopAtClause, func() bool { return p.atWord(itemWords) }, func() {
		t.Clauses = append(t.Clauses, p.clause(what))
	})
	t.Span = p.spanFrom(start)
	return t
}

func (p *parser) clause(in string) Clause {
	start := p.tok().Start
	switch word := p.tok().text; word {
	case "minimize":
		p.next()
		c := &Minimize{Func: p.ident("the name of the loss function")}
		c.Span = p.spanFrom(start)
		return c
	case "batch":
		p.next()
		c := &Batch{}
		for {
			c.Sizes = append(c.Sizes, p.binding("a size, NAME = VALUE"))
			if !p.accept(",") {
				break
			}
		}
		c.Span = p.spanFrom(start)
		return c
	case "optimizer":
		p.next()
		e := p.expr()
		call, ok := e.(*Call)
		if !ok {
			p.fail(e.Pos(), "expected an optimizer and its arguments, such as adamw(lr: 6e-4)")
		}
		return &Optimizer{Span: p.spanFrom(start), Call: call}
	case "clip":
		p.next()
		c := &Clip{Norm: p.ident("'global_norm'"), Value: p.expr()}
		c.Span = p.spanFrom(start)
		return c
	}
	p.failExpectedStart(clauseWords, " in "+in)
	return nil
}
