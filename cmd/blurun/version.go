package main

import (
	"fmt"

	"blutrain/internal/release"
)

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.stdout, release.Text("blurun"))
	return err
}
