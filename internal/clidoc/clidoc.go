// Package clidoc writes a program's commands and flags as Markdown, from the model of its command line. Only tests import it.
package clidoc

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Markdown is a section for each command: what it is for, how it is called, and its flags.
func Markdown(app *kong.Application) string {
	var b strings.Builder
	for _, n := range app.Leaves(true) {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", n.FullPath(), cell(n.Help))
		fmt.Fprintf(&b, "`%s`\n\n", usage(n))
		if rows := table(n); rows != "" {
			b.WriteString("| argument | |\n|---|---|\n" + rows + "\n")
		}
	}
	return b.String()
}

// usage is the command with its positional arguments and the flags it can't do without.
func usage(n *kong.Node) string {
	words := []string{n.FullPath()}
	for _, p := range n.Positional {
		words = append(words, p.Summary())
	}
	for _, f := range flags(n) {
		if f.Required {
			words = append(words, f.Summary())
		}
	}
	return strings.Join(words, " ")
}

// table is a row for each positional argument and flag.
func table(n *kong.Node) string {
	var b strings.Builder
	for _, p := range n.Positional {
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.Summary(), cell(p.Help))
	}
	for _, f := range flags(n) {
		name := f.Summary()
		if f.Short != 0 {
			name = fmt.Sprintf("-%c, %s", f.Short, name)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", cell(name), cell(f.Help))
	}
	return b.String()
}

// flags of a command, but for help's and those that are not shown.
func flags(n *kong.Node) (list []*kong.Flag) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if f.Name != "help" && !f.Hidden {
				list = append(list, f)
			}
		}
	}
	return list
}

// cell is a text in a table.
func cell(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "|", "\\|") }
