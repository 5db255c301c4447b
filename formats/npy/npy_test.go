package npy

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
)

// TestReadsWhatNumPyWrote reads the files that testdata/make.py made; its comment says what they hold.
func TestReadsWhatNumPyWrote(t *testing.T) {
	value := map[string]func(i int) float64{
		"b": func(i int) float64 { return float64(i % 2) },
		"u": func(i int) float64 { return float64(i) },
		"i": func(i int) float64 { return float64(i - 3) },
		"f": func(i int) float64 { return 1.5*float64(i) - 4 },
	}
	files, err := filepath.Glob("testdata/*.npy")
	require.NoError(t, err)
	require.Len(t, files, 28)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".npy")
		kind := strings.TrimPrefix(name, "b")[:1] // bf16 is a float
		if strings.HasPrefix(name, "b1") {
			kind = "b"
		}
		x := readFile(t, file)
		want, shape := []float64{}, []int64{2, 3}
		for i := range 6 {
			want = append(want, value[kind](i))
		}
		switch name {
		case "f4_rank0":
			want, shape = []float64{2.5}, []int64{}
		case "f4_empty":
			want, shape = []float64{}, []int64{2, 0, 3}
		case "i4_fortran3":
			want, shape = []float64{}, []int64{2, 3, 4}
			for i := range 24 {
				want = append(want, float64(i))
			}
		}
		require.NoError(t, x.Check(), name)
		require.Equal(t, shape, x.Shape, name)
		require.Equal(t, want, x.Float64s(), name)
	}
}

// TestWritesWhatNumPyWrites compares byte for byte with NumPy's own files.
func TestWritesWhatNumPyWrites(t *testing.T) {
	for _, name := range []string{"b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "bf16"} {
		file := "testdata/" + name + "_little.npy"
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, Write(&got, readFile(t, file)))
		require.Equal(t, want, got.Bytes(), name)
	}
	for _, file := range []string{"testdata/f4_rank0.npy", "testdata/f4_empty.npy"} {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, Write(&got, readFile(t, file)))
		require.Equal(t, want, got.Bytes(), file)
	}
	require.ErrorContains(t, Write(io.Discard, formats.Tensor{DType: formats.F32, Shape: []int64{2}}), "needs 8 bytes")
}

// TestSeveralArraysInOneFile reads what repeated np.save to one file leaves.
func TestSeveralArraysInOneFile(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, Write(&file, formats.FromInt32s([]int32{1, 2}, 2)))
	require.NoError(t, Write(&file, formats.FromInt32s([]int32{3}, 1)))
	all := bytes.Clone(file.Bytes())
	for _, want := range [][]float64{{1, 2}, {3}} {
		x, err := Read(&file)
		require.NoError(t, err)
		require.Equal(t, want, x.Float64s())
	}
	_, err := ReadAll(bytes.NewReader(all))
	require.ErrorContains(t, err, "bytes follow the array")
}

// hostile are files that must be refused, with a part of the reason.
var hostile = []struct{ name, file, reason string }{
	{"empty", "", "first 8 bytes"},
	{"other magic", "PK\x03\x04....", "not an npy file"},
	{"version 4", "\x93NUMPY\x04\x00", "version 4.0"},
	{"version 1.1", "\x93NUMPY\x01\x01", "version 1.1"},
	{"no length", "\x93NUMPY\x01\x00\x01", "header's length"},
	{"header cut short", "\x93NUMPY\x01\x00\x40\x00{'descr'", "ends after 8 of 64"},
	{"header of 4 GiB", "\x93NUMPY\x02\x00\xff\xff\xff\xff{", "longer than"},
	{"not a dictionary", withHeader("42"), `expected "{"`},
	{"no shape", withHeader("{'descr': '<f4', 'fortran_order': False}"), `no key "shape"`},
	{"key twice", withHeader("{'descr': '<f4', 'descr': '<f8', }"), "given twice"},
	{"unknown key", withHeader("{'color': '<f4'}"), "unknown key"},
	{"text after", withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x"), "text after"},
	{"not closed", withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)"), `expected "}"`},
	{"object array", withHeader("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}"), "not a supported element type"},
	{"strings", withHeader("{'descr': '<U8', 'fortran_order': False, 'shape': (3,)}"), "not a supported element type"},
	{"complex", withHeader("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}"), "not a supported element type"},
	{"no descr", withHeader("{'descr': '', 'fortran_order': False, 'shape': (3,)}"), "not a supported element type"},
	{"structure", withHeader("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}"), "structured"},
	{"no byte order", withHeader("{'descr': '|f4', 'fortran_order': False, 'shape': (3,)}"), "byte order"},
	{"native order", withHeader("{'descr': '=f4', 'fortran_order': False, 'shape': (3,)}"), "byte order"},
	{"escape", withHeader(`{'descr': '\x3cf4'}`), "quoted string"},
	{"maybe", withHeader("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,)}"), `expected "False"`},
	{"negative", withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}"), "dimension between"},
	{"2^63", withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}"), "dimension between"},
	{"2^62 f4", withHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}"), "overflows"},
	{"2^32 x 2^32", withHeader("{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"), "overflows"},
	{"65 dimensions", withHeader("{'descr': '|u1', 'fortran_order': False, 'shape': (" + strings.Repeat("1,", 65) + ")}"), "more than 64"},
	{"1 TiB announced, 4 bytes there", withHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (1024, 268435456)}") + "abcd", "ends after 4 of"},
	{"boolean of 2", withHeader("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}") + "\x01\x02", "element 1 is 0x02"},
}

func withHeader(dict string) string {
	length := binary.LittleEndian.AppendUint16(nil, uint16(len(dict)))
	return "\x93NUMPY\x01\x00" + string(length) + dict
}

func TestRefusesWithTheReason(t *testing.T) {
	for _, c := range hostile {
		_, err := Read(strings.NewReader(c.file))
		require.ErrorContains(t, err, c.reason, c.name)
		require.Less(t, len(err.Error()), 300, c.name)
	}
}

// TestAnnouncedSizesCostNothing: a header may announce a terabyte; only bytes that exist are given memory.
func TestAnnouncedSizesCostNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, c := range hostile {
		_, _ = Read(strings.NewReader(c.file))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

func TestEveryTruncationIsRefused(t *testing.T) {
	file, err := os.ReadFile("testdata/f4_little.npy")
	require.NoError(t, err)
	for n := range file {
		_, err := Read(bytes.NewReader(file[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "first %d bytes", n)
	}
}

// FuzzRead: whatever is accepted is well-formed and survives a round trip.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.npy")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, c := range hostile {
		f.Add([]byte(c.file))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ReadAll(bytes.NewReader(b))
		if err != nil {
			return
		}
		require.NoError(t, x.Check())
		var again bytes.Buffer
		require.NoError(t, Write(&again, x))
		y, err := ReadAll(&again)
		require.NoError(t, err)
		require.Equal(t, x.Shape, y.Shape)
		require.True(t, bytes.Equal(x.Data, y.Data))
	})
}

func readFile(t *testing.T, file string) formats.Tensor {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	x, err := ReadAll(f)
	require.NoError(t, err, file)
	return x
}
