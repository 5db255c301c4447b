package gen

import (
	"fmt"
	"strings"

	"blutrain/ir"
)

// Docs is the reference page of a dialect in Markdown.
func Docs(d *ir.Dialect) []byte {
	w := &writer{}
	w.line("<!-- Generated from the table of the %s dialect; do not edit. -->", d.Name)
	w.line("")
	w.line("# The `%s` dialect", d.Name)
	w.line("")
	w.line("%s.", sentence(d.Summary))
	if len(d.Types)+len(d.Attrs) > 0 {
		w.line("")
		w.line("## Types and attributes")
		w.line("")
		for _, t := range d.Types {
			w.line("- `!%s.%s`: %s", d.Name, t.Name, t.Summary)
		}
		for _, a := range d.Attrs {
			w.line("- `#%s.%s`: %s", d.Name, a.Name, a.Summary)
		}
	}
	w.line("")
	w.line("## Operations")
	w.line("")
	for _, def := range d.Ops {
		w.line("- [`%s`](#%s): %s", def.FullName(), anchor(def.FullName()), def.Summary)
	}
	for _, def := range d.Ops {
		opDocs(w, def)
	}
	return w.Bytes()
}

// anchor is the fragment Markdown viewers give a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), ".", "")
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func opDocs(w *writer, def *ir.OpDef) {
	w.line("")
	w.line("### %s", def.FullName())
	w.line("")
	w.line("%s.", sentence(def.Summary))
	if def.Description != "" {
		w.line("")
		w.line("%s", def.Description)
	}
	if t := traitNames(def.Traits); len(t) > 0 {
		w.line("")
		w.line("Traits: %s.", strings.Join(t, ", "))
	}
	if len(def.Operands)+len(def.Attrs)+len(def.Results)+len(def.Regions) == 0 {
		return
	}
	w.line("")
	w.line("| | name | kind | |")
	w.line("|---|---|---|---|")
	for _, d := range def.Operands {
		w.line("| operand | `%s` | %s%s | %s |", d.Name, d.Type.Doc, arityDoc(d.Arity), d.Doc)
	}
	for _, d := range def.Attrs {
		w.line("| attribute | `%s` | %s%s | %s |", d.Name, d.Kind, attrDoc(d), d.Doc)
	}
	for _, d := range def.Results {
		w.line("| result | `%s` | %s%s | %s |", d.Name, d.Type.Doc, arityDoc(d.Arity), d.Doc)
	}
	for _, d := range def.Regions {
		w.line("| region | `%s` | %s | %s |", d.Name, map[bool]string{true: "blocks", false: "one block"}[d.Arity == ir.Variadic], d.Doc)
	}
}

func arityDoc(a ir.Arity) string {
	return [...]string{ir.One: "", ir.Optional: ", optional", ir.Variadic: ", any number"}[a]
}

func attrDoc(d ir.AttrDef) string {
	switch {
	case d.Default != nil:
		return fmt.Sprintf(", default %v", d.Default)
	case d.Optional:
		return ", optional"
	}
	return ""
}

// traitNames lists the traits that tell a reader something, in the order of their declaration.
func traitNames(t ir.Traits) []string {
	var names []string
	for _, n := range []struct {
		trait ir.Traits
		name  string
	}{
		{ir.Pure, "pure"}, {ir.Commutative, "commutative"}, {ir.Elementwise, "elementwise"}, {ir.Terminator, "terminator"},
		{ir.Differentiable, "differentiable"}, {ir.SymbolTable, "symbol table"}, {ir.Symbol, "symbol"}, {ir.Isolated, "isolated from above"},
		{ir.NoTerminator, "no terminator"}, {ir.ConstantLike, "constant-like"}, {ir.View, "view"}, {ir.Random, "random"}, {ir.SameTypes, "same types"},
	} {
		if t&n.trait != 0 {
			names = append(names, n.name)
		}
	}
	return names
}
