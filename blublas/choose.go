package blublas

import (
	"cmp"
	"slices"

	"blutrain/dialects/ptx"
)

// longest is how many products a chain of float32 sums may have: its error grows with its length, so longer ones are made
// of parts, as cuBLAS does. Measured at 16384: 2.3e-6 in one chain, 7.0e-7 in parts, SGEMM 7.7e-7.
const longest = 4096

// mostParts bounds the search for the number of parts of K.
const mostParts = 16

// Candidates completes a product, of which extents, precision, operands and epilogue are given, to the kernels worth trying
// on a device, by predicted time: for each tile shape that fits, the two best numbers of parts of K. There is none where
// the product can't be made at all: Explain says why.
func Candidates(g Gemm, d Device) []Gemm { return best(splits(tilings(g, d), d), d) }

// Measurable is Candidates and kernels of other tile shapes, which prediction doesn't choose.
func Measurable(g Gemm, d Device) []Gemm {
	return best(splits(slices.Concat(tilings(g, d), moreTilings(g, d)), d), d)
}

// Find is the kernel that a choice, made by Gemm.Choice earlier, stands for: one of a tile shape that Measurable tries, with any number
// of parts of K. ok is false where it is none of these.
func Find(g Gemm, d Device, choice string) (found Gemm, ok bool) {
	for _, fit := range splits(slices.Concat(tilings(g, d), moreTilings(g, d)), d) {
		for _, t := range fit {
			if t.Choice() == choice {
				return t, true
			}
		}
	}
	return g, false
}

// splits is, for each tile shape, the numbers of parts of K with which it can be built.
func splits(tilings []Gemm, d Device) (all [][]Gemm) {
	for _, t := range tilings {
		var fit []Gemm
		least := 1
		if t.Unit == WGMMA && t.Consumers == 3 {
			least = 2 // of other epilogues than that of parts nothing is hidden behind products: 298 us for 275 were measured, of 50304 x 768
		}
		if _, planes := t.elem(); !t.Epilogue.Sums && (t.Unit == SIMT || planes > 1) {
			least = ceil(t.K, longest)
		}
		for t.SplitK = least; t.SplitK <= max(mostParts, least); t.SplitK++ {
			if g := t.withRoom(); g.Check(d) == nil && !g.spills() {
				fit = append(fit, g)
			}
		}
		all = append(all, fit)
	}
	return all
}

// best is the two best of each list, by predicted time.
func best(splits [][]Gemm, d Device) (all []Gemm) {
	for _, fit := range splits {
		byCost(fit, d)
		all = append(all, fit[:min(len(fit), 2)]...)
	}
	byCost(all, d)
	return all
}

// Explain says why a product has no candidates.
func Explain(g Gemm, d Device) error {
	var err error
	for _, t := range tilings(g, d) {
		t.SplitK = 1
		err = t.Check(d)
	}
	return err
}

func byCost(gs []Gemm, d Device) {
	slices.SortStableFunc(gs, func(a, b Gemm) int { return cmp.Compare(a.Cost(d).Seconds, b.Cost(d).Seconds) })
}

// tilings lists the tile shapes that were found useful for a precision, see bench/NOTES.md; those for tensor cores of before Hopper
// where the device has no others, or wgmma can't read the operands.
func tilings(g Gemm, d Device) []Gemm {
	g.Target = d.Target
	if g.Precision == FP32Strict {
		return []Gemm{g.onSIMT(128, 16, 1), g.onSIMT(128, 8, 1), g.onSIMT(128, 8, 2), g.onSIMT(256, 16, 2)}
	}
	_, planes := g.elem()
	if d.Target != ptx.SM90A && planes == 1 || g.unreadable() {
		return []Gemm{g.onMMA(128, 3), g.onMMA(128, 4), g.onMMA(256, 2), g.onMMA(256, 3)}
	}
	switch planes {
	case 2:
		return []Gemm{g.onWGMMA(128, 192, 2, false), g.onWGMMA(128, 128, 3, false), g.onWGMMA(64, 128, 4, true)}
	case 3:
		return []Gemm{g.onWGMMA(128, 128, 2, false)}
	}
	all := []Gemm{g.onWGMMA(128, 128, 6, true), g.onWGMMA(128, 192, 4, true), g.onWGMMA(192, 128, 4, true), g.onWGMMA(128, 256, 4, false)}
	if g.Precision == BF16 { // measured in no other
		all = append(all, g.onWGMMA(192, 192, 4, false).by(3))
	}
	if g.few(d) {
		all = append(all, g.onWGMMA(64, 128, 8, true))
	}
	return all
}

// few reports whether tiles of 128 x 128 leave half of the multiprocessors without any, and parts of K would be short.
func (g Gemm) few(d Device) bool {
	return g.K <= 2048 && ceil(g.M, 128)*ceil(g.N, 128)*g.matrices() <= d.SMs/2
}

// unreadable reports whether wgmma can't read operands that nobody copies: tf32 that isn't K-major, of a batch.
func (g Gemm) unreadable() bool {
	return g.Precision == TF32 && len(g.Batch) > 0 && (g.A.MNMajor || g.B.MNMajor)
}

// moreTilings lists tile shapes that are the best for some products only, and not by much: that is for measurements to tell. Of the products of
// GPT-2 ptxas spills 4 bytes in some with 256 x 192, in the others none.
func moreTilings(g Gemm, d Device) []Gemm {
	g.Target = d.Target
	switch _, planes := g.elem(); {
	case g.Precision == FP32Strict || d.Target != ptx.SM90A || g.unreadable():
		return nil
	case planes == 2:
		return []Gemm{g.onWGMMA(64, 192, 3, true)}
	case planes == 1:
		all := []Gemm{g.onWGMMA(128, 128, 6, false), g.onWGMMA(128, 192, 4, false), g.onWGMMA(256, 128, 4, false), g.onWGMMA(256, 192, 3, false),
			g.onWGMMA(64, 192, 5, true), g.onWGMMA(64, 256, 4, true)}
		if !g.few(d) { // else it is among those that prediction chooses from
			all = append(all, g.onWGMMA(64, 128, 8, true))
		}
		return all
	}
	return nil
}

func (g Gemm) onSIMT(bn, bk, warpgroups int) Gemm {
	g.Unit, g.BM, g.BN, g.BK, g.Consumers = SIMT, 128, bn, bk, warpgroups
	return g
}

func (g Gemm) onMMA(bn, stages int) Gemm {
	size, _ := g.elem()
	g.Unit, g.BM, g.BN, g.BK, g.Stages = MMA, 128, bn, rowBytes/size, stages
	return g
}

func (g Gemm) onWGMMA(bm, bn, stages int, pingpong bool) Gemm {
	size, _ := g.elem()
	g.Unit, g.BM, g.BN, g.BK, g.Stages = WGMMA, bm, bn, rowBytes/size, stages
	g.Consumers, g.Cluster, g.Pingpong = 2, 1, pingpong
	return g
}

// by has so many consumers.
func (g Gemm) by(consumers int) Gemm {
	g.Consumers = consumers
	return g
}

// spills reports whether ptxas spills in the epilogue: sums of columns and places in a batch need registers beside the accumulators.
func (g Gemm) spills() bool {
	if g.Unit != WGMMA {
		return false
	}
	rows := g.rowsPerConsumer()
	return g.Epilogue.Sums && rows > 128 || len(g.Batch) > 0 && rows*g.BN > 128*128
}

// withRoom has a stage less if there isn't room for half of what the epilogue reads of a tile.
func (g Gemm) withRoom() Gemm {
	less := g
	less.Stages--
	if g.Unit != WGMMA || less.Stages < 2 || less.planWGMMA().fetching == nil {
		return g
	}
	if f := g.planWGMMA().fetching; f != nil && 2*f.slots >= f.steps {
		return g
	}
	return less
}
