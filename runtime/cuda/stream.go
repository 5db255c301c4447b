package cuda

// Stream is a queue of work on a GPU. The zero handle, which NullStream gives, is the one that waits for all others.
type Stream struct {
	c      *Context
	handle uintptr
}

// Handle is the driver's name for the stream, for libraries that work on it.
func (s *Stream) Handle() uintptr { return s.handle }

// NullStream is the default stream.
func (c *Context) NullStream() *Stream { return &Stream{c: c} }

const streamNonBlocking = 1

// NewStream makes a stream that doesn't wait for the default one.
func (c *Context) NewStream() (*Stream, error) {
	s := &Stream{c: c}
	err := c.do(func() result { return c.d.fn.StreamCreate(&s.handle, streamNonBlocking) }, "making a stream on GPU %d", c.Device.Ordinal)
	return s, err
}

// Close destroys the stream once its work is done.
func (s *Stream) Close() error {
	return s.c.do(func() result { return s.c.d.fn.StreamDestroy(s.handle) }, "closing a stream")
}

// Synchronize waits for the stream's work.
func (s *Stream) Synchronize() error {
	return s.c.do(func() result { return s.c.d.fn.StreamSynchronize(s.handle) }, "waiting for a stream of GPU %d", s.c.Device.Ordinal)
}

// notReady is the driver's code for work that has not ended.
const notReady = 600

// Done reports whether the stream's work has ended, without waiting for it.
func (s *Stream) Done() (done bool, err error) {
	err = s.c.do(func() result {
		code := s.c.d.fn.StreamQuery(s.handle)
		if done = code == 0; code == notReady {
			return 0
		}
		return code
	}, "looking at a stream of GPU %d", s.c.Device.Ordinal)
	return done, err
}

// After makes what the stream is given from now on wait for an event that has been recorded.
func (s *Stream) After(e *Event) error {
	return s.c.do(func() result { return s.c.d.fn.StreamWaitEvent(s.handle, e.handle, 0) }, "waiting for an event on another stream")
}

// Event is a point in a stream's work.
type Event struct {
	c      *Context
	handle uintptr
}

// NewEvent makes an event that records times.
func (c *Context) NewEvent() (*Event, error) {
	e := &Event{c: c}
	err := c.do(func() result { return c.d.fn.EventCreate(&e.handle, 0) }, "making an event on GPU %d", c.Device.Ordinal)
	return e, err
}

// Close destroys the event.
func (e *Event) Close() error {
	return e.c.do(func() result { return e.c.d.fn.EventDestroy(e.handle) }, "closing an event")
}

// Record puts the event after the stream's work so far.
func (s *Stream) Record(e *Event) error {
	return s.c.do(func() result { return s.c.d.fn.EventRecord(e.handle, s.handle) }, "recording an event")
}

// Wait waits until the event has come.
func (e *Event) Wait() error {
	return e.c.do(func() result { return e.c.d.fn.EventSynchronize(e.handle) }, "waiting for an event on GPU %d", e.c.Device.Ordinal)
}

// Since is the milliseconds of device time from another event to this one; both must have come.
func (e *Event) Since(start *Event) (float64, error) {
	var ms float32
	err := e.c.do(func() result { return e.c.d.fn.EventElapsedTime(&ms, start.handle, e.handle) }, "reading the time between events")
	return float64(ms), err
}
