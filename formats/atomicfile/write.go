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

// temp is a name beside the final one. The process id keeps two processes that write one name from mixing their bytes. Names
// have at most 255 bytes, so of a long one only the end is used.
func temp(name string) string {
	base := filepath.Base(name)
	base = base[max(0, len(base)-200):]
	return filepath.Join(filepath.Dir(name), fmt.Sprintf("%s%d-%s", tempPrefix, os.Getpid(), base))
}

// WriteFile makes the file name with what write writes, or leaves the one that was there, whose permissions it keeps. Of a
// symbolic link, the file behind it is replaced. A device or a pipe, such as /dev/stdout, is written to as it is.
func WriteFile(fsys FS, name string, write func(io.Writer) error) error {
	to, err := fsys.Destination(name)
	if err != nil {
		return err
	}
	if to.Open != nil {
		return writeStream(to, write)
	}
	t := temp(to.Name)
	f, err := fsys.Create(t, to.Mode)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := writeSynced(f, write); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), discard(fsys, t))
	}
	return commit(fsys, t, to.Name)
}

// writeStream writes to what has neither an old content nor durability.
func writeStream(to Destination, write func(io.Writer) error) error {
	w, err := to.Open()
	if err != nil {
		return err
	}
	return fill(w, write, func() error { return nil })
}

// commit gives a finished temporary its final name.
func commit(fsys FS, temp, name string) error {
	if err := fsys.Rename(temp, name); err != nil {
		return errors.Join(err, RemoveAll(fsys, temp))
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// writeSynced writes a new file through a buffer, makes its bytes durable, and closes it.
func writeSynced(f File, write func(io.Writer) error) error { return fill(f, write, f.Sync) }

// fill writes through a buffer, calls sync, and closes.
func fill(w io.WriteCloser, write func(io.Writer) error, sync func() error) error {
	buffer := bufio.NewWriterSize(w, 1<<20)
	err := write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = sync()
	}
	if closeErr := w.Close(); err == nil {
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

// NewFolder begins the folder name, which must not exist when it is committed. The temporary name has the owner's in it, so that
// several processes that share an owner can write to one folder, and a process left over from another owner's, which does not know
// yet that its work is lost, can't. Only one may begin and commit it; what the owner began before is removed.
func NewFolder(fsys FS, name, owner string) (*Folder, error) {
	f := JoinFolder(fsys, name, owner)
	if err := RemoveAll(fsys, f.temp); err != nil {
		return nil, err
	}
	if err := fsys.Mkdir(f.temp); err != nil {
		return nil, err
	}
	return f, nil
}

// JoinFolder is the folder that another process of the same owner began.
func JoinFolder(fsys FS, name, owner string) *Folder {
	return &Folder{fsys, filepath.Join(filepath.Dir(name), tempPrefix+owner+"-"+filepath.Base(name)), name}
}

// Write writes one file of the folder.
func (f *Folder) Write(name string, write func(io.Writer) error) error {
	file, err := f.fsys.Create(filepath.Join(f.temp, name), 0)
	if err != nil {
		return err
	}
	return writeSynced(file, write)
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
