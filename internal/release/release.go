// Package release is the version that both programs have.
package release

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is that of the compiler, which every artifact carries, and of the runtime.
const Version = "0.1.0"

// Text is what a program says of its version: its name, the version, the commit it was built from and the Go it was built with.
func Text(program string) string {
	revision := "unknown revision"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" {
				revision = kv.Value
			}
		}
	}
	return fmt.Sprintf("%s %s (%s, %s)", program, Version, revision, runtime.Version())
}
