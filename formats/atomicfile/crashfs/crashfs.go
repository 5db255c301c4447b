// Package crashfs is a file system in memory that can crash, for tests of durability.
//
// What was not synced when it crashes may be there or not: each write to a file since the file's last sync, each change of
// a folder since the folder's last sync. Survivors gives the file systems a crash can leave. The model is harsher than ext4
// or XFS, which keep some of the order; code that is safe here is safe there.
package crashfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ErrCrashed is what every operation returns from the crash on.
var ErrCrashed = errors.New("crashfs: the machine has crashed")

// FS is a file system whose operations are numbered from 0. The zero value has an empty root and never crashes.
type FS struct {
	crash *int   // the operation at which the machine stops
	skip  *int   // the operation that reports success and does nothing
	Space *int64 // bytes that still fit on the disk; nil for no end
	Trace []string
	mu    sync.Mutex
	root  *node
	nodes []*node
}

// node is a file or a folder: what is durable, and the changes since.
type node struct {
	dir     bool
	data    []byte
	entries map[string]*node
	pending []change
}

// change is one operation that is visible but not durable.
type change struct {
	op    int    // its number
	data  []byte // file: bytes appended
	entry entry  // folder: names set or, with a nil node, removed
}

type entry map[string]*node

// op counts one mutating operation and says whether to do it.
func (f *FS) op(format string, args ...any) (do bool, err error) {
	i := len(f.Trace)
	if f.crash != nil && i >= *f.crash {
		return false, ErrCrashed
	}
	f.Trace = append(f.Trace, fmt.Sprintf(format, args...))
	return f.skip == nil || i != *f.skip, nil
}

func (f *FS) newNode(dir bool) *node {
	n := &node{dir: dir, entries: map[string]*node{}}
	f.nodes = append(f.nodes, n)
	return n
}

// now is the folder as a running program sees it.
func (n *node) now() map[string]*node {
	all := maps.Clone(n.entries)
	for _, c := range n.pending {
		c.apply(all)
	}
	return all
}

func (c change) apply(entries map[string]*node) {
	for name, child := range c.entry {
		if child == nil {
			delete(entries, name)
		} else {
			entries[name] = child
		}
	}
}

// content is the file as a running program sees it.
func (n *node) content() []byte {
	all := slices.Clone(n.data)
	for _, c := range n.pending {
		all = append(all, c.data...)
	}
	return all
}

func split(name string) []string {
	return strings.FieldsFunc(filepath.Clean(name), func(r rune) bool { return r == filepath.Separator })
}

// find walks to a node for an operation that is about to begin.
func (f *FS) find(op, name string) (*node, error) {
	if f.crash != nil && len(f.Trace) >= *f.crash {
		return nil, ErrCrashed
	}
	return f.walk(op, name)
}

func (f *FS) walk(op, name string) (*node, error) {
	if f.root == nil {
		f.root = f.newNode(true)
	}
	n := f.root
	for _, part := range split(name) {
		if part == "." {
			continue
		}
		if n = n.now()[part]; n == nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
	}
	return n, nil
}

// change records a change of the folder that holds name.
func (f *FS) change(name string, set func(base string) entry) error {
	parent, err := f.walk("open", filepath.Dir(name))
	if err != nil {
		return err
	}
	parent.pending = append(parent.pending, change{op: len(f.Trace) - 1, entry: set(filepath.Base(name))})
	return nil
}
