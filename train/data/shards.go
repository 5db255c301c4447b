package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sort"

	"blutrain/formats/atomicfile"
	"blutrain/formats/shard"
)

// Shards are the token files of a run, in the order given.
type Shards struct {
	names []string
	files []*shard.File
	close []func() error
}

// OpenShards opens token files. Close releases them.
func OpenShards(names []string) (*Shards, error) {
	if len(names) == 0 {
		return nil, errors.New("no token files")
	}
	s := &Shards{}
	for _, name := range names {
		if err := s.add(name); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), s.Close())
		}
	}
	return s, nil
}

func (s *Shards) add(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return err
	}
	f, err := atomicfile.OS{}.Open(name)
	if err != nil {
		return err
	}
	s.close = append(s.close, f.Close)
	tokens, err := shard.Open(f, f.Size())
	if err != nil {
		return err
	}
	s.names, s.files = append(s.names, name), append(s.files, tokens)
	return nil
}

// Close closes the files.
func (s *Shards) Close() error {
	var errs []error
	for _, c := range s.close {
		errs = append(errs, c())
	}
	s.close = nil
	return errors.Join(errs...)
}

// Tokens is the number of tokens in all files.
func (s *Shards) Tokens() int64 {
	n := int64(0)
	for _, f := range s.files {
		n += f.Len()
	}
	return n
}

// Fingerprint tells other data from this: a SHA-256 of every file's length and vocabulary and of its tokens, of all of them in
// a file of up to 2^20, else of 256 pieces of 4096 that are spread evenly over it, the first and the last among them. Names don't count.
func (s *Shards) Fingerprint() (string, error) {
	const pieces, size = 256, 4096
	sum := sha256.New()
	raw := make([]uint16, size)
	for i, f := range s.files {
		fmt.Fprintf(sum, "%d %d\n", f.Len(), f.Vocab())
		n := min(pieces, (f.Len()+size-1)/size)
		for p := range n {
			at := p * size
			if n == pieces {
				at = p * (f.Len() - size) / (pieces - 1)
			}
			part := raw[:min(size, f.Len()-at)]
			if err := f.Read(part, at); err != nil {
				return "", fmt.Errorf("%s: %w", s.names[i], err)
			}
			if err := binary.Write(sum, binary.LittleEndian, part); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// windows is the list of all windows of S+1 tokens that begin at multiples of S in their file: S inputs, each with the next
// token as its target. The tokens after a file's last whole window are not used.
type windows struct {
	shards *Shards
	size   int64   // S
	vocab  int64   // of the model
	ends   []int64 // ends[i]: windows in files 0 .. i
}

func newWindows(s *Shards, size, vocab int64) (windows, error) {
	w := windows{shards: s, size: size, vocab: vocab}
	total := int64(0)
	for i, f := range s.files {
		if v := int64(f.Vocab()); v > vocab {
			return w, fmt.Errorf("%s: its vocabulary has %d tokens, the model's has %d", s.names[i], v, vocab)
		}
		if f.Len() <= size {
			return w, fmt.Errorf("%s: its %d tokens hold no window of %d tokens and the next (S = %d)", s.names[i], f.Len(), size, size)
		}
		total += (f.Len() - 1) / size
		w.ends = append(w.ends, total)
	}
	return w, nil
}

func (w windows) count() int64 { return w.ends[len(w.ends)-1] }

// read fills tokens and targets, S each, with window number i.
func (w windows) read(i int64, tokens, targets []int32) error {
	file := sort.Search(len(w.ends), func(f int) bool { return w.ends[f] > i })
	if file > 0 {
		i -= w.ends[file-1]
	}
	at := i * w.size
	raw := make([]uint16, w.size+1)
	if err := w.shards.files[file].Read(raw, at); err != nil {
		return fmt.Errorf("%s: %w", w.shards.names[file], err)
	}
	for j, t := range raw {
		if int64(t) >= w.vocab {
			return fmt.Errorf("%s: token %d is %d, the model's vocabulary has %d", w.shards.names[file], at+int64(j), t, w.vocab)
		}
		if j > 0 {
			targets[j-1] = int32(t)
		}
		if int64(j) < w.size {
			tokens[j] = int32(t)
		}
	}
	return nil
}
