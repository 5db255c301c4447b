package main

import (
	"fmt"
	"strconv"
	"strings"

	"blutrain/blublas"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// shape is a product that is timed.
type shape struct {
	name    string
	layout  string
	m, n, k int
	fused   blublas.Options // what the kernel does beside the product; cuBLAS does the product alone
}

// The linear layers of GPT-2 124M at 16384 tokens, in the three directions, squares, products as programs fuse them, and the
// head's for 2048 tokens at a time.
func shapes() []shape {
	const tokens = 16384
	var all []shape
	for _, l := range []struct {
		name string
		n, k int
	}{{"qkv", 2304, 768}, {"proj", 768, 768}, {"fc", 3072, 768}, {"out", 768, 3072}, {"head", 50304, 768}} {
		all = append(all,
			shape{name: l.name + " forward", layout: nt, m: tokens, n: l.n, k: l.k},
			shape{name: l.name + " input", layout: nn, m: tokens, n: l.k, k: l.n},
			shape{name: l.name + " weight", layout: tn, m: l.n, n: l.k, k: tokens})
	}
	for _, n := range []int{4096, 8192} {
		all = append(all, shape{name: fmt.Sprintf("square %d", n), layout: nt, m: n, n: n, k: n})
	}
	return append(all,
		shape{"fused fc forward", nt, tokens, 3072, 768, blublas.Options{Bias: true, Gelu: true, Keep: true}},
		shape{"fused out forward", nt, tokens, 768, 3072, blublas.Options{Bias: true, Residual: true}},
		shape{"fused out input", nn, tokens, 3072, 768, blublas.Options{GeluGrad: true, SumColumns: true}},
		shape{"fused out input beside", nn, tokens, 3072, 768, blublas.Options{GeluGrad: true, GeluBeside: true, SumColumns: true}},
		shape{"fused fc weight", tn, 3072, 768, tokens, blublas.Options{Accumulate: true}},
		shape{name: "chunk forward", layout: nt, m: 2048, n: 50304, k: 768},
		shape{"fused chunk weight", tn, 50304, 768, 2048, blublas.Options{Accumulate: true}})
}

// hopper is a wgmma kernel.
func hopper(p blublas.Precision, bm, bn, stages, consumers, cluster, split int, pingpong bool) blublas.Gemm {
	depth := 64
	if p == blublas.TF32 {
		depth = 32
	}
	return blublas.Gemm{Precision: p, Unit: blublas.WGMMA, Target: ptx.SM90A, BM: bm, BN: bn, BK: depth, Stages: stages, Consumers: consumers,
		Cluster: cluster, SplitK: split, Pingpong: pingpong}
}

// simt is a kernel on the float32 units.
func simt(bn, bk, warpgroups, split int) blublas.Gemm {
	return blublas.Gemm{Precision: blublas.FP32Strict, Unit: blublas.SIMT, Target: ptx.SM80, BM: 128, BN: bn, BK: bk, Consumers: warpgroups, SplitK: split}
}

// ampere is a kernel on the tensor cores before Hopper.
func ampere(p blublas.Precision, bn, stages, split int) blublas.Gemm {
	depth := 64
	if p == blublas.TF32 {
		depth = 32
	}
	return blublas.Gemm{Precision: p, Unit: blublas.MMA, Target: ptx.SM80, BM: 128, BN: bn, BK: depth, Stages: stages, SplitK: split}
}

// candidates lists what is tried for a shape, by predicted time.
func (b *bench) candidates(p blublas.Precision, s shape, layout string, out ir.FloatKind) []blublas.Gemm {
	o := s.fused
	if o.Out = out; o.Residual || o.Accumulate { // as compiled programs do
		o.Out = ir.F32
	}
	g := with(blublas.Gemm{Precision: p}, layout, s.m, s.n, s.k)
	g.Epilogue = blublas.Standard(o)
	d := b.gpu.Device
	if b.older {
		d.Target = ptx.SM80
	}
	if len(b.choices) == 0 {
		return blublas.Candidates(g, d)
	}
	var all []blublas.Gemm
	for _, c := range b.choices {
		h := hopper(p, c.BM, c.BN, c.Stages, c.Consumers, c.Cluster, c.SplitK, c.Pingpong)
		h.M, h.N, h.K, h.A, h.B, h.Epilogue = g.M, g.N, g.K, g.A, g.B, g.Epilogue
		if h.Check(d) == nil {
			all = append(all, h)
		}
	}
	return all
}

// choose reads what kernels are to be timed.
func (b *bench) choose(list string) error {
	for choice := range strings.SplitSeq(list, ";") {
		words := strings.Fields(choice)
		if len(words) == 0 {
			continue
		}
		g := blublas.Gemm{Consumers: 2, Cluster: 1, SplitK: 1}
		if n, err := fmt.Sscanf(words[0], "%dx%d", &g.BM, &g.BN); n < 2 {
			return fmt.Errorf("choice %q: %w; expected a tile such as 128x192 first", choice, err)
		}
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			at := map[string]*int{"stages": &g.Stages, "warpgroups": &g.Consumers, "cluster": &g.Cluster, "split": &g.SplitK}[name]
			switch n, err := strconv.Atoi(value); {
			case w == "turns":
				g.Pingpong = true
			case at == nil || err != nil:
				return fmt.Errorf("choice %q: %q is none of stages=N, warpgroups=N, cluster=N, split=N, turns", choice, w)
			default:
				*at = n
			}
		}
		b.choices = append(b.choices, g)
	}
	return nil
}
