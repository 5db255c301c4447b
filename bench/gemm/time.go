package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

// precisions that are timed, with cuBLAS's counterpart.
var precisions = []struct {
	ours blublas.Precision
	peer string
}{{blublas.BF16, "bf16"}, {blublas.TF32, "tf32"}, {blublas.FP16x3, "fp32"}, {blublas.BF16x6, "fp32"}, {blublas.FP32Strict, "fp32"}}

// timeName is the name of a case of times. A space at the end tells bf16 from bf16x6.
func timeName(s shape, p blublas.Precision) string { return fmt.Sprintf("%s %s ", s.name, p) }

// times measures every shape in every precision: each candidate, and cuBLAS before and after them.
func (b *bench) times() error {
	fmt.Printf("\n%-18s %-11s %8s %8s %6s  %s\n", "shape", "precision", "TFLOP/s", "cuBLAS", "ratio", "kernel")
	for _, s := range shapes() {
		for _, p := range precisions {
			if !s.in(p.ours) || b.older && p.ours != blublas.BF16 && p.ours != blublas.TF32 {
				continue
			}
			if !b.wanted("time", timeName(s, p.ours)) {
				continue
			}
			if err := b.timeShape(s, p.ours, p.peer); err != nil {
				return fmt.Errorf("%s %s: %w", s.name, p.ours, err)
			}
			if best := b.best(timeName(s, p.ours)); best != nil {
				fmt.Printf("%-18s %-11s %8.1f %8.1f %6.2f  %s\n", s.name, p.ours, best.TFLOPS, best.TFLOPS/best.Ratio, best.Ratio, best.Kernel)
			}
		}
	}
	b.summarize()
	return nil
}

// best is the fastest kernel of a case; nil where none was timed.
func (b *bench) best(name string) (best *result) {
	for i := range b.results {
		if r := &b.results[i]; r.Kind == "time" && r.Name == name && r.Failure == "" && (best == nil || r.TFLOPS > best.TFLOPS) {
			best = r
		}
	}
	return best
}

// summarize prints what the best kernels of all shapes come to, those of the run that is gone on with too.
func (b *bench) summarize() {
	for _, p := range precisions {
		var ratios []float64
		for _, s := range shapes() {
			if best := b.best(timeName(s, p.ours)); best != nil {
				ratios = append(ratios, best.Ratio)
			}
		}
		if len(ratios) > 0 {
			fmt.Printf("%-11s geometric mean of the ratios to cuBLAS %s: %.3f, least %.3f (%d shapes)\n", p.ours, p.peer, mean(ratios), slices.Min(ratios), len(ratios))
		}
	}
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}

// timeShape measures the candidates for a shape.
func (b *bench) timeShape(s shape, p blublas.Precision, peer string) error {
	question := map[string]any{"do": "time", "layout": s.layout, "batch": s.batch, "m": s.m, "n": s.n, "k": s.k, "precision": peer, "reps": b.reps, "chain": b.chain}
	op, err := b.randomOperands(s, p)
	if err != nil {
		return err
	}
	before, err := b.peer.ask(question)
	if err != nil {
		return err
	}
	var all []result
	for _, g := range b.candidates(p, s, op.layout, op.out) {
		r := result{Case: s.name, Kernel: g.Name()}
		r.Millis, err = b.timeKernel(g, op)
		switch {
		case errors.As(err, new(*gpu.SpillError)): // no kernel to use: it is told, and not timed
			fmt.Printf("%-18s %-11s %v\n", s.name, p, err)
			r.Failure = err.Error()
		case err != nil:
			return err
		default:
			r.TFLOPS = s.flops() / gpu.Median(r.Millis) * 1e-9
		}
		all = append(all, r)
	}
	after, err := b.peer.ask(question)
	if err != nil {
		return err
	}
	for i := range all {
		if r := &all[i]; r.Failure == "" {
			r.Peer = append(before.Millis, after.Millis...)
			r.Ratio = gpu.Median(r.Peer) / gpu.Median(r.Millis)
		}
	}
	if err := b.keep("time", timeName(s, p), all...); err != nil {
		return err
	}
	return b.gpu.Free(slices.Concat(op.a.owned, op.b.owned, op.around)...)
}

func (b *bench) timeKernel(g blublas.Gemm, op *operands) ([]float64, error) {
	runs, owned, err := b.gpu.prepare(g, op.a, op.b, op.around[:len(g.Epilogue.Params)])
	if err != nil {
		return nil, err
	}
	ms, err := b.gpu.TimeOf(func() error {
		for range b.chain {
			if err := b.gpu.Launch(runs); err != nil {
				return err
			}
		}
		return nil
	}, b.reps)
	if err != nil {
		return nil, err
	}
	for i := range ms {
		ms[i] /= float64(b.chain)
	}
	return ms, b.gpu.Free(owned...)
}

// operands is random data of a shape on the device.
type operands struct {
	layout string
	a, b   *matrix
	around []cuda.Pointer // the result and what else epilogues read and write, each as large as the result
	out    ir.FloatKind
}

// randomOperands makes operands in the layout that is timed.
func (b *bench) randomOperands(s shape, p blublas.Precision) (*operands, error) {
	op := &operands{layout: s.layoutFor(p), out: outFor(p)}
	g := s.laid(p, op.layout)
	var err error
	if op.a, err = b.random(s.products(), s.m, s.k, g.A, p); err != nil {
		return nil, err
	}
	if op.b, err = b.random(s.products(), s.n, s.k, g.B, p); err != nil {
		return nil, err
	}
	o := s.fused
	o.Out = op.out
	for range blublas.Standard(o).Params {
		r, err := b.random(s.products(), s.m, s.n, blublas.Operand{Pitch: s.n}, blublas.FP32Strict)
		if err != nil {
			return nil, err
		}
		op.around = append(op.around, r.planes[0])
	}
	return op, nil
}

// random is matrices of normal numbers, one after the other; one block of them is repeated.
func (b *bench) random(count, rows, k int, o blublas.Operand, p blublas.Precision) (*matrix, error) {
	if o.MNMajor {
		rows, k = k, rows
	}
	rows *= count
	elem, size := ir.F32, 4
	if p == blublas.BF16 {
		elem, size = ir.BF16, 2
	}
	const block = 1 << 20
	raw := encode(normals(block, rand.New(rand.NewPCG(rand.Uint64(), 2))), 1, block, block, elem)
	total := rows * o.Pitch * size
	at, err := b.gpu.Ctx.Alloc(int64(total))
	if err != nil {
		return nil, err
	}
	filled := min(len(raw), total)
	if err := b.gpu.Ctx.Upload(at, raw[:filled]); err != nil {
		return nil, err
	}
	for filled < total {
		n := min(filled, total-filled)
		if err := b.gpu.Stream.Copy(at+cuda.Pointer(filled), at, int64(n)); err != nil {
			return nil, err
		}
		filled += n
	}
	m := &matrix{planes: []cuda.Pointer{at}, owned: []cuda.Pointer{at}}
	if planes(p) {
		return b.gpu.split(p, m, rows, k, o)
	}
	return m, nil
}
