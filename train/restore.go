package train

import (
	"fmt"
	"slices"

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
	if err := l.goOn(from); err != nil {
		return fmt.Errorf("%s: %w", from.Path, err)
	}
	return nil
}

// openStore takes the folder of checkpoints, if there is to be one, and restores what is to be gone on from, if there is something.
func (l *loop) openStore() (from *checkpoint.Checkpoint, err error) {
	if l.CheckpointDir == "" {
		return nil, nil
	}
	if l.store, err = checkpoint.Create(l.CheckpointDir, l.Keep, l.group); err != nil {
		return nil, err
	}
	l.writer = checkpoint.NewWriter(l.store)
	if !l.Resume {
		return nil, l.store.Fresh()
	}
	from, skipped, err := l.restore()
	for _, s := range skipped {
		l.notes = append(l.notes, fmt.Sprintf("passed over %s/%s: %v", l.CheckpointDir, s.Name, s.Reason))
	}
	return from, err
}

// restore reads the newest valid checkpoint into the program.
func (l *loop) restore() (*checkpoint.Checkpoint, []checkpoint.Skipped, error) {
	shares := l.ranks.shares(l.manifest)
	var done []func() error
	from, skipped, err := l.store.Restore(func(m *checkpoint.Manifest) (list []checkpoint.Want, err error) {
		if err := l.suits(m, shares); err != nil {
			return nil, err
		}
		list, done, err = wants(l.Program, m, shares)
		return list, err
	})
	if err != nil || from == nil {
		return nil, skipped, err
	}
	for _, end := range done {
		if err := end(); err != nil {
			return nil, skipped, fmt.Errorf("%s: %w", from.Path, err)
		}
	}
	return from, skipped, nil
}

// suits says why a checkpoint is not one of this run.
func (l *loop) suits(m *checkpoint.Manifest, shares []share) error {
	if m.Model != l.manifest.Model {
		return fmt.Errorf("it is of model %s, this one is %s", m.Model, l.manifest.Model)
	}
	if l.Seed != nil && *l.Seed != m.Seed {
		return fmt.Errorf("its run had seed %d, this one %d", m.Seed, *l.Seed)
	}
	for _, t := range m.Tensors {
		if !slices.ContainsFunc(shares, func(s share) bool { return s.state.Name == t.Name }) {
			return fmt.Errorf("it has %s, which the model has not", t.Name)
		}
	}
	return nil
}

// goOn takes up what a checkpoint says beside its tensors: seed, place in the data, step.
func (l *loop) goOn(from *checkpoint.Checkpoint) (err error) {
	m := from.Manifest
	if m.Artifact != l.Artifact {
		l.notes = append(l.notes, fmt.Sprintf("%s was saved by another compilation of the model", from.Path))
	}
	l.seed, l.first, l.step, l.saved = m.Seed, m.Step, m.Step, m.Step
	l.loader, err = data.NewLoader(l.Data, l.loaderConfig(), &m.Loader)
	return err
}
