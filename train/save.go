package train

import (
	"time"

	"blutrain/runtime"
	"blutrain/train/checkpoint"
	"blutrain/train/logs"
)

// snapshot is a copy of the states that is being made while the next step accumulates.
type snapshot struct {
	step int64
	wait func() error // until the copy is complete
}

// reserve makes the memory of the first snapshot once the first step is done, which a resumed run wants soon: that there is too little
// is known now, and not at the first save. The second is made only where saves are slower than the steps between them.
func (l *loop) reserve() error {
	if l.writer == nil || l.step != l.first+1 {
		return nil
	}
	snap := l.writer.Snapshot()
	_, err := l.buffers(snap)
	l.writer.Release(snap)
	return err
}

// save begins a checkpoint of the state after the last step, unless there is one. What it makes training wait for is a free buffer,
// when the two saves before are still being written.
func (l *loop) save() error {
	if l.writer == nil || l.step == l.saved {
		return nil
	}
	begin := time.Now()
	snap := l.writer.Snapshot()
	*snap = checkpoint.Snapshot{
		Step: l.step, Model: l.manifest.Model, Artifact: l.Artifact, Seed: l.seed, Loader: l.loader.State(),
		Tensors: snap.Tensors, // their memory is used again
	}
	states, err := l.buffers(snap)
	wait := func() error { return err }
	if err == nil {
		wait = runtime.Snapshot(l.Program, states)
	}
	l.writer.Save(snap, wait) // also after an error: the other ranks are about to save, and learn of it there
	l.copying = &snapshot{l.step, wait}
	l.saved = l.step
	l.stalled(l.step, begin)
	return nil
}

// buffers gives the memory that the states which this rank saves are copied to, and makes it when the snapshot has none.
func (l *loop) buffers(snap *checkpoint.Snapshot) (map[string][]byte, error) {
	var mine []share
	total := int64(0)
	for _, s := range l.ranks.shares(l.manifest) {
		if s.writes {
			mine = append(mine, s)
			total += aligned(s.state.Bytes())
		}
	}
	if snap.Tensors == nil && len(mine) > 0 {
		memory, err := runtime.SnapshotBuffer(l.Program, total)
		if err != nil {
			return nil, err
		}
		for _, s := range mine {
			n := s.state.Bytes()
			info := checkpoint.Info{Name: s.state.Name, DType: s.state.DType, Shape: s.shape, Role: string(s.state.Role)}
			snap.Tensors = append(snap.Tensors, checkpoint.Tensor{Info: info, Begin: s.begin, End: s.end, Data: memory[:s.bytes():n]})
			memory = memory[aligned(n):]
		}
	}
	states := map[string][]byte{}
	for i, s := range mine {
		states[s.state.Name] = snap.Tensors[i].Data[:s.state.Bytes()] // with the padding, which is not saved
	}
	return states, nil
}

// aligned rounds up to what every element type and every copy likes.
func aligned(n int64) int64 { return (n + 63) / 64 * 64 }

// settle waits until the copy that save began is complete: before the states change.
func (l *loop) settle() {
	if l.copying == nil {
		return
	}
	begin := time.Now()
	_ = l.copying.wait() // the save fails of it, and is told of when it ends
	l.stalled(l.copying.step, begin)
	l.copying = nil
}

// stalled adds to the time for which the checkpoint of a step has held training up.
func (l *loop) stalled(step int64, since time.Time) {
	if l.stalls == nil {
		l.stalls = map[int64]time.Duration{}
	}
	l.stalls[step] += time.Since(since)
}

// reportSaves tells of saves that have ended. One that failed does not end the run: the next may succeed.
func (l *loop) reportSaves(ended []checkpoint.Saved) {
	for _, s := range ended {
		stall := l.stalls[s.Step]
		delete(l.stalls, s.Step)
		if s.Err != nil {
			l.unsaved = append(l.unsaved, s.Err)
			l.note(s.Err.Error())
			continue
		}
		if l.ranks.rank() == 0 {
			l.report(l.sink.Checkpoint(logs.Checkpoint{
				Step: s.Step, Stall: milliseconds(stall), Milliseconds: milliseconds(s.Took), Bytes: s.Bytes,
			}))
		}
	}
}

func milliseconds(d time.Duration) logs.Number { return logs.Number(float64(d.Microseconds()) / 1000) }
