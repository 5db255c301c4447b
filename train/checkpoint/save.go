package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"blutrain/formats/atomicfile"
	"blutrain/formats/safetensors"
	"blutrain/train/data"
)

// Snapshot is the state of a run after a step, as one rank sees it.
type Snapshot struct {
	Step     int64
	Model    string
	Artifact string // SHA-256 of the compiled file
	Seed     uint64
	Loader   data.State
	Tensors  []Tensor // those this rank owns; no tensor has two owners
}

// Tensor is a named tensor of a snapshot. Owner is filled in.
type Tensor struct {
	Info
	Data []byte
}

// part is what a rank tells the others about the file it wrote.
type part struct {
	Tensors []Info
	File    *FileInfo // nil when it owns nothing
	Err     string
}

// Save writes a checkpoint and returns when it is durable, on every rank. After an error the folder holds what it held before.
func (s *Store) Save(snap *Snapshot) error {
	if err := s.save(snap); err != nil {
		return fmt.Errorf("checkpoint of step %d: %w", snap.Step, err)
	}
	return nil
}

func (s *Store) save(snap *Snapshot) error {
	path := filepath.Join(s.dir, stepFolder(snap.Step))
	folder := atomicfile.JoinFolder(s.fsys, path)
	var err error
	if s.group.Rank() == 0 {
		folder, err = s.beginFolder(path)
	}
	if _, err = s.together(part{}, err); err != nil {
		return err
	}
	mine, err := s.writePart(folder, snap)
	parts, err := s.together(mine, err)
	if s.group.Rank() == 0 {
		if err == nil {
			err = s.commit(folder, snap, parts)
		}
		if err != nil {
			err = errors.Join(err, folder.Discard())
		} else {
			err = s.prune(snap.Step)
		}
	}
	_, err = s.together(part{}, err)
	return err
}

// together exchanges parts and errors: when a rank has failed, all have.
func (s *Store) together(mine part, err error) ([]part, error) {
	if err != nil {
		mine.Err = err.Error()
	}
	text, jsonErr := json.Marshal(mine)
	texts, gatherErr := s.group.Gather(text)
	if err = errors.Join(err, jsonErr, gatherErr); err != nil {
		return nil, err
	}
	parts := make([]part, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &parts[rank]); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		if parts[rank].Err != "" {
			return nil, fmt.Errorf("rank %d: %s", rank, parts[rank].Err)
		}
	}
	return parts, nil
}

// beginFolder makes the temporary folder. A folder that has the final name already must be one that could not be resumed from.
func (s *Store) beginFolder(path string) (*atomicfile.Folder, error) {
	c, err := Open(s.fsys, path)
	if err == nil {
		return nil, errors.Join(errors.New("there is a valid checkpoint of this step already"), c.Close())
	}
	if !isDamage(err) {
		return nil, fmt.Errorf("there is a checkpoint of this step already, which may be good: %w", err)
	}
	if _, err := s.fsys.ReadDir(path); !errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.RemoveFolder(s.fsys, path); err != nil {
			return nil, err
		}
	}
	return atomicfile.NewFolder(s.fsys, path)
}

// writePart writes the file of this rank.
func (s *Store) writePart(folder *atomicfile.Folder, snap *Snapshot) (part, error) {
	if len(snap.Tensors) == 0 {
		return part{}, nil
	}
	var p part
	var entries []safetensors.Entry
	for _, t := range snap.Tensors {
		t.Owner = s.group.Rank()
		p.Tensors = append(p.Tensors, t.Info)
		entries = append(entries, safetensors.Entry{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: func(w io.Writer) error {
			_, err := w.Write(t.Data)
			return err
		}})
	}
	sum := sha256.New()
	size := &counter{}
	name := rankFile(s.group.Rank())
	err := folder.Write(name, func(w io.Writer) error {
		return safetensors.Write(io.MultiWriter(w, sum, size), entries, map[string]string{"step": fmt.Sprint(snap.Step)})
	})
	p.File = &FileInfo{name, size.n, hex.EncodeToString(sum.Sum(nil))}
	return p, err
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// commit writes the manifest and gives the folder its name.
func (s *Store) commit(folder *atomicfile.Folder, snap *Snapshot, parts []part) error {
	m := Manifest{Step: snap.Step, World: s.group.World(), Model: snap.Model, Artifact: snap.Artifact, Seed: snap.Seed, Loader: snap.Loader}
	for _, p := range parts {
		m.Tensors = append(m.Tensors, p.Tensors...)
		if p.File != nil {
			m.Files = append(m.Files, *p.File)
		}
	}
	text, err := m.encode()
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return err
	}
	err = folder.Write(manifestName, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	return folder.Commit()
}
