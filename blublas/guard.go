package blublas

import (
	"fmt"
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Guard is which part of what there is to do a kernel does, where another does the rest.
type Guard int

const (
	Always    Guard = iota
	WhenClear       // what planes hold
	WhenSet         // what they don't
)

// refuge is the kernel's share of a product whose operands planes don't hold: the consumers compute it on the float32 units, of the
// operands themselves.
type refuge struct {
	*simt
	args []*ir.Value // the operands
}

// refugeBarrier is the named barrier of both consumers.
const refugeBarrier = 3

// checkRefuge says why a kernel can't have the refuge that it is to have, or nil.
func (g Gemm) checkRefuge(d Device, fail func(string, ...any) error) error {
	r := g.Refuge
	switch {
	case r == nil && g.Flags == [2]int{}:
		return nil
	case r == nil || min(g.Flags[0], g.Flags[1]) < 1 || g.Precision != FP16x3 || g.Unit != WGMMA || g.Consumers != 2 || g.Cluster != 1:
		return fail("flags are for fp16x3 by 2 consumers without a cluster, with a product to compute where one is set")
	case r.M != g.M || r.N != g.N || r.K != g.K || r.SplitK != g.SplitK || r.Unit != SIMT || 128*r.Consumers != 128*g.Consumers || len(r.Batch) > 0:
		return fail("what is computed where a flag is set is another product")
	case 2*4*r.BK*(r.BM+r.BN) > g.planWGMMA().barriers:
		return fail("what is computed where a flag is set has no room in shared memory")
	}
	return r.Check(d)
}

// openRefuge looks at both operands' flags, the last of the parameters: if one is set, the kernel's tiles are the refuge's.
func (w *wgmma) openRefuge(operands, flags []*ir.Value) {
	b := w.b
	any := w.anyFlag(flags)
	clear := b.Compare("eq", any, b.I32(0))
	// Consumers learn of it from shared memory in the end: until then no register has to hold it.
	b.Store(b.SharedBase(), any, ptx.Access{Space: "shared", Offset: w.verdict(), If: b.Compare("eq", b.Special("tid.x"), b.I32(0))})
	r := *w.Refuge
	r.Epilogue = w.Epilogue
	s := &simt{Gemm: r, b: b, threads: 128 * w.Consumers, steps: r.depth() / r.BK, bufferSize: 4 * r.BK * (r.BM + r.BN), first: 128}
	w.refuge = &refuge{simt: s, args: operands}
	w.end = b.Select(clear, w.end, b.I32(0))
}

// anyFlag is whether one of the flags is set; each warp looks at all of them.
func (w *wgmma) anyFlag(flags []*ir.Value) *ir.Value {
	b := w.b
	lane := b.Binary(ptx.And, b.Special("tid.x"), b.I32(31))
	any := b.I32(0)
	for side, n := range w.Flags {
		mine := b.MulWide(lane, 4, flags[side])
		for i := 0; i < n; i += 32 {
			a := ptx.Access{Space: "global", Offset: 4 * i, Cache: "nc"}
			if i+32 > n {
				a.If = b.Compare("lo", lane, b.I32(n-i))
			}
			any = b.Binary(ptx.Or, any, b.Load(mine, b.Ctx.I32(), 1, a))
		}
	}
	// All lanes have it, which the assembler knows when it is read from lane 0: it then keeps descriptors in uniform registers.
	return b.Do(ptx.Shuffle, []*ir.Value{butterfly(b, ptx.Or, any, 16), b.I32(0)}, "mode", "idx").Result(0)
}

// work goes through this block's share of the tiles.
func (r *refuge) work(w *wgmma, block *ir.Value, grid int) {
	b := w.b
	any := b.Load(b.SharedBase(), b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: w.verdict()})
	end := b.Select(b.Compare("eq", any, b.I32(0)), b.I32(0), b.I32(r.tiles()))
	b.For(block, end, b.I32(grid), true, nil, func(number *ir.Value, _ []*ir.Value) []*ir.Value {
		r.prologue(r.args, number)
		r.store(r.multiply(), w.epilogue)
		r.sync() // the next tile's first stage goes where this one's last was read
		return nil
	})
}

// params is the names of a kernel's last parameters, after those of its operands and scales.
func (g Gemm) params(e Epilogue) []string {
	if g.Refuge == nil {
		return e.Params
	}
	return slices.Concat([]string{"a", "b"}, e.Params, []string{"a.flags", "b.flags"})
}

// guarded tells kernels with a refuge apart by name.
func (g Gemm) guarded() string {
	if g.Refuge == nil {
		return ""
	}
	r := g.Refuge
	return fmt.Sprintf("_f%d_%d_r%d_%d_%dx%dx%d_%v%v", g.Flags[0], g.Flags[1], r.A.Pitch, r.B.Pitch, r.BM, r.BN, r.BK, r.Of[0], r.Of[1])
}
