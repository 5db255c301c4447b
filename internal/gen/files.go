package gen

import (
	"path/filepath"

	"blutrain/ir"
)

// Package is a dialect's table and the Go package that holds it.
type Package struct {
	Dialect *ir.Dialect
	Name    string // Go's package name
	Dir     string // relative to the module; "" for a reference page alone
}

// Files is everything generated from the tables, by path relative to the module.
func Files(packages []Package) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range packages {
		if p.Dir != "" {
			src, err := Builders(p.Dialect, p.Name)
			if err != nil {
				return nil, err
			}
			files[filepath.Join(p.Dir, p.Dialect.Name+"_gen.go")] = src
		}
		files[filepath.Join("docs", "dialects", p.Dialect.Name+".md")] = Docs(p.Dialect)
	}
	return files, nil
}
