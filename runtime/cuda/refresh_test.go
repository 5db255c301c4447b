package cuda

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

// Copies are made anew before the next call when a parameter was written, whole or in part, and only then.
func TestRefresh(t *testing.T) {
	m := &machine{}
	d := m.driver()
	d.fn.MemcpyHtoDAsync = func(uint64, unsafe.Pointer, uint64, uintptr) result { return 0 }
	d.fn.LaunchKernelEx = func(_ *launchConfig, f uintptr, _ *unsafe.Pointer, _ uintptr) result { return 0 }
	c := &Context{d: d, Device: &Device{}}
	value := func(name string, d formats.DType) artifact.Value {
		return artifact.Value{Name: name, DType: d, Shape: []int64{4}}
	}
	p := &program{ctx: c, stream: &Stream{c, 1}, states: map[string]Pointer{"w": 1, "g": 2, "bf16/w": 3}, functions: map[string]*function{},
		manifest: &artifact.Manifest{
			States: []artifact.State{{Value: value("w", formats.F32), Role: artifact.Param}, {Value: value("g", formats.F32), Role: artifact.Gradient},
				{Value: value("bf16/w", formats.BF16), Role: artifact.Copy, Of: "w"}},
			Functions: []artifact.Function{{Name: "f"}, {Name: artifact.Refresh}},
		}}
	var called []string
	for i, name := range []string{"f", artifact.Refresh} {
		s := step{kernel: &kernel{name: name, blocks: 1, threads: 32, code: &Function{handle: uintptr(i)}}, params: [][]any{nil}}
		p.functions[name] = &function{p: p, name: name, steps: []step{s}, status: &pinned{}, ready: true}
	}
	d.fn.GraphLaunch = func(g, _ uintptr) result { called = append(called, map[uintptr]string{1: "1", 2: "2"}[g]); return 0 }
	full, part := make([]byte, 16), make([]byte, 4)
	visit := func(_ *runtime.Step, run func() error) error { called = append(called, "traced"); return run() }
	for _, x := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"a gradient", func() error { return p.WriteState("g", full) }, []string{"1", "1", "traced"}},
		{"a parameter", func() error { return p.WriteState("w", full) }, []string{"2", "1", "1", "traced"}},
		{"a part of one", func() error { return p.WriteStateAt("w", 4, part) }, []string{"2", "1", "1", "traced"}},
		{"what is refused", func() error { _ = p.WriteState("w", part); _ = p.WriteStateAt("w", 14, part); return nil }, []string{"1", "1", "traced"}},
	} {
		called = nil
		require.NoError(t, x.do(), x.what)
		for range 2 {
			_, err := p.Call("f", nil, nil)
			require.NoError(t, err)
		}
		_, err := p.Trace("f", nil, nil, visit)
		require.NoError(t, err)
		require.Equal(t, x.want, called, x.what)
	}
	called = nil
	require.NoError(t, p.WriteState("w", full))
	_, err := p.Trace("f", nil, nil, visit)
	require.NoError(t, err)
	require.Equal(t, []string{"2", "traced"}, called)
	require.ErrorContains(t, p.WriteState("bf16/w", make([]byte, 8)), `state "bf16/w" is a copy of parameter "w": write that`)
	require.ErrorContains(t, p.WriteStateAt("bf16/w", 2, part), "is a copy of parameter")
}
