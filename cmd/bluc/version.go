package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"blutrain/driver"
)

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(s *streams) error {
	revision := "unknown revision"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" {
				revision = kv.Value
			}
		}
	}
	_, err := fmt.Fprintf(s.out, "bluc %s (%s, %s)\n", driver.Version, revision, runtime.Version())
	return err
}
