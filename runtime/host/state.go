package host

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
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
	if err := d.refresher.Writes(d.manifest, name); err != nil {
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
	if err := d.refresher.Writes(d.manifest, name); err != nil {
		return err
	}
	copy(m.bytes[at:], src)
	return nil
}

// Buffer implements runtime.Snapshotter: pages outside the Go heap, so that its collector paces itself by the rest.
func (d *device) Buffer(bytes int64) ([]byte, error) {
	m, err := d.allocate(bytes, "a snapshot of the states")
	if err != nil {
		return nil, err
	}
	d.buffers = append(d.buffers, m)
	// The kernel makes the pages while the first steps go on, and not within the first copy. Where it can't, that makes them.
	go func() { _ = unix.Madvise(m.mapping, unix.MADV_POPULATE_WRITE) }()
	return m.bytes, nil
}

// Snapshot implements runtime.Snapshotter. One goroutine copies beside the kernels, which want the other processors; who waits
// helps with what is left.
func (d *device) Snapshot(to map[string][]byte) (wait func() error) {
	c := &copying{}
	for name, dst := range to { // looked up now: no goroutine does while a call goes on
		m, err := d.state(name, len(dst))
		if err != nil {
			return func() error { return err }
		}
		c.add(dst, m.bytes)
	}
	go c.help()
	return func() error {
		c.help()
		c.all.Wait()
		return nil
	}
}

// copying is memory to be copied, in pieces that any goroutine may take.
type copying struct {
	pieces []piece
	next   atomic.Int64
	all    sync.WaitGroup
}

type piece struct{ dst, src []byte }

const pieceBytes = 4 << 20

func (c *copying) add(dst, src []byte) {
	for len(src) > 0 {
		n := min(len(src), pieceBytes)
		c.pieces = append(c.pieces, piece{dst[:n], src[:n]})
		c.all.Add(1)
		dst, src = dst[n:], src[n:]
	}
}

// help copies until no piece is left to take.
func (c *copying) help() {
	for {
		i := int(c.next.Add(1)) - 1
		if i >= len(c.pieces) {
			return
		}
		copy(c.pieces[i].dst, c.pieces[i].src)
		c.all.Done()
	}
}
