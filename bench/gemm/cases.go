package main

import (
	"cmp"
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
			shape{l.name + " forward", nt, tokens, l.n, l.k},
			shape{l.name + " input", nn, tokens, l.k, l.n},
			shape{l.name + " weight", tn, l.n, l.k, tokens})
	}
	return append(all, shape{"square 4096", nt, 4096, 4096, 4096}, shape{"square 8192", nt, 8192, 8192, 8192})
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
func tilings(p blublas.Precision) []blublas.Gemm {
	switch p {
	case blublas.BF16, blublas.TF32:
		return []blublas.Gemm{hopper(p, 128, 128, 6, 2, 1, 1, true), hopper(p, 128, 192, 4, 2, 1, 1, true), hopper(p, 128, 256, 4, 2, 1, 1, false),
			hopper(p, 128, 256, 4, 2, 2, 1, false)}
	case blublas.FP16x3:
		return []blublas.Gemm{hopper(p, 128, 192, 2, 2, 1, 1, false), hopper(p, 128, 128, 3, 2, 1, 1, false), hopper(p, 64, 128, 4, 2, 1, 1, true)}
	}
	return []blublas.Gemm{simt(128, 8, 1), simt(256, 16, 1)}
}

// float32 sums of more products than this are made of parts, as cuBLAS does: a single chain's error grows with its length.
const longest = 4096

// candidates lists what is tried for a shape: each tile shape that it can have, with the numbers of parts of K that the
// cost model likes best, best first.
func candidates(p blublas.Precision, s shape, layout string, out ir.FloatKind, d blublas.Device) []blublas.Gemm {
	var all []blublas.Gemm
	for _, g := range tilings(p) {
		g = with(g, layout, s.m, s.n, s.k)
		g.Epilogue = blublas.Standard(blublas.Options{Out: out})
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
