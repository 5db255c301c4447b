// Package safetensors reads and writes safetensors files: 8 bytes of header length, a JSON header that gives each tensor's
// dtype, shape and byte range, then the bytes (https://huggingface.co/docs/safetensors).
//
// A file is refused, with the reason, unless the ranges tile the data exactly: no overlap, no hole, no trailing bytes. No
// memory is given to a header before the file is known to be that long.
package safetensors

import (
	"fmt"
	"io"
	"slices"

	"blutrain/formats"
)

// maxHeader is the bound of the format's reference implementation.
const maxHeader = 100_000_000

// Info describes one tensor of a file. Begin and End are byte offsets into the data section.
type Info struct {
	Name       string
	DType      formats.DType
	Shape      []int64
	Begin, End int64
}

// File is an open safetensors file: its header is in memory, its tensors are read on request.
// It may be read by several goroutines at once.
type File struct {
	Metadata map[string]string // the "__metadata__" of the header; nil when there is none
	Tensors  []Info            // in the order of their bytes

	byName map[string]int
	data   *io.SectionReader
	start  int64
}

// Open reads and checks the header of a file of this size.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f, err := open(r, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

func open(r io.ReaderAt, size int64) (*File, error) {
	header, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	f, err := parseHeader(header)
	if err != nil {
		return nil, err
	}
	start := 8 + int64(len(header))
	f.start = start
	f.data = io.NewSectionReader(r, start, size-start)
	slices.SortFunc(f.Tensors, func(a, b Info) int {
		switch {
		case a.Begin != b.Begin:
			return compare(a.Begin, b.Begin)
		case a.End != b.End:
			return compare(a.End, b.End)
		case a.Name < b.Name:
			return -1
		}
		return 1
	})
	if err := checkRanges(f.Tensors, size-start); err != nil {
		return nil, err
	}
	f.byName = make(map[string]int, len(f.Tensors))
	for i, t := range f.Tensors {
		f.byName[t.Name] = i
	}
	return f, nil
}

func compare(a, b int64) int {
	if a < b {
		return -1
	}
	return 1
}

// checkRanges says why the sorted ranges are not a tiling of the data section.
func checkRanges(tensors []Info, dataSize int64) error {
	at, last := int64(0), ""
	for _, t := range tensors {
		size, err := formats.ByteSize(t.DType, t.Shape)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		switch {
		case t.End < t.Begin:
			return fmt.Errorf("tensor %s ends at byte %d, before it begins at %d", quote(t.Name), t.End, t.Begin)
		case t.End-t.Begin != size:
			return fmt.Errorf("tensor %s: %s%v needs %d bytes, its range [%d, %d) has %d",
				quote(t.Name), t.DType, t.Shape, size, t.Begin, t.End, t.End-t.Begin)
		case t.Begin < at:
			return fmt.Errorf("tensors %s and %s overlap at byte %d", quote(last), quote(t.Name), t.Begin)
		case t.Begin > at:
			return fmt.Errorf("bytes [%d, %d), before tensor %s, belong to no tensor", at, t.Begin, quote(t.Name))
		case t.End > dataSize:
			return fmt.Errorf("tensor %s ends at byte %d, the data at %d: the file is cut short", quote(t.Name), t.End, dataSize)
		}
		at, last = t.End, t.Name
	}
	if at != dataSize {
		return fmt.Errorf("%d bytes follow the last tensor", dataSize-at)
	}
	return nil
}

// DataStart is where in the file the data section begins, to which Begin and End of an Info are relative.
func (f *File) DataStart() int64 { return f.start }

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Info, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Info{}, false
	}
	return f.Tensors[i], true
}

// Read reads one tensor.
func (f *File) Read(name string) (formats.Tensor, error) {
	info, ok := f.Lookup(name)
	if !ok {
		return formats.Tensor{}, fmt.Errorf("safetensors: no tensor %s", quote(name))
	}
	t := formats.Tensor{DType: info.DType, Shape: info.Shape, Data: make([]byte, info.End-info.Begin)}
	return t, f.ReadInto(info, t.Data)
}

// ReadInto reads the bytes of one of f.Tensors into dst, which must have their number.
func (f *File) ReadInto(info Info, dst []byte) error {
	if int64(len(dst)) != info.End-info.Begin {
		return fmt.Errorf("safetensors: tensor %s has %d bytes, asked for %d", quote(info.Name), info.End-info.Begin, len(dst))
	}
	if _, err := io.ReadFull(f.Section(info), dst); err != nil {
		return fmt.Errorf("safetensors: tensor %s: %w", quote(info.Name), err)
	}
	return nil
}

// Section reads the bytes of one of f.Tensors as a stream.
func (f *File) Section(info Info) *io.SectionReader {
	return io.NewSectionReader(f.data, info.Begin, info.End-info.Begin)
}

// quote keeps a hostile name from flooding an error message.
func quote(name string) string {
	const most = 80
	if len(name) > most {
		return fmt.Sprintf("%.*q...", most, name)
	}
	return fmt.Sprintf("%q", name)
}
