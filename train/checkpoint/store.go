package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"blutrain/formats/atomicfile"
)

// Group is the ranks that save together. Each rank calls Gather the same number of times in the same order.
type Group interface {
	Rank() int
	World() int
	// Gather gives every rank what each of them passed, by rank; it returns when all have called it.
	Gather(mine []byte) ([][]byte, error)
}

// Single is the group of a run with one rank.
type Single struct{}

// Rank implements Group.
func (Single) Rank() int { return 0 }

// World implements Group.
func (Single) World() int { return 1 }

// Gather implements Group.
func (Single) Gather(mine []byte) ([][]byte, error) { return [][]byte{mine}, nil }

// Store is the folder that one run saves its checkpoints in.
type Store struct {
	fsys  atomicfile.FS
	dir   string
	keep  int
	group Group
	lock  io.Closer
}

// Create makes the folder if need be and takes it for this run: a second run in it is refused until Close, also when this
// one ends without it. With resume, the newest valid checkpoint is returned, open, or nil when there is none yet (damaged ones
// only are an error); without, a folder that has checkpoints is refused. After each save only the newest `keep` checkpoints stay (0: all).
func Create(dir string, keep int, resume bool, group Group) (*Store, *Checkpoint, []Skipped, error) {
	s := &Store{atomicfile.OS{}, dir, keep, group, nil}
	if group.Rank() == 0 {
		if err := s.take(); err != nil {
			return nil, nil, nil, err
		}
	}
	c, skipped, err := s.begin(resume)
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	return s, c, skipped, nil
}

// take makes the folder and locks it.
func (s *Store) take() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.fsys.SyncDir(filepath.Dir(filepath.Clean(s.dir))); err != nil {
		return err
	}
	lock, err := lockFile(filepath.Join(s.dir, "lock"))
	s.lock = lock
	return err
}

// begin finds what to go on from.
func (s *Store) begin(resume bool) (*Checkpoint, []Skipped, error) {
	if resume {
		c, skipped, err := Latest(s.fsys, s.dir)
		damaged := slices.ContainsFunc(skipped, func(old Skipped) bool { return !atomicfile.IsTemp(old.Name) })
		if errors.Is(err, ErrNone) && !damaged {
			err = nil // killed before its first checkpoint, or never started
		}
		return c, skipped, errors.Join(err, s.clean(skipped))
	}
	steps, unfinished, err := list(s.fsys, s.dir)
	if err == nil && len(steps) > 0 {
		err = fmt.Errorf("%s has checkpoints up to step %d of an earlier run: continue it with --resume, or choose another folder", s.dir, steps[0])
	}
	return nil, nil, errors.Join(err, s.clean(unfinished))
}

// clean removes folders that were never completed: nobody is writing them, since this run has the lock.
func (s *Store) clean(skipped []Skipped) error {
	var errs []error
	for _, old := range skipped {
		if atomicfile.IsTemp(old.Name) && s.group.Rank() == 0 {
			errs = append(errs, atomicfile.RemoveAll(s.fsys, filepath.Join(s.dir, old.Name)))
		}
	}
	return errors.Join(errs...)
}

// Close lets other runs use the folder.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// lockFile takes an advisory lock that ends with the process.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 100))
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is in use by another run (%s)", filepath.Dir(name), strings.TrimSpace(string(holder)))
		}
		return nil, &fs.PathError{Op: "flock", Path: name, Err: err}
	}
	host, _ := os.Hostname()
	who := fmt.Sprintf("process %d on %s\n", os.Getpid(), host)
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(who), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// prune removes all but the newest checkpoints. The one just saved stays whatever its number: newer folders may be damaged
// ones that this run was not resumed from.
func (s *Store) prune(saved int64) error {
	if s.keep <= 0 {
		return nil
	}
	steps, _, err := list(s.fsys, s.dir)
	if err != nil {
		return err
	}
	var errs []error
	for i, step := range steps {
		if i >= s.keep && step != saved {
			errs = append(errs, atomicfile.RemoveFolder(s.fsys, filepath.Join(s.dir, stepFolder(step))))
		}
	}
	return errors.Join(errs...)
}
