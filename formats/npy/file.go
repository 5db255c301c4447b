package npy

import (
	"errors"
	"fmt"
	"io"

	"blutrain/formats"
)

// File is an array that stays in its file, where its bytes lie as in a formats.Tensor: little-endian, in C order.
type File struct {
	DType formats.DType
	Shape []int64
	Data  *io.SectionReader // the elements; of booleans nothing says that they are 0 or 1
}

// Open reads and checks the header of a file of this size. An array in another order of bytes or elements is an error.
func Open(r io.ReaderAt, size int64) (*File, error) {
	whole := io.NewSectionReader(r, 0, size)
	h, err := readHeader(whole)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	start, err := whole.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	n, err := formats.ByteSize(h.dtype, h.shape)
	switch {
	case err != nil:
		return nil, fmt.Errorf("npy: %w", err)
	case size-start < n:
		return nil, fmt.Errorf("npy: data ends after %d of %d bytes", size-start, n)
	case size-start > n:
		return nil, errors.New("npy: bytes follow the array")
	case h.fortran && len(h.shape) > 1:
		return nil, errors.New("npy: the array is in Fortran order, here C order is needed (numpy.ascontiguousarray gives it)")
	case h.bigEndian && h.dtype.Size() > 1:
		return nil, errors.New("npy: the array is big-endian, here little-endian is needed (array.astype('<f4') gives it)")
	}
	return &File{h.dtype, h.shape, io.NewSectionReader(r, start, n)}, nil
}
