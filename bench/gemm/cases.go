package main

import (
	"blutrain/blublas"
	"blutrain/dialects/ptx"
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

// candidates lists the configurations that are tried for a precision; those that a shape or layout can't have are left
// out by Check.
func candidates(p blublas.Precision, s shape) []blublas.Gemm {
	var all []blublas.Gemm
	splits := []int{1}
	if s.layout == tn {
		splits = []int{1, 2, 4}
	}
	for _, split := range splits {
		switch p {
		case blublas.BF16, blublas.TF32:
			all = append(all, hopper(p, 128, 128, 6, 2, 1, split, true), hopper(p, 128, 192, 4, 2, 1, split, true), hopper(p, 128, 256, 4, 2, 1, split, false),
				hopper(p, 64, 256, 4, 2, 1, split, true), hopper(p, 128, 256, 4, 2, 2, split, false), hopper(p, 128, 128, 6, 2, 2, split, true))
		case blublas.FP32Strict:
			all = append(all, simt(128, 16, split), simt(256, 16, split), simt(128, 8, split), simt(256, 8, split))
		case blublas.FP16x3:
			all = append(all, hopper(p, 128, 128, 3, 2, 1, split, false), hopper(p, 128, 192, 2, 2, 1, split, false), hopper(p, 64, 128, 4, 2, 1, split, true),
				hopper(p, 128, 192, 2, 2, 2, split, false))
		}
	}
	return all
}
