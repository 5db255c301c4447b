package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/formats"
)

// Source is what batches are made of: token files (Shards) or arrays (Arrays).
type Source interface {
	// Fingerprint tells other data from this: a SHA-256 of sizes, types and content, of all of it in a small file, else of 256 pieces that
	// are spread evenly over the file, the first and the last among them. Names of files don't count.
	Fingerprint() (string, error)
	// String says how much there is: 1000 tokens.
	String() string
	Close() error
	// cut finds the samples for batches of a configuration's inputs.
	cut(c Config) (samples, error)
}

// samples are what an epoch holds each of once, by number.
type samples interface {
	// begin is the place before the first sample of the first epoch; the seed is not in it.
	begin() State
	// read fills the bytes of each input, in the order of the configuration, with those of sample i.
	read(i int64, into [][]byte) error
	// String says what there is, for an error: 31 tokens in 1 files make 10 windows of S = 3 tokens.
	String() string
}

// Open opens files by what they are: arrays when they are .npy or .safetensors files or folders of such, else tokens.
func Open(names []string) (Source, error) {
	if len(names) == 0 {
		return nil, errors.New("no files of data")
	}
	other := slices.IndexFunc(names, func(name string) bool { return !holdsArrays(name) })
	if other < 0 {
		return OpenArrays(names)
	}
	if i := slices.IndexFunc(names, holdsArrays); i >= 0 {
		return nil, fmt.Errorf("%s is a file of tokens, %s has arrays: data is one or the other", names[other], names[i])
	}
	return OpenShards(names)
}

// holdsArrays reports whether what has this name is a file or folder of arrays.
func holdsArrays(name string) bool {
	info, err := os.Stat(name)
	return isArrayFile(name) || err == nil && info.IsDir()
}

func isArrayFile(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".npy" || ext == ".safetensors"
}

// Tokens is the inputs that token files have data for: B rows of S tokens, and for each token the one that follows it.
func Tokens(b, s int64) []artifact.Value {
	return []artifact.Value{{Name: "tokens", DType: formats.I32, Shape: []int64{b, s}}, {Name: "targets", DType: formats.I32, Shape: []int64{b, s}}}
}

// nameAll says what inputs are: images: f32[16, 1, 8, 8], labels: i32[16].
func nameAll(inputs []artifact.Value) string {
	var list []string
	for _, v := range inputs {
		list = append(list, v.Name+": "+v.DType.Of(v.Shape))
	}
	return strings.Join(list, ", ")
}

// pieces calls use with parts of something of this length, to take a fingerprint of: all of it where 256 parts of this size are enough, else
// 256 that are spread evenly.
func pieces(length, size int64, use func(at, n int64) error) error {
	const most = 256
	n := min(most, (length+size-1)/size)
	for p := range n {
		at := p * size
		if n == most {
			at = p * (length - size) / (most - 1)
		}
		if err := use(at, min(size, length-at)); err != nil {
			return err
		}
	}
	return nil
}
