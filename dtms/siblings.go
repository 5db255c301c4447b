package dtms

import "sync"

// Siblings are what ends the work of a rank's engines on one stream of a device; the zero value has none yet. When one engine fails all end
// theirs at once. NCCL's abort of a communicator waits for its kernels, which may stand in the stream behind another's that never ends, and for
// the other ranks of the node to abort theirs (NCCL 2.28, init.cc: commDestroySync, commFree; proxy.cc: ncclProxyService), which may begin
// with another.
type Siblings struct {
	mu    sync.Mutex
	stops []func()
}

// Add adds an engine by what ends its work, which may be called more than once.
func (s *Siblings) Add(stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, stop)
}

// Give ends the job of a control communicator because of err, and with it their work, and returns what callers should see: the control's
// error, which names ranks.
func (s *Siblings) Give(control *Communicator, err error) error {
	control.Abort(err)
	s.Stop()
	if why := control.Err(); why != nil {
		return why
	}
	return err
}

// Stop ends the work of all of them and returns when it has ended.
func (s *Siblings) Stop() {
	s.mu.Lock()
	stops := s.stops
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, stop := range stops {
		all.Go(stop)
	}
	all.Wait()
}
