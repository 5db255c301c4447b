package runtime

// Snapshotter is a Program that copies its states to host memory while functions that don't change them run: between two updates
// of the parameters, say.
type Snapshotter interface {
	// Buffer gives memory to copy to, which the device reaches fast. It is the program's and ends with it.
	Buffer(bytes int64) ([]byte, error)
	// Snapshot begins to copy states, by name, to memory of their size, as the calls before left them, and returns at once. wait
	// returns when the copies are complete, every time the same; until then nothing may be called that changes these states.
	Snapshot(to map[string][]byte) (wait func() error)
}

// StateWriter is a Program whose states can be written in pieces, by several goroutines at once.
type StateWriter interface {
	// WriteStateAt copies src to a state's bytes from byte at on.
	WriteStateAt(name string, at int64, src []byte) error
}

// Snapshot copies states of any program: in the background where it is a Snapshotter, else at once.
func Snapshot(p Program, to map[string][]byte) (wait func() error) {
	if s, ok := p.(Snapshotter); ok {
		return s.Snapshot(to)
	}
	var err error
	for name, dst := range to {
		if err = p.ReadState(name, dst); err != nil {
			break
		}
	}
	return func() error { return err }
}

// SnapshotBuffer is memory for Snapshot.
func SnapshotBuffer(p Program, bytes int64) ([]byte, error) {
	if s, ok := p.(Snapshotter); ok {
		return s.Buffer(bytes)
	}
	return make([]byte, bytes), nil
}
