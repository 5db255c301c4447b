package host

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

// withStates is a device that has states and no program.
func withStates(t *testing.T, sizes map[string]int64) *device {
	d := &device{manifest: &artifact.Manifest{}, states: map[string]memory{}}
	for name, n := range sizes {
		d.manifest.States = append(d.manifest.States, artifact.State{Value: artifact.Value{Name: name, DType: formats.U8, Shape: []int64{n}}})
		m, err := d.allocate(n, name)
		require.NoError(t, err)
		d.states[name] = m
	}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestSnapshot: it is what the states were, whoever copies and however often it is waited for.
func TestSnapshot(t *testing.T) {
	d := withStates(t, map[string]int64{"small": 3, "none": 0, "large": 3*pieceBytes + 5})
	var _ runtime.Snapshotter = d
	for round := range byte(3) {
		to, want := map[string][]byte{}, map[string][]byte{}
		for name, m := range d.states {
			for i := range m.bytes {
				m.bytes[i] = byte(i>>12) + round
			}
			want[name] = bytes.Clone(m.bytes)
			b, err := d.Buffer(int64(len(m.bytes)))
			require.NoError(t, err)
			to[name] = b
		}
		wait := d.Snapshot(to)
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if err := wait(); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		for name := range to {
			require.True(t, bytes.Equal(want[name], to[name]), name)
		}
	}
	require.ErrorContains(t, d.Snapshot(map[string][]byte{"small": make([]byte, 4)})(), `state "small" has 3 bytes, not 4`)
	require.ErrorContains(t, d.Snapshot(map[string][]byte{"nobody": nil})(), `no state "nobody"`)
}

func TestWriteStateAt(t *testing.T) {
	d := withStates(t, map[string]int64{"x": 10})
	var _ runtime.StateWriter = d
	require.NoError(t, d.WriteStateAt("x", 7, []byte{1, 2, 3}))
	require.NoError(t, d.WriteStateAt("x", 10, nil))
	got := make([]byte, 10)
	require.NoError(t, d.ReadState("x", got))
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 1, 2, 3}, got)
	for _, at := range []int64{-1, 8, 11, 1 << 62} {
		require.ErrorContains(t, d.WriteStateAt("x", at, []byte{1, 2, 3}), `state "x" has 10 bytes`)
	}
	require.ErrorContains(t, d.WriteStateAt("y", 0, nil), `no state "y"`)
}
