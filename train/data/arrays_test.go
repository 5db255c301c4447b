package data

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/formats/npy"
	"blutrain/formats/safetensors"
)

// pairs is what a model takes in these tests: x of two numbers for each sample, and its label.
func pairs(b int64) []artifact.Value {
	return []artifact.Value{{Name: "x", DType: formats.F32, Shape: []int64{b, 2}}, {Name: "label", DType: formats.I32, Shape: []int64{b}}}
}

// numbered is n samples: sample i is x = (i, -i), label = i, beginning at first.
func numbered(first, n int) map[string]formats.Tensor {
	var x []float32
	var label []int32
	for i := first; i < first+n; i++ {
		x, label = append(x, float32(i), -float32(i)), append(label, int32(i))
	}
	return map[string]formats.Tensor{"x": formats.FromFloat32s(x, int64(n), 2), "label": formats.FromInt32s(label, int64(n))}
}

func arrayFile(t *testing.T, tensors map[string]formats.Tensor) string {
	t.Helper()
	var entries []safetensors.Entry
	for name, x := range tensors {
		entries = append(entries, safetensors.Of(name, x))
	}
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, entries, nil))
	return file(t, filepath.Join(t.TempDir(), "data.safetensors"), b.Bytes())
}

func npyFile(t *testing.T, path string, x formats.Tensor) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, x))
	return file(t, path, b.Bytes())
}

func file(t *testing.T, path string, content []byte) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}

func openArrays(t *testing.T, names ...string) Source {
	t.Helper()
	s, err := Open(names)
	require.NoError(t, err)
	require.IsType(t, &Arrays{}, s)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func loadFrom(t *testing.T, s Source, c Config, from *State) *Loader {
	t.Helper()
	l, err := NewLoader(s, c, from)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// labels is the labels of a batch, whose rows of x belong to them.
func labels(t *testing.T, b Batch) []int32 {
	t.Helper()
	x, list := b.Inputs["x"].Float64s(), ints(b, "label")
	require.Equal(t, []int64{int64(len(list)), 2}, b.Inputs["x"].Shape)
	for i, label := range list {
		require.Equal(t, []float64{float64(label), -float64(label)}, x[2*i:2*i+2])
	}
	return list
}

// Samples come from one file, from several, and from one for each input, in the same order.
func TestArraysInFiles(t *testing.T) {
	dir := t.TempDir()
	for name, x := range numbered(0, 9) {
		npyFile(t, filepath.Join(dir, name+".npy"), x)
	}
	file(t, filepath.Join(dir, "readme.txt"), []byte("not data"))
	for name, files := range map[string][]string{
		"safetensors": {arrayFile(t, numbered(0, 9))},
		"two files":   {arrayFile(t, numbered(0, 4)), arrayFile(t, numbered(4, 5))},
		"npy":         {filepath.Join(dir, "label.npy"), filepath.Join(dir, "x.npy")},
		"folder":      {dir},
	} {
		l := loadFrom(t, openArrays(t, files...), Config{Inputs: pairs(4), Ranks: 1, Sequential: true}, nil)
		require.Equal(t, int64(2), l.Batches(), name)
		require.Equal(t, []int32{0, 1, 2, 3}, labels(t, next(t, l)), name)
		require.Equal(t, []int32{4, 5, 6, 7}, labels(t, next(t, l)), name)
		require.Equal(t, []int32{8, 0, 1, 2}, labels(t, next(t, l)), name)
		require.Equal(t, State{Row: 12, Windows: 9}, l.State(), name)
	}
}

// Arrays are shuffled as tokens are: the same order on every number of ranks, every sample once in an epoch, and the very next batch
// after a state, also on other ranks.
func TestArraysAreShuffledLikeTokens(t *testing.T) {
	a := openArrays(t, arrayFile(t, numbered(0, 10)), arrayFile(t, numbered(10, 15)))
	all := func(b int64, ranks int, batches int, from *State) (list []int32, after State) {
		var loaders []*Loader
		for rank := range ranks {
			loaders = append(loaders, loadFrom(t, a, Config{Inputs: pairs(b), Rank: rank, Ranks: ranks, Seed: 7}, from))
		}
		for range batches {
			for _, l := range loaders {
				list = append(list, labels(t, next(t, l))...)
			}
		}
		return list, loaders[0].State()
	}
	want, _ := all(1, 1, 72, nil)
	s := openShards(t, tokenFile(t, "a.bin", 0, 4*25+1, 1000)) // as many windows, of which number i begins with token 4 i
	windows := rows(t, s, Config{Inputs: Tokens(1, 4), Vocab: 1000, Ranks: 1, Seed: 7}, 72)
	for i, w := range windows {
		require.Equal(t, w/4, want[i], "the order of windows")
	}
	for _, c := range []struct {
		b       int64
		ranks   int
		batches int
	}{{12, 1, 6}, {2, 3, 12}, {1, 8, 9}, {4, 6, 3}} {
		got, _ := all(c.b, c.ranks, c.batches, nil)
		require.Equal(t, want, got, "%d ranks", c.ranks)
	}
	for stop := range 12 {
		first, state := all(2, 1, stop+1, nil)
		rest, _ := all(1, 2, 24-stop, &state)
		require.Equal(t, want[:50], slices.Concat(first, rest)[:50], "stopped after %d batches", stop+1)
	}
}

func TestArraysFingerprint(t *testing.T) {
	of := func(names ...string) string {
		f, err := openArrays(t, names...).Fingerprint()
		require.NoError(t, err)
		return f
	}
	a := arrayFile(t, numbered(0, 9))
	require.Equal(t, of(a), of(arrayFile(t, numbered(0, 9))))
	all := []string{of(a), of(arrayFile(t, numbered(1, 9))), of(arrayFile(t, numbered(0, 8))), of(arrayFile(t, numbered(0, 4)), arrayFile(t, numbered(4, 5)))}
	slices.Sort(all)
	require.Len(t, slices.Compact(all), 4)
}

func TestArraysThatDoNotFit(t *testing.T) {
	dir := t.TempDir()
	with := func(change func(m map[string]formats.Tensor)) []string {
		m := numbered(0, 9)
		change(m)
		return []string{arrayFile(t, m)}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	empty := at("empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	tokens := tokenFile(t, "a.bin", 0, 100, 100)
	good := numbered(0, 9)
	var fortran bytes.Buffer
	require.NoError(t, npy.Write(&fortran, good["x"]))
	for _, c := range []struct {
		name   string
		files  []string
		reason string
	}{
		{"missing", with(func(m map[string]formats.Tensor) { m["labels"] = m["label"]; delete(m, "label") }),
			"the data has no label, which the model takes (i32[N]); it has labels: i32[9], x: f32[9, 2]; did you mean labels?"},
		{"type", with(func(m map[string]formats.Tensor) { m["label"] = formats.FromFloat32s(make([]float32, 9), 9) }), "data.safetensors: label is f32[9], the model takes i32[N] for N samples"},
		{"shape", with(func(m map[string]formats.Tensor) { m["x"] = formats.FromFloat32s(make([]float32, 27), 9, 3) }), "x is f32[9, 3], the model takes f32[N, 2] for N samples"},
		{"scalar", with(func(m map[string]formats.Tensor) { m["label"] = formats.FromInt32s([]int32{1}) }), "label is i32, the model takes i32[N]"},
		{"number of samples", with(func(m map[string]formats.Tensor) { m["label"] = numbered(0, 8)["label"] }), "data.safetensors has 9 samples of x, "},
		{"number of files", []string{arrayFile(t, good), npyFile(t, at("x.npy"), good["x"])}, "x is in 2 files, label in 1"},
		{"too few", []string{arrayFile(t, numbered(0, 3))}, "too little data: 3 samples, a batch of B = 4 on 1 ranks takes 4"},
		{"tokens", []string{tokens}, "the model takes x: f32[4, 2], label: i32[4]; files of tokens have tokens, targets: i32[B, S]"},
		{"mixed", []string{tokens, arrayFile(t, good)}, "a.bin is a file of tokens, "},
		{"no files", nil, "no files of data"},
		{"nothing in a folder", []string{empty}, "empty: the folder has no .npy and no .safetensors files"},
		{"not there", []string{at("none.npy")}, "no such file"},
		{"damaged", []string{file(t, at("bad.npy"), []byte("bad"))}, "bad.npy: npy: "},
		{"cut short", []string{file(t, at("short.npy"), fortran.Bytes()[:fortran.Len()-1])}, "short.npy: npy: data ends after 71 of 72 bytes"},
		{"too long", []string{file(t, at("long.npy"), append(slices.Clone(fortran.Bytes()), 0))}, "long.npy: npy: bytes follow the array"},
		{"Fortran order", []string{file(t, at("fortran.npy"), bytes.Replace(fortran.Bytes(), []byte("False"), []byte("True "), 1))}, "fortran.npy: npy: the array is in Fortran order"},
		{"big-endian", []string{file(t, at("big.npy"), bytes.Replace(fortran.Bytes(), []byte("<f4"), []byte(">f4"), 1))}, "big.npy: npy: the array is big-endian"},
	} {
		s, err := Open(c.files)
		if err == nil {
			_, err = NewLoader(s, Config{Inputs: pairs(4), Vocab: 100, Ranks: 1}, nil)
			require.NoError(t, s.Close(), c.name)
		}
		require.ErrorContains(t, err, c.reason, c.name)
	}
	_, err := NewLoader(openArrays(t, arrayFile(t, good)), Config{Inputs: pairs(4), Ranks: 1}, &State{Windows: 9, S: 3})
	require.EqualError(t, err, "the data is not the data of the run to be continued: 9 samples and seed 0, there 9 windows of S = 3 and seed 0 (row 0)")
	mask := append(pairs(4), artifact.Value{Name: "mask", DType: formats.F32, Shape: []int64{2, 2}})
	_, err = NewLoader(openArrays(t, arrayFile(t, good)), Config{Inputs: mask, Ranks: 1}, nil)
	require.EqualError(t, err, "input mask is f32[2, 2]: it has not a row for each of B = 4 samples")
}

// A byte that is no boolean is found when its sample is read.
func TestArraysOfBooleans(t *testing.T) {
	x := formats.Tensor{DType: formats.Bool, Shape: []int64{3}, Data: []byte{0, 1, 1}}
	path := npyFile(t, filepath.Join(t.TempDir(), "on.npy"), x)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	content[len(content)-1] = 2
	file(t, path, content)
	c := Config{Inputs: []artifact.Value{{Name: "on", DType: formats.Bool, Shape: []int64{1}}}, Ranks: 1, Sequential: true}
	l := loadFrom(t, openArrays(t, path), c, nil)
	require.Equal(t, []byte{0}, next(t, l).Inputs["on"].Data)
	require.Equal(t, []byte{1}, next(t, l).Inputs["on"].Data)
	_, err = l.Next()
	require.ErrorContains(t, err, "on.npy: on of sample 2 has a byte above 1")
}

// Data of tokens and targets may be arrays, too.
func TestTokensAsArrays(t *testing.T) {
	x := formats.FromInt32s([]int32{1, 2, 3, 4, 5, 6}, 3, 2)
	path := arrayFile(t, map[string]formats.Tensor{"tokens": x, "targets": x})
	l := loadFrom(t, openArrays(t, path), Config{Inputs: Tokens(2, 2), Vocab: 10, Ranks: 1, Sequential: true}, nil)
	require.Equal(t, uint32(4), binary.LittleEndian.Uint32(next(t, l).Inputs["targets"].Data[12:]))
}

// Of a folder with a file that is none of its kind the error names the file.
func TestBadFilesInFolders(t *testing.T) {
	for _, name := range []string{"b.npy", "b.safetensors"} {
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte("neither"), 0o666))
		_, err := OpenArrays([]string{dir})
		require.ErrorContains(t, err, file+": ")
		require.NotContains(t, err.Error(), dir+": ")
	}
}
