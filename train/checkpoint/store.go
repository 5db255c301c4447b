package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"blutrain/formats/atomicfile"
)

// Store is the folder that one run saves its checkpoints in.
type Store struct {
	fsys  atomicfile.FS
	dir   string
	keep  int
	chunk int64
	group Group
	owner string // of unfinished folders: this run, on all its ranks
	lock  io.Closer
}

// Create makes the folder if need be and takes it for this run: a second run in it is refused until Close, also when this one ends
// without it. Restore or Fresh comes next. After each save only the newest `keep` checkpoints stay (0: all). All ranks call it, as
// everything of a Store; where they don't all see the same folder, it is refused on all of them.
func Create(dir string, keep int, group Group) (*Store, error) {
	return createWithin(30*time.Second, dir, keep, group)
}

// createWithin is Create with the time after which what one rank wrote must be seen by the others: NFS, as it is usually mounted, may go on
// saying for 30 s that a file isn't there.
func createWithin(patience time.Duration, dir string, keep int, group Group) (*Store, error) {
	s := &Store{fsys: atomicfile.OS{}, dir: dir, keep: keep, chunk: chunkBytes, group: group}
	var err error
	if group.Rank() == 0 {
		s.owner = fmt.Sprintf("%d-%08x", os.Getpid(), rand.Uint32())
		err = s.take()
	}
	owners, err := exchange(group, s.owner, err)
	if err == nil {
		s.owner = owners[0]
		_, err = exchange(group, struct{}{}, s.shared(patience))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoints: %w", err), s.Close())
	}
	return s, nil
}

// shared looks for the lock of rank 0. Without it this rank would write where the first one does not look, which would be noticed
// only when the first checkpoint fails.
func (s *Store) shared(patience time.Duration) error {
	const pause = 100 * time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(min(pause, patience)) {
		text, err := os.ReadFile(filepath.Join(s.dir, lockName))
		if err == nil && strings.Contains(string(text), s.owner) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is not the folder of rank 0, whose lock is not in it: checkpoints need a folder that all ranks share", s.dir)
		}
	}
}

// take makes the folder and locks it.
func (s *Store) take() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.fsys.SyncDir(filepath.Dir(filepath.Clean(s.dir))); err != nil {
		return err
	}
	lock, err := lockFile(filepath.Join(s.dir, lockName), s.owner)
	if err != nil {
		return err
	}
	s.lock = lock
	return nil
}

// Fresh begins a run that restores nothing: in a folder that has checkpoints it is refused.
func (s *Store) Fresh() error {
	var err error
	if s.group.Rank() == 0 {
		var steps []int64
		var unfinished []Skipped
		steps, unfinished, err = list(s.fsys, s.dir)
		if err == nil && len(steps) > 0 {
			err = fmt.Errorf("%s has checkpoints up to step %d of an earlier run: continue it with --resume, or choose another folder", s.dir, steps[0])
		}
		err = errors.Join(err, s.clean(unfinished))
	}
	_, err = exchange(s.group, struct{}{}, err)
	return err
}

// clean removes folders that were never completed. Nobody is going to complete them, since this run has the lock.
func (s *Store) clean(skipped []Skipped) error {
	var errs []error
	for _, old := range skipped {
		if atomicfile.IsTemp(old.Name) {
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

// lockName is a file of the folder that tells which run has it.
const lockName = "lock"

// lockFile takes an advisory lock that ends with the process, for a run of that name.
func lockFile(name, run string) (*os.File, error) {
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
	who := fmt.Sprintf("process %d on %s, run %s\n", os.Getpid(), host, run)
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = f.WriteAt([]byte(who), 0)
	if err == nil {
		err = f.Sync() // for other hosts to see it
	}
	if err != nil {
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
