// Package atomicfile writes files and folders so that a crash at any moment leaves the old or the new, never a part: temporary
// name, fsync, rename, fsync of the folder. It knows nothing of what is in them.
//
// All of it goes through FS, the few operations whose durability matters, so that a file system that models crashes can
// take the place of the real one in tests (package crashfs).
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is the part of a file system that atomic writing needs. Names are as for package os.
type FS interface {
	Destination(name string) (Destination, error)       // what writing a file of this name is going to change
	Create(name string, mode fs.FileMode) (File, error) // a new file in place of any of this name; mode 0: the usual permissions
	Open(name string) (ReadFile, error)                 // for reading
	Mkdir(name string) error                            // one folder
	Rename(from, to string) error                       // atomic; replaces a file
	Remove(name string) error                           // a file or an empty folder
	SyncDir(name string) error                          // makes creations, renames and removals in a folder durable
	ReadDir(name string) ([]fs.DirEntry, error)         // sorted by name
}

// Destination is where the bytes of a file to be written go.
type Destination struct {
	Name string                         // the file to replace, with symbolic links followed
	Mode fs.FileMode                    // permissions of the file that is there; 0 when there is none
	Open func() (io.WriteCloser, error) // not nil for what is written to and never replaced: a device, a pipe
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error // makes the content durable
}

// ReadFile is a file being read.
type ReadFile interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// OS is the real file system.
type OS struct{}

// Destination implements FS.
func (OS) Destination(name string) (Destination, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newFile(name)
	case err != nil:
		return Destination{}, err
	case info.IsDir():
		return Destination{}, &fs.PathError{Op: "write", Path: name, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return Destination{Name: name, Open: func() (io.WriteCloser, error) { return os.OpenFile(name, os.O_WRONLY, 0) }}, nil
	}
	if link, err := os.Lstat(name); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return Destination{}, err
		}
	}
	return Destination{Name: name, Mode: info.Mode().Perm()}, nil
}

// newFile is the destination of a name that leads to no file: maybe over a symbolic link whose target is still to come.
func newFile(name string) (Destination, error) {
	if link, err := os.Readlink(name); err == nil {
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(name), link)
		}
		return OS{}.Destination(link)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil { // told here, where it is not yet about a temporary name
		return Destination{}, &fs.PathError{Op: "create", Path: name, Err: errors.Unwrap(err)}
	}
	return Destination{Name: name}, nil
}

// Create implements FS. A file of this name was left behind by another process of the same number, or put there by somebody:
// it is removed, not written into.
func (OS) Create(name string, mode fs.FileMode) (File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(name, flags, 0o666)
	if errors.Is(err, fs.ErrExist) {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(name, flags, 0o666)
	}
	if err != nil {
		return nil, err
	}
	if mode != 0 {
		if err := f.Chmod(mode); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(name))
		}
	}
	return f, nil
}

// Open implements FS.
func (OS) Open(name string) (ReadFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return readFile{f, info.Size()}, nil
}

type readFile struct {
	*os.File
	size int64
}

func (f readFile) Size() int64 { return f.size }

// Mkdir implements FS.
func (OS) Mkdir(name string) error { return os.Mkdir(name, 0o755) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// SyncDir implements FS.
func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

// ReadAll reads a whole file of at most limit bytes.
func ReadAll(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge(f.Size(), limit)}
	}
	b := make([]byte, f.Size())
	_, err = io.ReadFull(io.NewSectionReader(f, 0, f.Size()), b)
	return b, err
}
