package syntax

import (
	"strings"

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
	if i := strings.IndexByte(src, 0); i >= 0 { // an artifact, a picture: what stands in it is of no interest
		p.diags.Errorf(diag.Range{File: name}, "not a text: byte %d is zero", i)
		p.file.Src = ""
	}
	p.toks = lex(p.file.Src, p.errorf)
	p.prev.End = diag.Pos{Line: 1, Col: 1}
	p.skipComments()
	return p
}

func (p *parser) errorf(s Span, format string, args ...any) {
	p.diags.Errorf(p.file.Range(s), format, args...)
}

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
