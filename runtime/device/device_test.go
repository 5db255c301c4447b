package device

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/runtime/cuda"
)

// A device that an artifact isn't for, or that is none, is one clear line.
func TestDeviceNames(t *testing.T) {
	for _, c := range []struct{ target, device, want string }{
		{"cpu", "cuda", `the artifact was compiled for cpu and doesn't run on device cuda: compile the model with --target cuda`},
		{"cuda", "cpu", `the artifact was compiled for cuda and doesn't run on device cpu: compile the model with --target cpu`},
		{"cuda", "cuda:x", `device "cuda:x": expected cuda, or cuda:N with the number of a GPU`},
		{"cuda", "cuda:-1", `device "cuda:-1": expected cuda, or cuda:N with the number of a GPU`},
		{"cpu", "ref", `the artifact was compiled for cpu and doesn't run on device ref: compile the model with --target ref`},
		{"cpu", "cuda:1", `the artifact was compiled for cpu and doesn't run on device cuda:1: compile the model with --target cuda`},
		{"cpu", "gpu", `there is no device "gpu": there are cpu, ref (the reference), cuda, and cuda:N for the GPU of a number ('blurun devices' lists them)`},
		{"cuda", "tpu:0", `there is no device "tpu:0": there are cpu, ref (the reference), cuda, and cuda:N for the GPU of a number ('blurun devices' lists them)`},
		{"cuda", "", "the artifact has no program.mlir"},
		{"cuda", "cuda:3", "the artifact has no program.mlir"},
		{"tpu", "", `the artifact was compiled for target "tpu", which this program has no device for (cpu, cuda and ref are known)`},
	} {
		_, err := Open(&artifact.Artifact{Manifest: artifact.Manifest{Target: c.target}}, c.device, runtime.Options{})
		require.EqualError(t, err, c.want)
	}
}

// Where there is no GPU, what was compiled for one says so, and what to do.
func TestWithoutAGPU(t *testing.T) {
	a := &artifact.Artifact{Manifest: artifact.Manifest{Target: "cuda", Arch: "sm_80"}, Files: []artifact.File{{Name: artifact.ProgramName, Data: []byte("builtin.module {\n}\n")}}}
	p, err := Open(a, "", runtime.Options{})
	if err == nil {
		require.NoError(t, p.Close())
		t.Skip("this machine has a GPU")
	}
	if !errors.Is(err, cuda.ErrNoDriver) && !errors.Is(err, cuda.ErrNoGPU) {
		t.Skipf("this machine has a GPU: %v", err)
	}
	require.ErrorContains(t, err, "; an artifact compiled for cuda runs on an NVIDIA GPU alone: bluc compile --target cpu makes one that runs here")
}
