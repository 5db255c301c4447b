package data

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/formats/atomicfile"
	"blutrain/formats/npy"
	"blutrain/formats/safetensors"
	"blutrain/internal/near"
)

// Arrays are named tensors whose first dimension is samples. They stay in their files; a batch reads its rows.
type Arrays struct {
	tensors map[string][]array // by name, the files of each in the order given: sample after sample
	close   []func() error
}

// array is a tensor in a file.
type array struct {
	file  string
	dtype formats.DType
	shape []int64
	data  io.ReaderAt
}

func (a array) String() string { return a.dtype.Of(a.shape) }

// OpenArrays opens .npy files, whose name says which input they are (images.npy), .safetensors files, and folders of such. A name
// that several files have goes on from one to the next. Close releases them.
func OpenArrays(names []string) (*Arrays, error) {
	a := &Arrays{tensors: map[string][]array{}}
	for _, name := range names {
		files, err := arrayFiles(name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), a.Close())
		}
		for _, file := range files {
			if err := a.add(file); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", file, err), a.Close())
			}
		}
	}
	return a, nil
}

// arrayFiles is a file, or those in a folder.
func arrayFiles(name string) (files []string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isArrayFile(e.Name()) {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the folder has no .npy and no .safetensors files")
	}
	return files, nil
}

func (a *Arrays) add(name string) error {
	f, err := atomicfile.OS{}.Open(name)
	if err != nil {
		return err
	}
	a.close = append(a.close, f.Close)
	if filepath.Ext(name) == ".npy" {
		t, err := npy.Open(f, f.Size())
		if err != nil {
			return err
		}
		input := strings.TrimSuffix(filepath.Base(name), ".npy")
		a.tensors[input] = append(a.tensors[input], array{name, t.DType, t.Shape, t.Data})
		return nil
	}
	all, err := safetensors.Open(f, f.Size())
	if err != nil {
		return err
	}
	for _, t := range all.Tensors {
		a.tensors[t.Name] = append(a.tensors[t.Name], array{name, t.DType, t.Shape, all.Section(t)})
	}
	return nil
}

// Close closes the files.
func (a *Arrays) Close() error {
	var errs []error
	for _, c := range a.close {
		errs = append(errs, c())
	}
	a.close = nil
	return errors.Join(errs...)
}

// String implements Source.
func (a *Arrays) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(a.tensors)) {
		for _, t := range a.tensors[name] {
			list = append(list, name+": "+t.String())
		}
	}
	return strings.Join(list, ", ")
}

// Fingerprint implements Source.
func (a *Arrays) Fingerprint() (string, error) {
	sum := sha256.New()
	raw := make([]byte, 8192)
	for _, name := range slices.Sorted(maps.Keys(a.tensors)) {
		for _, t := range a.tensors[name] {
			size, err := formats.ByteSize(t.dtype, t.shape)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%q %s\n", name, t)
			err = pieces(size, int64(len(raw)), func(at, n int64) error {
				if err := readAt(t.data, raw[:n], at); err != nil {
					return fmt.Errorf("%s: %w", t.file, err)
				}
				sum.Write(raw[:n])
				return nil
			})
			if err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// readAt fills p, or says why it can't.
func readAt(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	return err
}

// arrayRows is the samples of arrays: of each input, the files that hold it, which agree in their numbers of samples.
type arrayRows struct {
	inputs []artifact.Value
	files  [][]array
	ends   []int64 // ends[i]: samples in files 0 .. i
}

// cut implements Source.
func (a *Arrays) cut(c Config) (samples, error) {
	r := &arrayRows{inputs: c.Inputs}
	for _, v := range c.Inputs {
		files := a.tensors[v.Name]
		if len(files) == 0 {
			known := slices.Sorted(maps.Keys(a.tensors))
			return nil, fmt.Errorf("the data has no %s, which the model takes (%s); it has %s%s", v.Name, anySamples(v), a, near.Suggest(v.Name, known))
		}
		for _, f := range files {
			if f.dtype != v.DType || len(f.shape) == 0 || !slices.Equal(f.shape[1:], v.Shape[1:]) {
				return nil, fmt.Errorf("%s: %s is %s, the model takes %s for N samples", f.file, v.Name, f, anySamples(v))
			}
		}
		r.files = append(r.files, files)
	}
	if err := r.count(); err != nil {
		return nil, err
	}
	return r, nil
}

// anySamples is the type that an input has in data of N samples: f32[N, 1, 8, 8].
func anySamples(v artifact.Value) string {
	_, rest, several := strings.Cut(v.DType.Of(v.Shape), ",")
	if !several {
		return v.DType.String() + "[N]"
	}
	return v.DType.String() + "[N," + rest
}

// count adds up the samples, of which each input must have one.
func (r *arrayRows) count() error {
	first := r.files[0]
	total := int64(0)
	for i, f := range first {
		total += f.shape[0]
		r.ends = append(r.ends, total)
		for k, other := range r.files {
			if len(other) != len(first) {
				return fmt.Errorf("%s is in %d files, %s in %d", r.inputs[0].Name, len(first), r.inputs[k].Name, len(other))
			}
			if o := other[i]; o.shape[0] != f.shape[0] {
				return fmt.Errorf("%s has %d samples of %s, %s has %d of %s", f.file, f.shape[0], r.inputs[0].Name, o.file, o.shape[0], r.inputs[k].Name)
			}
		}
	}
	return nil
}

func (r *arrayRows) begin() State { return State{Windows: r.ends[len(r.ends)-1]} }

func (r *arrayRows) String() string { return r.begin().of() }

// read fills the inputs with sample number i.
func (r *arrayRows) read(i int64, into [][]byte) error {
	file := sort.Search(len(r.ends), func(f int) bool { return r.ends[f] > i })
	if file > 0 {
		i -= r.ends[file-1]
	}
	for k, dst := range into {
		f := r.files[k][file]
		if err := readAt(f.data, dst, i*int64(len(dst))); err != nil {
			return fmt.Errorf("%s: %w", f.file, err)
		}
		if f.dtype == formats.Bool && slices.ContainsFunc(dst, func(c byte) bool { return c > 1 }) {
			return fmt.Errorf("%s: %s of sample %d has a byte above 1, a boolean is 0 or 1", f.file, r.inputs[k].Name, i)
		}
	}
	return nil
}
