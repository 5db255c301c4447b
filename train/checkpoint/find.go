package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"blutrain/formats/atomicfile"
)

// Skipped is something in a folder of checkpoints that was passed over, and why.
type Skipped struct {
	Name   string
	Reason error
}

// ErrNone is what Latest returns when there is nothing to restore.
var ErrNone = errors.New("no valid checkpoint")

// Latest gives the newest checkpoint of a folder, by step number, whose every byte has its checksum. See Newest.
func Latest(fsys atomicfile.FS, dir string) (*Checkpoint, []Skipped, error) {
	return Newest(fsys, dir, everything)
}

// Newest reads the newest checkpoint of a folder, by step number, in which all that is wanted is whole. Newer ones that are damaged
// are returned with the reason. One that may well be good but can't be read here and now is an error: a run that passed over it would
// write over it in the end. So is an error of wants.
func Newest(fsys atomicfile.FS, dir string, wants func(*Manifest) ([]Want, error)) (*Checkpoint, []Skipped, error) {
	steps, skipped, err := list(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, step := range steps {
		path := filepath.Join(dir, stepFolder(step))
		c, err := Read(fsys, path, wants)
		if err == nil {
			return c, skipped, nil
		}
		if !isDamage(err) {
			return nil, skipped, fmt.Errorf("%s: %w", path, err)
		}
		skipped = append(skipped, Skipped{stepFolder(step), err})
	}
	return nil, skipped, none(dir, skipped)
}

// none says what there was instead of a valid checkpoint.
func none(dir string, skipped []Skipped) error {
	err := fmt.Errorf("%s: %w", dir, ErrNone)
	for _, old := range skipped {
		err = fmt.Errorf("%w; %s: %w", err, old.Name, old.Reason)
	}
	return err
}

// otherError is an error that says nothing against a checkpoint.
type otherError struct{ error }

func (e otherError) Unwrap() error { return e.error }

// isDamage tells a checkpoint that is no good from one that the system refuses to read, that another version of the program wrote,
// or whose reader has failed.
func isDamage(err error) bool {
	var foreign *versionError
	var other otherError
	var refused syscall.Errno
	switch {
	case errors.As(err, &foreign), errors.As(err, &other):
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
