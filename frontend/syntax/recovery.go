package syntax

import (
	"slices"
)

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
