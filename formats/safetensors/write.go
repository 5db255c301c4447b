package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"blutrain/formats"
)

// Entry is one tensor to write. Bytes is called once, when its turn in the file comes, and must write exactly the tensor's
// bytes, so that a file may be larger than memory.
type Entry struct {
	Name  string
	DType formats.DType
	Shape []int64
	Bytes func(w io.Writer) error
}

// Of is the entry of a tensor in memory.
func Of(name string, t formats.Tensor) Entry {
	return Entry{name, t.DType, t.Shape, func(w io.Writer) error {
		_, err := w.Write(t.Data)
		return err
	}}
}

// Write writes a file. Tensors are laid out by element size, largest first, then by name, so each is aligned
// and the same tensors give the same bytes whatever their order here.
func Write(w io.Writer, entries []Entry, metadata map[string]string) error {
	entries = inOrder(entries)
	header, sizes, err := layOut(entries, metadata)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for i, e := range entries {
		out := &exactWriter{w: w, left: sizes[i]}
		if err := e.Bytes(out); err != nil {
			return fmt.Errorf("safetensors: tensor %s: %w", quote(e.Name), err)
		}
		if out.left != 0 {
			return fmt.Errorf("safetensors: tensor %s: %d of %d bytes were not written", quote(e.Name), out.left, sizes[i])
		}
	}
	return nil
}

func inOrder(entries []Entry) []Entry {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int {
		if d := b.DType.Size() - a.DType.Size(); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return entries
}

// Image gives the bytes that Write would write of tensors in memory, without copying them: the header, then the data of each
// tensor in the file's order.
func Image(tensors map[string]formats.Tensor, metadata map[string]string) ([][]byte, error) {
	var entries []Entry
	for name, t := range tensors {
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("safetensors: tensor %s: %w", quote(name), err)
		}
		entries = append(entries, Entry{Name: name, DType: t.DType, Shape: t.Shape})
	}
	entries = inOrder(entries)
	header, _, err := layOut(entries, metadata)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	image := [][]byte{header}
	for _, e := range entries {
		image = append(image, tensors[e.Name].Data)
	}
	return image, nil
}

// layOut makes the length and header, and gives the size of each entry.
func layOut(entries []Entry, metadata map[string]string) (header []byte, sizes []int64, err error) {
	type tensor struct {
		DType   string   `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	object := map[string]any{}
	for key, value := range metadata {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, nil, fmt.Errorf("metadata %q is not UTF-8", key)
		}
	}
	if metadata != nil {
		object["__metadata__"] = metadata
	}
	at := int64(0)
	for _, e := range entries {
		size, err := formats.ByteSize(e.DType, e.Shape)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %s: %w", quote(e.Name), err)
		}
		if _, twice := object[e.Name]; twice || e.Name == "__metadata__" || !utf8.ValidString(e.Name) {
			return nil, nil, fmt.Errorf("name %s is taken, reserved or not UTF-8", quote(e.Name))
		}
		if at+size < at {
			return nil, nil, fmt.Errorf("tensor %s: the file's size overflows", quote(e.Name))
		}
		object[e.Name] = tensor{e.DType.Safetensors(), append([]int64{}, e.Shape...), [2]int64{at, at + size}}
		sizes = append(sizes, size)
		at += size
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text) // sorts keys
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return nil, nil, err
	}
	text.Truncate(text.Len() - 1) // the encoder's newline
	for text.Len()%8 != 0 {
		text.WriteByte(' ')
	}
	if text.Len() > maxHeader {
		return nil, nil, fmt.Errorf("header of %d bytes is longer than the %d supported", text.Len(), maxHeader)
	}
	header = binary.LittleEndian.AppendUint64(nil, uint64(text.Len()))
	return append(header, text.Bytes()...), sizes, nil
}

// exactWriter refuses bytes beyond a tensor's end.
type exactWriter struct {
	w    io.Writer
	left int64
}

func (e *exactWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > e.left {
		return 0, fmt.Errorf("%d bytes too many", int64(len(p))-e.left)
	}
	n, err := e.w.Write(p)
	e.left -= int64(n)
	return n, err
}
