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
	batch   int             // products of so many pairs of matrices; 0: one product
	fused   blublas.Options // what the kernel does beside the product; cuBLAS does the product alone
}

// The linear layers of GPT-2 124M at 16384 tokens, in the three directions, squares, products as programs fuse them, the
// head's for 2048 tokens at a time, attention's products without a template of its own for 192 heads and a batch of squares, and
// products of which no extent, or only one, is a multiple of 8.
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
	for _, n := range []int{1024, 2048, 4096, 8192} {
		all = append(all, shape{name: fmt.Sprintf("square %d", n), layout: nt, m: n, n: n, k: n})
	}
	all = append(all,
		shape{name: "fused fc forward", layout: nt, m: tokens, n: 3072, k: 768, fused: blublas.Options{Bias: true, Gelu: true, Keep: true}},
		shape{name: "fused out forward", layout: nt, m: tokens, n: 768, k: 3072, fused: blublas.Options{Bias: true, Residual: true}},
		shape{name: "fused out input", layout: nn, m: tokens, n: 3072, k: 768, fused: blublas.Options{GeluGrad: true, SumColumns: true}},
		shape{name: "fused out input beside", layout: nn, m: tokens, n: 3072, k: 768, fused: blublas.Options{GeluGrad: true, GeluBeside: true, SumColumns: true}},
		shape{name: "fused fc weight", layout: tn, m: 3072, n: 768, k: tokens, fused: blublas.Options{Accumulate: true}},
		shape{name: "chunk forward", layout: nt, m: 2048, n: 50304, k: 768},
		shape{name: "fused chunk weight", layout: tn, m: 50304, n: 768, k: 2048, fused: blublas.Options{Accumulate: true}},
		shape{name: "batch scores", layout: nt, m: 1024, n: 1024, k: 64, batch: 192},
		shape{name: "batch values", layout: nn, m: 1024, n: 64, k: 1024, batch: 192},
		shape{name: "batch keys", layout: tn, m: 1024, n: 64, k: 1024, batch: 192},
		shape{name: "batch 512", layout: nn, m: 512, n: 512, k: 512, batch: 64})
	for _, layout := range []string{nt, nn, tn} {
		all = append(all,
			shape{name: "odd 1000 " + layout, layout: layout, m: 1000, n: 1537, k: 513},
			shape{name: "odd 4095 " + layout, layout: layout, m: 4095, n: 3071, k: 1023})
	}
	return all
}

// in reports whether there are products of the shape in a precision: there are no planes of a batch, whose products programs compute on the
// float32 units where they promise float32's errors.
func (s shape) in(p blublas.Precision) bool { return s.batch == 0 || !planes(p) }

// layoutFor is the layout in which a precision's kernels are timed: those of tf32 get K-major copies, as their producers write them; programs
// make none of a batch.
func (s shape) layoutFor(p blublas.Precision) string {
	if p == blublas.TF32 && s.batch == 0 {
		return nt
	}
	return s.layout
}

// outFor is what results are stored as.
func outFor(p blublas.Precision) ir.FloatKind {
	if p == blublas.BF16 {
		return ir.BF16
	}
	return ir.F32
}

// flops is the multiplications and additions of all products.
func (s shape) flops() float64 {
	return 2 * float64(s.products()) * float64(s.m) * float64(s.n) * float64(s.k)
}

// products is how many there are.
func (s shape) products() int { return max(1, s.batch) }

// laid is how a program's operands lie: those of the float32 units as parameters and inputs do, one row after the other as in PyTorch's
// tensors; what other units read has rows that are longer where need be.
func (s shape) laid(p blublas.Precision, layout string) blublas.Gemm {
	g := blublas.Gemm{Precision: p}
	if s.batch > 0 {
		g = batched(g, s.batch)
	}
	if p == blublas.FP32Strict {
		return dense(g, layout, s.m, s.n, s.k)
	}
	return with(g, layout, s.m, s.n, s.k)
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
	if !s.in(p) {
		return nil
	}
	o := s.fused
	if o.Out = out; o.Residual || o.Accumulate { // as compiled programs do
		o.Out = ir.F32
	}
	g := s.laid(p, layout)
	g.Epilogue = blublas.Standard(o)
	d := b.gpu.Device
	if b.older {
		d.Target = ptx.SM80
	}
	if len(b.choices) == 0 {
		all := blublas.Candidates(g, d)
		return all[:min(len(all), b.most)]
	}
	var all []blublas.Gemm
	for _, c := range b.choices {
		h := hopper(p, c.BM, c.BN, c.Stages, c.Consumers, c.Cluster, c.SplitK, c.Pingpong)
		h.M, h.N, h.K, h.A, h.B, h.Batch, h.Epilogue = g.M, g.N, g.K, g.A, g.B, g.Batch, g.Epilogue
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
