package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
)

func openBytes(b []byte) (*File, error) { return Open(bytes.NewReader(b), int64(len(b))) }

// TestReadsTheReferenceLibrary reads the file that testdata/make.py made; its comment says what it holds.
func TestReadsTheReferenceLibrary(t *testing.T) {
	b, err := os.ReadFile("testdata/reference.safetensors")
	require.NoError(t, err)
	f, err := openBytes(b)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": "np", "π": "3.14"}, f.Metadata)
	require.Len(t, f.Tensors, 16)
	for _, info := range f.Tensors {
		x, err := f.Read(info.Name)
		require.NoError(t, err)
		want := make([]float64, 6)
		for i := range want {
			switch {
			case x.DType == formats.Bool:
				want[i] = float64(i % 2)
			case x.DType.IsFloat():
				want[i] = 1.5*float64(i) - 4
			case info.Name[0] == 'i':
				want[i] = float64(i - 3)
			default:
				want[i] = float64(i)
			}
		}
		shape := []int64{2, 3}
		switch info.Name {
		case "rank0":
			want, shape = []float64{2.5}, []int64{}
		case "empty":
			want, shape = []float64{}, []int64{2, 0, 3}
		case `quote " and umlaut ä`:
			want, shape = []float64{1, 2}, []int64{2}
		}
		require.Equal(t, shape, x.Shape, info.Name)
		require.Equal(t, want, x.Float64s(), info.Name)
	}
	_, err = f.Read("nobody")
	require.ErrorContains(t, err, `no tensor "nobody"`)
}

// sample is a small file with everything in it.
func sample(t testing.TB) []byte {
	var file bytes.Buffer
	err := Write(&file, []Entry{
		Of("c", formats.Tensor{DType: formats.U8, Shape: []int64{3}, Data: []byte{7, 8, 9}}),
		Of("b", formats.FromFloat32s([]float32{2.5})),
		Of("a", formats.FromFloat64s([]float64{1, 2, 3, 4}, 2, 2)),
		Of("none", formats.FromFloat32s(nil, 4, 0)),
	}, map[string]string{"step": "12"})
	require.NoError(t, err)
	return file.Bytes()
}

func TestWriteIsReadBack(t *testing.T) {
	b := sample(t)
	f, err := openBytes(b)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"step": "12"}, f.Metadata)
	var order []string
	for _, info := range f.Tensors {
		order = append(order, info.Name)
	}
	require.Equal(t, []string{"a", "b", "none", "c"}, order)
	require.Zero(t, binary.LittleEndian.Uint64(b)%8, "data is aligned")
	x, err := f.Read("b")
	require.NoError(t, err)
	require.Equal(t, []float64{2.5}, x.Float64s())
	require.Empty(t, x.Shape)
	info, _ := f.Lookup("c")
	require.ErrorContains(t, f.ReadInto(info, make([]byte, 2)), "has 3 bytes, asked for 2")
	dst := make([]byte, 3)
	require.NoError(t, f.ReadInto(info, dst))
	require.Equal(t, []byte{7, 8, 9}, dst)
}

func TestNoTensors(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, Write(&file, nil, nil))
	f, err := openBytes(file.Bytes())
	require.NoError(t, err)
	require.Empty(t, f.Tensors)
	require.Nil(t, f.Metadata)
}

func TestWriteRefuses(t *testing.T) {
	one := formats.FromFloat32s([]float32{1}, 1)
	bytesOf := func(b ...byte) func(io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(b); return err }
	}
	for _, c := range []struct {
		entries []Entry
		meta    map[string]string
		reason  string
	}{
		{[]Entry{Of("x", one), Of("x", one)}, nil, "taken"},
		{[]Entry{Of("__metadata__", one)}, nil, "reserved"},
		{[]Entry{Of("\xff", one)}, nil, "not UTF-8"},
		{nil, map[string]string{"k": "\xff"}, "not UTF-8"},
		{[]Entry{{"x", formats.F32, []int64{1}, bytesOf(1, 2, 3)}}, nil, "1 of 4 bytes were not written"},
		{[]Entry{{"x", formats.F32, []int64{1}, bytesOf(1, 2, 3, 4, 5)}}, nil, "1 bytes too many"},
		{[]Entry{{"x", formats.F32, []int64{1 << 62}, bytesOf()}}, nil, "overflows"},
		{[]Entry{{"x", formats.U8, []int64{1 << 62}, bytesOf()}, {"y", formats.U8, []int64{1 << 62}, bytesOf()}}, nil, "overflows"},
		{[]Entry{{"x", formats.Invalid, nil, bytesOf()}}, nil, "no size"},
		{[]Entry{{"x", formats.F32, nil, func(io.Writer) error { return errors.New("device lost") }}}, nil, "device lost"},
	} {
		require.ErrorContains(t, Write(io.Discard, c.entries, c.meta), c.reason)
	}
	require.Error(t, Write(&brokenWriter{limit: 4}, []Entry{Of("x", one)}, nil), "disk full in the header")
	require.Error(t, Write(&brokenWriter{limit: 70}, []Entry{Of("x", formats.FromFloat32s(make([]float32, 9), 9))}, nil), "disk full in the data")
}

type brokenWriter struct{ limit int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.limit -= len(p); w.limit < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func file(header, data string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + data
}

func f32(begin, end int) string {
	return fmt.Sprintf(`{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}`, (end-begin)/4, begin, end)
}

// hostile are files that must be refused, with a part of the reason.
var hostile = []struct{ name, file, reason string }{
	{"empty", "", "too short"},
	{"7 bytes", "1234567", "too short"},
	{"no header", file("", ""), "does not begin with '{'"},
	{"header of 2^64-1", "\xff\xff\xff\xff\xff\xff\xff\xff{}", "longer than"},
	{"header of 100 MB in a small file", "\x00\xe1\xf5\x05\x00\x00\x00\x00{}", "does not fit"},
	{"header longer than the file", "\x03\x00\x00\x00\x00\x00\x00\x00{}", "does not fit"},
	{"leading space", file(" {}", ""), "does not begin with '{'"},
	{"an array", file("[]", ""), "does not begin with '{'"},
	{"not UTF-8", file("{\"\xff\":1}", ""), "not UTF-8"},
	{"cut JSON", file(`{"x":`, ""), "ends inside"},
	{"bad JSON", file(`{"x":+}`, ""), "not JSON"},
	{"text after", file(`{} {}`, ""), "text follows"},
	{"deep nesting", file(`{"x":`+strings.Repeat("[", 1<<20), ""), "expected '{'"},
	{"deep shape", file(`{"x":{"shape":`+strings.Repeat("[", 1<<20), ""), "expected a number"},
	{"deep metadata", file(`{"__metadata__":{"k":`+strings.Repeat("{", 1<<20), ""), "expected a string"},
	{"metadata of a number", file(`{"__metadata__":{"k":1}}`, ""), "expected a string"},
	{"metadata key twice", file(`{"__metadata__":{"k":"1","k":"2"}}`, ""), "given twice"},
	{"tensor twice", file(`{"x":`+f32(0, 4)+`,"x":`+f32(4, 8)+`}`, "12345678"), "given twice"},
	{"equal after escapes", file(`{"x":`+f32(0, 4)+`,"\u0078":`+f32(4, 8)+`}`, "12345678"), "given twice"},
	{"dtype twice", file(`{"x":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}}`, "1234"), "given twice"},
	{"unknown key", file(`{"x":{"color":1}}`, ""), "unknown key"},
	{"no offsets", file(`{"x":{"dtype":"F32","shape":[1]}}`, "1234"), "needs dtype, shape and data_offsets"},
	{"bad dtype", file(`{"x":{"dtype":"F33","shape":[],"data_offsets":[0,4]}}`, "1234"), `"F33" is not supported`},
	{"lower-case dtype", file(`{"x":{"dtype":"f32","shape":[],"data_offsets":[0,4]}}`, "1234"), "not supported"},
	{"dtype of a number", file(`{"x":{"dtype":32,"shape":[],"data_offsets":[0,4]}}`, "1234"), "expected a string"},
	{"negative dimension", file(`{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, "1234"), "not an integer"},
	{"fractional dimension", file(`{"x":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}`, "1234"), "not an integer"},
	{"exponent", file(`{"x":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}}`, "1234"), "not an integer"},
	{"2^63", file(`{"x":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}}`, "1234"), "not an integer"},
	{"shape overflows to 4", file(`{"x":{"dtype":"U8","shape":[4294967297,4294967297],"data_offsets":[0,4]}}`, "1234"), "overflows"},
	{"65 dimensions", file(`{"x":{"dtype":"U8","shape":[1`+strings.Repeat(",1", 64)+`],"data_offsets":[0,1]}}`, "1"), "more than 64"},
	{"three offsets", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}`, "1"), "more than 2"},
	{"one offset", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, "1"), "has 1 numbers"},
	{"offsets reversed", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, "1"), "before it begins"},
	{"range too short", file(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, "1234"), "needs 8 bytes"},
	{"overlap", file(`{"x":`+f32(0, 8)+`,"y":`+f32(4, 12)+`}`, "123456789abc"), `"x" and "y" overlap at byte 4`},
	{"same range", file(`{"x":`+f32(0, 4)+`,"y":`+f32(0, 4)+`}`, "1234"), "overlap"},
	{"empty tensor inside another", file(`{"x":`+f32(0, 8)+`,"y":`+f32(4, 4)+`}`, "12345678"), "overlap"},
	{"hole at the front", file(`{"x":`+f32(4, 8)+`}`, "12345678"), "bytes [0, 4), before tensor"},
	{"hole", file(`{"x":`+f32(0, 4)+`,"y":`+f32(8, 12)+`}`, "123456789abc"), "belong to no tensor"},
	{"trailing bytes", file(`{"x":`+f32(0, 4)+`}`, "12345"), "1 bytes follow"},
	{"cut short", file(`{"x":`+f32(0, 4)+`}`, "123"), "cut short"},
	{"range beyond 2^62", file(`{"x":{"dtype":"U8","shape":[4611686018427387904],"data_offsets":[0,4611686018427387904]}}`, ""), "cut short"},
}

func TestRefusesWithTheReason(t *testing.T) {
	for _, c := range hostile {
		_, err := openBytes([]byte(c.file))
		require.ErrorContains(t, err, c.reason, c.name)
		require.Less(t, len(err.Error()), 400, c.name)
	}
}

// TestAnnouncedSizesCostNothing: memory follows the bytes that exist, not the lengths announced.
func TestAnnouncedSizesCostNothing(t *testing.T) {
	for _, c := range hostile {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = openBytes([]byte(c.file))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*len(c.file)+64<<10), c.name)
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	b := sample(t)
	for n := range b {
		_, err := openBytes(b[:n])
		require.Error(t, err, "first %d bytes", n)
	}
}

// FuzzOpen: whatever is accepted can be read whole and survives a round trip.
func FuzzOpen(f *testing.F) {
	b, err := os.ReadFile("testdata/reference.safetensors")
	require.NoError(f, err)
	f.Add(b)
	f.Add(sample(f))
	for _, c := range hostile {
		if len(c.file) < 1<<12 {
			f.Add([]byte(c.file))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := openBytes(b)
		if err != nil {
			return
		}
		var entries []Entry
		for _, info := range file.Tensors {
			x, err := file.Read(info.Name)
			require.NoError(t, err)
			require.NoError(t, x.Check())
			entries = append(entries, Of(info.Name, x))
		}
		var again bytes.Buffer
		require.NoError(t, Write(&again, entries, file.Metadata))
		second, err := openBytes(again.Bytes())
		require.NoError(t, err)
		require.Equal(t, file.Metadata, second.Metadata)
		for _, e := range entries {
			x, _ := file.Read(e.Name)
			y, err := second.Read(e.Name)
			require.NoError(t, err)
			require.Equal(t, x, y)
		}
	})
}
