package host

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/runtime"
)

// A kernel that touches memory beyond a guarded piece ends its call with its own name, on whichever worker it runs; what it was given is whole.
func TestGuardNamesTheKernel(t *testing.T) {
	for _, c := range []struct {
		name string
		rows int64 // of a grid point: 8 make one
		at   int   // bytes from the first of y
	}{{"behind", 8, 8 * 4 * 4}, {"behind, by workers", 1, 8 * 4 * 4}, {"before", 8, -4096}, {"before, by workers", 1, -4096}} {
		t.Run(c.name, func(t *testing.T) {
			p, err := open(t, kernelProgram("grid = array<i64: 8>, scratch = 0 : i64, steps = array<i64: "+string(rune('0'+c.rows))+">", ", %i: index", ""), 2)
			require.NoError(t, err)
			k := p.(*device).functions["f"].steps[0].kernel
			k.body = append(k.body, func(f *frame) { *(*byte)(unsafe.Add(f.refs[1], c.at)) = 1 })
			_, err = p.Call("f", map[string]runtime.Array{"x": runtime.Array(formats.FromFloat32s(make([]float32, 32), 8, 4))}, nil)
			require.ErrorContains(t, err, "f: ")
			require.ErrorContains(t, err, "kernel k: ")
			require.ErrorContains(t, err, "it touches memory outside of what it was given")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}
