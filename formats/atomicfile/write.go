package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Temporary names begin with tempPrefix; a crash may leave some behind, and readers of a folder skip them.
const tempPrefix = ".tmp-"

// IsTemp reports whether a name in a folder is one of ours that was never committed.
func IsTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// temp is a name beside the final one. The process id keeps two processes that write one name from mixing their bytes.
func temp(name string) string {
	return filepath.Join(filepath.Dir(name), fmt.Sprintf("%s%d-%s", tempPrefix, os.Getpid(), filepath.Base(name)))
}

// WriteFile makes the file name with what write writes, or leaves the one that was there.
func WriteFile(fsys FS, name string, write func(io.Writer) error) error {
	t := temp(name)
	if err := writeSynced(fsys, t, write); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), discard(fsys, t))
	}
	return commit(fsys, t, name)
}

// commit gives a finished temporary its final name.
func commit(fsys FS, temp, name string) error {
	if err := fsys.Rename(temp, name); err != nil {
		return errors.Join(err, RemoveAll(fsys, temp))
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// writeSynced creates a file, writes it through a buffer, and makes its bytes durable.
func writeSynced(fsys FS, name string, write func(io.Writer) error) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(f, 1<<20)
	err = write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// discard removes a temporary file that may not exist.
func discard(fsys FS, name string) error {
	if err := fsys.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Folder is a folder being written under a temporary name.
type Folder struct {
	fsys       FS
	temp, name string
}

// NewFolder begins the folder name, which must not exist when it is committed. A folder has one temporary name for all
// processes, so that several can write to it; only one may begin and commit it, and what was begun before is removed.
func NewFolder(fsys FS, name string) (*Folder, error) {
	f := JoinFolder(fsys, name)
	if err := RemoveAll(fsys, f.temp); err != nil {
		return nil, err
	}
	if err := fsys.Mkdir(f.temp); err != nil {
		return nil, err
	}
	return f, nil
}

// JoinFolder is the folder that another process began.
func JoinFolder(fsys FS, name string) *Folder {
	return &Folder{fsys, filepath.Join(filepath.Dir(name), tempPrefix+filepath.Base(name)), name}
}

// Write writes one file of the folder.
func (f *Folder) Write(name string, write func(io.Writer) error) error {
	return writeSynced(f.fsys, filepath.Join(f.temp, name), write)
}

// Commit makes the folder's entries durable and gives it its name.
func (f *Folder) Commit() error {
	if err := f.fsys.SyncDir(f.temp); err != nil {
		return err
	}
	return commit(f.fsys, f.temp, f.name)
}

// Discard removes what was written.
func (f *Folder) Discard() error { return RemoveAll(f.fsys, f.temp) }

// RemoveFolder removes a folder of files: it disappears under its name first, at once, and its files then.
func RemoveFolder(fsys FS, name string) error {
	t := temp(name)
	if err := RemoveAll(fsys, t); err != nil {
		return err
	}
	if err := fsys.Rename(name, t); err != nil {
		return err
	}
	return RemoveAll(fsys, t)
}

// RemoveAll removes a file, or a folder and what is in it. Nothing there is no error.
func RemoveAll(fsys FS, name string) error {
	err := fsys.Remove(name)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	entries, readErr := fsys.ReadDir(name)
	if readErr != nil {
		return err
	}
	for _, e := range entries {
		if err := RemoveAll(fsys, filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return fsys.Remove(name)
}

func errTooLarge(size, limit int64) error {
	return fmt.Errorf("%d bytes are more than the %d expected at most", size, limit)
}
