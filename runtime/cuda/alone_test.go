package cuda

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/ir"
	"blutrain/runtime"
)

// gpu is a driver with memory. Its kernels write their first input, times a factor, to their output.
type gpu struct {
	t       *testing.T
	spaces  map[uint64][]byte
	next    uint64
	factors map[uintptr]float32
	graphs  map[uintptr][]func()
	record  []func() // of the graph that is recorded
	records bool
	now     float32
	times   map[uintptr]float32
}

// at is memory from an address on.
func (g *gpu) at(p uint64) []byte {
	for start, b := range g.spaces {
		if p >= start && p < start+uint64(len(b)) {
			return b[p-start:]
		}
	}
	require.Fail(g.t, "no memory", "%x", p)
	return nil
}

// do does something now, or when the graph that is recorded is started.
func (g *gpu) do(f func()) {
	if g.records {
		g.record = append(g.record, f)
		return
	}
	f()
}

func (g *gpu) driver() *Driver {
	d := &Driver{}
	d.fn.CtxSetCurrent = func(uintptr) result { return 0 }
	d.fn.MemAlloc = func(p *uint64, n uint64) result {
		g.next += 1 << 32
		*p = g.next
		g.spaces[*p] = make([]byte, n)
		return 0
	}
	d.fn.MemFree = func(p uint64) result { delete(g.spaces, p); return 0 }
	d.fn.MemAllocHost = func(p *unsafe.Pointer, n uint64) result {
		*p = unsafe.Pointer(unsafe.SliceData(make([]byte, n)))
		return 0
	}
	d.fn.MemFreeHost = func(unsafe.Pointer) result { return 0 }
	d.fn.MemcpyHtoDAsync = func(to uint64, from unsafe.Pointer, n uint64, _ uintptr) result {
		copy(g.at(to), unsafe.Slice((*byte)(from), n))
		return 0
	}
	d.fn.MemcpyDtoDAsync = func(to, from, n uint64, _ uintptr) result { copy(g.at(to)[:n], g.at(from)[:n]); return 0 }
	d.fn.MemcpyDtoHAsync = func(to unsafe.Pointer, from, n uint64, _ uintptr) result {
		copy(unsafe.Slice((*byte)(to), n), g.at(from)[:n])
		return 0
	}
	d.fn.MemsetD32Async = func(p uint64, word uint32, n uint64, _ uintptr) result {
		for i := range n {
			binary.LittleEndian.PutUint32(g.at(p)[4*i:], word)
		}
		return 0
	}
	d.fn.StreamSynchronize = func(uintptr) result { return 0 }
	d.fn.EventCreate = func(e *uintptr, _ uint32) result { *e = uintptr(len(g.times) + 1); g.times[*e] = 0; return 0 }
	d.fn.EventDestroy = func(uintptr) result { return 0 }
	d.fn.EventRecord = func(e, _ uintptr) result { g.times[e] = g.now; return 0 }
	d.fn.EventSynchronize = func(uintptr) result { return 0 }
	d.fn.EventElapsedTime = func(ms *float32, start, end uintptr) result { *ms = g.times[end] - g.times[start]; return 0 }
	d.fn.LaunchKernelEx = func(_ *launchConfig, f uintptr, params *unsafe.Pointer, _ uintptr) result {
		args := unsafe.Slice(params, 2)
		from, to := g.at(*(*uint64)(args[0])), g.at(*(*uint64)(args[1]))
		g.do(func() {
			for i := range 16 {
				x := math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
				binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(g.factors[f]*x))
			}
			g.now += float32(f)
		})
		return 0
	}
	d.fn.BeginCapture = func(uintptr, int32) result { g.records = true; return 0 }
	d.fn.EndCapture = func(_ uintptr, h *uintptr) result {
		*h = uintptr(len(g.graphs) + 1)
		g.graphs[*h], g.record, g.records = g.record, nil, false
		return 0
	}
	d.fn.GraphInstantiate = func(exec *uintptr, h uintptr, _ uint64) result { *exec = h; return 0 }
	d.fn.GraphLaunch = func(h, _ uintptr) result {
		for _, f := range g.graphs[h] {
			f()
		}
		return 0
	}
	d.fn.GraphExecDestroy = func(h uintptr) result { delete(g.graphs, h); return 0 }
	d.fn.GraphDestroy = func(uintptr) result { return 0 }
	return d
}

// Kernels that stand for one another run on the same random numbers, write to memory of their own, and are timed many in a row.
func TestAlone(t *testing.T) {
	g := &gpu{t: t, spaces: map[uint64][]byte{}, factors: map[uintptr]float32{1: 1, 2: 1, 3: 2}, graphs: map[uintptr][]func(){}, times: map[uintptr]float32{}}
	c := dialects.NewContext()
	ctx := &Context{d: g.driver(), Device: &Device{Name: "a GPU"}}
	p := &program{ctx: ctx, stream: &Stream{ctx, 1}, kernels: map[string]*kernel{}, modules: map[string]*Module{}}
	add := func(name string, handle uintptr, refs ...*ir.MemRefType) {
		p.kernels[name] = &kernel{name: name, refs: refs, outs: 1, blocks: 1, threads: 32, code: &Function{c: ctx, handle: handle}}
	}
	row := c.MemRef([]int64{16}, c.F32())
	add("first", 1, row, row)
	add("same", 2, row, row)
	add("other", 3, row, row)
	add("wider", 1, row, c.MemRef([]int64{17}, c.F32()))
	p.functions = map[string]*function{"f": {steps: []step{{kernel: p.kernels["first"]}, {}, {kernel: p.kernels["first"]}}}}
	require.Equal(t, map[string]int{"first": 2}, p.Launches("f"))
	require.Empty(t, p.Launches("g"))
	require.Equal(t, "a GPU", p.DeviceName())

	a, err := p.Alone([]string{"first", "same", "other"}, []float64{100, 1, 0, 1}, 7)
	require.NoError(t, err)
	require.Equal(t, int64(64), a.Outputs()[0].Bytes)
	numbers := func(i int) (xs []float32) {
		raw, err := a.Read(i, 0, 8, 56)
		require.NoError(t, err)
		for at := 0; at < len(raw); at += 4 {
			xs = append(xs, math.Float32frombits(binary.LittleEndian.Uint32(raw[at:])))
		}
		return xs
	}
	require.NoError(t, a.Run(0))
	first := numbers(0)
	require.Len(t, first, 14)
	require.InDelta(t, 100, first[3], 6)
	require.NotEqual(t, first[3], first[4])
	require.NoError(t, a.Run(1))
	require.Equal(t, first, numbers(1))
	require.NoError(t, a.Run(2))
	require.InDelta(t, 2*first[0], numbers(2)[0], 1e-3)
	require.Equal(t, first, numbers(0), "the first kernel's results are kept")
	for range 2 {
		seconds, err := a.Time(2, 5)
		require.NoError(t, err)
		require.InDelta(t, 5*3e-3, seconds, 1e-6)
	}
	require.Len(t, g.graphs, 1, "recorded once")
	require.NoError(t, a.Close())
	require.Empty(t, g.spaces)
	require.Empty(t, g.graphs)

	// A candidate that works in more memory than the program's kernels has it while it is measured; the program hasn't.
	add("roomy", 2, row, row)
	p.kernels["roomy"].scratch, p.kernels["roomy"].params = 4096, []exec.Param{{Ref: 0}, {Ref: 1}, {Ref: -1, Offset: 1024}}
	require.Zero(t, p.functions["f"].room())
	for _, spare := range []int64{0, 4096} {
		p.spare, p.workspace = spare, 1<<20
		a, err = p.Alone([]string{"first", "roomy"}, nil, 7)
		require.NoError(t, err)
		at := a.(*alone).steps[1].params[0][2].(Pointer)
		if spare == 0 {
			require.Len(t, g.at(uint64(at)), 3072)
		} else {
			require.Equal(t, Pointer(1<<20+1024), at)
		}
		require.NoError(t, a.Close())
		require.Empty(t, g.spaces)
	}

	for _, bad := range []struct {
		kernels []string
		normal  []float64
		want    string
	}{
		{[]string{"first", "wider"}, nil, "kernel wider can't stand for first: reference 1 is memref<17xf32>, not memref<16xf32>"},
		{[]string{"first", "none"}, nil, "the program has no kernel none"},
		{[]string{"first"}, []float64{1}, "1 numbers are no means and deviations of 2 references"},
	} {
		_, err := p.Alone(bad.kernels, bad.normal, 1)
		require.ErrorContains(t, err, bad.want)
		require.Empty(t, g.spaces)
	}
	var _ runtime.Bencher = p
}
