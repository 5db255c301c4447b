package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sources gives the text of each file that diagnostics may point into. A file that is missing prints no excerpt.
type Sources map[string][]byte

// maxExcerpt bounds the characters of a source line that an excerpt shows: generated files have lines of megabytes.
const maxExcerpt = 160

// Render writes every diagnostic of l, in the order of l, with its notes and source excerpts.
func Render(w io.Writer, l List, sources Sources) error {
	var b strings.Builder
	for _, d := range l {
		renderOne(&b, d.Range, d.Severity.String(), d.Message, sources)
		for _, n := range d.Notes {
			renderOne(&b, n.Range, "note", n.Message, sources)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func renderOne(b *strings.Builder, r Range, severity, message string, sources Sources) {
	writeHead(b, r, severity, message)
	b.WriteByte('\n')
	line, ok := lineAt(sources[r.File], r.Start)
	if !ok {
		return
	}
	text, column := excerpt(line, r.Start.Col)
	number := fmt.Sprintf("%5d", r.Start.Line)
	fmt.Fprintf(b, "%s | %s\n", number, text)
	fmt.Fprintf(b, "%*s | %s\n", len(number), "", underline(text, column))
}

// lineAt finds the line of a place, without its end-of-line characters.
func lineAt(src []byte, p Pos) (string, bool) {
	if !p.IsValid() || src == nil {
		return "", false
	}
	rest := src
	for n := 1; n < p.Line; n++ {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return "", false
		}
		rest = rest[i+1:]
	}
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	return strings.TrimSuffix(string(rest), "\r"), true
}

// excerpt cuts a line around a column, in characters from 1, and makes control characters harmless. It returns the
// column within the cut.
func excerpt(line string, column int) (string, int) {
	runes := []rune(line)
	from := 0
	if len(runes) > maxExcerpt {
		from = min(max(0, column-1-maxExcerpt/2), len(runes)-maxExcerpt)
		runes = runes[from : from+maxExcerpt]
	}
	for i, r := range runes {
		if r != '\t' && unicode.IsControl(r) {
			runes[i] = utf8.RuneError
		}
	}
	return string(runes), column - from
}

// underline puts a caret under a column. Tabs before it stay tabs, so that the caret lines up at any tab width.
func underline(text string, column int) string {
	var b strings.Builder
	at := 1
	for _, r := range text {
		if at >= column {
			break
		}
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
		at++
	}
	for ; at < column && at <= maxExcerpt; at++ {
		b.WriteByte(' ')
	}
	b.WriteByte('^')
	return b.String()
}
