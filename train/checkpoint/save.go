package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"blutrain/formats"
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
	Tensors  []Tensor // what this rank owns; no element has two owners
}

// Tensor is the elements [Begin, End) of a named tensor, in row-major order. Info describes the whole tensor; its pieces are
// filled in.
type Tensor struct {
	Info
	Begin, End int64
	Data       []byte
}

// part is what a rank tells the others about the file it wrote.
type part struct {
	Tensors []Info
	File    *FileInfo // nil when it owns nothing
}

// Save writes a checkpoint and returns, on every rank, when it is durable. It gives the bytes of all files of tensors. After an error
// the folder holds what it held before.
func (s *Store) Save(snap *Snapshot) (bytes int64, err error) {
	return s.saveAfter(nil, snap)
}

// saveAfter saves what this rank may have failed to make a snapshot of: then all ranks fail.
func (s *Store) saveAfter(err error, snap *Snapshot) (bytes int64, _ error) {
	bytes, err = s.save(err, snap)
	if err != nil {
		return 0, fmt.Errorf("checkpoint of step %d: %w", snap.Step, err)
	}
	return bytes, nil
}

func (s *Store) save(err error, snap *Snapshot) (bytes int64, _ error) {
	path := filepath.Join(s.dir, stepFolder(snap.Step))
	folder := atomicfile.JoinFolder(s.fsys, path, s.owner)
	first := s.group.Rank() == 0
	if first && err == nil {
		folder, err = s.beginFolder(path)
	}
	if _, err = exchange(s.group, struct{}{}, err); err != nil {
		return 0, s.giveUp(folder, err)
	}
	mine, err := s.writePart(folder, snap)
	parts, err := exchange(s.group, mine, err)
	if err != nil {
		return 0, s.giveUp(folder, err)
	}
	if first {
		if err = s.commit(folder, snap, parts); err != nil {
			err = s.giveUp(folder, err)
		} else {
			err = s.prune(snap.Step)
		}
	}
	_, err = exchange(s.group, struct{}{}, err)
	for _, p := range parts {
		if p.File != nil {
			bytes += p.File.Bytes
		}
	}
	return bytes, err
}

// giveUp removes what was written.
func (s *Store) giveUp(folder *atomicfile.Folder, err error) error {
	if s.group.Rank() == 0 && folder != nil {
		err = errors.Join(err, folder.Discard())
	}
	return err
}

// beginFolder makes the temporary folder. A folder that has the final name already must be one that could not be resumed from.
func (s *Store) beginFolder(path string) (*atomicfile.Folder, error) {
	_, err := Read(s.fsys, path, everything)
	if err == nil {
		return nil, errors.New("there is a valid checkpoint of this step already")
	}
	if !isDamage(err) {
		return nil, fmt.Errorf("there is a checkpoint of this step already, which may be good: %w", err)
	}
	if _, err := s.fsys.ReadDir(path); !errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.RemoveFolder(s.fsys, path); err != nil {
			return nil, err
		}
	}
	return atomicfile.NewFolder(s.fsys, path, s.owner)
}

// writePart writes the file of this rank. Its checksums are computed meanwhile.
func (s *Store) writePart(folder *atomicfile.Folder, snap *Snapshot) (part, error) {
	if len(snap.Tensors) == 0 {
		return part{}, nil
	}
	rank := s.group.Rank()
	var p part
	tensors := map[string]formats.Tensor{}
	for _, t := range snap.Tensors {
		if _, twice := tensors[t.Name]; twice {
			return part{}, fmt.Errorf("tensor %q comes twice", t.Name)
		}
		piece := Piece{rank, t.Begin, t.End}
		t.Pieces = []Piece{piece}
		tensors[t.Name] = formats.Tensor{DType: t.DType, Shape: t.stored(piece), Data: t.Data}
		p.Tensors = append(p.Tensors, t.Info)
	}
	image, err := safetensors.Image(tensors, map[string]string{"step": fmt.Sprint(snap.Step)})
	if err != nil {
		return part{}, err
	}
	p.File = &FileInfo{Rank: rank, Bytes: imageSize(image), Chunk: s.chunk}
	hashed := make(chan []string, 1)
	go func() { hashed <- sums(image, s.chunk) }()
	err = folder.Write(rankFile(rank), func(w io.Writer) error {
		for _, b := range image {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
	p.File.Chunks = <-hashed
	return p, err
}

// commit writes the manifest and gives the folder its name.
func (s *Store) commit(folder *atomicfile.Folder, snap *Snapshot, parts []part) error {
	m := Manifest{Step: snap.Step, World: s.group.World(), Model: snap.Model, Artifact: snap.Artifact, Seed: snap.Seed, Loader: snap.Loader}
	if err := m.gather(parts); err != nil {
		return err
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

// gather puts together what the ranks have written.
func (m *Manifest) gather(parts []part) error {
	index := map[string]int{}
	for _, p := range parts {
		if p.File != nil {
			m.Files = append(m.Files, *p.File)
		}
		for _, t := range p.Tensors {
			i, ok := index[t.Name]
			if !ok {
				index[t.Name] = len(m.Tensors)
				m.Tensors = append(m.Tensors, t)
				continue
			}
			known := &m.Tensors[i]
			if known.DType != t.DType || known.Role != t.Role || !slices.Equal(known.Shape, t.Shape) {
				return fmt.Errorf("tensor %q is not the same on ranks %d and %d", t.Name, known.Pieces[0].Rank, t.Pieces[0].Rank)
			}
			known.Pieces = append(known.Pieces, t.Pieces...)
		}
	}
	for _, t := range m.Tensors {
		slices.SortFunc(t.Pieces, func(a, b Piece) int { return int(max(-1, min(1, a.Begin-b.Begin))) })
	}
	return nil
}
