// Package diag holds what the compiler says to a person: positions, diagnostics and their rendering.
//
// A diagnostic names a file, a line and a column, says what is wrong in the words the person wrote, and may carry
// notes that point at other places. Every part of the compiler that finds fault with a text reports it as a List,
// and every command prints it with Render:
//
//	gpt2.blu:14:17: error: linear: x has 768 channels (C = 768), w expects 3072 (4*C)
//	   14 |       let h = linear(x, fc_w, fc_b)
//	      |                      ^
//	gpt2.blu:8:5: note: fc_w is declared f32[4*C, 4*C] here
//	    8 |     param fc_w: f32[4*C, 4*C] = normal(std: 0.02)
//	      |     ^
//
// The package knows nothing of any language, dialect or pass, and imports nothing of the project.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is one place in a text. Line and Col count from 1, Col in characters (Unicode code points), Offset in bytes
// from 0. The zero Pos is no place: the diagnostic concerns the file as a whole, or a flag.
type Pos struct {
	Line, Col, Offset int
}

// IsValid tells a place from no place.
func (p Pos) IsValid() bool { return p.Line > 0 }

// Before orders places of one file.
func (p Pos) Before(q Pos) bool { return p.Line < q.Line || p.Line == q.Line && p.Col < q.Col }

// Range is a half-open piece of a file, [Start, End).
type Range struct {
	File       string
	Start, End Pos
}

// String is the range's head as a diagnostic prints it: "file:line:col", "file" without a place, "" without a file.
func (r Range) String() string {
	switch {
	case !r.Start.IsValid():
		return r.File
	case r.File == "":
		return fmt.Sprintf("%d:%d", r.Start.Line, r.Start.Col)
	}
	return fmt.Sprintf("%s:%d:%d", r.File, r.Start.Line, r.Start.Col)
}

// Severity says how bad a diagnostic is. Only an Error stops a compilation.
type Severity int

// The severities, gravest first.
const (
	Error Severity = iota
	Warning
	Remark
)

// String is the word a diagnostic prints.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Remark:
		return "remark"
	}
	return fmt.Sprintf("severity(%d)", int(s))
}

// Note points at another place that explains a diagnostic.
type Note struct {
	Range   Range
	Message string
}

// Diagnostic is one thing said about a text.
type Diagnostic struct {
	Severity Severity
	Range    Range
	Message  string
	Notes    []Note
}

// String is the diagnostic and its notes, one a line, without source excerpts.
func (d Diagnostic) String() string {
	var b strings.Builder
	writeHead(&b, d.Range, d.Severity.String(), d.Message)
	for _, n := range d.Notes {
		b.WriteByte('\n')
		writeHead(&b, n.Range, "note", n.Message)
	}
	return b.String()
}

// Note adds a note and returns d, so that it reads as part of the report: l.Errorf(...).Note(r, "...").
func (d *Diagnostic) Note(r Range, format string, args ...any) *Diagnostic {
	d.Notes = append(d.Notes, Note{Range: r, Message: fmt.Sprintf(format, args...)})
	return d
}

func writeHead(b *strings.Builder, r Range, severity, message string) {
	if at := r.String(); at != "" {
		b.WriteString(at)
		b.WriteString(": ")
	}
	b.WriteString(severity)
	b.WriteString(": ")
	b.WriteString(message)
}

// List collects diagnostics. The zero List is empty and ready.
type List []*Diagnostic

// Errorf adds an error at r.
func (l *List) Errorf(r Range, format string, args ...any) *Diagnostic {
	return l.add(Error, r, format, args...)
}

// Warnf adds a warning at r.
func (l *List) Warnf(r Range, format string, args ...any) *Diagnostic {
	return l.add(Warning, r, format, args...)
}

// Remarkf adds a remark at r.
func (l *List) Remarkf(r Range, format string, args ...any) *Diagnostic {
	return l.add(Remark, r, format, args...)
}

func (l *List) add(s Severity, r Range, format string, args ...any) *Diagnostic {
	d := &Diagnostic{Severity: s, Range: r, Message: fmt.Sprintf(format, args...)}
	*l = append(*l, d)
	return d
}

// HasErrors tells whether the list holds an error; warnings and remarks do not count.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d *Diagnostic) bool { return d.Severity == Error })
}

// Sort puts the list in source order, by file, place and severity, and drops repetitions of the same message at the
// same place. Diagnostics that tie keep the order in which they were added.
func (l *List) Sort() {
	slices.SortStableFunc(*l, func(a, b *Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Range.File, b.Range.File),
			cmp.Compare(a.Range.Start.Line, b.Range.Start.Line),
			cmp.Compare(a.Range.Start.Col, b.Range.Start.Col),
			cmp.Compare(a.Severity, b.Severity),
		)
	})
	*l = slices.CompactFunc(*l, func(a, b *Diagnostic) bool {
		return a.Severity == b.Severity && a.Range.File == b.Range.File &&
			a.Range.Start == b.Range.Start && a.Message == b.Message
	})
}

// Merged is the list with one remark for all that say the same: at the first of their places, with the lines and columns of the others. A
// person wants to know what a remark says once, and errors at every place.
func (l List) Merged() List {
	type told struct {
		message string
		at      Range
	}
	seen := map[told]bool{}
	first := map[string]*Diagnostic{} // of the remarks with a message
	var merged List
	for _, d := range l {
		if d.Severity != Remark {
			merged = append(merged, d)
			continue
		}
		t := told{d.Message, d.Range}
		if seen[t] {
			continue
		}
		seen[t] = true
		f := first[d.Message]
		if f == nil {
			own := *d
			first[d.Message] = &own
			merged = append(merged, &own)
			continue
		}
		f.Message += likewise(f.Message == d.Message) + d.Range.place(f.Range.File)
	}
	return merged
}

// likewise is what stands before another place.
func likewise(second bool) string {
	if second {
		return "; likewise at "
	}
	return ", "
}

// place is the range's head where a file is spoken of already.
func (r Range) place(file string) string {
	if r.File == file {
		r.File = ""
	}
	return r.String()
}

// Err is the list as an error, nil when it holds none of severity Error. Its text is String of every diagnostic.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return listError{l}
}

type listError struct{ list List }

func (e listError) Error() string {
	lines := make([]string, len(e.list))
	for i, d := range e.list {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}
