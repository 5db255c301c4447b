// Package npy reads and writes NumPy's .npy files, versions 1, 2 and 3, as described in numpy.lib.format.
//
// Elements are booleans, integers and floats of either byte order; bfloat16 is two opaque bytes ("V2"), which is how
// ml_dtypes stores it. Arrays in Fortran order are transposed to C order on reading. Everything else (structures,
// strings, objects, complex numbers) is refused. Nothing in a header is believed before the bytes are there: memory
// grows with the data read, never with the size announced.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"blutrain/formats"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 16 // NumPy writes about a hundred bytes, and refuses to read more than 10,000
)

// Read reads one array and leaves r behind its last byte (np.save may append several to one file).
func Read(r io.Reader) (formats.Tensor, error) {
	h, err := readHeader(r)
	if err != nil {
		return formats.Tensor{}, fmt.Errorf("npy: %w", err)
	}
	size, err := formats.ByteSize(h.dtype, h.shape)
	if err != nil {
		return formats.Tensor{}, fmt.Errorf("npy: %w", err)
	}
	var data bytes.Buffer
	n, err := io.CopyN(&data, r, size)
	if err != nil {
		return formats.Tensor{}, fmt.Errorf("npy: data ends after %d of %d bytes: %w", n, size, unexpected(err))
	}
	t := formats.Tensor{DType: h.dtype, Shape: h.shape, Data: data.Bytes()}
	if t.DType == formats.Bool {
		if i := slices.IndexFunc(t.Data, func(b byte) bool { return b > 1 }); i >= 0 {
			return formats.Tensor{}, fmt.Errorf("npy: element %d is %#02x, a boolean is 0 or 1", i, t.Data[i])
		}
	}
	if h.bigEndian {
		swap(t.Data, t.DType.Size())
	}
	if h.fortran {
		t.Data = transpose(t.Data, t.Shape, t.DType.Size())
	}
	return t, nil
}

// ReadAll reads one array and refuses bytes after it.
func ReadAll(r io.Reader) (formats.Tensor, error) {
	t, err := Read(r)
	if err != nil {
		return t, err
	}
	var extra [1]byte
	if n, err := io.ReadFull(r, extra[:]); n > 0 {
		return formats.Tensor{}, errors.New("npy: bytes follow the array")
	} else if err != io.EOF {
		return formats.Tensor{}, fmt.Errorf("npy: %w", err)
	}
	return t, nil
}

// Write writes one array: version 1, little-endian, C order, data aligned to 64 bytes.
func Write(w io.Writer, t formats.Tensor) error {
	if err := t.Check(); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	order := "<"
	if t.DType.Size() == 1 {
		order = "|"
	}
	dict := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': %s, }", order, t.DType.Npy(), tuple(t.Shape))
	const prefix = len(magic) + 2 + 2
	pad := (64 - (prefix+len(dict)+1)%64) % 64
	dict += strings.Repeat(" ", pad) + "\n"
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(dict)))
	if _, err := w.Write(append(head, dict...)); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	if _, err := w.Write(t.Data); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	return nil
}

// tuple prints a shape as Python does: (), (3,), (3, 4).
func tuple(shape []int64) string {
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = fmt.Sprint(n)
	}
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// readHeader reads magic, version, length and the dictionary.
func readHeader(r io.Reader) (header, error) {
	var fixed [8]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return header{}, fmt.Errorf("file ends in the first 8 bytes: %w", unexpected(err))
	}
	if string(fixed[:6]) != magic {
		return header{}, fmt.Errorf("not an npy file: starts with %q", fixed[:6])
	}
	lengthBytes := 4
	switch major, minor := fixed[6], fixed[7]; {
	case major == 1 && minor == 0:
		lengthBytes = 2
	case (major == 2 || major == 3) && minor == 0:
	default:
		return header{}, fmt.Errorf("version %d.%d is not supported (1.0, 2.0 and 3.0 are)", major, minor)
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:lengthBytes]); err != nil {
		return header{}, fmt.Errorf("file ends in the header's length: %w", unexpected(err))
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxHeader {
		return header{}, fmt.Errorf("header of %d bytes is longer than the %d supported", n, maxHeader)
	}
	text := make([]byte, n)
	if got, err := io.ReadFull(r, text); err != nil {
		return header{}, fmt.Errorf("header ends after %d of %d bytes: %w", got, n, unexpected(err))
	}
	return parseHeader(string(text))
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// swap reverses the bytes of each element.
func swap(data []byte, size int) {
	for ; len(data) > 0; data = data[size:] {
		slices.Reverse(data[:size])
	}
}

// transpose turns column-major data into row-major data of the same shape.
func transpose(data []byte, shape []int64, size int) []byte {
	if len(shape) < 2 || len(data) == 0 {
		return data
	}
	strides := make([]int64, len(shape)) // of the source, in bytes
	step := int64(size)
	for i, n := range shape {
		strides[i] = step
		step *= n
	}
	out, index, from := make([]byte, 0, len(data)), make([]int64, len(shape)), int64(0)
	for len(out) < len(data) {
		out = append(out, data[from:from+int64(size)]...)
		for i := len(shape) - 1; i >= 0; i-- { // count up, last dimension fastest
			index[i]++
			from += strides[i]
			if index[i] < shape[i] {
				break
			}
			from -= strides[i] * shape[i]
			index[i] = 0
		}
	}
	return out
}
