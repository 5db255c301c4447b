package frontend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

// FuzzCompile: any text is checked without a panic and in bounded time; what passes the check gives a valid module.
func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{"../examples/*.blu", "../test/lit/errors/*/*.blu", "../test/lit/frontend/*.blu"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, p := range paths {
			src, err := os.ReadFile(p)
			require.NoError(f, err)
			f.Add(string(src), int64(8))
		}
	}
	f.Fuzz(func(t *testing.T, src string, n int64) {
		program, diags := Check("t.blu", []byte(src), Options{Set: map[string]float64{"B": float64(n), "S": 4, "C": float64(n)}})
		require.Equal(t, program == nil, diags.HasErrors())
		if program == nil {
			return
		}
		statements := 0
		for _, e := range program.Exports {
			statements += len(e.Body)
		}
		if statements > 1000 || len(program.Params) > 1000 {
			return // valid, and slow to verify
		}
		c := dialects.NewContext()
		module, _ := Compile(c, "t.blu", []byte(src), Options{Set: map[string]float64{"B": float64(n), "S": 4, "C": float64(n)}})
		require.NoError(t, ir.Verify(c, module))
	})
}
