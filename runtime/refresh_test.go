package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
)

// remade is a program that counts how often its copies are made anew.
type remade struct {
	Program
	calls int
	fail  error
}

func (r *remade) Call(fn string, _ map[string]Array, _ Scalars) (map[string]Array, error) {
	r.calls++
	return nil, r.fail
}

// Copies are made anew before a call, once for all that was written, and again if that failed; not for what no copy is of, nor in
// programs that have none, whatever their functions are called.
func TestRefresher(t *testing.T) {
	state := func(name string, role artifact.Role, of string) artifact.State {
		return artifact.State{Value: artifact.Value{Name: name}, Role: role, Of: of}
	}
	m := &artifact.Manifest{States: []artifact.State{state("w", artifact.Param, ""), state("b", artifact.Param, ""), state("bf16/w", artifact.Copy, "w")}}
	r, p := &Refresher{}, &remade{}
	call := func(fn string, calls int) {
		t.Helper()
		require.NoError(t, r.Calls(p, fn))
		require.Equal(t, calls, p.calls)
	}
	call("f", 0)
	require.NoError(t, r.Writes(m, "b"))
	require.NoError(t, r.Writes(m, "of a misspelt name"))
	call("f", 0)
	require.NoError(t, r.Writes(m, "w"))
	require.NoError(t, r.Writes(m, "w"))
	call(artifact.Refresh, 0)
	call("f", 1)
	call("f", 1)
	require.EqualError(t, r.Writes(m, "bf16/w"), `state "bf16/w" is a copy of parameter "w": write that`)
	call("f", 1)

	require.NoError(t, r.Writes(m, "w"))
	p.fail = errors.New("lost")
	require.ErrorIs(t, r.Calls(p, "f"), p.fail)
	p.fail = nil
	call("f", 3)

	m.States = m.Own()
	require.NoError(t, r.Writes(m, "w"))
	call("f", 3)
}
