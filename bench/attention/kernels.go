package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	codegen "blutrain/codegen/ptx"
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

// split is the kernels that write planes: of what forward reads, or of what the gradients do.
func (s shape) split(forward bool) blublas.AttentionSplit {
	tensors := []string{"q", "k", "v", "do"}
	if forward {
		tensors = tensors[:3]
	}
	return blublas.AttentionSplit{Attention: s.attention(), Tensors: tensors}
}

// bytes is the size of a tensor.
func (s shape) bytes(name string) int64 {
	tensor, part, _ := strings.Cut(name, ".")
	switch {
	case part == "planes":
		return s.split(false).PlaneBytes(tensor)
	case part == "scales":
		return s.split(false).ScaleBytes(tensor)
	case name == "flags":
		return 4 * int64(s.split(false).Flags())
	case name == "unfit":
		return s.split(false).UnfitBytes()
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

// inPlanes is whether kernels read planes of float16.
func (s shape) inPlanes() bool { return s.precision == blublas.FP16x3 || s.precision == blublas.FP16 }

// names is the tensors that kernels of a shape work on.
func (s shape) names() []string {
	all := []string{"q", "k", "v", "do", "o", "lse", "dq", "delta", "dk", "dv"}
	if s.inPlanes() {
		for _, t := range s.split(false).Tensors {
			all = append(all, t+".planes", t+".scales")
		}
		all = append(all, "flags", "unfit")
	}
	return all
}

// tensors is a shape's memory.
type tensors map[string]cuda.Pointer

func (b *bench) alloc(s shape) (tensors, error) {
	t := tensors{}
	for _, name := range s.names() {
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

// spill says that a kernel has more values than registers.
type spill int

func (n spill) Error() string { return fmt.Sprintf("spills %d bytes", int(n)) }

// mostSpilled is the bytes that a kernel may spill: what blublas/testdata/ptxas.txt has at most, of the gradients of keys of 128
// features in tf32x3, which programs of fp32 have.
const mostSpilled = 160

// prepare assembles a kernel with a block and gives it its arguments; an error where the block doesn't fit or spills.
func (b *bench) prepare(a blublas.Attention, n int, block blublas.AttentionBlock, t tensors) (*gpu.Run, error) {
	a.Block = block
	k, err := kernels[n].build(a, ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), b.gpu.Device)
	if err != nil {
		return nil, err
	}
	return b.ready(k, t)
}

// ready assembles a kernel and gives it its arguments.
func (b *bench) ready(k *blublas.Kernel, t tensors) (*gpu.Run, error) {
	f := b.loaded[k.Name]
	if f == nil {
		text, err := codegen.Print(k.Op)
		if err != nil {
			return nil, err
		}
		if f, err = b.gpu.LoadText(k.Name, text, k.Shared); err != nil {
			return nil, err
		}
		b.loaded[k.Name] = f
	}
	if f.Local > mostSpilled {
		return nil, spill(f.Local)
	}
	r := &gpu.Run{F: f, Config: cuda.Config{Grid: k.Grid, Threads: k.Threads, Shared: k.Shared}}
	for _, p := range k.Params {
		at, ok := t[p.Name]
		if !ok {
			return nil, fmt.Errorf("kernel %s: no tensor %q", k.Name, p.Name)
		}
		if p.Map == nil {
			r.Args = append(r.Args, at)
			continue
		}
		dims, strides, box := p.Map.Dims[:], []int{p.Map.Pitch}, p.Map.Box[:]
		for _, o := range p.Map.Outer {
			dims, strides, box = append(dims, o.Size), append(strides, o.Pitch), append(box, 1)
		}
		m, err := b.gpu.Ctx.Tiled(map[string]cuda.Element{"bf16": cuda.BFloat16, "f16": cuda.Float16}[p.Map.Element], at, dims, strides, box, cuda.Swizzle128)
		if err != nil {
			return nil, err
		}
		r.Args = append(r.Args, m)
	}
	return r, nil
}

// planes is the runs that write planes, and find heads that they don't fit; none where the precision has none.
func (b *bench) planes(s shape, t tensors, forward bool) ([]gpu.Run, error) {
	if !s.inPlanes() {
		return nil, nil
	}
	at := ir.NewBuilder(ir.NewContext(ptx.Dialect), nil)
	split, err := s.split(forward).Build(at)
	if err != nil {
		return nil, err
	}
	var runs []gpu.Run
	for _, k := range []*blublas.Kernel{split, s.split(forward).BuildUnfit(at)} {
		r, err := b.ready(k, t)
		if err != nil {
			return nil, err
		}
		runs = append(runs, *r)
	}
	return runs, nil
}

// times measures every block of each kernel, and PyTorch before and after. Backward is both gradients' kernels, the best of
// each; forward and backward each have the kernels that write planes before them.
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
	planes := map[bool]float64{}
	for _, forward := range []bool{true, false} {
		runs, err := b.planes(s, t, forward)
		if err != nil {
			return err
		}
		if runs == nil {
			continue
		}
		r := result{Kind: "time", Case: s.String(), Kernel: fmt.Sprintf("planes of %d", len(s.split(forward).Tensors))}
		if r.Millis, err = b.gpu.Time(runs, b.reps); err != nil {
			return err
		}
		planes[forward] = gpu.Median(r.Millis)
		fmt.Printf("%-20s %-10s %8.3f ms\n", s, r.Kernel, planes[forward])
		all = append(all, r)
	}
	best := make([]float64, len(kernels))
	blocks := make([]blublas.AttentionBlock, len(kernels))
	for n, k := range kernels {
		for _, block := range s.attention().Blocks(k.kind) {
			r := result{Kind: "time", Case: s.String(), Kernel: k.name, Block: block}
			run, err := b.prepare(s.attention(), n, block, t)
			if err != nil {
				r.Failure = err.Error()
				fmt.Printf("%-20s %-10s %v: %v\n", s, k.name, block.Choice(), err)
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
			fmt.Printf("%-20s %-10s %8.3f ms %v\n", s, k.name, gpu.Median(r.Millis), block.Choice())
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
		fmt.Printf("%-20s %-10s %8.1f %8.1f %6.2f ", s, what, rate(f, ours), rate(f, theirs), theirs/ours)
		for _, block := range blocks {
			fmt.Printf(" [%s]", block.Choice())
		}
		fmt.Println()
	}
	if best[0] > 0 {
		say("forward", best[0]+planes[true], gpu.Median(forward), true, blocks[0])
	}
	if best[1] > 0 && best[2] > 0 {
		say("backward", best[1]+best[2]+planes[false], gpu.Median(backward), false, blocks[1], blocks[2])
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

// all runs the three kernels with the first block of each that fits, of three tf32 products where there is none of planes.
func (b *bench) all(s shape, t tensors) error {
	runs, err := b.planes(s, t, false)
	if err != nil {
		return err
	}
	for n, k := range kernels {
		var r *gpu.Run
		shapes := []shape{s}
		if s.inPlanes() {
			shapes = append(shapes, s.with(blublas.TF32x3))
		}
		err := fmt.Errorf("no block of %s", k.name)
		for _, s := range shapes {
			for _, block := range s.attention().Blocks(k.kind) {
				if r == nil {
					r, err = b.prepare(s.attention(), n, block, t)
				}
			}
		}
		if r == nil {
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
