package filecheck

import (
	"errors"
	"fmt"
	"strings"
)

// commandLine is the name of a source that is an option.
const commandLine = "command line"

// A source is a text that messages point into: the check file, the input or an option.
type source struct {
	name string
	text string
}

// A loc is a place in a source.
type loc struct {
	src *source
	off int
}

func (l loc) plus(n int) loc { return loc{l.src, l.off + n} }

// position gives the line and column, both from 1.
func (l loc) position() (line, col int) {
	before := l.src.text[:l.off]
	return 1 + strings.Count(before, "\n"), l.off - strings.LastIndexByte(before, '\n')
}

func (l loc) lineText() string {
	_, col := l.position()
	rest := l.src.text[l.off-(col-1):]
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		return rest[:end]
	}
	return rest
}

// A locError is something wrong at a place: in the check file or the options while reading, in the input while matching.
type locError struct {
	at  loc
	msg string
}

func (e *locError) Error() string {
	line, col := e.at.position()
	return fmt.Sprintf("%s:%d:%d: %s", e.at.src.name, line, col, e.msg)
}

func errorAt(at loc, format string, args ...any) error {
	return &locError{at, fmt.Sprintf(format, args...)}
}

func (c *checker) say(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// message reports one line about a place, the line it is in and a caret under the place.
func (c *checker) message(at loc, severity, format string, args ...any) {
	line, col := at.position()
	text := at.lineText()
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, text[:min(col-1, len(text))])
	c.say("%s:%d:%d: %s: %s\n%s\n%s^\n", at.src.name, line, col, severity, fmt.Sprintf(format, args...), text, pad)
}

// reportError reports errors that carry places, one after the other.
func (c *checker) reportError(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.reportError(e)
		}
		return
	}
	var le *locError
	if errors.As(err, &le) {
		c.message(le.at, "error", "%s", le.msg)
		return
	}
	c.say("error: %v\n", err)
}

// excerptLines is how much of the input a report shows from where a search began.
const excerptLines = 12

// excerpt shows the input from the line before a place, numbered.
func (c *checker) excerpt(at loc) {
	line, _ := at.position()
	lines := strings.Split(strings.TrimSuffix(at.src.text, "\n"), "\n")
	first := max(line-1, 1)
	last := min(first+excerptLines-1, len(lines))
	c.say("%s, lines %d to %d of %d:\n", at.src.name, first, last, len(lines))
	for n := first; n <= last; n++ {
		c.say("%6d: %s\n", n, lines[n-1])
	}
}
