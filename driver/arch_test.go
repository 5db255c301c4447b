package driver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
)

// The machine to compile for is one that the target has; the first is the default, and kernels say which it is.
func TestArch(t *testing.T) {
	src := []byte("model m() {\n  param w: f32[8] = ones\n  fn f(x: f32[8]) -> f32[8] { return x * w }\n}\n")
	for arch, want := range map[string]string{"": "sm_90a", "sm_80": "sm_80", "sm_89": "sm_89"} {
		r, err := Compile("m.blu", src, Options{Target: "cuda", Arch: arch})
		require.NoError(t, err)
		require.Equal(t, want, r.Artifact.Manifest.Arch)
		kernels := 0
		for _, f := range r.Artifact.Files {
			if strings.HasPrefix(f.Name, "kernels/") {
				require.Contains(t, string(f.Data), "\n.target "+want+"\n")
				kernels++
			}
		}
		require.NotZero(t, kernels)
		program, _ := r.Artifact.File(artifact.ProgramName)
		require.NotContains(t, string(program), "ptx.")
	}
	_, err := Compile("m.blu", src, Options{Target: "cuda", Arch: "sm_91"})
	require.EqualError(t, err, `target cuda has no arch "sm_91"; it has sm_90a (GPUs of compute capability 9.0 alone), sm_89 (8.9 and later), sm_80 (8.0 and later)`)
	_, err = Compile("m.blu", src, Options{Target: "cpu", Arch: "sm_80"})
	require.EqualError(t, err, "target cpu is compiled for no arch in particular: --arch is for --target cuda")
}
