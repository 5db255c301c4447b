// Package device opens an artifact on the device it was compiled for. It knows the devices by name and nothing of how they
// work.
package device

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/runtime/cuda"
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

// gpus is the target, and the device, of programs for NVIDIA GPUs: cuda, or cuda:1 for the second.
const gpus = "cuda"

// openGPU opens an artifact on the GPU that the device names.
func openGPU(a *artifact.Artifact, device string, opts runtime.Options) (runtime.Program, error) {
	name, number, numbered := strings.Cut(cmp.Or(device, gpus), ":")
	if name != gpus {
		return nil, wrongDevice(a, gpus, device)
	}
	ordinal := 0
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("device %q: expected cuda, or cuda:N with the number of a GPU", device)
		}
		ordinal = n
	}
	p, err := cuda.OpenProgram(a, ordinal, opts)
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoGPU) {
		err = fmt.Errorf("%w; an artifact compiled for cuda runs on an NVIDIA GPU alone: bluc compile --target cpu makes one that runs here", err)
	}
	return p, err
}

func wrongDevice(a *artifact.Artifact, has, device string) error {
	if name, _, _ := strings.Cut(device, ":"); name != gpus && targets[device].open == nil {
		return fmt.Errorf("there is no device %q: there are cpu, ref (the reference), cuda, and cuda:N for the GPU of a number ('blurun devices' lists them)", device)
	}
	name, _, _ := strings.Cut(device, ":")
	return fmt.Errorf("the artifact was compiled for %s and doesn't run on device %s: compile the model with --target %s", has, device, name)
}

// Open opens an artifact on a device; an empty name stands for the one the artifact was compiled for.
func Open(a *artifact.Artifact, device string, opts runtime.Options) (runtime.Program, error) {
	if a.Manifest.Target == gpus {
		return openGPU(a, device, opts)
	}
	t, ok := targets[a.Manifest.Target]
	if !ok {
		return nil, fmt.Errorf("the artifact was compiled for target %q, which this program has no device for (cpu, cuda and ref are known)", a.Manifest.Target)
	}
	if device != "" && device != t.device {
		return nil, wrongDevice(a, t.device, device)
	}
	return t.open(a, opts)
}
