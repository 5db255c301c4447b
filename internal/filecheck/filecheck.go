// Package filecheck decides whether a text contains what the CHECK directives of another file ask for, in the order they
// ask for it. It understands the files of LLVM's FileCheck and gives the same verdicts, so a golden test runs under either.
//
// The room knows texts and directives. It knows nothing about test runners, shells or compilers.
//
// The format is described in https://llvm.org/docs/CommandGuide/FileCheck.html. One deliberate difference: regular
// expressions see characters, where LLVM's see the bytes of their UTF-8 encoding.
package filecheck

import (
	"bytes"
	"strings"
)

// Options are the command-line settings of FileCheck, under their upstream names.
type Options struct {
	CheckPrefixes       []string // default: CHECK
	CommentPrefixes     []string // default: COM, RUN
	ImplicitCheckNot    []string // patterns that may appear nowhere outside of what directives match
	Defines             []string // NAME=TEXT or #FORMAT,NAME=EXPRESSION
	AllowEmpty          bool     // an empty input is not an error by itself
	AllowUnusedPrefixes bool     // a prefix without directives is not an error as long as another has some
	MatchFullLines      bool     // positive directives match whole lines
	StrictWhitespace    bool     // runs of blanks and tabs are not taken as one blank
	IgnoreCase          bool
	EnableVarScope      bool // CHECK-LABEL forgets the variables whose names don't start with $
	AllowDAGOverlap     bool // matches of neighbouring CHECK-DAGs may overlap
}

// A File is a named text. The name is used in messages only.
type File struct {
	Name string
	Text []byte
}

// A Failure says why a check didn't succeed. Its text is the report for the person: one message a line, each with the
// file, line and column it is about, the line itself and a caret.
type Failure struct {
	Setup  bool // the check file or the options are wrong: nothing was compared
	Report string
}

func (f *Failure) Error() string { return strings.TrimRight(f.Report, "\n") }

// Check compares input with the directives in checkFile. It returns nil or a *Failure.
func Check(opts Options, checkFile, input File) error {
	c := &checker{opts: opts.withDefaults(), defaultPrefix: len(opts.CheckPrefixes) == 0, vars: newVariables()}
	check := &source{name: checkFile.Name, text: c.canonical(checkFile.Text)}
	in := &source{name: input.Name, text: c.canonical(input.Text)}

	if len(input.Text) == 0 && !opts.AllowEmpty {
		c.say("error: %s is empty; --allow-empty permits that\n", input.Name)
		return &Failure{Setup: true, Report: c.out.String()}
	}
	directives, err := c.readDirectives(check)
	if err != nil {
		c.reportError(err)
		return &Failure{Setup: true, Report: c.out.String()}
	}
	if !c.matchAll(directives, in) {
		return &Failure{Report: c.out.String()}
	}
	return nil
}

// checker holds what one comparison needs.
type checker struct {
	opts          Options
	defaultPrefix bool // nobody named a check prefix
	vars          *variables
	out           bytes.Buffer // the report
}

func (o Options) withDefaults() Options {
	if len(o.CheckPrefixes) == 0 {
		o.CheckPrefixes = []string{"CHECK"}
	}
	if len(o.CommentPrefixes) == 0 {
		o.CommentPrefixes = []string{"COM", "RUN"}
	}
	return o
}

// canonical turns line ends into \n and, unless whitespace is strict, every run of blanks and tabs into one blank.
func (c *checker) canonical(text []byte) string {
	s := strings.ReplaceAll(string(text), "\r\n", "\n")
	if c.opts.StrictWhitespace {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := range len(s) {
		switch {
		case !isBlank(s[i]):
			b.WriteByte(s[i])
		case i == 0 || !isBlank(s[i-1]):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
