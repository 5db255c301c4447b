package nccl

import "sync"

// Siblings are the communicators of a rank whose calls go to one stream; the zero value has none yet. When one fails they are aborted all at
// once. NCCL's abort of one waits for its kernels, which may stand in the stream behind another's that never ends, and for the other ranks of
// the node to abort theirs (NCCL 2.28, init.cc: commDestroySync, commFree; proxy.cc: ncclProxyService), which may begin with another.
type Siblings struct {
	mu      sync.Mutex
	engines []*engine
}

func (s *Siblings) add(e *engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engines = append(s.engines, e)
}

// stop aborts all of them and returns when they are.
func (s *Siblings) stop() {
	s.mu.Lock()
	engines := s.engines
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, e := range engines {
		all.Go(e.stop)
	}
	all.Wait()
}
