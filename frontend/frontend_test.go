package frontend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

// examples are the models of the examples folder.
func examples(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("../examples/*.blu")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	out := map[string][]byte{}
	for _, p := range paths {
		src, err := os.ReadFile(p)
		require.NoError(t, err)
		out[filepath.Base(p)] = src
	}
	return out
}

func TestExamplesAreFormatted(t *testing.T) {
	for name, src := range examples(t) {
		out, diags := Format(name, src)
		require.NoError(t, diags.Err())
		require.Equal(t, string(src), string(out), name)
	}
}

func TestExamplesCompile(t *testing.T) {
	for name, src := range examples(t) {
		t.Run(name, func(t *testing.T) {
			c := dialects.NewContext()
			module, diags := Compile(c, name, src, Options{})
			require.Empty(t, diags)
			require.NoError(t, ir.Verify(c, module))
			text := ir.Print(module, ir.PrintOptions{Locations: true})
			again, err := ir.Parse(c, name, text)
			require.NoError(t, err)
			require.Equal(t, string(text), string(ir.Print(again, ir.PrintOptions{Locations: true})))

			second := dialects.NewContext()
			module, _ = Compile(second, name, src, Options{})
			require.Equal(t, string(text), string(ir.Print(module, ir.PrintOptions{Locations: true})), "compiling twice differs")
		})
	}
}
