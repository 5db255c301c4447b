package checkpoint

import (
	"sync"
	"time"
)

// Writer saves in the background, so that training goes on while files are written. It has up to two snapshots: the second is used
// when the first is still being written as the next save comes.
type Writer struct {
	store *Store
	made  int
	free  chan *Snapshot
	queue chan order
	ended chan struct{}

	mu    sync.Mutex
	saved []Saved
}

// order is a snapshot to write once it is complete.
type order struct {
	snap     *Snapshot
	complete func() error
}

// Saved is how a save has ended.
type Saved struct {
	Step  int64
	Bytes int64         // of all ranks' files
	Took  time.Duration // from the complete snapshot to its durable files
	Err   error
}

// NewWriter starts the background goroutine. Close ends it.
func NewWriter(s *Store) *Writer {
	w := &Writer{store: s, free: make(chan *Snapshot, 2), queue: make(chan order, 2), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *Writer) run() {
	defer close(w.ended)
	for o := range w.queue {
		err := o.complete()
		begin := time.Now()
		s := Saved{Step: o.snap.Step}
		s.Bytes, s.Err = w.store.saveAfter(err, o.snap)
		s.Took = time.Since(begin)
		w.mu.Lock()
		w.saved = append(w.saved, s)
		w.mu.Unlock()
		w.free <- o.snap
	}
}

// Snapshot gives the snapshot to fill next, with the tensors of its last use; it waits while both are being written. Give it to Save.
func (w *Writer) Snapshot() *Snapshot {
	select {
	case s := <-w.free:
		return s
	default:
	}
	if w.made < cap(w.free) {
		w.made++
		return &Snapshot{}
	}
	return <-w.free
}

// Release gives back a snapshot that is not to be saved now; its tensors are those of the next Snapshot.
func (w *Writer) Release(s *Snapshot) { w.free <- s }

// Save begins to save a snapshot, which must not be touched after, as soon as complete returns. Its error fails the save, on all ranks.
func (w *Writer) Save(s *Snapshot, complete func() error) { w.queue <- order{s, complete} }

// Saved returns the saves that have ended since the last call, without waiting.
func (w *Writer) Saved() []Saved {
	w.mu.Lock()
	defer w.mu.Unlock()
	saved := w.saved
	w.saved = nil
	return saved
}

// Close waits for all saves and returns those that Saved has not.
func (w *Writer) Close() []Saved {
	close(w.queue)
	<-w.ended
	return w.Saved()
}
