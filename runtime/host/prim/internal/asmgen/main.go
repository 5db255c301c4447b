// Command asmgen writes the assembly of package prim, for AVX-512 and AVX2, and
// the portable Go that matches it. It may know nothing of the rest of the
// house. Run it by "go generate" in package prim; a test there fails when its
// output is stale.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: asmgen DIR")
		os.Exit(2)
	}
	files, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "asmgen:", err)
		os.Exit(1)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), files[name], 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "asmgen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the generated files by name.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, u := range []unit{
		{"gemm", gemmUnit},
		{"few", fewUnit},
		{"pack", packUnit},
		{"elementwise", elementwiseUnit},
		{"reduce", reduceUnit},
		{"convert", convertUnit},
		{"philox", philoxUnit},
		{"normal", normalUnit},
	} {
		if err := u.write(files); err != nil {
			return nil, fmt.Errorf("%s: %w", u.name, err)
		}
	}
	return files, writeGo(files)
}
