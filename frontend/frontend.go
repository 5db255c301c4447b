// Package frontend reads .blu files: text to a module of the blu dialect, or to diagnostics.
//
// What happens on the way has rooms of its own: syntax (text to tree), sema (names, sizes, types), builtin (the table
// of what programs can call), emit (tree to IR). The package may know nothing of what becomes of the module.
package frontend

import (
	"blutrain/frontend/emit"
	"blutrain/frontend/sema"
	"blutrain/frontend/syntax"
	"blutrain/ir"
	"blutrain/ir/diag"
)

// Options are what the command line adds to a file.
type Options struct {
	// Set gives arguments of the model and sizes of the batch other values.
	Set map[string]float64
	// Truths gives arguments of the model that are truth values others.
	Truths map[string]bool
}

// Parse reads a text into its syntax tree. The tree holds what is free of syntax errors.
func Parse(file string, src []byte) (*syntax.File, diag.List) {
	return syntax.Parse(file, string(src))
}

// Check reads a text and gives it its meaning. The program is nil when there are errors; with syntax errors only
// these are reported, for what they hide would make more of them.
func Check(file string, src []byte, opts Options) (*sema.Program, diag.List) {
	tree, diags := Parse(file, src)
	if diags.HasErrors() {
		return nil, diags
	}
	return sema.Check(tree, sema.Options{Set: opts.Set, Truths: opts.Truths})
}

// Compile reads a text into a module of the blu dialect, in the form of the phase "input". The module is nil when
// there are errors; warnings may come with it.
func Compile(ctx *ir.Context, file string, src []byte, opts Options) (*ir.Op, diag.List) {
	program, diags := Check(file, src, opts)
	if program == nil {
		return nil, diags
	}
	return emit.Module(ctx, program), diags
}

// Format lays a text out, or returns its syntax errors.
func Format(file string, src []byte) ([]byte, diag.List) {
	out, diags := syntax.Format(file, string(src))
	return []byte(out), diags
}
