// Package gpu is what the benchmarks of kernels share: the machine's first GPU with its kernels assembled once, times between
// events, and a process with PyTorch beside it.
package gpu

import (
	"fmt"
	"slices"

	"blutrain/blublas"
	codegen "blutrain/codegen/ptx"
	"blutrain/runtime/cuda"
)

// GPU runs kernels.
type GPU struct {
	Ctx    *cuda.Context
	Stream *cuda.Stream
	flush  cuda.Pointer // more than L2 holds
	Device blublas.Device
	loaded map[string]*cuda.Function
	begin  *cuda.Event
	end    *cuda.Event
}

const flushBytes = 256 << 20

// Open makes ready the first GPU.
func Open(d *cuda.Driver) (*GPU, error) {
	devices, err := d.Devices()
	if err != nil {
		return nil, err
	}
	g := &GPU{Device: blublas.H200, loaded: map[string]*cuda.Function{}}
	if g.Ctx, err = devices[0].Open(); err != nil {
		return nil, err
	}
	g.Device.SMs, g.Device.SharedPerBlock = devices[0].SMs, devices[0].Shared
	if g.Stream, err = g.Ctx.NewStream(); err != nil {
		return nil, err
	}
	if g.begin, err = g.Ctx.NewEvent(); err != nil {
		return nil, err
	}
	if g.end, err = g.Ctx.NewEvent(); err != nil {
		return nil, err
	}
	g.flush, err = g.Ctx.Alloc(flushBytes)
	return g, err
}

// Load assembles a kernel; spills and serialized matrix products are failures.
func (g *GPU) Load(k *blublas.Kernel) (*cuda.Function, error) {
	if f := g.loaded[k.Name]; f != nil {
		return f, nil
	}
	text, err := codegen.Print(k.Op)
	if err != nil {
		return nil, err
	}
	f, err := g.LoadText(k.Name, text, k.Shared)
	if err != nil {
		return nil, err
	}
	if f.Local > 0 {
		return nil, &SpillError{k.Name, f.Local}
	}
	g.loaded[k.Name] = f
	return f, nil
}

// LoadText assembles a kernel of so many bytes of shared memory.
func (g *GPU) LoadText(name string, text []byte, shared int) (*cuda.Function, error) {
	m, err := g.Ctx.Load(name, text)
	if err != nil {
		return nil, err
	}
	return m.Function(name, shared)
}

// SpillError says that a kernel has more values than registers.
type SpillError struct {
	kernel string
	bytes  int
}

func (e *SpillError) Error() string {
	return fmt.Sprintf("kernel %s spills: %d bytes of local memory", e.kernel, e.bytes)
}

// Run is a kernel with its arguments.
type Run struct {
	F      *cuda.Function
	Config cuda.Config
	Args   []any
}

// Launch starts kernels one after the other.
func (g *GPU) Launch(runs []Run) error {
	for _, r := range runs {
		if err := g.Stream.Launch(r.F, r.Config, r.Args...); err != nil {
			return err
		}
	}
	return nil
}

// Time gives the milliseconds of each of n repetitions, L2 filled with something else before each.
func (g *GPU) Time(runs []Run, n int) ([]float64, error) {
	return g.TimeOf(func() error { return g.Launch(runs) }, n)
}

// TimeOf is Time for whatever is put on the stream.
func (g *GPU) TimeOf(work func() error, n int) ([]float64, error) {
	var all []float64
	for i := range n + 3 {
		if err := g.Stream.Fill(g.flush, uint32(i), flushBytes/4); err != nil {
			return nil, err
		}
		if err := g.Stream.Record(g.begin); err != nil {
			return nil, err
		}
		if err := work(); err != nil {
			return nil, err
		}
		if err := g.Stream.Record(g.end); err != nil {
			return nil, err
		}
		if err := g.end.Wait(); err != nil {
			return nil, err
		}
		ms, err := g.end.Since(g.begin)
		if err != nil {
			return nil, err
		}
		if i >= 3 {
			all = append(all, ms)
		}
	}
	return all, nil
}

// Median is the middle of some times.
func Median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}

// Free gives memory back.
func (g *GPU) Free(ps ...cuda.Pointer) error {
	for _, p := range ps {
		if err := g.Ctx.Free(p); err != nil {
			return err
		}
	}
	return nil
}
