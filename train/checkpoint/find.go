package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"blutrain/formats/atomicfile"
	"blutrain/formats/safetensors"
)

// Checkpoint is a checkpoint whose files have been verified.
type Checkpoint struct {
	Manifest Manifest
	Path     string // of its folder

	fsys  atomicfile.FS
	infos map[string]Info
	files map[int]openFile // by owner
}

type openFile struct {
	atomicfile.ReadFile
	tensors *safetensors.File
}

// Skipped is something in a folder of checkpoints that was passed over, and why.
type Skipped struct {
	Name   string
	Reason error
}

// ErrNone is what Latest returns when there is nothing to restore.
var ErrNone = errors.New("no valid checkpoint")

// Latest opens the newest checkpoint of a folder, by step number, that is complete and whose every byte has its checksum.
// Newer ones that do not qualify are returned with the reason. One that may well be good but can't be read here and now is
// an error: a run that passed over it would write over it in the end.
func Latest(fsys atomicfile.FS, dir string) (*Checkpoint, []Skipped, error) {
	steps, skipped, err := list(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, step := range steps {
		c, err := Open(fsys, filepath.Join(dir, stepFolder(step)))
		if err == nil {
			return c, skipped, nil
		}
		if !isDamage(err) {
			return nil, skipped, fmt.Errorf("%s: %w", filepath.Join(dir, stepFolder(step)), err)
		}
		skipped = append(skipped, Skipped{stepFolder(step), err})
	}
	err = fmt.Errorf("%s: %w", dir, ErrNone)
	for _, old := range skipped {
		err = fmt.Errorf("%w; %s: %w", err, old.Name, old.Reason)
	}
	return nil, skipped, err
}

// isDamage tells a checkpoint that is no good from one that the system refuses to read, or that a newer program wrote.
func isDamage(err error) bool {
	var newer *newerError
	var refused syscall.Errno
	switch {
	case errors.As(err, &newer):
		return false
	case errors.As(err, &refused):
		return refused == syscall.ENOENT || refused == syscall.EISDIR || refused == syscall.ENOTDIR
	}
	return true
}

// list gives the steps that have a folder, newest first, and folders that were never completed.
func list(fsys atomicfile.FS, dir string) (steps []int64, skipped []Skipped, err error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		if step, ok := parseStep(e.Name()); ok {
			steps = append(steps, step)
		} else if atomicfile.IsTemp(e.Name()) {
			skipped = append(skipped, Skipped{e.Name(), errors.New("it was never completed")})
		}
	}
	slices.SortFunc(steps, func(a, b int64) int {
		if a > b {
			return -1
		}
		return 1
	})
	return steps, skipped, err
}

// Open verifies the checkpoint in one folder and opens it. Close releases it.
func Open(fsys atomicfile.FS, path string) (*Checkpoint, error) {
	text, err := atomicfile.ReadAll(fsys, filepath.Join(path, manifestName), maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	if step, ok := parseStep(filepath.Base(path)); ok && step != m.Step {
		return nil, fmt.Errorf("its manifest is of step %d", m.Step)
	}
	c := &Checkpoint{Manifest: *m, Path: path, fsys: fsys, infos: map[string]Info{}, files: map[int]openFile{}}
	for _, t := range m.Tensors {
		c.infos[t.Name] = t
	}
	if err := c.openFiles(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Checkpoint) openFiles() error {
	count := 0
	for _, t := range c.Manifest.Tensors {
		if _, open := c.files[t.Owner]; open {
			continue
		}
		i, _ := slices.BinarySearchFunc(c.Manifest.Files, rankFile(t.Owner), func(f FileInfo, name string) int { return strings.Compare(f.Name, name) })
		file, err := openVerified(c.fsys, c.Path, c.Manifest.Files[i])
		if err != nil {
			return fmt.Errorf("%s: %w", rankFile(t.Owner), err)
		}
		c.files[t.Owner] = file
		count += len(file.tensors.Tensors)
	}
	if count != len(c.Manifest.Tensors) {
		return fmt.Errorf("the files hold %d tensors, the manifest lists %d", count, len(c.Manifest.Tensors))
	}
	for _, t := range c.Manifest.Tensors {
		in, ok := c.files[t.Owner].tensors.Lookup(t.Name)
		if !ok || in.DType != t.DType || !slices.Equal(in.Shape, t.Shape) {
			return fmt.Errorf("tensor %q is not %s%v in %s", t.Name, t.DType, t.Shape, rankFile(t.Owner))
		}
	}
	return nil
}

func openVerified(fsys atomicfile.FS, path string, want FileInfo) (openFile, error) {
	f, err := fsys.Open(filepath.Join(path, want.Name))
	if err != nil {
		return openFile{}, err
	}
	file, err := verify(f, want)
	if err != nil {
		f.Close()
	}
	return file, err
}

func verify(f atomicfile.ReadFile, want FileInfo) (openFile, error) {
	if f.Size() != want.Bytes {
		return openFile{}, fmt.Errorf("it has %d bytes, the manifest lists %d", f.Size(), want.Bytes)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, f.Size())); err != nil {
		return openFile{}, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		return openFile{}, errors.New("it is damaged: its bytes do not have the checksum in the manifest")
	}
	tensors, err := safetensors.Open(f, f.Size())
	return openFile{f, tensors}, err
}

// Tensor describes a tensor of the checkpoint.
func (c *Checkpoint) Tensor(name string) (Info, bool) {
	info, ok := c.infos[name]
	return info, ok
}

// Read reads a tensor's bytes into dst, which must have their number.
func (c *Checkpoint) Read(name string, dst []byte) error {
	t, ok := c.infos[name]
	if !ok {
		return fmt.Errorf("checkpoint %s has no tensor %q", c.Path, name)
	}
	file := c.files[t.Owner]
	info, _ := file.tensors.Lookup(name)
	return file.tensors.ReadInto(info, dst)
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files = nil
	return errors.Join(errs...)
}
