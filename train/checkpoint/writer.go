package checkpoint

import "sync"

// Writer saves in the background, so that training goes on while files are written. It owns two snapshots: one is filled while
// the other is written.
type Writer struct {
	store *Store
	free  chan *Snapshot
	queue chan *Snapshot
	ended chan struct{}

	mu   sync.Mutex
	errs []error
}

// NewWriter starts the background goroutine. Close ends it.
func NewWriter(s *Store) *Writer {
	w := &Writer{store: s, free: make(chan *Snapshot, 2), queue: make(chan *Snapshot, 2), ended: make(chan struct{})}
	w.free <- &Snapshot{}
	w.free <- &Snapshot{}
	go w.run()
	return w
}

func (w *Writer) run() {
	defer close(w.ended)
	for snap := range w.queue {
		if err := w.store.Save(snap); err != nil {
			w.mu.Lock()
			w.errs = append(w.errs, err)
			w.mu.Unlock()
		}
		w.free <- snap
	}
}

// Snapshot gives the snapshot to fill next, with the tensors of its last use; it waits while both are being written.
// Give it to Save.
func (w *Writer) Snapshot() *Snapshot { return <-w.free }

// Save begins to save a snapshot, which must not be touched after.
func (w *Writer) Save(s *Snapshot) { w.queue <- s }

// Errs returns the errors of saves that have ended since the last call, without waiting.
func (w *Writer) Errs() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := w.errs
	w.errs = nil
	return errs
}

// Close waits for all saves and returns the errors that Errs has not.
func (w *Writer) Close() []error {
	close(w.queue)
	<-w.ended
	return w.Errs()
}
