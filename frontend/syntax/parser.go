package syntax

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"blutrain/internal/near"
	"blutrain/ir/diag"
)

// Limits that keep every later walk of the tree shallow.
const (
	maxDepth = 200  // of nested expressions, types and blocks
	maxChain = 1000 // of operators, calls or indices in a row
)

// Parse reads a text. The file is never nil: what has no error in it is in the tree. Errors are in source order.
func Parse(name, src string) (*File, diag.List) {
	p := newParser(name, src)
	p.parseFile()
	p.diags.Sort()
	return p.file, p.diags
}

type parser struct {
	file    *File
	diags   diag.List
	toks    []token
	at      int      // the current token, never a comment
	prev    Span     // the token before it
	depth   int      // of nesting, see maxDepth
	missing diag.Pos // where a missing '}' was last reported
}

// bail unwinds to the nearest place that can continue: a statement, a member or an item.
type bail struct{}

func newParser(name, src string) *parser {
	p := &parser{file: &File{Name: name, Src: src}}
	p.toks = lex(src, p.errorf)
	p.prev.End = diag.Pos{Line: 1, Col: 1}
	p.skipComments()
	return p
}

func (p *parser) errorf(s Span, format string, args ...any) {
	p.diags.Errorf(p.file.Range(s), format, args...)
}

// ---- tokens

func (p *parser) skipComments() {
	for p.toks[p.at].kind == kComment {
		p.at++
	}
}

func (p *parser) tok() *token { return &p.toks[p.at] }

func (p *parser) is(k kind) bool { return p.tok().kind == k }

// peek is the token after the current one.
func (p *parser) peek() *token {
	i := p.at
	for i < len(p.toks)-1 {
		i++
		if p.toks[i].kind != kComment {
			break
		}
	}
	return &p.toks[i]
}

// next consumes the current token.
func (p *parser) next() *token {
	t := p.tok()
	if t.kind != kEOF {
		p.prev = t.Span
		p.at++
		p.skipComments()
	}
	return t
}

// newline tells whether the current token begins a line.
func (p *parser) newline() bool {
	return p.is(kEOF) || p.at == 0 || p.tok().Start.Line > p.prev.End.Line
}

func (p *parser) accept(k kind) bool {
	if p.is(k) {
		p.next()
		return true
	}
	return false
}

// expect consumes a token of kind k or fails: "expected WHAT, found ...".
func (p *parser) expect(k kind, what string) *token {
	if !p.is(k) {
		p.failExpected(what)
	}
	return p.next()
}

func quote(k kind) string { return "'" + string(k) + "'" }

// failExpected reports what stands where something else should, in the middle of a line. When the line ends there,
// the line's end is the place, not the next line's first token.
func (p *parser) failExpected(what string) {
	if !p.is(kIllegal) { // that is reported
		s, found := p.found()
		p.errorf(s, "expected %s, found %s", what, found)
	}
	panic(bail{})
}

// failExpectedStart reports what stands where an item, a member, a clause or a statement should begin: with one of
// words, which may have been meant.
func (p *parser) failExpectedStart(words []kind, in string) {
	list, names := make([]string, len(words)), make([]string, len(words))
	for i, w := range words {
		list[i], names[i] = quote(w), string(w)
	}
	last := len(list) - 1
	what := strings.Join(list[:last], ", ") + " or " + list[last] + in
	if !p.is(kIllegal) {
		p.errorf(p.tok().Span, "expected %s, found %s%s", what, p.tok().describe(), near.Suggest(p.tok().text, names))
	}
	panic(bail{})
}

func (p *parser) found() (Span, string) {
	switch {
	case p.is(kEOF):
		return Span{p.prev.End, p.prev.End}, "end of file"
	case p.newline() && p.prev.End.Offset > 0:
		return Span{p.prev.End, p.prev.End}, "end of line"
	}
	return p.tok().Span, p.tok().describe()
}

// describe says what a token is, for errors.
func (t *token) describe() string {
	switch {
	case t.kind == kEOF:
		return "end of file"
	case t.kind == kIdent, t.kind == kInt, t.kind == kFloat:
		return string(t.kind) + " " + t.text
	case t.kind == kString:
		return "string " + t.text
	}
	return quote(t.kind)
}

func (p *parser) fail(s Span, format string, args ...any) {
	p.errorf(s, format, args...)
	panic(bail{})
}

// enter counts one level of nesting; the caller defers leave.
func (p *parser) enter() {
	p.depth++
	if p.depth > maxDepth {
		p.fail(p.tok().Span, "nested more than %d levels deep", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// spanFrom is from start to the end of the token before the current one; empty where nothing was read.
func (p *parser) spanFrom(start diag.Pos) Span {
	if p.prev.End.Before(start) {
		return Span{p.prev.End, p.prev.End}
	}
	return Span{start, p.prev.End}
}

// ---- recovery

// attempt runs parse, and when it bails, skips to where skip says that parsing may go on. It always moves.
func (p *parser) attempt(parse func(), stop func(depth int) bool) {
	from, depth := p.at, p.depth
	if p.bails(parse) {
		p.depth = depth
		p.skipTo(from, stop)
	}
}

func (p *parser) bails(parse func()) (bailed bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(bail); !ok {
				panic(r)
			}
			bailed = true
		}
	}()
	parse()
	return false
}

// skipTo drops tokens until stop holds at the current one, at least one when parsing did not move. depth counts the
// braces that were opened on the way.
func (p *parser) skipTo(from int, stop func(depth int) bool) {
	depth := 0
	for !p.is(kEOF) {
		if p.at > from && (depth == 0 && p.is("}") || p.newline() && stop(depth)) {
			return
		}
		switch p.tok().kind {
		case "{":
			depth++
		case "}":
			depth = max(0, depth-1)
		}
		p.next()
	}
}

var (
	itemWords   = []kind{"model", "train", "fn"}
	memberWords = []kind{"param", "module", "layers", "fn"}
	clauseWords = []kind{"minimize", "batch", "optimizer", "clip"}
	stmtWords   = []kind{"let", "for", "if", "return"}
)

func (p *parser) atWord(words []kind) bool { return slices.Contains(words, p.tok().kind) }

// stopAtItem takes what begins in the first column for an item, whatever it is.
func (p *parser) stopAtItem(depth int) bool {
	return p.is("model") || p.is("train") || depth == 0 && (p.is("fn") || p.tok().Start.Col == 1)
}

func (p *parser) stopAtMember(depth int) bool {
	return p.is("model") || p.is("train") || depth == 0 && p.atWord(memberWords)
}

func (p *parser) stopAtClause(depth int) bool {
	return p.is("model") || p.is("train") || p.is("fn") || depth == 0 && p.is(kIdent)
}

func (p *parser) stopAtStmt(depth int) bool {
	return p.is("model") || p.is("train") || p.atWord(memberWords) ||
		depth == 0 && (p.atWord(stmtWords) || p.is(kIdent) && p.peek().kind == "=")
}

// ---- items and members

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

// ---- train

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

// ---- statements

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
	}
	p.failExpectedStart(stmtWords, ", or NAME = ...")
	return nil
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

// ---- expressions

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
