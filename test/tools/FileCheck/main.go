// Command FileCheck compares its input with the CHECK lines of a file, as LLVM's tool of that name does.
package main

import (
	"os"

	"blutrain/internal/filecheck"
)

func main() {
	os.Exit(filecheck.Main(os.Args[1:], os.Stdin, os.Stderr, os.Getenv))
}
