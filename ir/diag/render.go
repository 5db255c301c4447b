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

// Bounds on what is shown, for texts that nobody wrote by hand.
const (
	maxExcerpt = 160  // characters of a source line: generated files have lines of megabytes
	maxMessage = 2000 // characters of a message, which may quote a name of megabytes
	maxShown   = 1000 // diagnostics: a file of random bytes has an error at every second one
)

// Render writes the diagnostics of l, in the order of l, with their notes and source excerpts. Of very many it writes the first,
// and how many there are besides.
func Render(w io.Writer, l List, sources Sources) error {
	var b strings.Builder
	shown := l[:min(len(l), maxShown)]
	for _, d := range shown {
		renderOne(&b, d.Range, d.Severity.String(), d.Message, sources)
		for _, n := range d.Notes {
			renderOne(&b, n.Range, "note", n.Message, sources)
		}
	}
	if n := len(l) - len(shown); n > 0 {
		fmt.Fprintf(&b, "%d more are not shown\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func renderOne(b *strings.Builder, r Range, severity, message string, sources Sources) {
	writeHead(b, r, severity, printable(message))
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
func lineAt(src []byte, p Pos) ([]byte, bool) {
	if !p.IsValid() || src == nil {
		return nil, false
	}
	rest := src
	for n := 1; n < p.Line; n++ {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return nil, false
		}
		rest = rest[i+1:]
	}
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	return bytes.TrimSuffix(rest, []byte("\r")), true
}

// excerpt cuts a line around a column, in characters from 1, and makes control characters harmless. It returns the
// column within the cut.
func excerpt(line []byte, column int) (string, int) {
	from := 0
	if len(line) > utf8.UTFMax*maxExcerpt || utf8.RuneCount(line) > maxExcerpt {
		from = max(0, column-1-maxExcerpt/2)
	}
	line = line[bytesOf(line, from):]
	return harmless(string(line[:bytesOf(line, maxExcerpt)])), column - from
}

// bytesOf is the length of the first n characters of a text, or of all of it.
func bytesOf(text []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// harmless replaces control characters, which could drive the terminal.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && r != '\n' && unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// printable is a message as it can be shown.
func printable(message string) string {
	if len(message) > maxMessage {
		if runes := []rune(message); len(runes) > maxMessage {
			message = string(runes[:maxMessage]) + "..."
		}
	}
	return harmless(message)
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
