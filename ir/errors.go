package ir

import (
	"errors"
	"strings"

	"blutrain/ir/diag"
)

// Errors is several errors, in the order of the IR they are about.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Err is nil when there are none: an Errors as an error.
func (es Errors) Err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// Unwrap lists the errors, for errors.As.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// WithNote adds a remark at another place and returns e.
func (e *Error) WithNote(loc *Location, msg string) *Error {
	e.Notes = append(e.Notes, Note{loc, msg})
	return e
}

// Diagnostics is what an error says to a person: each *Error it holds at its place in the source, followed by the calls
// that were inlined there; anything else without a place.
func Diagnostics(err error) diag.List {
	var l diag.List
	appendDiagnostics(&l, err)
	return l
}

func appendDiagnostics(l *diag.List, err error) {
	if err == nil {
		return
	}
	if e, ok := err.(*Error); ok {
		e.appendTo(l)
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			appendDiagnostics(l, e)
		}
		return
	}
	// An error that wraps a located one keeps its own words, at that place.
	var e *Error
	if errors.As(err, &e) {
		msg := strings.Replace(err.Error(), e.Error(), e.Msg, 1)
		(&Error{e.Loc, e.Op, msg, e.Notes}).appendTo(l)
		return
	}
	l.Errorf(diag.Range{}, "%s", err)
}

func (e *Error) appendTo(l *diag.List) {
	d := l.Errorf(Range(e.Loc), "%s", e.Msg)
	for _, site := range callers(e.Loc) {
		d.Note(Range(site), "called from here")
	}
	for _, n := range e.Notes {
		d.Note(Range(n.Loc), "%s", n.Msg)
	}
}

// Range is the place in the source that a location tells of, or no place.
func Range(l *Location) diag.Range {
	s := l.Source()
	if s == nil {
		return diag.Range{}
	}
	p := diag.Pos{Line: s.Line, Col: s.Col}
	return diag.Range{File: s.File, Start: p, End: p}
}

// callers lists the call sites of inlined code, innermost first.
func callers(l *Location) []*Location {
	if l == nil || len(l.Children) == 0 {
		return nil
	}
	sites := callers(l.Children[0])
	if l.Kind == LocCallSite {
		sites = append(append(sites, l.Children[1]), callers(l.Children[1])...)
	}
	return sites
}
