package main

import (
	"fmt"

	"blutrain/internal/release"
)

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(s *streams) error {
	_, err := fmt.Fprintln(s.out, release.Text("bluc"))
	return err
}
