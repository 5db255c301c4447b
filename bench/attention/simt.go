package main

import (
	"errors"
	"fmt"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// simtSteps are the kernels on float32 units, forward and backward, by the kernel whose blocks they have.
var simtSteps = map[blublas.AttentionKernel][]func(blublas.Attention, *ir.Builder, blublas.Device) (*blublas.Kernel, error){
	blublas.AttentionForward:  {blublas.Attention.SIMTForward},
	blublas.AttentionGradKeys: {blublas.Attention.SIMTDeltas, blublas.Attention.SIMTGrad, blublas.Attention.SIMTSumQueries},
}

// simtShapes are the shapes of fp32-strict.
func simtShapes() []shape {
	var all []shape
	for _, s := range shapes() {
		if s.precision == blublas.BF16 {
			all = append(all, s.with(blublas.FP32Strict))
		}
	}
	return all
}

// simt compares the kernels on float32 units with float64, and measures them beside PyTorch's.
func (b *bench) simt(s shape) error {
	small := s
	small.batch, small.heads = 1, 2
	if err := b.simtErrors(small); err != nil {
		return err
	}
	t, err := b.allocSIMT(s)
	if err != nil {
		return err
	}
	if err := b.upload(s, t, b.normals(s)); err != nil {
		return err
	}
	question := map[string]any{"do": "time", "precision": s.peerPrecision(), "batch": s.batch, "heads": s.heads, "positions": s.positions, "features": s.features, "reps": b.reps}
	var theirs struct{ Forward, Backward []float64 }
	if err := b.peer.Ask(question, &theirs); err != nil {
		return err
	}
	err = b.eachSIMT(s, t, func(kind blublas.AttentionKernel, block blublas.AttentionBlock, runs []gpu.Run) error {
		forward := kind == blublas.AttentionForward
		r := result{Kind: "time", Case: s.String(), Kernel: "backward", Block: block, Peer: theirs.Backward}
		if forward {
			r.Kernel, r.Peer = "forward", theirs.Forward
		}
		var err error
		if r.Millis, err = b.gpu.Time(runs, b.reps); err != nil {
			return err
		}
		ms, peer := gpu.Median(r.Millis), gpu.Median(r.Peer)
		r.TFLOPS, r.PeerFLOPS = s.flops(forward)/ms*1e-9, s.flops(forward)/peer*1e-9
		fmt.Printf("%-20s %-10s %8.1f %8.1f %6.2f  %v %.3f ms", s, r.Kernel, r.TFLOPS, r.PeerFLOPS, peer/ms, block.Choice(), ms)
		for _, one := range runs {
			part, err := b.gpu.Time([]gpu.Run{one}, b.reps)
			if err != nil {
				return err
			}
			fmt.Printf(" %.3f", gpu.Median(part))
		}
		fmt.Println()
		b.results = append(b.results, r)
		return nil
	})
	return errors.Join(err, b.release(t))
}

// simtErrors compares every block's results with float64.
func (b *bench) simtErrors(s shape) error {
	return b.compare(s, b.allocSIMT, func(c compared) error { return b.simtBlocksErrors(s, c) })
}

func (b *bench) simtBlocksErrors(s shape, c compared) error {
	t := c.t
	return b.eachSIMT(s, t, func(kind blublas.AttentionKernel, block blublas.AttentionBlock, runs []gpu.Run) error {
		written := []int{0}
		if kind != blublas.AttentionForward {
			written = []int{1, 2}
		}
		for _, n := range written {
			if err := b.poison(s, t, kernels[n].results); err != nil {
				return err
			}
		}
		if err := errors.Join(b.gpu.Launch(runs), b.gpu.Stream.Synchronize()); err != nil {
			return err
		}
		for _, n := range written {
			if err := b.judge(s, t, n, block, with(c.question, "compare"), c.theirs); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachSIMT goes over the blocks, those of forward first, whose results backward reads.
func (b *bench) eachSIMT(s shape, t tensors, use func(blublas.AttentionKernel, blublas.AttentionBlock, []gpu.Run) error) error {
	for _, kind := range []blublas.AttentionKernel{blublas.AttentionForward, blublas.AttentionGradKeys} {
		for _, block := range s.attention().SIMTBlocks(kind) {
			a := s.attention()
			a.Block = block
			var runs []gpu.Run
			for _, build := range simtSteps[kind] {
				k, err := build(a, ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), b.gpu.Device)
				if err != nil {
					return err
				}
				r, err := b.ready(k, t)
				if err != nil {
					return fmt.Errorf("%s: %w", k.Name, err)
				}
				runs = append(runs, *r)
			}
			if err := use(kind, block, runs); err != nil {
				return err
			}
		}
	}
	return nil
}

// allocSIMT is a shape's memory, with the parts of queries' gradients of any block.
func (b *bench) allocSIMT(s shape) (tensors, error) {
	t, err := b.alloc(s)
	if err != nil {
		return nil, err
	}
	most := int64(0)
	for _, block := range s.attention().SIMTBlocks(blublas.AttentionGradKeys) {
		a := s.attention()
		a.Block = block
		most = max(most, a.SIMTPartialBytes(b.gpu.Device))
	}
	t["parts"], err = b.gpu.Ctx.Alloc(most)
	return t, err
}
