package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"blutrain/blublas"
	codegen "blutrain/codegen/ptx"
	"blutrain/dialects/ptx"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

// gpu runs kernels.
type gpu struct {
	ctx    *cuda.Context
	stream *cuda.Stream
	flush  cuda.Pointer // more than L2 holds
	device blublas.Device
	loaded map[string]*cuda.Function
	begin  *cuda.Event
	end    *cuda.Event
}

const flushBytes = 256 << 20

func openGPU(d *cuda.Driver) (*gpu, error) {
	devices, err := d.Devices()
	if err != nil {
		return nil, err
	}
	g := &gpu{device: blublas.H200, loaded: map[string]*cuda.Function{}}
	if g.ctx, err = devices[0].Open(); err != nil {
		return nil, err
	}
	g.device.SMs, g.device.SharedPerBlock = devices[0].SMs, devices[0].Shared
	if g.stream, err = g.ctx.NewStream(); err != nil {
		return nil, err
	}
	if g.begin, err = g.ctx.NewEvent(); err != nil {
		return nil, err
	}
	if g.end, err = g.ctx.NewEvent(); err != nil {
		return nil, err
	}
	g.flush, err = g.ctx.Alloc(flushBytes)
	return g, err
}

// load assembles a kernel; spills and serialized matrix products are failures.
func (g *gpu) load(k *blublas.Kernel) (*cuda.Function, error) {
	if f := g.loaded[k.Name]; f != nil {
		return f, nil
	}
	text, err := codegen.Print(k.Op)
	if err != nil {
		return nil, err
	}
	m, err := g.ctx.Load(k.Name, text)
	if err != nil {
		return nil, err
	}
	f, err := m.Function(k.Name, k.Shared)
	if err != nil {
		return nil, err
	}
	if f.Local > 0 {
		return nil, &spillError{k.Name, f.Local}
	}
	g.loaded[k.Name] = f
	return f, nil
}

// spillError says that a kernel has more values than registers.
type spillError struct {
	kernel string
	bytes  int
}

func (e *spillError) Error() string {
	return fmt.Sprintf("kernel %s spills: %d bytes of local memory", e.kernel, e.bytes)
}

// run is a kernel with its arguments.
type run struct {
	f      *cuda.Function
	config cuda.Config
	args   []any
}

func (g *gpu) launch(runs []run) error {
	for _, r := range runs {
		if err := g.stream.Launch(r.f, r.config, r.args...); err != nil {
			return err
		}
	}
	return nil
}

// time gives the milliseconds of each of n repetitions, L2 filled with something else before each.
func (g *gpu) time(runs []run, n int) ([]float64, error) {
	var all []float64
	for i := range n + 3 {
		if err := g.stream.Fill(g.flush, uint32(i), flushBytes/4); err != nil {
			return nil, err
		}
		if err := g.stream.Record(g.begin); err != nil {
			return nil, err
		}
		if err := g.launch(runs); err != nil {
			return nil, err
		}
		if err := g.stream.Record(g.end); err != nil {
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

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}

// matrix is an operand on the device: its planes, and the scales of their blocks.
type matrix struct {
	planes []cuda.Pointer
	scales cuda.Pointer
	owned  []cuda.Pointer
}

func (g *gpu) free(ps ...cuda.Pointer) error {
	for _, p := range ps {
		if err := g.ctx.Free(p); err != nil {
			return err
		}
	}
	return nil
}

// upload puts a rows x cols matrix, rows at pitch elements, on the device as the kernel wants its operands.
func (g *gpu) upload(p blublas.Precision, x []float32, rows, cols, pitch int) (*matrix, error) {
	elem := ir.F32
	if p == blublas.BF16 {
		elem = ir.BF16
	}
	raw := encode(x, rows, cols, pitch, elem)
	at, err := g.ctx.Alloc(int64(len(raw)))
	if err != nil {
		return nil, err
	}
	if err := g.ctx.Upload(at, raw); err != nil {
		return nil, err
	}
	m := &matrix{planes: []cuda.Pointer{at}, owned: []cuda.Pointer{at}}
	if !planes(p) {
		return m, nil
	}
	return g.split(p, m, rows, cols, pitch)
}

// planes reports whether operands are split.
func planes(p blublas.Precision) bool { return p == blublas.FP16x3 || p == blublas.BF16x6 }

// split makes planes of a float32 matrix.
func (g *gpu) split(p blublas.Precision, m *matrix, rows, cols, pitch int) (*matrix, error) {
	s := blublas.Split{Precision: p, Rows: rows, Cols: cols, Pitch: pitch, PlanePitch: pitch, Target: ptx.SM90A}
	k, err := s.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil))
	if err != nil {
		return nil, err
	}
	f, err := g.load(k)
	if err != nil {
		return nil, err
	}
	sizes := slices.Repeat([]int{2 * rows * pitch}, s.Planes())
	if p == blublas.FP16x3 {
		sizes = append(sizes, 4*s.ScaleCount())
	}
	split := &matrix{owned: m.owned}
	args := []any{m.planes[0]}
	for i, n := range sizes {
		at, err := g.ctx.Alloc(int64(n))
		if err != nil {
			return nil, err
		}
		split.owned = append(split.owned, at)
		args = append(args, at)
		if i < s.Planes() {
			split.planes = append(split.planes, at)
		} else {
			split.scales = at
		}
	}
	if err := g.launch([]run{{f, cuda.Config{Grid: k.Grid, Threads: k.Threads, Shared: k.Shared}, args}}); err != nil {
		return nil, err
	}
	return split, g.stream.Synchronize()
}

// encode lays out a matrix in memory; what is between the rows is NaN, which no result may depend on.
func encode(x []float32, rows, cols, pitch int, elem ir.FloatKind) []byte {
	if elem == ir.F32 {
		raw := make([]byte, 4*rows*pitch)
		for r := range rows {
			for c := range pitch {
				v := float32(math.NaN())
				if c < cols {
					v = x[r*cols+c]
				}
				binary.LittleEndian.PutUint32(raw[4*(r*pitch+c):], math.Float32bits(v))
			}
		}
		return raw
	}
	raw := make([]byte, 2*rows*pitch)
	for r := range rows {
		for c := range pitch {
			v := uint16(0x7FFF)
			if c < cols {
				v = bits16(elem, x[r*cols+c])
			}
			binary.LittleEndian.PutUint16(raw[2*(r*pitch+c):], v)
		}
	}
	return raw
}

func bits16(elem ir.FloatKind, v float32) uint16 {
	if elem == ir.BF16 {
		return ir.BF16Bits(float64(v))
	}
	return ir.F16Bits(float64(v))
}

// prepare builds and loads a product's kernels and gives them their arguments; extra are the epilogue's pointers.
func (g *gpu) prepare(cfg blublas.Gemm, a, b *matrix, extra []cuda.Pointer) (runs []run, owned []cuda.Pointer, err error) {
	k, err := cfg.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), g.device)
	if err != nil {
		return nil, nil, err
	}
	f, err := g.load(k)
	if err != nil {
		return nil, nil, err
	}
	addresses := slices.Concat(a.planes, b.planes)
	if cfg.Precision == blublas.FP16x3 {
		addresses = append(addresses, a.scales, b.scales)
	}
	if cfg.SplitK > 1 {
		p, err := g.ctx.Alloc(int64(cfg.SplitK) * int64(cfg.M) * int64(cfg.N) * 4)
		if err != nil {
			return nil, nil, err
		}
		owned = append(owned, p)
		addresses = append(addresses, p)
	} else {
		addresses = append(addresses, extra...)
	}
	var args []any
	for i, p := range k.Params {
		if p.Map == nil {
			args = append(args, addresses[i])
			continue
		}
		element := map[string]cuda.Element{"bf16": cuda.BFloat16, "f16": cuda.Float16, "tf32": cuda.TFloat32}[p.Map.Element]
		m, err := g.ctx.Tiled(element, addresses[i], p.Map.Dims[:], []int{p.Map.Pitch}, p.Map.Box[:], cuda.Swizzle128)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, m)
	}
	runs = append(runs, run{f, cuda.Config{Grid: k.Grid, Threads: k.Threads, Cluster: k.Cluster, Shared: k.Shared}, args})
	if cfg.SplitK == 1 {
		return runs, owned, nil
	}
	s, err := cfg.SumParts(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), g.device)
	if err != nil {
		return nil, nil, err
	}
	if f, err = g.load(s); err != nil {
		return nil, nil, err
	}
	args = []any{owned[0]}
	for _, p := range extra {
		args = append(args, p)
	}
	return append(runs, run{f, cuda.Config{Grid: s.Grid, Threads: s.Threads}, args}), owned, nil
}
