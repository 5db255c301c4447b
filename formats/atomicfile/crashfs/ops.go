package crashfs

import (
	"bytes"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"blutrain/formats/atomicfile"
)

// Destination implements atomicfile.FS: there are no links, devices or permissions.
func (f *FS) Destination(name string) (atomicfile.Destination, error) {
	return atomicfile.Destination{Name: name}, nil
}

// Create implements atomicfile.FS. A file that exists gives its name to the new one.
func (f *FS) Create(name string, _ fs.FileMode) (atomicfile.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.find("create", filepath.Dir(name)); err != nil {
		return nil, err
	}
	if _, err := f.op("create %s", name); err != nil {
		return nil, err
	}
	n := f.newNode(false)
	return &file{f, n, name}, f.change(name, func(base string) entry { return entry{base: n} })
}

type file struct {
	fs   *FS
	node *node
	name string
}

func (w *file) Write(p []byte) (int, error) {
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	do, err := w.fs.op("write %s", w.name)
	if err != nil {
		return 0, err
	}
	if s := w.fs.Space; s != nil {
		if *s < int64(len(p)) {
			return 0, &fs.PathError{Op: "write", Path: w.name, Err: syscall.ENOSPC}
		}
		*s -= int64(len(p))
	}
	if do {
		w.node.pending = append(w.node.pending, change{op: len(w.fs.Trace) - 1, data: bytes.Clone(p)})
	}
	return len(p), nil
}

func (w *file) Sync() error {
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	do, err := w.fs.op("sync %s", w.name)
	if do {
		w.node.data, w.node.pending = w.node.content(), nil
	}
	return err
}

func (w *file) Close() error { return nil }

// Open implements atomicfile.FS.
func (f *FS) Open(name string) (atomicfile.ReadFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("open", name)
	if err == nil && n.dir {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	return reader{bytes.NewReader(n.content())}, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

// Mkdir implements atomicfile.FS.
func (f *FS) Mkdir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.find("mkdir", name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	if _, err := f.op("mkdir %s", name); err != nil {
		return err
	}
	n := f.newNode(true)
	return f.change(name, func(base string) entry { return entry{base: n} })
}

// Rename implements atomicfile.FS, within one folder.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("rename", from)
	if err != nil {
		return err
	}
	if filepath.Dir(from) != filepath.Dir(to) {
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.EXDEV}
	}
	if old, err := f.find("rename", to); err == nil && (old.dir != n.dir || old.dir && len(old.now()) > 0) {
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.ENOTEMPTY}
	}
	do, err := f.op("rename %s %s", from, to)
	if err != nil || !do {
		return err
	}
	return f.change(to, func(base string) entry { return entry{filepath.Base(from): nil, base: n} })
}

// Remove implements atomicfile.FS.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("remove", name)
	if err != nil {
		return err
	}
	if n.dir && len(n.now()) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	do, err := f.op("remove %s", name)
	if err != nil || !do {
		return err
	}
	return f.change(name, func(base string) entry { return entry{base: nil} })
}

// SyncDir implements atomicfile.FS.
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("syncdir", name)
	if err != nil {
		return err
	}
	do, err := f.op("syncdir %s", name)
	if do {
		n.entries, n.pending = n.now(), nil
	}
	return err
}

// ReadDir implements atomicfile.FS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("readdir", name)
	if err == nil && !n.dir {
		err = &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	now := n.now()
	list := make([]fs.DirEntry, 0, len(now))
	for _, base := range slices.Sorted(maps.Keys(now)) {
		list = append(list, fs.FileInfoToDirEntry(info{base, now[base]}))
	}
	return list, nil
}

// info describes a node to fs.DirEntry.
type info struct {
	name string
	node *node
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return int64(len(i.node.content())) }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.node.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.node.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
