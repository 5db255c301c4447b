// Package device opens an artifact on the device it was compiled for. It knows the devices by name and nothing of how they
// work.
package device

import (
	"fmt"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/runtime/host"
	"blutrain/runtime/ref"
)

// targets is the device for each target an artifact can have, and how it is opened.
var targets = map[string]struct {
	device string
	open   func(*artifact.Artifact, runtime.Options) (runtime.Program, error)
}{
	"cpu": {"cpu", host.Open},
	"ref": {"ref", ref.Open},
}

// Open opens an artifact on a device; an empty name stands for the one the artifact was compiled for.
func Open(a *artifact.Artifact, device string, opts runtime.Options) (runtime.Program, error) {
	t, ok := targets[a.Manifest.Target]
	if !ok {
		return nil, fmt.Errorf("the artifact was compiled for target %q, which this program has no device for (cpu and ref are known)", a.Manifest.Target)
	}
	if device != "" && device != t.device {
		return nil, fmt.Errorf("the artifact was compiled for target %q and runs on device %q, not on %q: compile it with --target for that device",
			a.Manifest.Target, t.device, device)
	}
	return t.open(a, opts)
}
