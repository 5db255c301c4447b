package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile is the size above which a file is left out: such files are mostly generated tables.
const maxFile = 60 << 10

// source is one file of the corpus. Its hash, of the path relative to GOROOT, decides where it goes.
type source struct {
	path string
	hash [sha256.Size]byte
}

// heldOut reports whether a file is for validation: one in a hundred, by the hash's first four bytes.
func (s source) heldOut() bool { return binary.BigEndian.Uint32(s.hash[:])%100 == 0 }

// sources lists the .go files below GOROOT, without test data and large files, in the order of their hashes: an order
// that is the same everywhere and mixes the packages.
func sources() ([]source, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	root := strings.TrimSpace(string(out))
	var files []source
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(path) != ".go" || info.Size() > maxFile {
			return err
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, source{path, sha256.Sum256([]byte(filepath.ToSlash(rel)))})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no .go files", root)
	}
	slices.SortFunc(files, func(a, b source) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	return files, nil
}

// split separates held-out files from those to train on.
func split(files []source) (train, held []string) {
	for _, f := range files {
		if f.heldOut() {
			held = append(held, f.path)
		} else {
			train = append(train, f.path)
		}
	}
	return train, held
}

// text is the files' bytes as the byte tokenizer sees them, each after a separator, up to limit bytes (0: all).
func text(files []string, limit int) ([]byte, error) {
	var all []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(append(all, 0), b...)
		if limit > 0 && len(all) >= limit {
			return all[:limit], nil
		}
	}
	return all, nil
}
