// Package shard reads and writes files of tokens: the shards of llm.c (a header of 256 int32: magic 20240520, version 1, number
// of tokens; then little-endian uint16) and bare uint16 without a header.
//
// A file is taken to have a header when it begins with the magic number. Read as two tokens the magic is 55432, 308, and
// 55432 is outside GPT-2's and every smaller vocabulary, so no bare file of theirs begins with it.
//
// The fourth number of the header is the size of the vocabulary in shards that Writer made, and 0 in llm.c's, which
// leave it unused.
package shard

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"blutrain/formats/atomicfile"
)

const (
	magic      = 20240520
	magicWide  = 20240801 // llm.c's shards of Llama 3 tokens: uint32
	version    = 1
	headerSize = 256 * 4
)

// File is an open shard. It may be read by several goroutines at once.
type File struct {
	tokens *io.SectionReader
	count  int64
	vocab  int64
}

// Open checks a file of this size and finds its tokens.
func Open(r io.ReaderAt, size int64) (*File, error) {
	start, vocab, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("token shard: %w", err)
	}
	return &File{io.NewSectionReader(r, start, size-start), (size - start) / 2, vocab}, nil
}

// readHeader checks the header, if there is one, and the size, and finds the first token.
func readHeader(r io.ReaderAt, size int64) (start, vocab int64, err error) {
	var header [4 * 4]byte
	n, err := r.ReadAt(header[:], 0)
	if err != nil && err != io.EOF {
		return 0, 0, err
	}
	field := func(i int) int64 { return int64(int32(binary.LittleEndian.Uint32(header[4*i:]))) }
	switch {
	case n >= 4 && field(0) == magicWide:
		return 0, 0, fmt.Errorf("magic %d is a shard of 32-bit tokens, which is not supported", magicWide)
	case n < 4 || field(0) != magic:
		if size%2 != 0 {
			return 0, 0, fmt.Errorf("%d bytes are not a whole number of uint16 tokens, and there is no header (magic %d)", size, magic)
		}
		return 0, 0, nil
	case size < headerSize:
		return 0, 0, fmt.Errorf("header ends after %d of %d bytes", size, headerSize)
	case field(1) != version:
		return 0, 0, fmt.Errorf("version %d is not supported (%d is)", field(1), version)
	case field(2) < 0:
		return 0, 0, fmt.Errorf("header announces %d tokens", field(2))
	case field(3) < 0 || field(3) > 1<<16:
		return 0, 0, fmt.Errorf("header announces a vocabulary of %d", field(3))
	case size != headerSize+2*field(2):
		return 0, 0, fmt.Errorf("header announces %d tokens (%d bytes in all), the file has %d bytes", field(2), headerSize+2*field(2), size)
	}
	return headerSize, field(3), nil
}

// Len is the number of tokens.
func (f *File) Len() int64 { return f.count }

// Vocab is the size of the vocabulary, or 0 when the file does not say.
func (f *File) Vocab() int { return int(f.vocab) }

// Read fills dst with the tokens from position at on.
func (f *File) Read(dst []uint16, at int64) error {
	if at < 0 || int64(len(dst)) > f.count || at > f.count-int64(len(dst)) {
		return fmt.Errorf("token shard: tokens [%d, %d) asked for, there are %d", at, at+int64(len(dst)), f.count)
	}
	raw := make([]byte, 2*len(dst))
	if _, err := io.ReadFull(io.NewSectionReader(f.tokens, 2*at, int64(len(raw))), raw); err != nil {
		return fmt.Errorf("token shard: token %d: %w", at, err)
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return nil
}

// Writer collects the tokens of a new shard, which appears under its name with Commit.
type Writer struct {
	fsys  atomicfile.FS
	name  string
	spool *atomicfile.Spool
	count int64
	vocab int
}

// Create begins a shard with a header that states the vocabulary's size (0 to leave it open).
// Nothing called name changes before Commit.
func Create(fsys atomicfile.FS, name string, vocab int) (*Writer, error) {
	spool, err := atomicfile.NewSpool(fsys, name)
	if err != nil {
		return nil, err
	}
	return &Writer{fsys, name, spool, 0, vocab}, nil
}

// Append adds tokens.
func (w *Writer) Append(tokens []uint16) error {
	w.count += int64(len(tokens))
	if w.count > math.MaxInt32 {
		return fmt.Errorf("%s: a shard holds at most %d tokens; split the text over several", w.name, math.MaxInt32)
	}
	raw := make([]byte, 0, 2*len(tokens))
	for _, t := range tokens {
		raw = binary.LittleEndian.AppendUint16(raw, t)
	}
	_, err := w.spool.Write(raw)
	return err
}

// Len is the number of tokens so far.
func (w *Writer) Len() int64 { return w.count }

// Commit makes the shard durable and gives it its name.
func (w *Writer) Commit() error {
	err := atomicfile.WriteFile(w.fsys, w.name, func(out io.Writer) error {
		header := make([]byte, headerSize)
		for i, v := range []int64{magic, version, w.count, int64(w.vocab)} {
			binary.LittleEndian.PutUint32(header[4*i:], uint32(v))
		}
		if _, err := out.Write(header); err != nil {
			return err
		}
		return w.spool.CopyTo(out)
	})
	if removeErr := w.spool.Remove(); err == nil {
		err = removeErr
	}
	return err
}

// Discard gives up the shard. After Commit it does nothing.
func (w *Writer) Discard() error { return w.spool.Remove() }
