package main

import (
	"blutrain/blublas"
	"blutrain/ir"
)

// oddChecks is products of which no extent is even: rows that the copy engine and background copies read are a little longer than K, or than an
// extent, and the float32 units read rows that follow each other.
func oddChecks() (all []check) {
	const m, n, k = 519, 775, 263
	add := func(g blublas.Gemm, layout string, out ir.FloatKind) {
		all = append(all, check{g, layout, m, n, k, blublas.Options{Out: out}})
	}
	for _, layout := range []string{nt, nn, tn} {
		for _, p := range []blublas.Precision{blublas.BF16, blublas.TF32, blublas.FP16x3, blublas.BF16x6} {
			if p == blublas.TF32 && layout != nt {
				continue
			}
			for _, g := range []blublas.Gemm{hopper(p, 128, 128, 2, 2, 1, 1, false), hopper(p, 128, 192, 4, 2, 1, 1, true), hopper(p, 64, 128, 4, 2, 1, 1, true), hopper(p, 128, 128, 2, 2, 1, 3, false)} {
				add(g, layout, ir.F32)
			}
		}
		add(hopper(blublas.BF16, 128, 192, 4, 2, 1, 1, true), layout, ir.BF16)
		for _, p := range []blublas.Precision{blublas.BF16, blublas.TF32} {
			add(ampere(p, 128, 3, 1), layout, ir.F32)
		}
		for _, g := range []blublas.Gemm{simt(128, 16, 1, 1), simt(128, 8, 2, 1), simt(256, 16, 2, 2)} {
			add(dense(g, layout, m, n, k), layout, ir.F32)
		}
	}
	return all
}

// batchChecks is products of several pairs of matrices: odd ones, those of attention in small, with parts of K, and with what an epilogue reads.
func batchChecks() (all []check) {
	const count = 5
	plain, half, residual := blublas.Options{Out: ir.F32}, blublas.Options{Out: ir.BF16}, blublas.Options{Out: ir.F32, Residual: true}
	add := func(layout string, o blublas.Options, gs ...blublas.Gemm) {
		for _, g := range gs {
			g = batched(g, count)
			all = append(all, check{g, layout, 133, 77, 199, o}, check{g, layout, 256, 192, 64, o}, check{g, layout, 256, 64, 256, o})
		}
	}
	for _, layout := range []string{nt, nn, tn} {
		add(layout, plain, hopper(blublas.BF16, 128, 128, 6, 2, 1, 1, true), hopper(blublas.BF16, 128, 256, 4, 2, 1, 1, false), hopper(blublas.BF16, 128, 128, 3, 2, 2, 1, false))
		add(layout, half, hopper(blublas.BF16, 128, 192, 4, 2, 1, 1, false), ampere(blublas.BF16, 128, 3, 1))
		add(layout, residual, hopper(blublas.BF16, 128, 192, 4, 2, 1, 1, false), ampere(blublas.TF32, 128, 3, 1), simt(128, 16, 1, 1))
		add(layout, plain, ampere(blublas.TF32, 256, 2, 1), simt(128, 8, 2, 1))
		if layout == nt {
			add(layout, plain, hopper(blublas.TF32, 128, 128, 6, 2, 1, 1, true), hopper(blublas.TF32, 128, 192, 4, 2, 1, 1, false))
		}
		for _, g := range []blublas.Gemm{hopper(blublas.BF16, 128, 128, 4, 2, 1, 2, true), ampere(blublas.TF32, 128, 3, 2), simt(256, 16, 2, 2)} { // parts of K
			all = append(all, check{batched(g, count), layout, 133, 77, 199, residual})
		}
		all = append(all, check{dense(batched(simt(128, 16, 1, 1), count), layout, 133, 77, 199), layout, 133, 77, 199, plain})
	}
	return all
}
