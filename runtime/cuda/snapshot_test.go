package cuda

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

// TestSnapshot: the copies are on a stream of their own, behind what the program's has been given, and end with an event.
func TestSnapshot(t *testing.T) {
	m := &machine{}
	d := m.driver()
	memory, freed := make([]byte, 64), 0
	d.fn.MemAllocHost = func(p *unsafe.Pointer, n uint64) result { *p = unsafe.Pointer(&memory[0]); return 0 }
	d.fn.MemFreeHost = func(unsafe.Pointer) result { freed++; return 0 }
	d.fn.StreamCreate = func(s *uintptr, _ uint32) result { *s = 7; return 0 }
	d.fn.StreamDestroy = func(s uintptr) result { return m.note("stream %d closed", s) }
	d.fn.EventSynchronize = func(e uintptr) result { return m.note("wait for event %d", e) }
	d.fn.MemcpyDtoHAsync = func(to unsafe.Pointer, from, n uint64, s uintptr) result {
		return m.note("%d bytes from %d to %d on stream %d", n, from, uintptr(to)-uintptr(unsafe.Pointer(&memory[0])), s)
	}
	c := &Context{d: d, Device: &Device{}}
	value := func(name string, n int64) artifact.State {
		return artifact.State{Value: artifact.Value{Name: name, DType: formats.U8, Shape: []int64{n}}}
	}
	p := &program{manifest: &artifact.Manifest{States: []artifact.State{value("a", 3), value("b", 16)}}, ctx: c, stream: &Stream{c: c, handle: 1},
		states: map[string]Pointer{"a": 100, "b": 200}}
	var _ runtime.Snapshotter = p
	b, err := p.Buffer(64)
	require.NoError(t, err)
	wait := p.Snapshot(map[string][]byte{"b": b[16:32], "a": b[:3]})
	require.Equal(t, []string{"event 1 on stream 1", "stream 7 after event 1", "3 bytes from 100 to 0 on stream 7", "16 bytes from 200 to 16 on stream 7", "event 2 on stream 7"}, m.log)
	m.log = nil
	require.NoError(t, wait())
	require.NoError(t, wait())
	require.Equal(t, []string{"wait for event 2"}, m.log, "once: later it may be another snapshot's")
	require.ErrorContains(t, p.Snapshot(map[string][]byte{"a": b[:4]})(), `state "a" has 3 bytes, not 4`)
	require.ErrorContains(t, p.Snapshot(map[string][]byte{"x": nil})(), `no state "x"`)
	m.log = nil
	require.NoError(t, p.copies.close())
	require.Equal(t, []string{"wait for stream 7", "stream 7 closed"}, m.log)
	require.Equal(t, 1, freed)
}

// TestWriteStateAt: pieces go to their places, and nowhere else.
func TestWriteStateAt(t *testing.T) {
	m := &machine{}
	d := m.driver()
	d.fn.MemcpyHtoDAsync = func(to uint64, _ unsafe.Pointer, n uint64, s uintptr) result {
		return m.note("%d bytes to %d on stream %d", n, to, s)
	}
	c := &Context{d: d, Device: &Device{}}
	state := artifact.State{Value: artifact.Value{Name: "x", DType: formats.U8, Shape: []int64{10}}}
	p := &program{manifest: &artifact.Manifest{States: []artifact.State{state}}, ctx: c, stream: &Stream{c, 1}, states: map[string]Pointer{"x": 100}}
	var _ runtime.StateWriter = p
	require.NoError(t, p.WriteStateAt("x", 7, []byte{1, 2, 3}))
	require.Equal(t, []string{"3 bytes to 107 on stream 1", "wait for stream 1"}, m.log)
	m.log = nil
	require.NoError(t, p.WriteStateAt("x", 10, nil))
	for _, at := range []int64{-1, 8, 11, 1 << 62} {
		require.ErrorContains(t, p.WriteStateAt("x", at, []byte{1, 2, 3}), `state "x" has 10 bytes`)
	}
	require.ErrorContains(t, p.WriteStateAt("y", 0, nil), `no state "y"`)
	require.Empty(t, m.log)
}
