package host

import (
	"blutrain/dialects/host"
	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// adamW decodes a step of the optimizer for the elements of a block.
func adamW(op *ir.Op, r []int) (instr, error) {
	if !all(kinds(op), kindF32) {
		return nil, unsupported(op)
	}
	decays := len(r) > 15
	return func(f *frame) {
		b := func(i int) *block { return &f.blocks[r[i]] }
		p := b(0)
		for _, i := range []int{1, 2, 3, 12, 13, 14} {
			if x := b(i); x.rows != p.rows || x.cols != p.cols {
				f.fail("an operand of %v for one of %v", x, p)
				return
			}
		}
		for _, i := range host.AdamwScalars {
			if i < len(r) && b(i).rows*b(i).cols != 1 {
				f.fail("an operand of %v, it must be one number", b(i))
				return
			}
		}
		one := func(i int) float32 { return *at[float32](b(i), 0, 0) }
		h := prim.AdamW{GradScale: one(4), Keep1: one(5), Take1: one(6), Keep2: one(7), Take2: one(8), Root: one(9), Eps: one(10), Step: one(11), Decays: decays}
		if decays {
			h.Decay = one(15)
		}
		for i := range p.rows {
			x := func(j int) []float32 { return row[float32](b(j), i) }
			f.k.AdamW(x(14), x(12), x(13), x(0), x(1), x(2), x(3), &h)
		}
	}, nil
}
