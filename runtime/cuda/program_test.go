package cuda

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/runtime"
)

// The structures of the driver's memory mapping have the sizes and places of its header.
func TestMappingStructures(t *testing.T) {
	require.Equal(t, uintptr(32), unsafe.Sizeof(allocation{}))
	require.Equal(t, uintptr(8), unsafe.Offsetof(allocation{}.where))
	require.Equal(t, uintptr(16), unsafe.Offsetof(allocation{}.security))
	require.Equal(t, uintptr(12), unsafe.Sizeof(accessTo{}))
}

// Assembled kernels are kept, found again, and assembled again where the file is damaged, which is said once.
func TestCubinsAreKept(t *testing.T) {
	var warnings []string
	made := 0
	cache := &cubins{folder: filepath.Join(t.TempDir(), "a", "b"), target: "driver 1, GPU", warn: func(s string) { warnings = append(warnings, s) }}
	get := func(ptx string) []byte {
		b, err := cache.get([]byte(ptx), func() ([]byte, error) { made++; return []byte("cubin of " + ptx), nil })
		require.NoError(t, err)
		return b
	}
	require.Equal(t, "cubin of x", string(get("x")))
	require.Equal(t, "cubin of y", string(get("y")))
	require.Equal(t, "cubin of x", string(get("x")))
	require.Equal(t, 2, made)

	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { b[40] ^= 1; return b },
		func([]byte) []byte { return nil },
	} {
		name := cache.file([]byte("x"))
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, damage(bytes.Clone(raw)), 0o666))
		made, warnings = 0, nil
		require.Equal(t, "cubin of x", string(get("x")))
		require.Equal(t, "cubin of x", string(get("x")))
		require.Equal(t, 1, made)
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0], "is damaged")
	}
	other := *cache
	other.target = "driver 2, GPU"
	require.NotEqual(t, cache.file([]byte("x")), other.file([]byte("x")), "another driver has its own")
}

// A folder that can't be written to costs a warning, nothing else.
func TestCubinsWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	var warnings []string
	cache := &cubins{folder: filepath.Join(file, "x"), warn: func(s string) { warnings = append(warnings, s) }}
	for range 2 {
		b, err := cache.get([]byte("x"), func() ([]byte, error) { return []byte("y"), nil })
		require.NoError(t, err)
		require.Equal(t, "y", string(b))
	}
	require.Len(t, warnings, 1)
}

// An artifact for another GPU, or a driver that is too old, is one clear line.
func TestSuits(t *testing.T) {
	h200 := &Device{Ordinal: 1, Name: "NVIDIA H200", Major: 9}
	ada := &Device{Name: "NVIDIA L4", Major: 8, Minor: 9}
	for _, c := range []struct {
		arch   string
		device *Device
		driver int
		want   string
	}{
		{"sm_90a", h200, 12080, ""},
		{"sm_80", h200, 12000, ""},
		{"sm_89", ada, 13000, ""},
		{"sm_90a", ada, 13000, "the artifact was compiled for sm_90a; GPU 0 (NVIDIA L4) is of compute capability 8.9: compile it with another --arch"},
		{"sm_90a", &Device{Name: "B200", Major: 10}, 13000, "the artifact was compiled for sm_90a; GPU 0 (B200) is of compute capability 10.0: compile it with another --arch"},
		{"sm_89", &Device{Name: "A100", Major: 8}, 13000, "the artifact was compiled for sm_89; GPU 0 (A100) is of compute capability 8.0: compile it with another --arch"},
		{"sm_80", h200, 11080, "the NVIDIA driver is too old: it knows CUDA 11.8, kernels need 12.0"},
		{"sm_10", h200, 13000, `the artifact was compiled for arch "sm_10", which this program doesn't know`},
	} {
		err := suits(c.arch, c.device, c.driver)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want)
	}
}

// Strided memory is read row by row.
func TestGather(t *testing.T) {
	src := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	got := make([]byte, 6)
	require.Empty(t, gather(got, src, []int64{2, 3}, []int64{6, 2}, 1))
	require.Equal(t, []byte{0, 2, 4, 6, 8, 10}, got)
	require.Empty(t, gather(got, src, []int64{3, 1}, []int64{2, 1}, 2))
	require.Equal(t, []byte{0, 1, 4, 5, 8, 9}, got)
	require.Empty(t, gather(got[:2], src, nil, nil, 2))
}

// A program that isn't one is refused before a GPU is asked for.
func TestDamagedProgram(t *testing.T) {
	kernel := `exec.kernel @k {file = "kernels/k.ptx", entry = "k", outs = 1 : i64, refs = [memref<4xf32>], blocks = 1 : i64, threads = 32 : i64}`
	for text, want := range map[string]string{
		"": "the artifact has no program.mlir",
		"builtin.module @m {\n" + strings.Replace(kernel, "outs = 1", "outs = 2", 1) + "\n}":           "writes 2 of 1 references",
		"builtin.module @m {\n" + strings.Replace(kernel, "threads = 32", "threads = 4096", 1) + "\n}": "threads is 4096, at most 1024",
		"builtin.module @m {\n" + strings.Replace(kernel, "[memref<4xf32>]", "[f32]", 1) + "\n}":       "reference 0 is no memref type",
	} {
		a := &artifact.Artifact{Manifest: artifact.Manifest{Target: "cuda"}}
		if text != "" {
			a.Files = []artifact.File{{Name: artifact.ProgramName, Data: []byte(text)}}
		}
		_, err := OpenProgram(a, 0, runtime.Options{})
		require.ErrorContains(t, err, want)
	}
}
