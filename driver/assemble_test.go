package driver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/internal/upstream"
)

// tiny is the sizes of a model whose kernels are soon assembled.
var tiny = map[string]float64{"V": 13, "W": 3, "E": 8, "M": 24, "B": 3, "S": 10}

// Each kernel's text gets machine code beside it, the same every time.
func TestAssemble(t *testing.T) {
	tool := upstream.PTXAS(t)
	src, err := os.ReadFile(filepath.Join("..", "examples", "mlp.blu"))
	require.NoError(t, err)
	made := func() string {
		r, err := driver.Compile("mlp.blu", src, driver.Options{Target: "cuda", Set: tiny})
		require.NoError(t, err)
		require.NoError(t, driver.Assemble(r.Artifact, tool))
		texts := 0
		for _, f := range r.Artifact.Files {
			if name, ok := strings.CutSuffix(f.Name, ".ptx"); ok {
				code, found := r.Artifact.File(name + ".cubin")
				require.True(t, found, f.Name)
				require.Equal(t, "\x7fELF", string(code[:4]))
				texts++
			}
		}
		require.Positive(t, texts)
		data, err := r.Artifact.Encode()
		require.NoError(t, err)
		return string(data)
	}
	require.Equal(t, made(), made())
}

// What can't be assembled is one error.
func TestAssembleRefuses(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "examples", "mlp.blu"))
	require.NoError(t, err)
	_, err = driver.FindAssembler("no-such-program")
	require.EqualError(t, err, "--ptxas no-such-program: executable file not found in $PATH")
	r, err := driver.Compile("mlp.blu", src, driver.Options{Target: "cpu", Set: tiny})
	require.NoError(t, err)
	require.ErrorContains(t, driver.Assemble(r.Artifact, "true"), "--ptxas is for --target cuda")
	r, err = driver.Compile("mlp.blu", src, driver.Options{Target: "cuda", Set: tiny})
	require.NoError(t, err)
	for tool, want := range map[string]string{"false": `kernels/.*: .*false: exit status 1$`, "true": `kernels/.*: .*true ended well and wrote no machine code`} {
		err = driver.Assemble(r.Artifact, tool)
		require.Error(t, err)
		require.Regexp(t, want, err.Error())
	}
}
