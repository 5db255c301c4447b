package runtime

import (
	"fmt"
	"slices"
	"sync/atomic"

	"blutrain/artifact"
)

// Refresher is for devices: it has copies of parameters, which a program keeps in another element type, follow what is written to the
// parameters from outside. A program's own functions write both. The zero value is for a program whose copies are right.
type Refresher struct{ behind atomic.Bool }

// Writes is told, before it is, that a state is written from outside; it may be from several goroutines. A copy is nobody's to write.
func (r *Refresher) Writes(m *artifact.Manifest, state string) error {
	s, ok := m.State(state)
	if ok && s.Role == artifact.Copy {
		return fmt.Errorf("state %q is a copy of parameter %q: write that", state, s.Of)
	}
	if slices.ContainsFunc(m.States, func(s artifact.State) bool { return s.Of == state }) {
		r.behind.Store(true)
	}
	return nil
}

// Calls is told, before it is, that a function is called: it makes copies anew if they are behind their parameters.
func (r *Refresher) Calls(p Program, fn string) error {
	if fn == artifact.Refresh || !r.behind.Load() {
		return nil
	}
	if _, err := p.Call(artifact.Refresh, nil, nil); err != nil {
		return err
	}
	r.behind.Store(false)
	return nil
}
