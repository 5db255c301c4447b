// Package passes runs transformations of a module one after another and holds those that stay within a dialect. A pass is
// a row of a table; a pipeline is text such as builtin.module(canonicalize,cse,func.func(dce)). After every pass the
// module is verified; a crash names the pass and the operation, and comes with a file that reproduces it.
//
// The package knows nothing of the language, of autodiff or of targets: their steps are rows of tables of their own, which
// the driver puts beside this one.
package passes
