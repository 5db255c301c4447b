package main

import (
	"cmp"
	"fmt"
	"slices"

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

// The linear layers of GPT-2 124M at 16384 tokens, in the three directions, and a square.
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
		shape{"fused fc weight", tn, 3072, 768, tokens, blublas.Options{Accumulate: true}})
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
func simt(bn, bk, split int) blublas.Gemm {
	return blublas.Gemm{Precision: blublas.FP32Strict, Unit: blublas.SIMT, Target: ptx.SM80, BM: 128, BN: bn, BK: bk, SplitK: split}
}

// ampere is a kernel on the tensor cores before Hopper.
func ampere(p blublas.Precision, bn, stages, split int) blublas.Gemm {
	depth := 64
	if p == blublas.TF32 {
		depth = 32
	}
	return blublas.Gemm{Precision: p, Unit: blublas.MMA, Target: ptx.SM80, BM: 128, BN: bn, BK: depth, Stages: stages, SplitK: split}
}

// tilings lists the tile shapes that are tried for a precision.
func tilings(p blublas.Precision, older bool) []blublas.Gemm {
	if older && p != blublas.FP32Strict {
		return []blublas.Gemm{ampere(p, 128, 3, 1), ampere(p, 128, 4, 1), ampere(p, 256, 3, 1), ampere(p, 256, 2, 1)}
	}
	switch p {
	case blublas.BF16, blublas.TF32:
		return []blublas.Gemm{hopper(p, 128, 128, 6, 2, 1, 1, true), hopper(p, 128, 192, 4, 2, 1, 1, true), hopper(p, 128, 256, 4, 2, 1, 1, false),
			hopper(p, 128, 256, 4, 2, 2, 1, false)}
	case blublas.FP16x3:
		return []blublas.Gemm{hopper(p, 128, 192, 2, 2, 1, 1, false), hopper(p, 128, 128, 3, 2, 1, 1, false), hopper(p, 64, 128, 4, 2, 1, 1, true)}
	}
	if p == blublas.BF16x6 {
		return []blublas.Gemm{hopper(p, 128, 128, 2, 2, 1, 1, false)}
	}
	return []blublas.Gemm{simt(128, 8, 1), simt(128, 16, 1), simt(256, 8, 1), simt(256, 16, 1)}
}

// float32 sums of more products than this are made of parts, as cuBLAS does: a single chain's error grows with its length.
const longest = 4096

// candidates lists what is tried for a shape: each tile shape that it can have, with the numbers of parts of K that the
// cost model likes best, best first.
func candidates(p blublas.Precision, s shape, layout string, out ir.FloatKind, d blublas.Device, older bool) []blublas.Gemm {
	var all []blublas.Gemm
	for _, g := range tilings(p, older) {
		g = with(g, layout, s.m, s.n, s.k)
		o := s.fused
		o.Out = out
		g.Epilogue = blublas.Standard(o)
		var fit []blublas.Gemm
		least := 1
		if p == blublas.FP32Strict {
			least = (s.k + longest - 1) / longest
		}
		for split := least; split <= max(16, least); split++ {
			g.SplitK = split
			if g.Check(d) == nil {
				fit = append(fit, g)
			}
		}
		byCost(fit, d)
		all = append(all, fit[:min(len(fit), 2)]...)
	}
	byCost(all, d)
	return all
}

func byCost(gs []blublas.Gemm, d blublas.Device) {
	slices.SortStableFunc(gs, func(a, b blublas.Gemm) int { return cmp.Compare(a.Cost(d).Seconds, b.Cost(d).Seconds) })
}
