package filecheck

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file reads POSIX extended regular expressions as LLVM's Support/Regex does (the library of Henry Spencer, with
// REG_NEWLINE, plus back-references \1 to \9 and \g{n}) and writes them as Go expressions. A backslash before any other
// character takes it literally: \d is the letter d.

// A node is a part of a regular expression.
type node struct {
	op       nodeOp
	char     rune    // opChar
	ranges   []rune  // opClass: pairs of first and last
	negated  bool    // opClass
	subs     []*node // opConcat, opAlternate: any number; opRepeat, opGroup: one
	min, max int     // opRepeat; a max of -1 has no bound
	group    int     // opGroup, opBackref
}

type nodeOp uint8

const (
	opChar nodeOp = iota
	opAny
	opClass
	opLineStart
	opLineEnd
	opConcat
	opAlternate
	opRepeat
	opGroup
	opBackref
)

// maxRepeat is POSIX's RE_DUP_MAX.
const maxRepeat = 255

// ere parses one expression.
type ere struct {
	rest     string
	groups   int
	closed   map[int]bool // groups whose closing parenthesis has been seen
	backrefs bool
}

func parseERE(text string) (*node, *ere, error) {
	if !utf8.ValidString(text) {
		return nil, nil, errors.New("not valid UTF-8")
	}
	p := &ere{rest: text, closed: map[int]bool{}}
	n, err := p.alternation(false)
	if err != nil {
		return nil, nil, err
	}
	return n, p, nil
}

func (p *ere) take() rune {
	r, n := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[n:]
	return r
}

func (p *ere) eat(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest = rest
	return ok
}

// alternation reads branches up to the end or, in a group, up to its closing parenthesis.
func (p *ere) alternation(inGroup bool) (*node, error) {
	var branches []*node
	for {
		branch, err := p.concatenation(inGroup)
		if err != nil {
			return nil, err
		}
		branches = append(branches, branch)
		if !p.eat("|") {
			break
		}
	}
	if len(branches) == 1 {
		return branches[0], nil
	}
	return &node{op: opAlternate, subs: branches}, nil
}

func (p *ere) concatenation(inGroup bool) (*node, error) {
	cat := &node{op: opConcat}
	for p.rest != "" && p.rest[0] != '|' && !(inGroup && p.rest[0] == ')') {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		cat.subs = append(cat.subs, item)
	}
	if len(cat.subs) == 0 {
		return nil, errors.New("empty (sub)expression")
	}
	return cat, nil
}

// item reads an atom and at most one repetition.
func (p *ere) item() (*node, error) {
	atom, err := p.atom()
	if err != nil || !p.atRepetition() {
		return atom, err
	}
	if atom.op == opLineStart {
		return nil, errors.New("repetition operator has nothing to repeat")
	}
	rep := &node{op: opRepeat, subs: []*node{atom}, max: -1}
	switch p.take() {
	case '+':
		rep.min = 1
	case '?':
		rep.max = 1
	case '{':
		if rep.min, rep.max, err = p.bounds(); err != nil {
			return nil, err
		}
	}
	if p.atRepetition() {
		return nil, errors.New("repetition operator follows another")
	}
	return rep, nil
}

// atRepetition takes a brace for a repetition only where a digit follows.
func (p *ere) atRepetition() bool {
	if p.rest == "" {
		return false
	}
	return strings.IndexByte("*+?", p.rest[0]) >= 0 || p.rest[0] == '{' && len(p.rest) > 1 && isDigit(p.rest[1])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (p *ere) bounds() (low, high int, err error) {
	body, rest, ok := strings.Cut(p.rest, "}")
	if !ok {
		return 0, 0, errors.New("braces not balanced")
	}
	p.rest = rest
	first, second, ranged := strings.Cut(body, ",")
	low, err = strconv.Atoi(first)
	high = low
	if err == nil && ranged {
		high = -1
		if second != "" {
			high, err = strconv.Atoi(second)
		}
	}
	if err != nil || strings.ContainsAny(body, "+-") || low > maxRepeat || high > maxRepeat || high >= 0 && low > high {
		return 0, 0, fmt.Errorf("invalid repetition count {%s}", body)
	}
	return low, high, nil
}

func (p *ere) atom() (*node, error) {
	if p.atRepetition() {
		return nil, errors.New("repetition operator has nothing to repeat")
	}
	switch r := p.take(); r {
	case '(':
		return p.groupBody()
	case ')':
		return nil, errors.New("parentheses not balanced")
	case '[':
		return p.class()
	case '.':
		return &node{op: opAny}, nil
	case '^':
		return &node{op: opLineStart}, nil
	case '$':
		return &node{op: opLineEnd}, nil
	case '\\':
		return p.escape()
	default:
		return &node{op: opChar, char: r}, nil
	}
}

func (p *ere) groupBody() (*node, error) {
	p.groups++
	g := &node{op: opGroup, group: p.groups, subs: []*node{{op: opConcat}}}
	if !strings.HasPrefix(p.rest, ")") {
		body, err := p.alternation(true)
		if err != nil {
			return nil, err
		}
		g.subs[0] = body
	}
	if !p.eat(")") {
		return nil, errors.New("parentheses not balanced")
	}
	p.closed[g.group] = true
	return g, nil
}

func (p *ere) escape() (*node, error) {
	if p.rest == "" {
		return nil, errors.New("trailing backslash")
	}
	group := 0
	if p.eat("g{") {
		number, rest, ok := strings.Cut(p.rest, "}")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, errors.New("invalid back-reference")
		}
		group, p.rest = n, rest
	} else {
		r := p.take()
		if r < '1' || r > '9' {
			return &node{op: opChar, char: r}, nil
		}
		group = int(r - '0')
	}
	if !p.closed[group] {
		return nil, fmt.Errorf("back-reference to group %d, which isn't complete before it", group)
	}
	p.backrefs = true
	return &node{op: opBackref, group: group}, nil
}

// classes are the POSIX character classes, for ASCII.
var classes = map[string][]rune{
	"alnum":  {'0', '9', 'A', 'Z', 'a', 'z'},
	"alpha":  {'A', 'Z', 'a', 'z'},
	"blank":  {'\t', '\t', ' ', ' '},
	"cntrl":  {0, 31, 127, 127},
	"digit":  {'0', '9'},
	"graph":  {'!', '~'},
	"lower":  {'a', 'z'},
	"print":  {' ', '~'},
	"punct":  {'!', '/', ':', '@', '[', '`', '{', '~'},
	"space":  {'\t', '\r', ' ', ' '},
	"upper":  {'A', 'Z'},
	"xdigit": {'0', '9', 'A', 'F', 'a', 'f'},
}

// class reads a bracket expression after its opening bracket. A backslash in it stands for itself.
func (p *ere) class() (*node, error) {
	n := &node{op: opClass, negated: p.eat("^")}
	if p.eat("]") {
		n.ranges = append(n.ranges, ']', ']')
	} else if p.eat("-") {
		n.ranges = append(n.ranges, '-', '-')
	}
	for p.rest != "" && p.rest[0] != ']' && !strings.HasPrefix(p.rest, "-]") {
		ranges, err := p.classItem()
		if err != nil {
			return nil, err
		}
		n.ranges = append(n.ranges, ranges...)
	}
	if p.eat("-") {
		n.ranges = append(n.ranges, '-', '-')
	}
	if !p.eat("]") {
		return nil, errors.New("brackets ([ ]) not balanced")
	}
	return n, nil
}

func (p *ere) classItem() ([]rune, error) {
	switch {
	case p.eat("[:"):
		name, rest, _ := strings.Cut(p.rest, ":]")
		ranges := classes[name]
		if ranges == nil {
			return nil, fmt.Errorf("invalid character class [:%s:]", name)
		}
		p.rest = rest
		return ranges, nil
	case p.eat("[="), p.eat("[."):
		return nil, errors.New("equivalence classes and collating elements are not supported")
	case p.rest[0] == '-':
		return nil, errors.New("invalid character range")
	}
	first := p.take()
	last := first
	if len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != ']' {
		p.take()
		last = p.take()
	}
	if last < first {
		return nil, errors.New("invalid character range")
	}
	return []rune{first, last}, nil
}

// goSyntax writes the expression for Go's regexp. Back-references can't be written.
func (n *node) goSyntax(b *strings.Builder) {
	switch n.op {
	case opChar:
		b.WriteString(regexp.QuoteMeta(string(n.char)))
	case opAny:
		b.WriteString(`[^\n]`)
	case opClass:
		n.classSyntax(b)
	case opLineStart:
		b.WriteString(`(?m:^)`)
	case opLineEnd:
		b.WriteString(`(?m:$)`)
	case opConcat:
		for _, s := range n.subs {
			s.goSyntax(b)
		}
	case opAlternate:
		b.WriteString("(?:")
		for i, s := range n.subs {
			if i > 0 {
				b.WriteByte('|')
			}
			s.goSyntax(b)
		}
		b.WriteByte(')')
	case opRepeat:
		b.WriteString("(?:")
		n.subs[0].goSyntax(b)
		fmt.Fprintf(b, "){%d,", n.min)
		if n.max >= 0 {
			b.WriteString(strconv.Itoa(n.max))
		}
		b.WriteByte('}')
	case opGroup:
		b.WriteByte('(')
		n.subs[0].goSyntax(b)
		b.WriteByte(')')
	}
}

func (n *node) classSyntax(b *strings.Builder) {
	b.WriteByte('[')
	if n.negated {
		b.WriteString(`^\n`)
	}
	for i := 0; i < len(n.ranges); i += 2 {
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, n.ranges[i], n.ranges[i+1])
	}
	b.WriteByte(']')
}

// quoteERE writes a text as an expression that matches it.
func quoteERE(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`()^$|*+?.[]\{}`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
