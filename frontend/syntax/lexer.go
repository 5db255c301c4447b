package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"blutrain/ir/diag"
)

// kind is what a token is. Keywords and punctuation are their own text.
type kind string

const (
	kEOF     kind = "end of file"
	kIdent   kind = "identifier"
	kInt     kind = "integer"
	kFloat   kind = "number"
	kString  kind = "string"
	kComment kind = "comment"
	kIllegal kind = "illegal"
)

// token is a piece of the text. The formatter prints tokens back, so comments are tokens too, and role says what the
// parser took an ambiguous one for.
type token struct {
	Span
	kind kind
	text string // as written
	role role
}

// role is what the parser took a token for, where its text alone does not say.
type role uint8

const (
	roleNone      role = iota
	roleUnary          // "-" and "!" before an operand
	roleTight          // ":" of a slice, ".." of a range: no space on either side
	rolePostfix        // "(" of a call or a head, "[" of an index or a type: no space before
	roleBlock          // "{"
	roleStart          // first token of an item, a member, a clause or a statement
	roleCloseList      // ")" or "]" of a list
)

var keywords = map[string]bool{
	"model": true, "train": true, "module": true, "param": true, "layers": true, "fn": true,
	"let": true, "for": true, "in": true, "if": true, "else": true, "return": true, "true": true, "false": true,
}

// punctuation, longest first where one is the beginning of another.
var punctuation = []string{
	"->", "==", "!=", "<=", ">=", "&&", "||", "..",
	"(", ")", "[", "]", "{", "}", ",", ":", ".", "=", "+", "-", "*", "/", "%", "<", ">", "!",
}

// lexer cuts a text into tokens.
type lexer struct {
	src     string
	pos     diag.Pos
	errs    func(s Span, format string, args ...any)
	foreign bool // not UTF-8, which was reported
}

// lex returns the tokens of a text, comments among them; the last is kEOF. Characters that begin no token are
// reported here and stay as kIllegal, so that the parser says nothing more of them.
func lex(src string, errs func(s Span, format string, args ...any)) []token {
	l := &lexer{src: src, pos: diag.Pos{Line: 1, Col: 1}, errs: errs}
	var tokens []token
	for {
		t := l.next()
		if t.text == "" && t.kind == kIllegal {
			continue // nothing that matters
		}
		tokens = append(tokens, t)
		if t.kind == kEOF {
			return tokens
		}
	}
}

func (l *lexer) rest() string { return l.src[l.pos.Offset:] }

// advance moves over n bytes.
func (l *lexer) advance(n int) {
	for end := l.pos.Offset + n; l.pos.Offset < end; {
		r, size := utf8.DecodeRuneInString(l.rest())
		l.pos.Offset += size
		if r == '\n' {
			l.pos.Line++
			l.pos.Col = 1
		} else {
			l.pos.Col++
		}
	}
}

func (l *lexer) next() token {
	l.advance(len(l.rest()) - len(strings.TrimLeft(l.rest(), " \t\r\n")))
	rest := l.rest()
	if rest == "" {
		return token{Span: Span{l.pos, l.pos}, kind: kEOF}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case strings.HasPrefix(rest, "//"):
		n := strings.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		t := l.take(kComment, n)
		t.text = strings.TrimRight(t.text, " \t\r")
		if !utf8.ValidString(t.text) {
			l.errs(t.Span, "the comment is not valid UTF-8")
		}
		return t
	case isLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return !isLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		t := l.take(kIdent, n)
		if keywords[t.text] {
			t.kind = kind(t.text)
		}
		return t
	case isDigit(rest[0]):
		return l.number(rest)
	case r == '"':
		return l.quoted(rest)
	}
	for _, p := range punctuation {
		if strings.HasPrefix(rest, p) {
			return l.take(kind(p), len(p))
		}
	}
	return l.illegal(r, rest)
}

func (l *lexer) take(k kind, n int) token {
	start := l.pos
	l.advance(n)
	return token{Span: Span{start, l.pos}, kind: k, text: l.src[start.Offset:l.pos.Offset]}
}

// number reads digits, a fraction and an exponent; underscores may separate digits. "0..N" is a range, not "0." "."
func (l *lexer) number(rest string) token {
	digits := func(from int) int {
		for from < len(rest) && (isDigit(rest[from]) || rest[from] == '_') {
			from++
		}
		return from
	}
	k, n := kInt, digits(0)
	if n+1 < len(rest) && rest[n] == '.' && isDigit(rest[n+1]) {
		k, n = kFloat, digits(n+1)
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		e := n + 1
		if e < len(rest) && (rest[e] == '+' || rest[e] == '-') {
			e++
		}
		if e < len(rest) && isDigit(rest[e]) {
			k, n = kFloat, digits(e)
		}
	}
	// A letter that follows at once is a typing error, not the next token: 1e, 2x, 3f.
	tail := strings.IndexFunc(rest[n:], func(r rune) bool { return !isLetter(r) && !unicode.IsDigit(r) })
	if tail < 0 {
		tail = len(rest) - n
	}
	t := l.take(k, n+tail)
	if tail > 0 {
		l.errs(t.Span, "malformed number %s", t.text)
		t.text = t.text[:n]
	}
	return t
}

func (l *lexer) quoted(rest string) token {
	for i := 1; i < len(rest) && rest[i] != '\n'; i++ {
		switch rest[i] {
		case '\\':
			if i+1 < len(rest) && rest[i+1] != '\n' {
				i++
			}
		case '"':
			return l.take(kString, i+1)
		}
	}
	n := strings.IndexByte(rest, '\n')
	if n < 0 {
		n = len(rest)
	}
	t := l.take(kIllegal, n)
	l.errs(t.Span, "the string is not closed on its line")
	return t
}

// illegal reports a character that begins no token, with the remedy where one is likely.
func (l *lexer) illegal(r rune, rest string) token {
	_, size := utf8.DecodeRuneInString(rest)
	line := func() string { line, _, _ := strings.Cut(rest, "\n"); return line } // which may be long
	switch {
	case strings.HasPrefix(rest, "\uFEFF") && l.pos.Offset == 0:
		l.advance(size) // a byte order mark is harmless
		return token{kind: kIllegal}
	case r == '#':
		size = len(line())
	case r == '\'':
		if end := strings.IndexByte(line()[1:], '\''); end >= 0 {
			size = end + 2
		}
	}
	t := l.take(kIllegal, size)
	switch {
	case r == utf8.RuneError && size == 1:
		if !l.foreign {
			l.errs(t.Span, "the text is not valid UTF-8 here")
		}
		l.foreign = true // a text in another encoding has many such places
	case r == ';':
		l.errs(t.Span, "unexpected ';': a statement ends with its line")
		t.text = ""
	case r == '#':
		l.errs(t.Span, "unexpected '#': a comment begins with //")
		t.text = ""
	case r == '\'':
		l.errs(t.Span, "unexpected quote: a string stands in double quotes")
	case r == '&' || r == '|':
		l.errs(t.Span, "unexpected '%c': the logical operators are && and ||", r)
	case r == '@':
		l.errs(t.Span, "unexpected '@': a product of matrices is matmul(x, y)")
	case r == '^':
		l.errs(t.Span, "unexpected '^': a power is pow(x, y), a square square(x)")
	default:
		l.errs(t.Span, "unexpected character %q", r)
	}
	return t
}

func isLetter(r rune) bool { return r == '_' || r != utf8.RuneError && unicode.IsLetter(r) }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
