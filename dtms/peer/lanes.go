package peer

import (
	"errors"

	"blutrain/dtms"
)

// Lanes are the streams of a rank's stages, for all its groups: their calls are put there in one order, the same on all ranks.
type Lanes struct {
	device          Device
	push, add, pull dtms.Stream
	rescue          dtms.Stream // what flags are written on when ranks are lost
}

// NewLanes makes the streams.
func NewLanes(d Device) (*Lanes, error) {
	l := &Lanes{device: d}
	for _, s := range []*dtms.Stream{&l.push, &l.add, &l.pull, &l.rescue} {
		var err error
		if *s, err = d.NewStream(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// stages are the streams that wait for other ranks.
func (l *Lanes) stages() []dtms.Stream { return []dtms.Stream{l.push, l.add, l.pull} }

// done reports whether all that the stages were given has ended.
func (l *Lanes) done() (bool, error) {
	for _, s := range l.stages() {
		if done, err := l.device.Done(s); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// Close gives the streams up, of which the groups have no more need.
func (l *Lanes) Close() error {
	var faults []error
	for _, s := range append(l.stages(), l.rescue) {
		if s != 0 {
			faults = append(faults, l.device.CloseStream(s))
		}
	}
	return errors.Join(faults...)
}
