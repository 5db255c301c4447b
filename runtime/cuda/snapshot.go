package cuda

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// snapshots copies states to the host on a stream of its own, beside the kernels that follow.
type snapshots struct {
	buffers      []*pinned
	stream       *Stream // nil until the first snapshot
	before, done *Event  // when the states are there to be copied, when they have been
}

// Buffer implements runtime.Snapshotter: pinned memory, which the GPU writes to by itself.
func (p *program) Buffer(bytes int64) ([]byte, error) {
	m, err := p.ctx.newPinned(bytes)
	if err != nil {
		return nil, err
	}
	p.copies.buffers = append(p.copies.buffers, m)
	return m.bytes, nil
}

// Snapshot implements runtime.Snapshotter. The copies are ordered behind what the program's stream has been given.
func (p *program) Snapshot(to map[string][]byte) (wait func() error) {
	if err := p.startCopies(to); err != nil {
		return func() error { return err }
	}
	return sync.OnceValue(p.copies.done.Wait) // once: a later snapshot records the event again
}

func (p *program) startCopies(to map[string][]byte) error {
	s := &p.copies
	if err := s.open(p.ctx); err != nil {
		return err
	}
	if err := errors.Join(p.stream.Record(s.before), s.stream.After(s.before)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		at, err := p.state(name, len(to[name]))
		if err == nil {
			err = s.stream.downloadTo(to[name], at)
		}
		if err != nil {
			return errors.Join(err, s.stream.Synchronize()) // nothing is copied any more when the memory is used otherwise
		}
	}
	return s.stream.Record(s.done)
}

// open makes what snapshots need, once.
func (s *snapshots) open(c *Context) (err error) {
	if s.done != nil {
		return nil
	}
	if s.stream == nil {
		if s.stream, err = c.NewStream(); err != nil {
			s.stream = nil
			return err
		}
	}
	if s.before == nil {
		if s.before, err = c.NewEvent(); err != nil {
			s.before = nil
			return err
		}
	}
	if s.done, err = c.NewEvent(); err != nil {
		s.done = nil
	}
	return err
}

// close waits for copies under way and gives everything back.
func (s *snapshots) close() error {
	var faults []error
	if s.stream != nil {
		faults = append(faults, s.stream.Synchronize(), s.stream.Close())
	}
	for _, e := range []*Event{s.before, s.done} {
		if e != nil {
			faults = append(faults, e.Close())
		}
	}
	for _, m := range s.buffers {
		faults = append(faults, m.free())
	}
	*s = snapshots{}
	return errors.Join(faults...)
}
