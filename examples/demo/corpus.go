package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxFile is the size in bytes above which a file is left out: such files are mostly generated tables.
const maxFile = 60 << 10

// corpus is files to train on, and files held out, each in an order that is the same everywhere and mixes the packages.
type corpus struct{ train, held []string }

// source is one file. The hash of its path relative to the root, with slashes, decides where it goes.
type source struct {
	path string
	hash [sha256.Size]byte
}

// heldOut reports whether a file is for validation: one in a hundred, by the hash's first four bytes.
func (s source) heldOut() bool { return binary.BigEndian.Uint32(s.hash[:])%100 == 0 }

// readCorpus finds the .go files below a folder, without test data and large files.
func readCorpus(root string) (corpus, error) {
	files, err := sources(root)
	if err != nil {
		return corpus{}, err
	}
	slices.SortFunc(files, func(a, b source) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	var c corpus
	for _, f := range files {
		if f.heldOut() {
			c.held = append(c.held, f.path)
		} else {
			c.train = append(c.train, f.path)
		}
	}
	if len(c.train) == 0 || len(c.held) == 0 {
		return c, fmt.Errorf("%s has %d .go files to train on and %d to hold out: it needs some of each", root, len(c.train), len(c.held))
	}
	return c, nil
}

// sources lists the files. What is directly below the root may be a link, as it is where Go comes from Debian.
func sources(root string) ([]source, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var files []source
	for _, e := range entries {
		top, err := filepath.EvalSymlinks(filepath.Join(root, e.Name()))
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
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
			rel, err := filepath.Rel(top, path)
			files = append(files, source{path, sha256.Sum256([]byte(filepath.ToSlash(filepath.Join(e.Name(), rel))))})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// text is the files' bytes as the byte tokenizer sees them, each after a separator, up to limit bytes (0: all).
func text(files []string, limit int64) ([]byte, error) {
	var all []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(append(all, 0), b...)
		if limit > 0 && int64(len(all)) >= limit {
			return all[:limit], nil
		}
	}
	return all, nil
}
