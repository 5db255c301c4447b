package main

import (
	"fmt"
	"math"
	"slices"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/dialects/ptx"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

// kernels are the template's, and what it writes.
var kernels = []struct {
	kind    blublas.AttentionKernel
	name    string
	build   func(blublas.Attention, *ir.Builder, blublas.Device) (*blublas.Kernel, error)
	results []string
}{
	{blublas.AttentionForward, "forward", blublas.Attention.Forward, []string{"o", "lse"}},
	{blublas.AttentionGradQueries, "queries", blublas.Attention.GradQueries, []string{"dq", "delta"}},
	{blublas.AttentionGradKeys, "keys", blublas.Attention.GradKeys, []string{"dk", "dv"}},
}

// attention is a shape's template; tensors are [batch, positions, heads, features].
func (s shape) attention() blublas.Attention {
	rows := blublas.Strides{Batch: s.positions * s.heads * s.features, Head: s.features, Row: s.heads * s.features}
	return blublas.Attention{
		Batch: s.batch, Heads: s.heads, KeyHeads: s.heads, Queries: s.positions, Keys: s.positions, Features: s.features,
		Causal: true, Scale: 1 / math.Sqrt(float64(s.features)), Precision: s.precision, Target: ptx.SM90A,
		Q: rows, K: rows, V: rows, O: rows, DO: rows, DQ: rows, DK: rows, DV: rows,
	}
}

func (s shape) elements() int { return s.batch * s.positions * s.heads * s.features }

// bytes is the size of a tensor.
func (s shape) bytes(name string) int64 {
	switch {
	case name == "lse" || name == "delta":
		return 4 * int64(s.batch*s.heads*s.positions)
	case s.precision == blublas.BF16:
		return 2 * int64(s.elements())
	}
	return 4 * int64(s.elements())
}

// flops is the operations of a kernel by the usual count: two products forward, five backward, half of them masked. The
// template computes two of the five twice, which is not counted.
func (s shape) flops(forward bool) float64 {
	product := 2 * float64(s.batch*s.heads) * float64(s.positions) * float64(s.positions) * float64(s.features) / 2
	if forward {
		return 2 * product
	}
	return 5 * product
}

var tensorNames = []string{"q", "k", "v", "do", "o", "lse", "dq", "delta", "dk", "dv"}

// tensors is a shape's memory.
type tensors map[string]cuda.Pointer

func (b *bench) alloc(s shape) (tensors, error) {
	t := tensors{}
	for _, name := range tensorNames {
		p, err := b.gpu.Ctx.Alloc(s.bytes(name))
		if err != nil {
			return nil, err
		}
		t[name] = p
	}
	return t, nil
}

func (b *bench) release(t tensors) error {
	for _, p := range t {
		if err := b.gpu.Free(p); err != nil {
			return err
		}
	}
	return nil
}

// prepare assembles a kernel with a block and gives it its arguments; nil where the block doesn't fit, with the reason.
func (b *bench) prepare(a blublas.Attention, n int, block blublas.AttentionBlock, t tensors) (*gpu.Run, error) {
	a.Block = block
	k, err := kernels[n].build(a, ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), b.gpu.Device)
	if err != nil {
		return nil, err
	}
	f, err := b.gpu.Load(k)
	if err != nil {
		return nil, err
	}
	r := &gpu.Run{F: f, Config: cuda.Config{Grid: k.Grid, Threads: k.Threads, Shared: k.Shared}}
	for _, p := range k.Params {
		at, ok := t[p.Name]
		if !ok {
			return nil, fmt.Errorf("kernel %s: no tensor %q", k.Name, p.Name)
		}
		r.Args = append(r.Args, at)
	}
	return r, nil
}

// times measures every block of each kernel, and PyTorch before and after. Backward is both gradients' kernels, the best of
// each.
func (b *bench) times(s shape) error {
	t, err := b.alloc(s)
	if err != nil {
		return err
	}
	if err := b.fillInputs(s, t); err != nil {
		return err
	}
	question := map[string]any{"do": "time", "precision": s.peerPrecision(), "batch": s.batch, "heads": s.heads, "positions": s.positions, "features": s.features, "reps": b.reps}
	var before, after struct{ Forward, Backward []float64 }
	if err := b.peer.Ask(question, &before); err != nil {
		return err
	}
	var all []result
	best := make([]float64, len(kernels))
	blocks := make([]blublas.AttentionBlock, len(kernels))
	for n, k := range kernels {
		for _, block := range s.attention().Blocks(k.kind) {
			r := result{Kind: "time", Case: s.String(), Kernel: k.name, Block: block}
			run, err := b.prepare(s.attention(), n, block, t)
			if err != nil {
				r.Failure = err.Error()
				fmt.Printf("%-20s %-10s %v: %v\n", s, k.name, block, err)
				all = append(all, r)
				continue
			}
			if r.Millis, err = b.gpu.Time([]gpu.Run{*run}, b.reps); err != nil {
				return err
			}
			if ms := gpu.Median(r.Millis); best[n] == 0 || ms < best[n] {
				best[n], blocks[n] = ms, block
			}
			r.TFLOPS = s.flops(n == 0) / gpu.Median(r.Millis) * 1e-9
			fmt.Printf("%-20s %-10s %8.3f ms %v\n", s, k.name, gpu.Median(r.Millis), block)
			all = append(all, r)
		}
	}
	if err := b.peer.Ask(question, &after); err != nil {
		return err
	}
	forward, backward := append(before.Forward, after.Forward...), append(before.Backward, after.Backward...)
	rate := func(flops, ms float64) float64 { return flops / ms * 1e-9 }
	say := func(what string, ours, theirs float64, forward bool, blocks ...blublas.AttentionBlock) {
		f := s.flops(forward)
		fmt.Printf("%-20s %-10s %8.1f %8.1f %6.2f  %v\n", s, what, rate(f, ours), rate(f, theirs), theirs/ours, blocks)
	}
	if best[0] > 0 {
		say("forward", best[0], gpu.Median(forward), true, blocks[0])
	}
	if best[1] > 0 && best[2] > 0 {
		say("backward", best[1]+best[2], gpu.Median(backward), false, blocks[1], blocks[2])
	}
	for _, r := range all {
		r.Peer = backward
		if r.Kernel == "forward" {
			r.Peer = forward
		}
		r.PeerFLOPS = rate(s.flops(r.Kernel == "forward"), gpu.Median(r.Peer))
		b.results = append(b.results, r)
	}
	return b.release(t)
}

// fillInputs puts normal numbers everywhere, and runs the kernels once, so that lse and delta are what they should be.
func (b *bench) fillInputs(s shape, t tensors) error {
	if err := b.upload(s, t, b.normals(s)); err != nil {
		return err
	}
	return b.all(s, t)
}

// all runs the three kernels with the first block of each that fits.
func (b *bench) all(s shape, t tensors) error {
	var runs []gpu.Run
	for n, k := range kernels {
		a, err := s.attention().Best(k.kind, b.gpu.Device)
		if err != nil {
			return err
		}
		r, err := b.prepare(s.attention(), n, a.Block, t)
		if err != nil {
			return err
		}
		runs = append(runs, *r)
	}
	if err := b.gpu.Launch(runs); err != nil {
		return err
	}
	return b.gpu.Stream.Synchronize()
}

// poison fills results with NaN.
func (b *bench) poison(s shape, t tensors, names []string) error {
	for _, name := range names {
		if err := b.gpu.Ctx.Upload(t[name], slices.Repeat([]byte{0xFF}, int(s.bytes(name)))); err != nil {
			return err
		}
	}
	return nil
}
