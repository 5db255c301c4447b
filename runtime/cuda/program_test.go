package cuda

import (
	"errors"
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

// What the assembler says of slow kernels is found among the rest.
func TestPerformanceLoss(t *testing.T) {
	m := &Module{Log: "ptxas info    : 0 bytes gmem\nptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored.\nptxas info    : Used 168 registers\n"}
	require.Equal(t, "ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored.", m.performanceLoss())
	m.Log = "ptxas info    : Used 168 registers\n"
	require.Empty(t, m.performanceLoss())
}

// Machine code that the driver doesn't take costs a warning: the kernel's text is assembled.
func TestCodeThatIsRefused(t *testing.T) {
	var warnings []string
	p := &program{artifact: &artifact.Artifact{Files: []artifact.File{{Name: "kernels/k.ptx", Data: []byte("text")}, {Name: "kernels/k.cubin", Data: []byte("code")}, {Name: "kernels/l.ptx", Data: []byte("other")}}},
		warn: func(s string) { warnings = append(warnings, s) }}
	var loaded []string
	load := func(name string, code []byte) (*Module, error) {
		if loaded = append(loaded, string(code)); string(code) == "code" && len(warnings) == 0 && name == "kernels/k.ptx" {
			return nil, errors.New("no binary for this GPU")
		}
		return &Module{Name: name}, nil
	}
	for _, file := range []string{"kernels/k.ptx", "kernels/l.ptx", "kernels/k.ptx"} {
		m, err := p.loadFile(file, load)
		require.NoError(t, err)
		require.Equal(t, file, m.Name)
	}
	require.Equal(t, []string{"code", "text", "other", "code"}, loaded)
	require.Equal(t, []string{"no binary for this GPU; the kernel's text is assembled instead"}, warnings)
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
		{"sm_90a", ada, 13000, "the artifact was compiled for sm_90a; GPU 0 (NVIDIA L4) is of compute capability 8.9: compile it with --arch sm_89"},
		{"sm_90a", &Device{Name: "B200", Major: 10}, 13000, "the artifact was compiled for sm_90a; GPU 0 (B200) is of compute capability 10.0: compile it with --arch sm_89"},
		{"sm_89", &Device{Name: "A100", Major: 8}, 13000, "the artifact was compiled for sm_89; GPU 0 (A100) is of compute capability 8.0: compile it with --arch sm_80"},
		{"sm_80", &Device{Name: "T4", Major: 7, Minor: 5}, 13000, "the artifact was compiled for sm_80; GPU 0 (T4) is of compute capability 7.5: 8.0 and later are supported"},
		{"sm_80", h200, 11080, "the NVIDIA driver is too old, CUDA 12.0 is needed: it knows CUDA 11.8"},
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

// An H200 at 1980 MHz, 6144 bits of memory at 3201 MHz.
func TestRoof(t *testing.T) {
	d := &Device{Major: 9, SMs: 132, clock: 1980000, memoryClock: 3201000, busBits: 6144}
	for precision, want := range map[string]float64{"bf16": 1070.5e12, "tf32": 535.3e12, "fp32": 356.8e12, "fp32-strict": 66.9e12} {
		flops, bytes := d.roof("sm_90a", precision)
		require.InEpsilon(t, want, flops, 1e-3, precision)
		require.InEpsilon(t, 4.917e12, bytes, 1e-3)
	}
	flops, _ := (&Device{Major: 12, SMs: 100, clock: 2000000}).roof("sm_89", "bf16")
	require.Zero(t, flops)
}
