package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/dtms/peer"
	"blutrain/formats"
	"blutrain/internal/upstream"
	"blutrain/runtime"
	"blutrain/runtime/collective"
)

var _ peer.Device = (*Peers)(nil)

// What peers ask of a GPU is what the driver is asked.
func TestPeers(t *testing.T) {
	m := &machine{}
	d := m.driver()
	d.fn.StreamPriorities = func(least, most *int32) result { *least, *most = 0, -5; return 0 }
	d.fn.StreamCreateAt = func(s *uintptr, flags uint32, priority int32) result {
		*s = 7
		return m.note("stream with flags %d, priority %d", flags, priority)
	}
	d.fn.StreamWriteValue = func(s uintptr, at uint64, value, flags uint32) result {
		return m.note("write %d at %d on stream %d, flags %d", value, at, s, flags)
	}
	d.fn.StreamWaitValue = func(s uintptr, at uint64, value, flags uint32) result {
		return m.note("await %d at %d on stream %d, flags %d", value, at, s, flags)
	}
	d.fn.MemAlloc = func(p *uint64, n uint64) result { *p = 4096; return m.note("allocate %d bytes", n) }
	d.fn.MemsetD32Async = func(p uint64, word uint32, n uint64, s uintptr) result {
		return m.note("fill %d words at %d with %d", n, p, word)
	}
	d.fn.IpcGetMemHandle = func(h *memoryHandle, p uint64) result { h.words[7] = p; return 0 }
	d.fn.IpcOpenMemHandle = func(p *uint64, h memoryHandle, flags uint32) result {
		*p = h.words[7] + 1
		return m.note("open with flags %d", flags)
	}
	p, err := NewPeers(&Context{d: d, Device: &Device{}})
	require.NoError(t, err)
	s, err := p.NewStream()
	require.NoError(t, err)
	at, handle, err := p.Share(1000)
	require.NoError(t, err)
	mapped, err := p.Map(handle)
	require.NoError(t, err)
	require.Equal(t, at+1, mapped)
	_, err = p.Map(handle[:10])
	require.ErrorContains(t, err, "a handle of memory has 64 bytes, not 10")
	require.NoError(t, p.After(s, 3))
	require.NoError(t, p.Copy(s, 1, 2, 30))
	require.NoError(t, p.Write(s, 64, 9))
	require.NoError(t, p.Await(s, 128, 8))
	require.Equal(t, []string{
		"stream with flags 1, priority -5",
		"allocate 1000 bytes", "fill 250 words at 4096 with 0", "wait for stream 0", "open with flags 1",
		"event 1 on stream 3", "stream 7 after event 1",
		"copy 30 bytes from 2 to 1 on stream 7", "write 9 at 64 on stream 7, flags 0", "await 8 at 128 on stream 7, flags 0",
	}, m.log)
}

// A sum takes the kernel of four numbers a thread where every place and the count allow it.
func TestSumLaunches(t *testing.T) {
	m := &machine{}
	d := m.driver()
	d.fn.LaunchKernelEx = func(c *launchConfig, f uintptr, params *unsafe.Pointer, _ uintptr) result {
		values := unsafe.Slice(params, 4)
		return m.note("kernel %d of %d blocks from %d: %d threads", f, c.gridX, *(*uint64)(values[0]), *(*int64)(values[3]))
	}
	c := &Context{d: d, Device: &Device{}}
	p := &Peers{c: c, sums: map[sumShape]*sumCode{{2, 1}: {vectors: &Function{c: c, handle: 4}, numbers: &Function{c: c, handle: 1}}}}
	require.NoError(t, p.Sum(7, []uintptr{256}, []uintptr{512, 1024}, 2048))
	require.NoError(t, p.Sum(7, []uintptr{256}, []uintptr{512, 1024}, 2046))
	require.NoError(t, p.Sum(7, []uintptr{256}, []uintptr{516, 1024}, 4))
	require.NoError(t, p.Sum(7, []uintptr{260}, []uintptr{512, 1024}, 4))
	require.Equal(t, []string{
		"kernel 4 of 2 blocks from 512: 512 threads", "kernel 1 of 8 blocks from 512: 2046 threads",
		"kernel 1 of 1 blocks from 516: 4 threads", "kernel 1 of 1 blocks from 512: 4 threads",
	}, m.log)
}

// interpret runs a kernel of the kind that sums are: straight lines, on numbers whose addresses are indices times 4.
type interpret struct {
	params map[string]uint64
	memory []float32
	words  map[string]uint64
	floats map[string]float32
}

func (in *interpret) thread(body []string, block, thread uint64) error {
	in.words = map[string]uint64{"%ctaid.x": block, "%tid.x": thread}
	in.floats = map[string]float32{}
	for _, line := range body {
		name, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ";"), " ")
		args := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(", {}[]", r) })
		word := func(i int) uint64 {
			if n, err := strconv.ParseUint(args[i], 10, 64); err == nil {
				return n
			}
			return in.words[args[i]]
		}
		switch name {
		case "mov.u32", "cvt.u64.u32", "cvta.to.global.u64":
			in.words[args[0]] = word(1)
		case "mad.wide.u32":
			in.words[args[0]] = word(1)*word(2) + word(3)
		case "ld.param.u64":
			in.words[args[0]] = in.params[args[1]]
		case "setp.ge.u64":
			if word(1) >= word(2) {
				return nil
			}
		case "shl.b64":
			in.words[args[0]] = word(1) << word(2)
		case "add.u64":
			in.words[args[0]] = word(1) + word(2)
		case "add.rn.f32":
			in.floats[args[0]] = in.floats[args[1]] + in.floats[args[2]]
		case "ld.global.f32", "ld.global.v4.f32":
			for i, to := range args[:len(args)-1] {
				in.floats[to] = in.memory[word(len(args)-1)/4+uint64(i)]
			}
		case "st.global.f32", "st.global.v4.f32":
			for i, from := range args[1:] {
				in.memory[word(0)/4+uint64(i)] = in.floats[from]
			}
		case ".reg", "@%beyond", "ret", "}":
		default:
			return fmt.Errorf("%s is not known here", line)
		}
	}
	return nil
}

// statements are a kernel's, in PTX text.
func statements(ptx, kernel string) []string {
	_, rest, _ := strings.Cut(ptx, ".entry "+kernel+"(")
	_, rest, _ = strings.Cut(rest, "{\n")
	body, _, _ := strings.Cut(rest, "\n}")
	return strings.FieldsFunc(strings.ReplaceAll(body, ";", ";\n"), func(r rune) bool { return r == '\n' })
}

// Sums of any number of terms are in the order of the terms, in all places, and nothing behind them is touched.
func TestSumKernels(t *testing.T) {
	for terms := 2; terms <= 8; terms++ {
		for places := 1; places <= 2; places++ {
			for _, kernel := range []string{sumVectors, sumNumbers} {
				const count = 24 // of numbers, and of each array
				width := map[string]int{sumVectors: 4, sumNumbers: 1}[kernel]
				in := &interpret{params: map[string]uint64{"threads": uint64(count/width - 1)}, memory: make([]float32, (terms+places)*count)}
				for i := range in.memory[:terms*count] {
					in.memory[i] = float32(math.Sin(float64(i))) * float32(int(1)<<(i%23))
				}
				for i := range terms + places {
					in.params[fmt.Sprintf("at%d", i)] = uint64(4 * i * count)
				}
				body := statements(sumShape{terms, places}.ptx(), kernel)
				for thread := range uint64(count) {
					require.NoError(t, in.thread(body, 0, thread))
				}
				for i := range count {
					var want float32
					if i < count-width {
						want = in.memory[i]
						for r := 1; r < terms; r++ {
							want += in.memory[r*count+i]
						}
					}
					for p := range places {
						require.Equal(t, want, in.memory[(terms+p)*count+i], "%s of %d in %d places: number %d", kernel, terms, places, i)
					}
				}
			}
		}
	}
}

// NVIDIA's assembler takes them, and they need few registers.
func TestSumKernelsAssemble(t *testing.T) {
	ptxas := upstream.PTXAS(t)
	for _, terms := range []int{2, 3, 8} {
		file := filepath.Join(t.TempDir(), "sum.ptx")
		require.NoError(t, os.WriteFile(file, []byte(sumShape{terms, 2}.ptx()), 0o666))
		out, err := exec.Command(ptxas, "-v", "-arch=sm_90", "-o", os.DevNull, file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		for line := range strings.Lines(string(out)) {
			var registers int
			if _, used, ok := strings.Cut(line, "Used "); ok {
				_, err := fmt.Sscanf(used, "%d registers", &registers)
				require.NoError(t, err)
				require.LessOrEqual(t, registers, 64, "%d terms", terms)
			}
		}
	}
}

// What goes by copies, and what by NCCL.
func TestLines(t *testing.T) {
	m := &machine{}
	_, f := m.program(t)
	elem := f.steps[1].begin.elem
	of := func(engine runtime.GPUEngine, ranks int, op string, beside ...string) line { // operations of the program besides
		mesh := &dtms.Mesh{World: local.New(ranks)[0], DP: local.New(ranks)[0]}
		first := &meeting{spec: collective.Spec{Op: op, Group: "dp"}, elem: elem}
		steps := []step{{begin: first}, {}}
		for _, o := range beside {
			steps = append(steps, step{begin: &meeting{spec: collective.Spec{Op: o, Group: "dp"}, elem: elem}})
		}
		p := &program{options: runtime.Options{Mesh: mesh, Between: engine}, functions: map[string]*function{"f": {steps: steps}}}
		return p.line(first)
	}
	for op, peers := range map[string]bool{"all_reduce": true, "reduce_scatter": true, "all_gather": true, "permute": false, "all_to_all": false} {
		for _, ranks := range []int{2, 4} {
			require.Equal(t, line{"dp", peers}, of(runtime.PeerEngine, ranks, op), op)
			require.Equal(t, line{"dp", false}, of(runtime.NCCLEngine, ranks, op), op)
			require.Equal(t, line{"dp", op == "all_reduce" && ranks == 2}, of(runtime.AutoEngine, ranks, op), op)
			require.Equal(t, of(runtime.AutoEngine, ranks, op), of("", ranks, op), op)
		}
	}
	require.False(t, ByPeers(runtime.AutoEngine, dtms.AllReduce, formats.BF16, 2))
	// What is left to itself has no engine beside another.
	require.Equal(t, line{"dp", true}, of(runtime.AutoEngine, 2, "all_reduce", "all_reduce"))
	for _, beside := range []string{"reduce_scatter", "all_gather", "permute", "all_to_all"} {
		require.Equal(t, line{"dp", false}, of(runtime.AutoEngine, 2, "all_reduce", beside), beside)
		require.Equal(t, line{"dp", true}, of(runtime.PeerEngine, 2, "all_reduce", beside), beside)
	}
}

// What the driver says of memory that it doesn't share is out of reach; too little memory is a fault.
func TestOutOfReach(t *testing.T) {
	m := &machine{}
	d := m.driver()
	var code result
	var can int32
	d.fn.MemAlloc = func(*uint64, uint64) result { return 0 }
	d.fn.MemFree = func(uint64) result { return 0 }
	d.fn.MemsetD32Async = func(uint64, uint32, uint64, uintptr) result { return 0 }
	d.fn.IpcGetMemHandle = func(*memoryHandle, uint64) result { return code }
	d.fn.IpcOpenMemHandle = func(*uint64, memoryHandle, uint32) result { return code }
	d.fn.DeviceByBusID = func(other *int32, _ *byte) result { *other = 1; return code }
	d.fn.CanAccessPeer = func(to *int32, _, _ int32) result { *to = can; return 0 }
	nameless := func(result, **byte) result { return 0 }
	d.fn.GetErrorName, d.fn.GetErrorString = nameless, nameless
	p, err := NewPeers(&Context{d: d, Device: &Device{d: d}})
	require.NoError(t, err)
	asked := func() []error {
		_, _, shared := p.Share(8)
		_, mapped := p.Map(make([]byte, 64))
		return []error{shared, mapped, p.Reaches("0000:41:00.0")}
	}
	far := &peer.OutOfReach{}
	for code = range result(1000) {
		for i, err := range asked() {
			switch code {
			case 0:
				require.Equal(t, i == 2, errors.As(err, &far)) // without a link
			case 1, 101, 201, 205, 217, 304, 400, 711, 800, 801:
				require.ErrorAs(t, err, &far, "code %d", code)
			default:
				require.Error(t, err)
				require.False(t, errors.As(err, &far), "code %d: %v", code, err)
			}
		}
	}
	code, can = 0, 1
	require.NoError(t, errors.Join(asked()...))
}
