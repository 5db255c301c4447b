package train

import (
	"errors"
	"fmt"
	"slices"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/train/checkpoint"
	"blutrain/train/data"
)

// begin brings the program to the state to go on from: that of a checkpoint, or a new one from the seed.
func (l *loop) begin() error {
	from, err := l.openStore()
	if err != nil {
		return err
	}
	if from == nil {
		_, err := l.Program.Call("init", nil, runtime.Scalars{"seed": float64(l.seed)})
		return err
	}
	if err := l.resume(from); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", from.Path, err), from.Close())
	}
	return from.Close()
}

// openStore takes the folder of checkpoints, if there is to be one.
func (l *loop) openStore() (from *checkpoint.Checkpoint, err error) {
	if l.CheckpointDir == "" {
		return nil, nil
	}
	var skipped []checkpoint.Skipped
	l.store, from, skipped, err = checkpoint.Create(l.CheckpointDir, l.Keep, l.Resume, l.Group)
	if err != nil {
		return nil, err
	}
	for _, s := range skipped {
		l.notes = append(l.notes, fmt.Sprintf("passed over %s/%s: %v", l.CheckpointDir, s.Name, s.Reason))
	}
	l.writer = checkpoint.NewWriter(l.store)
	return from, nil
}

// resume restores a checkpoint: tensors, seed, place in the data, step.
func (l *loop) resume(from *checkpoint.Checkpoint) (err error) {
	m := from.Manifest
	if m.Artifact != l.Artifact {
		l.notes = append(l.notes, fmt.Sprintf("%s was saved by another compilation of the model", from.Path))
	}
	if l.Seed != nil && *l.Seed != m.Seed {
		return fmt.Errorf("its run had seed %d, this one %d", m.Seed, *l.Seed)
	}
	if err := Restore(l.Program, from); err != nil {
		return err
	}
	l.seed, l.first, l.step, l.saved = m.Seed, m.Step, m.Step, m.Step
	l.loader, err = data.NewLoader(l.Data, l.loaderConfig(false), &m.Loader)
	return err
}

// Restore gives a program the persistent states of a checkpoint, which must have exactly those.
func Restore(p runtime.Program, from *checkpoint.Checkpoint) error {
	states := persistent(p.Manifest())
	if m := from.Manifest; m.Model != p.Manifest().Model {
		return fmt.Errorf("it is of model %s, this one is %s", m.Model, p.Manifest().Model)
	}
	for _, s := range states {
		t, ok := from.Tensor(s.Name)
		if !ok {
			return fmt.Errorf("it has no %s, which the model has", s.Name)
		}
		if t.DType != s.DType || !slices.Equal(t.Shape, s.Shape) {
			return fmt.Errorf("%s is %s, in the model %s", s.Name, t.DType.Of(t.Shape), s.DType.Of(s.Shape))
		}
	}
	for _, t := range from.Manifest.Tensors {
		if !slices.ContainsFunc(states, func(s artifact.State) bool { return s.Name == t.Name }) {
			return fmt.Errorf("it has %s, which the model has not", t.Name)
		}
	}
	for _, s := range states {
		buffer := make([]byte, s.Bytes())
		if err := from.Read(s.Name, buffer); err != nil {
			return err
		}
		if err := p.WriteState(s.Name, buffer); err != nil {
			return err
		}
	}
	return nil
}

func persistent(m *artifact.Manifest) (states []artifact.State) {
	for _, s := range m.States {
		if s.Persist {
			states = append(states, s)
		}
	}
	return states
}

// save begins a checkpoint of the state after the last step, unless there is one.
func (l *loop) save() error {
	if l.writer == nil || l.step == l.saved {
		return nil
	}
	snap := l.writer.Snapshot()
	*snap = checkpoint.Snapshot{
		Step: l.step, Model: l.manifest.Model, Artifact: l.Artifact, Seed: l.seed, Loader: l.loader.State(),
		Tensors: snap.Tensors, // their memory is used again
	}
	if err := l.fill(snap); err != nil {
		return err
	}
	l.writer.Save(snap)
	l.saved = l.step
	return nil
}

// fill copies the states that this rank owns: replicated ones belong to rank 0.
func (l *loop) fill(snap *checkpoint.Snapshot) error {
	if l.Group.Rank() != 0 {
		return nil
	}
	if snap.Tensors == nil {
		for _, s := range persistent(l.manifest) {
			info := checkpoint.Info{Name: s.Name, DType: s.DType, Shape: s.Shape, Role: string(s.Role)}
			snap.Tensors = append(snap.Tensors, checkpoint.Tensor{Info: info, Data: make([]byte, s.Bytes())})
		}
	}
	for _, t := range snap.Tensors {
		if err := l.Program.ReadState(t.Name, t.Data); err != nil {
			return err
		}
	}
	return nil
}
