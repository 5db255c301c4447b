package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"blutrain/blublas"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

const errorRows = 128

// errors compares the products of full-size shapes with float64, row by row and in the Frobenius norm, beside PyTorch's
// on the same data.
func (b *bench) errors() error {
	dir, err := os.MkdirTemp("/dev/shm", "gemm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("\n%-18s %-10s %-11s %10s %10s %10s %10s\n", "shape", "data", "precision", "error", "cuBLAS", "worst row", "cuBLAS")
	for _, s := range shapes() {
		for _, dist := range []string{"normal", "uniform", "lognormal", "rows"} {
			plain := s.fused == blublas.Options{}
			if !b.wanted("error", s.name+" "+dist) || s.m > 20000 || !plain {
				continue
			}
			if err := b.errorsOf(s, dist, dir); err != nil {
				return fmt.Errorf("%s %s: %w", s.name, dist, err)
			}
		}
	}
	return nil
}

func (b *bench) errorsOf(s shape, dist, dir string) error {
	file := func(name string) string { return filepath.Join(dir, name) }
	reply, err := b.peer.ask(map[string]any{"do": "data", "layout": s.layout, "batch": s.batch, "m": s.m, "n": s.n, "k": s.k, "dist": dist, "rows": errorRows,
		"a": file("a"), "b": file("b"), "want": file("want"), "scale": file("scale")})
	if err != nil {
		return err
	}
	want, err := floats64(file("want"))
	if err != nil {
		return err
	}
	scale, err := floats64(file("scale"))
	if err != nil {
		return err
	}
	var all []result
	for _, p := range precisions {
		fit := b.candidates(p.ours, s, s.layout, ir.F32)
		if len(fit) == 0 {
			continue
		}
		g := fit[0]
		got, err := b.compute(g, s, file("a"), file("b"), reply.Rows)
		if err != nil {
			return err
		}
		r := result{Case: s.name + " " + dist, Kernel: g.Name()}
		r.Error, r.RowError = frobenius(got, want), worstRow(got, want, scale)
		r.PeerErr, r.PeerRow = reply.Errors[p.peer][0], reply.Errors[p.peer][1]
		fmt.Printf("%-18s %-10s %-11s %10.2e %10.2e %10.2e %10.2e\n", s.name, dist, p.ours, r.Error, r.PeerErr, r.RowError, r.PeerRow)
		all = append(all, r)
	}
	return b.keep("error", s.name+" "+dist, all...)
}

// compute runs a product on data from files and gives some rows of the result, numbered through all matrices of a batch.
func (b *bench) compute(g blublas.Gemm, s shape, fileA, fileB string, rows []int) ([]float64, error) {
	load := func(name string, rows, cols int, o blublas.Operand) (*matrix, error) {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		x := make([]float32, len(raw)/4)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		if o.MNMajor {
			rows, cols = cols, rows
		}
		return b.gpu.upload(g.Precision, x, matrices(g)*rows, cols, o)
	}
	ma, err := load(fileA, g.M, g.K, g.A)
	if err != nil {
		return nil, err
	}
	mb, err := load(fileB, g.N, g.K, g.B)
	if err != nil {
		return nil, err
	}
	c, err := b.gpu.Ctx.Alloc(int64(matrices(g)) * int64(g.M) * int64(g.N) * 4)
	if err != nil {
		return nil, err
	}
	runs, owned, err := b.gpu.prepare(g, ma, mb, []cuda.Pointer{c})
	if err != nil {
		return nil, err
	}
	if err := b.gpu.Launch(runs); err != nil {
		return nil, err
	}
	if err := b.gpu.Stream.Synchronize(); err != nil {
		return nil, err
	}
	var got []float64
	raw := make([]byte, 4*g.N)
	for _, r := range rows {
		if err := b.gpu.Ctx.Download(raw, c+cuda.Pointer(4*r*g.N)); err != nil {
			return nil, err
		}
		got = append(got, decode(raw, ir.F32)...)
	}
	return got, b.gpu.Free(slices.Concat(ma.owned, mb.owned, owned, []cuda.Pointer{c})...)
}

// worstRow is the largest norm(error) / norm(absA absB) of a row.
func worstRow(got, want, scale []float64) float64 {
	n := len(want) / len(scale)
	worst := 0.0
	for r, s := range scale {
		var diff float64
		for i := r * n; i < (r+1)*n; i++ {
			diff += (got[i] - want[i]) * (got[i] - want[i])
		}
		worst = max(worst, math.Sqrt(diff)/s)
	}
	return worst
}

func floats64(name string) ([]float64, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	x := make([]float64, len(raw)/8)
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return x, nil
}
