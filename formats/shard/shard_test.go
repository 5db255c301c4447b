package shard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats/atomicfile"
	"blutrain/formats/atomicfile/crashfs"
)

// llmc is a shard as llm.c's data_common.py lays it out.
func llmc(count int32, tokens ...uint16) []byte {
	b := make([]byte, 0, 1024)
	for _, v := range []int32{20240520, 1, count} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	b = append(b, make([]byte, 1024-len(b))...)
	return append(b, bare(tokens...)...)
}

func bare(tokens ...uint16) []byte {
	var b []byte
	for _, v := range tokens {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func with(b []byte, at int, v int32) []byte {
	b = slices.Clone(b)
	binary.LittleEndian.PutUint32(b[at:], uint32(v))
	return b
}

func open(b []byte) (*File, error) { return Open(bytes.NewReader(b), int64(len(b))) }

func TestReadBothKinds(t *testing.T) {
	for _, b := range [][]byte{llmc(3, 50256, 1, 65535), bare(50256, 1, 65535)} {
		f, err := open(b)
		require.NoError(t, err)
		require.Equal(t, int64(3), f.Len())
		dst := make([]uint16, 2)
		require.NoError(t, f.Read(dst, 1))
		require.Equal(t, []uint16{1, 65535}, dst)
		require.ErrorContains(t, f.Read(dst, 2), "tokens [2, 4) asked for, there are 3")
		require.Error(t, f.Read(dst, -1))
		require.Error(t, f.Read(dst, 1<<62))
		require.NoError(t, f.Read(nil, 3))
	}
}

var hostile = []struct {
	name   string
	file   []byte
	reason string
}{
	{"odd size", []byte{1, 2, 3}, "not a whole number of uint16"},
	{"32-bit tokens", with(llmc(1, 7), 0, 20240801), "32-bit tokens"},
	{"version 2", with(llmc(1, 7), 4, 2), "version 2 is not supported"},
	{"negative count", with(llmc(1, 7), 8, -1), "announces -1 tokens"},
	{"more announced than there", with(llmc(1, 7), 8, 1<<30), "announces 1073741824 tokens"},
	{"trailing tokens", llmc(1, 7, 8), "announces 1 tokens (1026 bytes in all), the file has 1028"},
	{"vocabulary of 70000", with(llmc(1, 7), 12, 70000), "vocabulary of 70000"},
	{"header cut short", llmc(0)[:1023], "header ends after 1023"},
	{"magic only", llmc(0)[:4], "header ends after 4"},
}

func TestRefusesWithTheReason(t *testing.T) {
	for _, c := range hostile {
		_, err := open(c.file)
		require.ErrorContains(t, err, c.reason, c.name)
	}
}

func TestWriter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.bin")
	w, err := Create(atomicfile.OS{}, name, 50257)
	require.NoError(t, err)
	require.NoError(t, w.Append([]uint16{1, 2}))
	require.NoError(t, w.Append([]uint16{3}))
	require.NoFileExists(t, name)
	require.Equal(t, int64(3), w.Len())
	require.NoError(t, w.Commit())
	require.NoError(t, w.Discard())
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, with(llmc(3, 1, 2, 3), 12, 50257), b)
	f, err := open(b)
	require.NoError(t, err)
	require.Equal(t, 50257, f.Vocab())
	entries, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	require.Len(t, entries, 1)

	w.count = 1<<31 - 1
	require.ErrorContains(t, w.Append([]uint16{1}), "at most 2147483647 tokens")
}

// rewrite makes a shard and then replaces it.
func rewrite(f *crashfs.FS) (acknowledged int, err error) {
	for i := 1; i <= 2; i++ {
		w, err := Create(f, "x.bin", 0)
		if err != nil {
			return acknowledged, err
		}
		if err := w.Append(slices.Repeat([]uint16{uint16(i)}, 10*i)); err != nil {
			return acknowledged, err
		}
		if err := w.Commit(); err != nil {
			return acknowledged, err
		}
		acknowledged = i
	}
	return acknowledged, nil
}

func wholeShard(f *crashfs.FS, acknowledged int) error {
	b, err := atomicfile.ReadAll(f, "x.bin", 1<<20)
	if errors.Is(err, os.ErrNotExist) && acknowledged == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := open(b)
	if err != nil {
		return err
	}
	if n := int(s.Len()); n%10 != 0 || n == 0 || n/10 < acknowledged {
		return fmt.Errorf("shard of %d tokens", n)
	}
	return nil
}

func TestWriterSurvivesEveryCrash(t *testing.T) {
	_, err := crashfs.Explore(rewrite, wholeShard)
	require.NoError(t, err)
	mutants, unnoticed, err := crashfs.Mutants(rewrite, wholeShard)
	require.NoError(t, err)
	require.Equal(t, 6, mutants)
	require.Empty(t, unnoticed)
}

func TestFullDisk(t *testing.T) {
	space := int64(2000)
	f := &crashfs.FS{Space: &space}
	w, err := Create(f, "x.bin", 0)
	require.NoError(t, err)
	require.NoError(t, w.Append(make([]uint16, 900)))
	require.ErrorIs(t, w.Commit(), syscall.ENOSPC)
	entries, err := f.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, entries)
}

func FuzzOpen(f *testing.F) {
	f.Add(llmc(3, 1, 2, 3))
	f.Add(bare(1, 2, 3))
	for _, c := range hostile {
		f.Add(c.file)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := open(b)
		if err != nil {
			return
		}
		all := make([]uint16, s.Len())
		require.NoError(t, s.Read(all, 0))
		require.Error(t, s.Read(make([]uint16, 1), s.Len()))
	})
}
