package main

import (
	"slices"

	"blutrain/blublas"
	"blutrain/ir"
)

// checkList is every template and epilogue at odd sizes.
func checkList() []check {
	var all []check
	plain := func(out ir.FloatKind) blublas.Options { return blublas.Options{Out: out} }
	full := blublas.Options{Out: ir.BF16, Scale: 0.5, Bias: true, Gelu: true, Keep: true, SumColumns: true}
	backward := blublas.Options{Out: ir.F32, GeluGrad: true, Residual: true, SumColumns: true}
	for _, p := range []struct {
		precision blublas.Precision
		layouts   []string
	}{{blublas.BF16, []string{nt, nn, tn}}, {blublas.TF32, []string{nt}}, {blublas.FP16x3, []string{nt, nn, tn}}, {blublas.BF16x6, []string{nt, nn, tn}}} {
		for _, layout := range p.layouts {
			for _, g := range []blublas.Gemm{
				hopper(p.precision, 128, 128, 3, 2, 1, 1, false), hopper(p.precision, 128, 128, 3, 2, 2, 1, false), hopper(p.precision, 128, 128, 2, 2, 1, 2, false), hopper(p.precision, 128, 64, 3, 2, 1, 1, true),
				hopper(p.precision, 64, 128, 3, 2, 2, 1, true), hopper(p.precision, 128, 192, 2, 2, 1, 3, false), hopper(p.precision, 128, 256, 3, 2, 2, 1, false),
				hopper(p.precision, 128, 192, 2, 2, 2, 2, true), hopper(p.precision, 128, 192, 3, 2, 2, 1, true),
				hopper(p.precision, 192, 192, 3, 3, 1, 2, false),
			} {
				all = append(all, check{g, layout, 517, 777, 392, plain(ir.F32)})
			}
			g := hopper(p.precision, 128, 128, 3, 2, 1, 1, false)
			if p.precision == blublas.BF16x6 {
				g.Stages = 2
			}
			all = append(all, check{g, layout, 333, 516, 1000, full}, check{g, layout, 333, 516, 520, backward},
				check{g, layout, 1, 17, 8, plain(ir.F32)}, check{g, layout, 129, 65, 64, blublas.Options{Out: ir.F32, Accumulate: true}},
				check{hopper(p.precision, 128, 128, 3, 2, 2, 1, false), layout, 3000, 1153, 200, full},
				check{g, layout, 3000, 1153, 200, full},
				check{hopper(p.precision, 128, 128, 3, 2, 1, 1, true), layout, 3000, 1160, 200, full}, // rows that the copy engine can store
				check{hopper(p.precision, 128, 128, 3, 2, 1, 1, true), layout, 3000, 2048, 320, plain(ir.F32)},
				check{hopper(p.precision, 192, 192, 4, 3, 1, 2, false), layout, 3072, 768, 1024, blublas.Options{Out: ir.F32, Accumulate: true}},
				check{hopper(p.precision, 128, 128, 3, 2, 2, 1, true), layout, 5000, 2048, 320, plain(ir.F32)})
		}
	}
	for _, layout := range []string{nt, nn, tn} {
		for _, g := range []blublas.Gemm{simt(128, 16, 1, 1), simt(128, 8, 2, 1), simt(128, 8, 1, 3), simt(256, 16, 2, 2)} {
			all = append(all, check{g, layout, 517, 777, 393, plain(ir.F32)}, check{g, layout, 256, 512, 256, plain(ir.F32)}, check{g, layout, 1, 17, 1, plain(ir.F32)})
		}
		all = append(all, check{simt(128, 8, 1, 1), layout, 333, 516, 1000, full}, check{simt(128, 16, 1, 1), layout, 333, 516, 1000, full}, check{simt(256, 16, 2, 1), layout, 333, 517, 520, backward})
	}
	for _, p := range []blublas.Precision{blublas.BF16, blublas.TF32} {
		for _, layout := range []string{nt, nn, tn} {
			for _, g := range []blublas.Gemm{ampere(p, 128, 3, 1), ampere(p, 128, 3, 2), ampere(p, 256, 2, 1)} {
				all = append(all, check{g, layout, 517, 777, 392, plain(ir.F32)}, check{g, layout, 1, 17, 8, plain(ir.F32)}, check{g, layout, 256, 512, 256, plain(ir.F32)})
			}
			all = append(all, check{ampere(p, 128, 3, 1), layout, 333, 516, 1000, full}, check{ampere(p, 128, 3, 1), layout, 333, 517, 520, backward})
		}
	}
	all = append(all, slices.Concat(oddChecks(), batchChecks())...)
	var fit []check
	for _, c := range all { // two accumulators a thread leave no room for the widest tiles
		if c.gemm().Check(blublas.H200) == nil {
			fit = append(fit, c)
		}
	}
	return fit
}
