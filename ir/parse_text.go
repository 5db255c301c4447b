package ir

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// text is a cursor over source text. It has no token type: the grammar asks for what it expects, at the place where it
// expects it, and a failure says what that was.
type text struct {
	ctx  *Context
	file string
	src  string
	pos  int
	// Line and offset of its start, of the place last asked for: positions are asked for in ascending order.
	line, lineStart int
	depth           int
}

// maxDepth bounds the nesting of regions, types and attributes, so that no input exhausts the stack.
const maxDepth = 256

// bailout carries the first error out of the recursive descent.
type bailout struct{ err *Error }

// fail ends the parse with an error at offset at.
func (t *text) fail(at int, format string, args ...any) {
	panic(bailout{&Error{Loc: t.loc(at), Msg: fmt.Sprintf(format, args...)}})
}

// expected ends the parse because something else stands at the cursor.
func (t *text) expected(what string) {
	t.skip()
	t.fail(t.pos, "expected %s, found %s", what, t.found())
}

// found describes what stands at the cursor.
func (t *text) found() string {
	rest := t.src[t.pos:]
	if rest == "" {
		return "the end of the file"
	}
	n := 1
	if isWord(rest[0]) || strings.IndexByte("%@^#!", rest[0]) >= 0 {
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
	} else {
		_, n = utf8.DecodeRuneInString(rest)
	}
	if n > 40 {
		return strconv.Quote(rest[:40]) + "..."
	}
	return strconv.Quote(rest[:n])
}

// loc is the location of an offset.
func (t *text) loc(at int) *Location {
	if at < t.lineStart {
		t.line, t.lineStart = 1, 0
	}
	for {
		i := strings.IndexByte(t.src[t.lineStart:at], '\n')
		if i < 0 {
			break
		}
		t.line++
		t.lineStart += i + 1
	}
	return t.ctx.FileLoc(t.file, t.line, utf8.RuneCountInString(t.src[t.lineStart:at])+1)
}

// enter counts a level of nesting; the caller leaves it with t.depth--.
func (t *text) enter() {
	if t.depth++; t.depth > maxDepth {
		t.fail(t.pos, "nested deeper than %d levels", maxDepth)
	}
}

// skip passes over white space and comments.
func (t *text) skip() {
	for t.pos < len(t.src) {
		switch c := t.src[t.pos]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			t.pos++
		case c == '/' && t.pos+1 < len(t.src) && t.src[t.pos+1] == '/':
			end := strings.IndexByte(t.src[t.pos:], '\n')
			if end < 0 {
				t.pos = len(t.src)
				return
			}
			t.pos += end
		default:
			return
		}
	}
}

// peek is the next character that is no space, or 0 at the end.
func (t *text) peek() byte {
	t.skip()
	if t.pos < len(t.src) {
		return t.src[t.pos]
	}
	return 0
}

// at is the character n after the cursor, or 0.
func (t *text) at(n int) byte {
	if t.pos+n < len(t.src) {
		return t.src[t.pos+n]
	}
	return 0
}

// accept passes over c if it is next.
func (t *text) accept(c byte) bool {
	if t.peek() != c {
		return false
	}
	t.pos++
	return true
}

func (t *text) expect(c byte) {
	if !t.accept(c) {
		t.expected("'" + string(c) + "'")
	}
}

// acceptStr passes over punctuation of several characters if it is next.
func (t *text) acceptStr(s string) bool {
	t.skip()
	if !strings.HasPrefix(t.src[t.pos:], s) {
		return false
	}
	t.pos += len(s)
	return true
}

func (t *text) expectStr(s string) {
	if !t.acceptStr(s) {
		t.expected("'" + s + "'")
	}
}

// acceptWord passes over a word if it is next and ends there.
func (t *text) acceptWord(w string) bool {
	t.skip()
	if t.peekWord() != w {
		return false
	}
	t.pos += len(w)
	return true
}

// peekWord is the identifier at the cursor (letters, digits, '_', '$', '.'), or "". It doesn't skip white space.
func (t *text) peekWord() string {
	if t.pos >= len(t.src) || !isLetter(t.src[t.pos]) {
		return ""
	}
	end := t.pos + 1
	for end < len(t.src) && isWord(t.src[end]) {
		end++
	}
	return t.src[t.pos:end]
}

func (t *text) word(what string) string {
	t.skip()
	w := t.peekWord()
	if w == "" {
		t.expected(what)
	}
	t.pos += len(w)
	return w
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' || c == '.' }

// suffix is the name after '%' or '^': an identifier or a number; '-' is allowed as MLIR does.
func (t *text) suffix(what string) string {
	end := t.pos
	for end < len(t.src) && (isWord(t.src[end]) || t.src[end] == '-') {
		end++
	}
	if end == t.pos {
		t.expected(what)
	}
	s := t.src[t.pos:end]
	t.pos = end
	return s
}

// quoted reads a string literal at the cursor.
func (t *text) quoted() string {
	start := t.pos
	if t.peek() != '"' {
		t.expected("a string")
	}
	t.pos++
	end := strings.IndexByte(t.src[t.pos:], '"')
	if end < 0 {
		t.fail(start, "string without end")
	}
	if s := t.src[t.pos : t.pos+end]; strings.IndexByte(s, '\\') < 0 {
		if nl := strings.IndexByte(s, '\n'); nl >= 0 {
			t.fail(t.pos+nl, "expected '\"' before the end of the line")
		}
		t.pos += end + 1
		return s
	}
	var out []byte
	for {
		switch c := t.at(0); c {
		case 0, '\n':
			if t.pos < len(t.src) && c == 0 {
				out = append(out, 0)
				t.pos++
				continue
			}
			t.expected("'\"' that ends the string")
		case '"':
			t.pos++
			return string(out)
		case '\\':
			out = append(out, t.escape())
		default:
			out = append(out, c)
			t.pos++
		}
	}
}

// escape reads \n, \t, \", \\ or \HH.
func (t *text) escape() byte {
	switch c := t.at(1); c {
	case '"', '\\':
		t.pos += 2
		return c
	case 'n':
		t.pos += 2
		return '\n'
	case 't':
		t.pos += 2
		return '\t'
	}
	if t.pos+3 <= len(t.src) {
		if n, err := strconv.ParseUint(t.src[t.pos+1:t.pos+3], 16, 8); err == nil {
			t.pos += 3
			return byte(n)
		}
	}
	t.fail(t.pos, `unknown escape: expected \", \\, \n, \t or two hexadecimal digits`)
	return 0
}

// digits reads a decimal number that fits an int64.
func (t *text) digits(what string) int64 {
	t.skip()
	end := t.pos
	for end < len(t.src) && isDigit(t.src[end]) {
		end++
	}
	if end == t.pos {
		t.expected(what)
	}
	n, err := strconv.ParseInt(t.src[t.pos:end], 10, 64)
	if err != nil {
		t.fail(t.pos, "%s is too large: %s", what, t.src[t.pos:end])
	}
	t.pos = end
	return n
}
