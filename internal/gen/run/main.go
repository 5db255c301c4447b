// Command run writes the Go source and the reference pages that follow from the dialects' tables. It is started in the
// module's root: go run ./internal/gen/run
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"blutrain/dialects/blu"
	"blutrain/internal/gen"
)

// packages lists the dialects with generated builders.
var packages = []gen.Package{
	{Dialect: blu.Dialect, Name: "blu", Dir: "dialects/blu"},
}

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write() error {
	files, err := gen.Files(packages)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
