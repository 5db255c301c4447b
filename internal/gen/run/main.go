// Command run writes the Go source and the reference pages that follow from the dialects' tables, in the module's root or
// the folder it is given: go run ./internal/gen/run
package main

//go:generate go run . ../../..

import (
	"fmt"
	"os"
	"path/filepath"

	"blutrain/dialects"
	"blutrain/internal/gen"
)

// builders is the Go packages that get builders and accessors, by dialect. All dialects get a reference page.
var builders = map[string]string{
	"arith": "arith", "blu": "blu", "dtms": "dtms", "func": "fn", "scf": "scf",
}

// packages lists the dialects with what is generated for them.
func packages() []gen.Package {
	var ps []gen.Package
	for _, d := range dialects.All() {
		p := gen.Package{Dialect: d}
		if name, ok := builders[d.Name]; ok {
			p.Name, p.Dir = name, "dialects/"+name
		}
		ps = append(ps, p)
	}
	return ps
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := write(root); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := gen.Files(packages())
	if err != nil {
		return err
	}
	for name, data := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
