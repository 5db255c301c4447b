package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"blutrain/driver"
	"blutrain/ir/diag"
	"blutrain/passes"
)

// usageError is a fault of the command line that the flags' own checks don't see.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

// reported is an error that has been printed.
var reported = errors.New("reported")

// report prints an error and gives the exit status.
func report(w io.Writer, err error) int {
	var u usageError
	var o *driver.OptionError
	switch {
	case errors.Is(err, reported):
		return failed
	case errors.As(err, &u), errors.As(err, &o):
		fmt.Fprintln(w, "bluc: error:", err)
		return usage
	}
	render(w, driver.Diagnostics(err), nil)
	var f *passes.Failure
	if errors.As(err, &f) {
		reportFailure(w, err, f)
	}
	return failed
}

// render prints diagnostics with their source lines: of the given texts, and of the files they name where these can be
// read. What concerns no file begins with the program's name.
func render(w io.Writer, l diag.List, sources diag.Sources) {
	all := diag.Sources{}
	add := func(file string) {
		if _, known := all[file]; known || file == "" {
			return
		}
		if src, ok := sources[file]; ok {
			all[file] = src
		} else if src, err := os.ReadFile(file); err == nil {
			all[file] = src
		}
	}
	for _, d := range l {
		add(d.Range.File)
		for _, n := range d.Notes {
			add(n.Range.File)
		}
	}
	shown := make(diag.List, len(l))
	for i, d := range l {
		if shown[i] = d; d.Range.String() == "" {
			own := *d
			own.Range.File = "bluc"
			shown[i] = &own
		}
	}
	diag.Render(w, shown, all)
}

// reportFailure says what was saved for whoever mends the pass.
func reportFailure(w io.Writer, err error, f *passes.Failure) {
	if f.Stack != "" {
		fmt.Fprintf(w, "%s\n", f.Stack)
	}
	fmt.Fprintf(w, "This is a fault of the compiler, in the pass %s, not of the model.\n", f.Pass)
	var saved *savedFailure
	if errors.As(err, &saved) {
		fmt.Fprintf(w, "To reproduce it: bluc opt %s\n", saved.file)
		return
	}
	name, err := saveTemporary("bluc-"+f.Pass+"-*.mlir", f.Reproducer)
	if err != nil {
		fmt.Fprintln(w, "The module could not be saved:", err)
		return
	}
	fmt.Fprintf(w, "To reproduce it: bluc opt %s\n", name)
}

func saveTemporary(pattern string, data []byte) (name string, err error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return f.Name(), errors.Join(err, f.Close())
}

// saved writes the reproducer of a failed pass where --crash-reproducer says, and prints the error.
func (f passFlags) saved(err error) error {
	var failure *passes.Failure
	if f.CrashReproducer == "" || !errors.As(err, &failure) {
		return err
	}
	if werr := driver.WriteFile(f.CrashReproducer, failure.Reproducer); werr != nil {
		return errors.Join(err, werr)
	}
	return &savedFailure{failure, f.CrashReproducer}
}

// savedFailure is a pass's failure with the reproducer already in a file.
type savedFailure struct {
	*passes.Failure
	file string
}

// Unwrap gives the failure.
func (e *savedFailure) Unwrap() error { return e.Failure }
