// Package atomicfile writes files and folders so that a crash at any moment leaves the old or the new, never a part: temporary
// name, fsync, rename, fsync of the folder. It knows nothing of what is in them.
//
// All of it goes through FS, the few operations whose durability matters, so that a file system that models crashes can
// take the place of the real one in tests (package crashfs).
package atomicfile

import (
	"io"
	"io/fs"
	"os"
)

// FS is the part of a file system that atomic writing needs. Names are as for package os.
type FS interface {
	Create(name string) (File, error)           // a new or emptied file, for writing
	Open(name string) (ReadFile, error)         // for reading
	Mkdir(name string) error                    // one folder
	Rename(from, to string) error               // atomic; replaces a file
	Remove(name string) error                   // a file or an empty folder
	SyncDir(name string) error                  // makes creations, renames and removals in a folder durable
	ReadDir(name string) ([]fs.DirEntry, error) // sorted by name
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

// Create implements FS.
func (OS) Create(name string) (File, error) { return os.Create(name) }

// Open implements FS.
func (OS) Open(name string) (ReadFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
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
