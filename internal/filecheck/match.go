package filecheck

import (
	"errors"
	"slices"
	"strings"
)

// A span is a part of the input.
type span struct{ from, to int }

// find looks for a pattern in a part of the input and remembers the variables it sets. The span is of the whole input.
func (c *checker) find(p *pattern, in *source, within span) (span, error) {
	text := in.text[within.from:within.to]
	if p.kind == kindEOF {
		return span{within.to, within.to}, nil
	}
	if p.kind == kindEmpty {
		n := emptyLine(text)
		if n < 0 {
			return span{}, errNotFound
		}
		return span{within.from + n, within.from + n}, nil
	}
	if p.fixed != "" {
		n := c.index(text, p.fixed)
		if n < 0 {
			return span{}, errNotFound
		}
		return span{within.from + n, within.from + n + len(p.fixed)}, nil
	}
	m, err := c.matcher(p)
	if err != nil {
		return span{}, err
	}
	groups, err := m.find(text)
	if err != nil {
		return span{}, errorAt(p.at, "%v", err)
	}
	if groups == nil {
		return span{}, errNotFound
	}
	c.remember(p, text, groups)
	return span{within.from + groups[0], within.from + groups[1]}, nil
}

// emptyLine finds the first empty line after a newline in text.
func emptyLine(text string) int {
	for i := range len(text) {
		if text[i] == '\n' && (i+1 == len(text) || text[i+1] == '\n') {
			return i + 1
		}
	}
	return -1
}

func (c *checker) index(text, what string) int {
	if !c.opts.IgnoreCase {
		return strings.Index(text, what)
	}
	return strings.Index(lowerASCII(text), lowerASCII(what))
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, ch := range b {
		if 'A' <= ch && ch <= 'Z' {
			b[i] = ch + ('a' - 'A')
		}
	}
	return string(b)
}

// matcher puts the values of the variables into the expression. All that are missing are in the error.
func (c *checker) matcher(p *pattern) (matcher, error) {
	if p.compiled != nil {
		return p.compiled, nil
	}
	var b strings.Builder
	var errs []error
	for _, piece := range p.pieces {
		switch {
		case piece.number != nil:
			text, err := piece.number.value(piece.at)
			if err != nil {
				errs = append(errs, err)
			}
			b.WriteString(text)
		case piece.text != "":
			value, ok := c.vars.text[piece.text]
			if !ok {
				errs = append(errs, errorAt(piece.at, "undefined variable: %s", piece.text))
			}
			b.WriteString(quoteERE(value))
		default:
			b.WriteString(piece.ere)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	m, err := compile(b.String(), c.opts.IgnoreCase)
	if err != nil {
		return nil, errorAt(p.at, "invalid regex: %v", err)
	}
	return m, nil
}

// value is the text that the block's expression stands for now.
func (b *numericBlock) value(at loc) (string, error) {
	v, err := b.expr.eval()
	if err != nil {
		return "", err
	}
	text, err := b.format.write(v)
	if err != nil {
		return "", errorAt(at, "%v", err)
	}
	return text, nil
}

// remember sets the variables that the pattern defines.
func (c *checker) remember(p *pattern, text string, groups []int) {
	group := func(n int) string {
		if groups[2*n] < 0 {
			return ""
		}
		return text[groups[2*n]:groups[2*n+1]]
	}
	for _, def := range p.textDefs {
		c.vars.text[def.name] = group(def.group)
	}
	for _, def := range p.numberDefs {
		def.variable.value = def.format.read(group(def.group))
	}
}

// matchAll compares the input with all directives. CHECK-LABELs are found first; they cut the input into blocks, and a
// failure in one block doesn't keep the others from being compared.
func (c *checker) matchAll(list []directive, in *source) bool {
	ok := true
	rest := span{0, len(in.text)}
	for first := 0; first < len(list); {
		next := first
		for next < len(list) && list[next].pattern.kind != kindLabel {
			next++
		}
		block := rest
		if next < len(list) {
			label, err := c.findOrReport(list[next].pattern, in, rest, 1)
			if err != nil {
				return false
			}
			block.to, rest.from = label.to, label.to
			next++
		}
		if first > 0 && c.opts.EnableVarScope {
			c.vars.forgetLocal()
		}
		ok = c.matchBlock(list[first:next], in, block) && ok
		first = next
	}
	return ok
}

// matchBlock compares one block with its directives. A CHECK-LABEL that ends it is matched again, for what is before it.
func (c *checker) matchBlock(list []directive, in *source, block span) bool {
	for _, d := range list {
		found, ok := c.matchDirective(d, in, block)
		if !ok {
			return false
		}
		block.from = found.to
	}
	return true
}

// matchDirective matches a directive as often as its count asks, after the CHECK-DAGs before it.
func (c *checker) matchDirective(d directive, in *source, within span) (span, bool) {
	start, nots, ok := c.matchDAGs(d.before, in, within)
	if !ok {
		return span{}, false
	}
	p := d.pattern
	all := span{from: start, to: start}
	for i := 1; i <= p.count; i++ {
		found, err := c.findOrReport(p, in, span{all.to, within.to}, i)
		if err != nil {
			return span{}, false
		}
		if i == 1 {
			all.from = found.from
		}
		all.to = found.to
	}
	skipped := span{start, all.from}
	if !c.checkLine(p, in, skipped) || !c.checkNots(nots, in, skipped) {
		return span{}, false
	}
	return all, true
}

// matchDAGs matches the CHECK-DAGs before a directive: each group of neighbours in any order, without overlap. It gives
// where the last group ends, and the CHECK-NOTs after it, which are the directive's to check.
func (c *checker) matchDAGs(list []*pattern, in *source, within span) (start int, nots []*pattern, ok bool) {
	start = within.from
	for i := 0; i < len(list); {
		if list[i].kind == kindNot {
			nots = append(nots, list[i])
			i++
			continue
		}
		var matches []span
		for ; i < len(list) && list[i].kind == kindDAG; i++ {
			if matches, ok = c.matchDAG(list[i], in, span{start, within.to}, matches); !ok {
				return 0, nil, false
			}
		}
		group := matches[0]
		for _, m := range matches {
			group = span{min(group.from, m.from), max(group.to, m.to)}
		}
		if !c.checkNots(nots, in, span{start, group.from}) {
			return 0, nil, false
		}
		start, nots = group.to, nil
	}
	return start, nots, true
}

// matchDAG finds the first match that overlaps none of the others, which are in the order of the input, and puts it in
// its place among them.
func (c *checker) matchDAG(p *pattern, in *source, within span, others []span) ([]span, bool) {
	for {
		m, err := c.findOrReport(p, in, within, 1)
		if err != nil {
			return nil, false
		}
		place := 0
		for place < len(others) && others[place].to <= m.from {
			place++
		}
		if place == len(others) || others[place].from >= m.to || c.opts.AllowDAGOverlap {
			return slices.Insert(others, place, m), true
		}
		within.from = others[place].to
	}
}

// findOrReport is find for patterns that must be there. The count says which of several matches is looked for.
func (c *checker) findOrReport(p *pattern, in *source, within span, count int) (span, error) {
	found, err := c.find(p, in, within)
	if err != nil {
		c.reportMissing(p, in, within, count, err)
	}
	return found, err
}

func (c *checker) reportMissing(p *pattern, in *source, within span, count int, err error) {
	if errors.Is(err, errNotFound) {
		times := ""
		if p.count > 1 {
			times = occurrence(count, p.count)
		}
		c.message(p.at, "error", "%s: expected string not found in input%s", p.name(), times)
	} else {
		c.reportError(err)
	}
	from := loc{in, within.from}
	c.message(from, "note", "the search began here")
	c.noteValues(p, from)
	if near := c.nearest(p, in.text[within.from:within.to]); near > 0 {
		c.message(from.plus(near), "note", "possible intended match here")
	}
	if within.to < len(in.text) {
		c.message(loc{in, within.to}, "note", "the search ended here, at the next label")
	}
	c.excerpt(from)
}

// checkLine verifies that CHECK-NEXT and CHECK-EMPTY match on the next line, and CHECK-SAME on the same.
func (c *checker) checkLine(p *pattern, in *source, skipped span) bool {
	lines := countNewlines(in.text[skipped.from:skipped.to])
	wrong := ""
	switch {
	case (p.kind == kindNext || p.kind == kindEmpty) && lines == 0:
		wrong = "is on the same line as previous match"
	case (p.kind == kindNext || p.kind == kindEmpty) && lines > 1:
		wrong = "is not on the line after the previous match"
	case p.kind == kindSame && lines > 0:
		wrong = "is not on the same line as the previous match"
	default:
		return true
	}
	c.message(p.at, "error", "%s: %s", p.name(), wrong)
	c.message(loc{in, skipped.to}, "note", "'next' match was here")
	c.message(loc{in, skipped.from}, "note", "previous match ended here")
	c.noteValues(p, loc{in, skipped.from})
	c.excerpt(loc{in, skipped.from})
	return false
}

// countNewlines takes \r\n and \n\r as one.
func countNewlines(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '\n' && s[i] != '\r' {
			continue
		}
		n++
		if i+1 < len(s) && s[i]+s[i+1] == '\n'+'\r' {
			i++
		}
	}
	return n
}

// checkNots verifies that none of the patterns is in a part of the input. All that are get reported.
func (c *checker) checkNots(nots []*pattern, in *source, within span) bool {
	ok := true
	for _, p := range nots {
		found, err := c.find(p, in, within)
		switch {
		case errors.Is(err, errNotFound):
			continue
		case err != nil:
			c.reportError(err)
		default:
			c.message(p.at, "error", "%s: excluded string found in input", p.name())
			c.message(loc{in, found.from}, "note", "found here")
			c.noteValues(p, loc{in, found.from})
		}
		ok = false
	}
	return ok
}
