package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"

	"blutrain/artifact"
	"blutrain/formats"
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

// String implements Source.
func (s *Shards) String() string { return fmt.Sprintf("%d tokens", s.Tokens()) }

// Fingerprint implements Source.
func (s *Shards) Fingerprint() (string, error) {
	sum := sha256.New()
	raw := make([]uint16, 4096)
	for i, f := range s.files {
		fmt.Fprintf(sum, "%d %d\n", f.Len(), f.Vocab())
		err := pieces(f.Len(), int64(len(raw)), func(at, n int64) error {
			if err := f.Read(raw[:n], at); err != nil {
				return err
			}
			return binary.Write(sum, binary.LittleEndian, raw[:n])
		})
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.names[i], err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// windows is the list of all windows of S+1 tokens that begin at multiples of S in their file: S inputs, each with the next
// token as its target. The tokens after a file's last whole window are not used.
type windows struct {
	shards  *Shards
	size    int64   // S
	vocab   int64   // of the model
	ends    []int64 // ends[i]: windows in files 0 .. i
	targets int     // which input is the targets; the other is the tokens
}

// cut implements Source.
func (s *Shards) cut(c Config) (samples, error) {
	w := windows{shards: s, vocab: c.Vocab}
	w.targets = slices.IndexFunc(c.Inputs, func(v artifact.Value) bool { return v.Name == "targets" })
	if !areTokens(c.Inputs) {
		return nil, fmt.Errorf("the model takes %s; files of tokens have tokens, targets: i32[B, S]: other data comes as arrays, in .npy or .safetensors files", nameAll(c.Inputs))
	}
	if c.Vocab < 1 {
		return nil, fmt.Errorf("data: a vocabulary of %d tokens", c.Vocab)
	}
	w.size = c.Inputs[0].Shape[1]
	total := int64(0)
	for i, f := range s.files {
		if v := int64(f.Vocab()); v > w.vocab {
			return nil, fmt.Errorf("%s: its vocabulary has %d tokens, the model's has %d", s.names[i], v, w.vocab)
		}
		if f.Len() <= w.size {
			return nil, fmt.Errorf("%s: its %d tokens hold no window of %d tokens and the next (S = %d)", s.names[i], f.Len(), w.size, w.size)
		}
		total += (f.Len() - 1) / w.size
		w.ends = append(w.ends, total)
	}
	return w, nil
}

// areTokens reports whether inputs are tokens and targets, in any order.
func areTokens(inputs []artifact.Value) bool {
	if len(inputs) != 2 || inputs[0].Name == inputs[1].Name {
		return false
	}
	shape := inputs[0].Shape
	for _, v := range inputs {
		if v.Name != "tokens" && v.Name != "targets" || v.DType != formats.I32 || len(v.Shape) != 2 || !slices.Equal(v.Shape, shape) {
			return false
		}
	}
	return true
}

func (w windows) begin() State { return State{Windows: w.ends[len(w.ends)-1], S: w.size} }

func (w windows) String() string {
	return fmt.Sprintf("%d tokens in %d files make %d windows of S = %d tokens", w.shards.Tokens(), len(w.shards.files), w.begin().Windows, w.size)
}

// read fills tokens and targets, S each, with window number i.
func (w windows) read(i int64, into [][]byte) error {
	tokens, targets := into[1-w.targets], into[w.targets]
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
			binary.LittleEndian.PutUint32(targets[4*(j-1):], uint32(t))
		}
		if int64(j) < w.size {
			binary.LittleEndian.PutUint32(tokens[4*j:], uint32(t))
		}
	}
	return nil
}
