// Package verifydiag compares the diagnostics that a file produced with those its comments announce. It is what
// --verify-diagnostics means, in every command that has the flag:
//
//	// expected-error@+1 {{x is not known here}}
//	return x
//
// A directive is expected-error, expected-warning, expected-remark or expected-note, then where, then what:
//
//	expected-error {{text}}          on the directive's own line
//	expected-error@+2 {{text}}       two lines below; @-1 is the line above, @below and @above are +1 and -1
//	expected-error@12 {{text}}       on line 12
//	expected-error@+1:17 {{text}}    in column 17 of the line below
//	expected-error@unknown {{text}}  without a line
//
// The text must be part of the message; with Options.Exact it must be all of it. Every diagnostic and every note
// must be announced, and every directive must be met, each by a diagnostic of its own. The package may know only
// diag.
package verifydiag

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"blutrain/ir/diag"
)

// Options says how strict the comparison is.
type Options struct {
	// Exact asks that a directive's text be the whole message, not a part of it.
	Exact bool
	// FirstLine is the line number of the text's first line, for a piece of a split file; 0 means 1.
	FirstLine int
}

// Expectation is one directive.
type Expectation struct {
	Severity string     // "error", "warning", "remark" or "note"
	Line     int        // 0: a diagnostic without a place
	Col      int        // 0: any column
	Text     string     // what the message says
	At       diag.Range // the directive itself
}

// Verify returns what differs: a directive that is malformed or was not met, a diagnostic that was not announced.
// Nothing differs when the list is empty.
func Verify(file string, src []byte, got diag.List, opts Options) diag.List {
	expected, out := Parse(file, src, opts)
	met := make([]bool, len(expected))
	take := func(severity string, r diag.Range, message string) {
		for i, e := range expected {
			if !met[i] && e.matches(severity, r, message, opts.Exact) {
				met[i] = true
				return
			}
		}
		out.Errorf(r, "unexpected %s: %s", severity, message)
	}
	for _, d := range got {
		take(d.Severity.String(), d.Range, d.Message)
		for _, n := range d.Notes {
			take("note", n.Range, n.Message)
		}
	}
	for i, e := range expected {
		if !met[i] {
			out.Errorf(e.At, "expected %s was not produced: %s", e.Severity, e.Text)
		}
	}
	out.Sort()
	return out
}

func (e Expectation) matches(severity string, r diag.Range, message string, exact bool) bool {
	switch {
	case e.Severity != severity, e.Line != r.Start.Line, e.Col != 0 && e.Col != r.Start.Col:
		return false
	case exact:
		return message == e.Text
	}
	return strings.Contains(message, e.Text)
}

// directive finds anything that means to be one: a typing error in a directive must not turn a test off.
var directive = regexp.MustCompile(`expected-[a-z]+`)

// whole reads a directive's parts: severity, place, column, text.
var whole = regexp.MustCompile(`^expected-(error|warning|remark|note)\s*(?:@([+-]?[0-9]+|below|above|unknown)(?::([0-9]+))?)?\s*\{\{(.*?)\}\}`)

// Parse reads the directives of a text, in order. A malformed directive is an error at its place.
func Parse(file string, src []byte, opts Options) ([]Expectation, diag.List) {
	var expectations []Expectation
	var errs diag.List
	number := max(opts.FirstLine, 1)
	for line := range strings.SplitSeq(string(src), "\n") {
		comment := strings.Index(line, "//")
		if comment < 0 {
			comment = len(line)
		}
		for _, at := range directive.FindAllStringIndex(line[comment:], -1) {
			from := comment + at[0]
			col := utf8.RuneCountInString(line[:from]) + 1
			r := diag.Range{File: file, Start: diag.Pos{Line: number, Col: col}, End: diag.Pos{Line: number, Col: col + at[1] - at[0]}}
			e, err := parseOne(line[from:], number)
			if err != nil {
				errs.Errorf(r, "%v", err)
				continue
			}
			e.At = r
			expectations = append(expectations, e)
		}
		number++
	}
	return expectations, errs
}

func parseOne(text string, line int) (Expectation, error) {
	m := whole.FindStringSubmatch(text)
	if m == nil {
		return Expectation{}, fmt.Errorf("malformed directive: expected expected-error|warning|remark|note[@PLACE[:COLUMN]] {{text}}")
	}
	e := Expectation{Severity: m[1], Text: m[4]}
	switch place := m[2]; {
	case place == "":
		e.Line = line
	case place == "below":
		e.Line = line + 1
	case place == "above":
		e.Line = line - 1
	case place == "unknown":
	default:
		n, err := strconv.Atoi(place)
		if err != nil {
			return Expectation{}, fmt.Errorf("malformed directive: line %s is out of range", place)
		}
		if place[0] == '+' || place[0] == '-' {
			n += line
		}
		e.Line = n
	}
	if m[3] != "" {
		n, err := strconv.Atoi(m[3])
		if err != nil || n == 0 {
			return Expectation{}, fmt.Errorf("malformed directive: column %s is out of range", m[3])
		}
		e.Col = n
	}
	return e, nil
}
