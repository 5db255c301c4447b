package host

import (
	"fmt"
	"sync"
)

// ReadState copies a state to dst.
func (d *device) ReadState(name string, dst []byte) error {
	m, err := d.state(name, len(dst))
	copy(dst, m.bytes)
	return err
}

// WriteState copies src to a state.
func (d *device) WriteState(name string, src []byte) error {
	m, err := d.state(name, len(src))
	if err != nil {
		return err
	}
	copy(m.bytes, src)
	return nil
}

func (d *device) state(name string, n int) (memory, error) {
	m, ok := d.states[name]
	if !ok {
		return memory{}, fmt.Errorf("no state %q", name)
	}
	s, _ := d.manifest.State(name)
	if int64(n) != s.Bytes() {
		return memory{}, fmt.Errorf("state %q has %d bytes, not %d", name, s.Bytes(), n)
	}
	return m, nil
}

// WriteStateAt implements runtime.StateWriter.
func (d *device) WriteStateAt(name string, at int64, src []byte) error {
	m, ok := d.states[name]
	if !ok {
		return fmt.Errorf("no state %q", name)
	}
	if at < 0 || at > int64(len(m.bytes)) || int64(len(src)) > int64(len(m.bytes))-at {
		return fmt.Errorf("state %q has %d bytes, none for %d at %d", name, len(m.bytes), len(src), at)
	}
	copy(m.bytes[at:], src)
	return nil
}

// Buffer implements runtime.Snapshotter: pages outside the Go heap, so that its collector paces itself by the rest.
func (d *device) Buffer(bytes int64) ([]byte, error) {
	m, err := d.allocate(bytes, "a snapshot of the states")
	d.buffers = append(d.buffers, m)
	return m.bytes, err
}

// Snapshot implements runtime.Snapshotter. One goroutine copies: it fills much of the memory's bandwidth, and the kernels that run
// meanwhile want the other processors.
func (d *device) Snapshot(to map[string][]byte) (wait func() error) {
	for name, dst := range to { // told at once, so that no goroutine looks anything up in d while a call goes on
		if _, err := d.state(name, len(dst)); err != nil {
			return func() error { return err }
		}
	}
	type move struct{ dst, src []byte }
	var moves []move
	for name, dst := range to {
		moves = append(moves, move{dst, d.states[name].bytes})
	}
	var copying sync.WaitGroup
	copying.Go(func() {
		for _, m := range moves {
			copy(m.dst, m.src)
		}
	})
	return func() error {
		copying.Wait()
		return nil
	}
}
