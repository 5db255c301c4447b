package main

import (
	"encoding/binary"
	"math"
	"slices"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/dialects/ptx"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

// device runs kernels on matrices.
type device struct{ *gpu.GPU }

// matrix is an operand on the device: its planes, and its scales.
type matrix struct {
	planes []cuda.Pointer
	scales cuda.Pointer
	owned  []cuda.Pointer
}

// upload puts a rows x cols matrix, which is an operand or its transpose, on the device as the kernel wants its operands.
func (g *device) upload(p blublas.Precision, x []float32, rows, cols int, o blublas.Operand) (*matrix, error) {
	elem := ir.F32
	if p == blublas.BF16 {
		elem = ir.BF16
	}
	raw := encode(x, rows, cols, o.Pitch, elem)
	at, err := g.Ctx.Alloc(int64(len(raw)))
	if err != nil {
		return nil, err
	}
	if err := g.Ctx.Upload(at, raw); err != nil {
		return nil, err
	}
	m := &matrix{planes: []cuda.Pointer{at}, owned: []cuda.Pointer{at}}
	if !planes(p) {
		return m, nil
	}
	return g.split(p, m, rows, cols, o)
}

// planes reports whether operands are split.
func planes(p blublas.Precision) bool { return p == blublas.FP16x3 || p == blublas.BF16x6 }

// split makes planes of a float32 matrix.
func (g *device) split(p blublas.Precision, m *matrix, rows, cols int, o blublas.Operand) (*matrix, error) {
	split, run, err := g.splitting(p, m, blublas.Matrix{Name: "x", Rows: rows, Cols: cols, Pitch: o.Pitch, PlanePitch: o.Pitch, Sets: []blublas.Set{{Name: "x", MNMajor: o.MNMajor}}})
	if err != nil {
		return nil, err
	}
	if err := g.Launch([]gpu.Run{run}); err != nil {
		return nil, err
	}
	return split, g.Stream.Synchronize()
}

// splitting is the kernel that makes planes of a matrix, and the planes once it has run.
func (g *device) splitting(p blublas.Precision, m *matrix, x blublas.Matrix) (split *matrix, run gpu.Run, err error) {
	s := blublas.Split{Precision: p, Of: []blublas.Matrix{x}, Target: ptx.SM90A}
	k, err := s.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), g.Device)
	if err != nil {
		return nil, run, err
	}
	f, err := g.Load(k)
	if err != nil {
		return nil, run, err
	}
	split = &matrix{owned: m.owned}
	args := []any{m.planes[0]}
	for _, set := range x.Sets {
		sizes := slices.Repeat([]int64{x.PlaneBytes()}, s.Planes())
		if p == blublas.FP16x3 {
			sizes = append(sizes, int64(x.ScaleBytes(set)), 4*int64(x.Flags(g.Device)))
		}
		at := make([]cuda.Pointer, len(sizes))
		for i, n := range sizes {
			if at[i], err = g.Ctx.Alloc(n); err != nil {
				return nil, run, err
			}
			args = append(args, at[i])
		}
		split.owned = append(split.owned, at...)
		if split.planes = at[:s.Planes()]; p == blublas.FP16x3 {
			split.scales = at[s.Planes()]
		}
	}
	return split, gpu.Run{F: f, Config: cuda.Config{Grid: k.Grid, Threads: k.Threads, Shared: k.Shared}, Args: args}, nil
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
func (g *device) prepare(cfg blublas.Gemm, a, b *matrix, extra []cuda.Pointer) (runs []gpu.Run, owned []cuda.Pointer, err error) {
	kernels, functions, err := g.loadProduct(cfg)
	if err != nil {
		return nil, nil, err
	}
	k := kernels[0]
	addresses := slices.Concat(a.planes, b.planes)
	if cfg.Precision == blublas.FP16x3 {
		addresses = append(addresses, a.scales, b.scales)
	}
	for _, p := range k.Params[len(addresses):] {
		if p.Map != nil { // what the copy engine brings of what the epilogue reads
			addresses = append(addresses, extra[slices.Index(cfg.Epilogue.Params, p.Name)])
		}
	}
	if cfg.SplitK > 1 {
		p, err := g.Ctx.Alloc(cfg.PartialBytes())
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
		element := map[string]cuda.Element{"bf16": cuda.BFloat16, "f16": cuda.Float16, "f32": cuda.Float32, "tf32": cuda.TFloat32}[p.Map.Element]
		dims, strides, box := p.Map.Layout()
		m, err := g.Ctx.Tiled(element, addresses[i]+cuda.Pointer(p.Offset), dims, strides, box, cuda.Swizzle128)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, m)
	}
	runs = append(runs, gpu.Run{F: functions[0], Config: cuda.Config{Grid: k.Grid, Threads: k.Threads, Cluster: k.Cluster, Shared: k.Shared}, Args: args})
	if cfg.SplitK == 1 {
		return runs, owned, nil
	}
	args = []any{owned[0]}
	for _, p := range extra {
		args = append(args, p)
	}
	return append(runs, gpu.Run{F: functions[1], Config: cuda.Config{Grid: kernels[1].Grid, Threads: kernels[1].Threads}, Args: args}), owned, nil
}

// loadProduct builds and loads a product's kernels, of which the second, where there is one, adds parts of K.
func (g *device) loadProduct(cfg blublas.Gemm) (kernels []*blublas.Kernel, functions []*cuda.Function, err error) {
	for _, build := range []func(*ir.Builder, blublas.Device) (*blublas.Kernel, error){cfg.Build, cfg.SumParts}[:min(cfg.SplitK, 2)] {
		k, err := build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), g.Device)
		if err != nil {
			return nil, nil, err
		}
		f, err := g.Load(k)
		if err != nil {
			return nil, nil, err
		}
		kernels, functions = append(kernels, k), append(functions, f)
	}
	return kernels, functions, nil
}
