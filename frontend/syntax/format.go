package syntax

import (
	"slices"
	"strings"
	"unicode/utf8"

	"blutrain/ir/diag"
)

const indentWidth = 2

// Format lays a text out: two spaces a level, one statement a line, single spaces between tokens, blank lines at
// most one at a time, a comma after the last item of a list that closes on its own line. Line breaks inside
// brackets and beside operators stay where the person put them. Comments stay. Formatting twice is formatting once,
// and changes nothing of the tree but positions. A text with syntax errors is not formatted.
func Format(name, src string) (string, diag.List) {
	p := newParser(name, src)
	p.parseFile()
	p.diags.Sort()
	if p.diags.HasErrors() {
		return "", p.diags
	}
	f := &formatter{toks: settleCommas(p.toks)}
	f.pairBlocks()
	for i := range f.toks {
		f.print(i)
	}
	return f.out.String(), p.diags
}

// settleCommas gives a list that closes on its own line a last comma, and takes it from every other.
func settleCommas(toks []token) []token {
	out := make([]token, 0, len(toks))
	for _, t := range toks {
		if t.role == roleCloseList {
			out = settleComma(out, &t)
		}
		out = append(out, t)
	}
	return out
}

// settleComma settles the list that close ends; out is what stands before it.
func settleComma(out []token, close *token) []token {
	ownLine := close.Start.Line > out[len(out)-1].End.Line
	item := len(out) - 1
	for k := out[item].kind; k == kComment || k == ","; k = out[item].kind {
		ownLine = ownLine || k == kComment
		item--
	}
	tail := slices.DeleteFunc(out[item+1:], func(t token) bool { return t.kind == "," })
	out = out[:item+1+len(tail)]
	empty := out[item].kind == "(" || out[item].kind == "["
	switch end := out[item].End; {
	case !ownLine:
		close.Start.Line = end.Line
	case !empty:
		out = slices.Insert(out, item+1, token{Span: Span{end, end}, kind: ",", text: ","})
	}
	return out
}

type formatter struct {
	out      strings.Builder
	toks     []token
	flat     map[int]bool // by index of "{" and "}": the block stays on one line
	braces   int          // blocks open, flat ones not counted
	brackets []bracket
	indent   int // of the current line
	column   int // characters on the current line
}

// bracket is an open "(" or "[": where its lines begin, and where its closing partner does.
type bracket struct{ item, close int }

// pairBlocks finds the blocks that stay on one line: those that were on one, and those that are empty.
func (f *formatter) pairBlocks() {
	f.flat = map[int]bool{}
	var open []int
	for i, t := range f.toks {
		switch t.kind {
		case "{":
			open = append(open, i)
		case "}":
			o := open[len(open)-1]
			open = open[:len(open)-1]
			if f.toks[o].Start.Line == t.Start.Line || o == i-1 {
				f.flat[o], f.flat[i] = true, true
			}
		}
	}
}

func (f *formatter) print(i int) {
	t := f.toks[i]
	if t.kind == kEOF {
		if f.column > 0 {
			f.out.WriteByte('\n')
		}
		return
	}
	if t.kind == "}" && !f.flat[i] {
		f.braces--
	}
	switch {
	case i == 0:
	case f.breaks(i):
		f.newline(i)
	case f.spaces(i):
		f.write(" ")
	}
	if t.kind == ")" || t.kind == "]" {
		f.brackets = f.brackets[:len(f.brackets)-1]
	}
	f.write(t.text)
	switch t.kind {
	case "{":
		if !f.flat[i] {
			f.braces++
		}
	case "(", "[":
		f.brackets = append(f.brackets, f.bracketAt(i))
	}
}

func (f *formatter) write(s string) {
	f.out.WriteString(s)
	f.column += utf8.RuneCountInString(s)
}

// bracketAt places the lines of a bracket: one level in when the bracket ends its line, else beside its first item.
func (f *formatter) bracketAt(i int) bracket {
	if f.breaks(i+1) || f.toks[i+1].kind == kComment {
		return bracket{f.indent + indentWidth, f.indent}
	}
	return bracket{f.column, f.column}
}

// lines is the number of line ends in the source before token i.
func (f *formatter) lines(i int) int { return f.toks[i].Start.Line - f.toks[i-1].End.Line }

// breaks tells whether token i begins a line.
func (f *formatter) breaks(i int) bool {
	t, prev := f.toks[i], f.toks[i-1]
	switch {
	case prev.kind == kComment:
		return true
	case t.kind == kComment:
		return f.lines(i) > 0
	case prev.kind == "{":
		return !f.flat[i-1]
	case t.kind == "}":
		return !f.flat[i]
	case t.role == roleStart:
		return true
	case f.lines(i) == 0:
		return false
	case t.kind == ")", t.kind == "]":
		return prev.kind != "(" && prev.kind != "["
	case prev.kind == ",", prev.kind == "(", prev.kind == "[":
		return t.kind != ","
	}
	return prev.kind == "=" || isOperator(prev) || isOperator(t)
}

// isOperator tells the tokens beside which an expression may go on in the next line.
func isOperator(t token) bool { return precedence[t.kind] > 0 && t.role != roleUnary }

func (f *formatter) newline(i int) {
	t, prev := f.toks[i], f.toks[i-1]
	f.out.WriteByte('\n')
	gap := f.lines(i) > 1 && prev.kind != "{" && t.kind != "}" && len(f.brackets) == 0
	between := f.braces == 0 && prev.kind == "}" && (t.role == roleStart || t.kind == kComment)
	if gap || between {
		f.out.WriteByte('\n')
	}
	f.indent = f.indentAt(i)
	f.column = 0
	f.write(strings.Repeat(" ", f.indent))
}

// indentAt is the indent of the line that token i begins.
func (f *formatter) indentAt(i int) int {
	base := f.braces * indentWidth
	if n := len(f.brackets); n > 0 {
		if k := f.toks[i].kind; k == ")" || k == "]" {
			return f.brackets[n-1].close
		}
		return f.brackets[n-1].item
	}
	for f.toks[i].kind == kComment {
		i++
	}
	if t := f.toks[i]; t.role == roleStart || t.kind == "}" || t.kind == kEOF {
		return base
	}
	return base + 2*indentWidth
}

// spaces tells whether a space stands before token i, within a line.
func (f *formatter) spaces(i int) bool {
	t, prev := f.toks[i], f.toks[i-1]
	switch {
	case t.kind == kComment:
		f.write(" ") // two spaces set a comment off
		return true
	case t.role == roleTight && prev.kind == ",":
		return true // x[0, :]
	case t.role == rolePostfix, t.role == roleTight, prev.role == roleTight, prev.role == roleUnary:
		return false
	case f.tight(i), f.tight(i - 1):
		return false
	case prev.kind == "{" && t.kind == "}":
		return false
	}
	switch t.kind {
	case ")", "]", ",", ".", ":":
		return false
	}
	switch prev.kind {
	case "(", "[", ".":
		return false
	}
	return true
}

// tight tells whether token i is a product that was written without spaces, as in 4*C; both ways are kept.
func (f *formatter) tight(i int) bool {
	return i > 0 && precedence[f.toks[i].kind] == precedence["*"] && f.toks[i].Start.Offset == f.toks[i-1].End.Offset
}
