package cuda

import (
	"math"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

const twoKernels = `builtin.module {
  exec.kernel @first {file = "kernels/first.ptx", entry = "first", outs = 1 : i64, refs = [memref<16xf32>, memref<16xf32>], blocks = 1 : i64, threads = 32 : i64} loc("m.blu":3:5)
  exec.kernel @second {file = "kernels/second.ptx", entry = "second", outs = 1 : i64, refs = [memref<16xf32>, memref<16xf32>], blocks = 1 : i64, threads = 32 : i64} loc("m.blu":4:9)
  exec.state @w {persist = true, role = "param", type = memref<16xf32>}
  exec.func @f attributes {arena = 64 : i64} {
    %x = exec.ref {name = "x", offset = 0 : i64, space = "input"} : () -> memref<16xf32>
    %a = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<16xf32>
    %y = exec.ref {name = "y", offset = 0 : i64, space = "output"} : () -> memref<16xf32>
    exec.launch %x, %a {kernel = @first} : (memref<16xf32>, memref<16xf32>) -> () loc("m.blu":3:5)
    exec.launch %a, %y {kernel = @second} : (memref<16xf32>, memref<16xf32>) -> () loc("m.blu":4:9)
    exec.end
  }
}
`

// standInProgram opens that program on a stand-in for a GPU, on which does is what kernels do: it is given a kernel's name, what its
// references' memory holds from their start on, and may fail as a kernel fails, which is told when something waits.
func standInProgram(t *testing.T, o runtime.Options, does func(name string, from, to []byte) result) *program {
	t.Helper()
	return standInOf(t, o, does, func(*Driver) {})
}

// standInOf is standInProgram with a driver that is changed before it is used.
func standInOf(t *testing.T, o runtime.Options, does func(name string, from, to []byte) result, change func(*Driver)) *program {
	t.Helper()
	g := &gpu{t: t, spaces: map[uint64][]byte{}, graphs: map[uintptr][]func(){}, times: map[uintptr]float32{}}
	d, broken, names := g.driver(), result(0), []string{""}
	var naming sync.Mutex // kernels are loaded side by side
	nameless := func(result, **byte) result { return 0 }
	d.fn.GetErrorName, d.fn.GetErrorString = nameless, nameless
	d.fn.StreamCreate = func(s *uintptr, _ uint32) result { *s = 1; return 0 }
	d.fn.StreamDestroy = func(uintptr) result { return broken }
	d.fn.StreamSynchronize = func(uintptr) result { return broken }
	d.fn.PrimaryRelease = func(int32) result { return broken }
	d.fn.MemGranularity = func(n *uint64, _ *allocation, _ int32) result { *n = 1 << 16; return 0 }
	d.fn.AddressReserve = func(p *uint64, n, _, _, _ uint64) result { return d.fn.MemAlloc(p, n) }
	d.fn.AddressFree = func(uint64, uint64) result { return broken }
	d.fn.MemCreate = func(*uint64, uint64, *allocation, uint64) result { return 0 }
	d.fn.MemMap = func(_, _, _, _, _ uint64) result { return 0 }
	d.fn.MemSetAccess = func(uint64, uint64, *accessTo, uint64) result { return 0 }
	d.fn.MemUnmap = func(uint64, uint64) result { return broken }
	d.fn.MemRelease = func(uint64) result { return broken }
	d.fn.ModuleLoadDataEx = func(m *uintptr, image *byte, _ uint32, _ *int32, _ *uintptr) result { *m = 1; return 0 }
	d.fn.ModuleUnload = func(uintptr) result { return broken }
	d.fn.ModuleGetFunction = func(f *uintptr, _ uintptr, name *byte) result {
		naming.Lock()
		defer naming.Unlock()
		names = append(names, cString(name))
		*f = uintptr(len(names) - 1)
		return 0
	}
	d.fn.FuncGetAttribute = func(*int32, int32, uintptr) result { return 0 }
	d.fn.LaunchKernelEx = func(_ *launchConfig, f uintptr, params *unsafe.Pointer, _ uintptr) result {
		args := unsafe.Slice(params, 2)
		from, to := g.at(*(*uint64)(args[0])), g.at(*(*uint64)(args[1]))
		g.do(func() {
			if code := does(names[f], from, to); code != 0 {
				broken = code
			}
		})
		return 0
	}
	change(d)
	v := func(name string) artifact.Value {
		return artifact.Value{Name: name, DType: formats.F32, Shape: []int64{16}}
	}
	text := []byte("text")
	a := &artifact.Artifact{
		Manifest: artifact.Manifest{Target: "cuda", Arch: "sm_90a", States: []artifact.State{{Value: v("w"), Role: artifact.Param, Persist: true}},
			Functions: []artifact.Function{{Name: "f", Inputs: []artifact.Value{v("x")}, Outputs: []artifact.Value{v("y")}, Arena: 64}}},
		Files: []artifact.File{{Name: artifact.ProgramName, Data: []byte(twoKernels)}, {Name: "kernels/first.ptx", Data: text}, {Name: "kernels/second.ptx", Data: text}},
	}
	module, err := parseProgram(a)
	require.NoError(t, err)
	p := &program{manifest: &a.Manifest, artifact: a, options: o, ctx: &Context{d: d, Device: &Device{Name: "a GPU", Memory: 1 << 20}}, kernels: map[string]*kernel{},
		functions: map[string]*function{}, states: map[string]Pointer{}, modules: map[string]*Module{}, warn: warnOnce()}
	require.NoError(t, p.load(module))
	return p
}

// A kernel that fails, or writes behind the end of its memory, is named with its line where guards are; a graph's error says how to have it named. What
// a call hasn't written is NaN there. Closing says nothing of it again.
func TestDebugMemory(t *testing.T) {
	const illegalAddress = 700
	first := func(from, to []byte) { copy(to[:64], from[:64]) }
	debug := runtime.Options{Poison: true, Guard: true}
	for name, c := range map[string]struct {
		options runtime.Options
		second  func(from, to []byte) result
		want    string // of the error
	}{
		"right":                  {debug, func(from, to []byte) result { copy(to[:64], from[:64]); return 0 }, ""},
		"a fault in a graph":     {runtime.Options{}, func(_, _ []byte) result { return illegalAddress }, "f: waiting for a stream of GPU 0: CUDA error 700 (); --debug-memory runs kernel by kernel and names the one"},
		"a fault":                {debug, func(_, _ []byte) result { return illegalAddress }, "f: m.blu:4:9: kernel second: waiting for a stream of GPU 0: CUDA error 700 ()"},
		"behind the output":      {debug, func(_, to []byte) result { to[64] = 1; return 0 }, "f: m.blu:4:9: kernel second: memory behind the end of output y was written to"},
		"behind the arena":       {debug, func(from, _ []byte) result { from[64+1023] = 1; return 0 }, "f: m.blu:4:9: kernel second: memory behind the end of the arena was written to"},
		"unseen without a guard": {runtime.Options{}, func(_, to []byte) result { to[64] = 1; return 0 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := standInProgram(t, c.options, func(name string, from, to []byte) result {
				if name == "second" {
					return c.second(from, to)
				}
				first(from, to)
				return 0
			})
			x := make([]float32, 16)
			for i := range x {
				x[i] = float32(i)
			}
			in := map[string]runtime.Array{"x": runtime.Array(formats.FromFloat32s(x, 16))}
			out, err := p.Call("f", in, nil)
			if c.want == "" {
				require.NoError(t, err)
				if name == "right" {
					require.Equal(t, x, formats.Tensor(out["y"]).Float32s())
				}
			} else {
				require.EqualError(t, err, c.want)
			}
			require.NoError(t, p.Close())
		})
	}
	t.Run("not written", func(t *testing.T) {
		p := standInProgram(t, debug, func(_ string, from, to []byte) result { copy(to[:32], from[:32]); return 0 })
		out, err := p.Call("f", map[string]runtime.Array{"x": runtime.Array(formats.FromFloat32s(make([]float32, 16), 16))}, nil)
		require.NoError(t, err)
		for i, y := range formats.Tensor(out["y"]).Float32s() {
			require.Equal(t, i >= 8, math.IsNaN(float64(y)), "%d: %g", i, y)
		}
		require.NoError(t, p.Close())
	})
}

// What the assembler says is one line.
func TestAssemblersWords(t *testing.T) {
	e := &Error{Doing: "loading k", Name: "CUDA_ERROR_INVALID_PTX", Text: "a PTX JIT compilation failed", Log: "ptxas application ptx input, line 9; error : no\nptxas fatal : Ptx assembly aborted\n"}
	require.EqualError(t, e, "loading k: CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed): ptxas application ptx input, line 9; error : no; ptxas fatal : Ptx assembly aborted")
	require.False(t, strings.Contains(e.Error(), "\n"))
}

// Where memory ends, what is advised is what helps.
func TestAdviceOnMemory(t *testing.T) {
	p := standInProgram(t, runtime.Options{}, nil)
	for holder, want := range map[string]string{
		theArena: "bluc compile --memory-budget 100MiB, or a smaller batch (--set B=...), needs less", ports: "--memory-budget", workspaces: "--memory-budget",
		"parameters": "parameters, gradients and optimizer state alone are 0 MiB, whatever the batch", "gradients": "--zero 1",
	} {
		require.Contains(t, p.lean(holder, 100<<20), want)
	}
}
