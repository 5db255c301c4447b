package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// SumParts makes the second kernel of a product whose K was split: it adds the parts in order and applies the epilogue.
// Parameters: the partial products, then the epilogue's.
func (g Gemm) SumParts(at *ir.Builder, d Device) (*Kernel, error) {
	if g.SplitK < 2 {
		return nil, fmt.Errorf("gemm %dx%dx%d: K is not split", g.M, g.N, g.K)
	}
	if g.Epilogue.Apply == nil {
		return nil, fmt.Errorf("gemm %dx%dx%d: no epilogue: nothing would be stored", g.M, g.N, g.K)
	}
	const threads = 256
	width := g.pointWidth()
	perRow := g.N / width
	k := &Kernel{Name: symbol("sum_" + g.Name()), Threads: threads, Cluster: 1, Grid: ceil(g.matrices()*g.M*perRow, threads),
		Params: []Param{{Name: "partials"}}}
	types := []ir.Type{at.Ctx.I64()}
	for _, name := range g.Epilogue.Params {
		k.Params = append(k.Params, Param{Name: name})
		types = append(types, at.Ctx.I64())
	}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: g.Target, Threads: threads}, types...)
	k.Op = b.Kernel
	args := k.Op.Body().Args()
	index := b.Add(b.MulI(b.Special("ctaid.x"), threads), b.Special("tid.x"))
	b.If(b.Compare("lo", index, b.I32(g.matrices()*g.M*perRow)), false, func() {
		from := b.MulWide(index, 4*width, args[0])
		var sum []*ir.Value
		for s := range g.SplitK {
			// The parts are too far apart for an offset in the instruction.
			part := b.Add(from, b.I64(int64(s)*int64(g.matrices())*int64(g.M)*int64(g.N)*4))
			x := b.Scalars(b.Load(part, b.Ctx.F32(), width, ptx.Access{Space: "global"}))
			if s == 0 {
				sum = x
			} else {
				sum = pairs(b, ptx.Add, sum, x)
			}
		}
		row := b.DivI(index, perRow)
		col := b.MulI(b.Sub(index, b.MulI(row, perRow)), width)
		var at place
		if g.matrices() > 1 {
			at.matrix = b.DivI(row, g.M)
			row = b.Sub(row, b.MulI(at.matrix, g.M))
			at.batch = g.decode(b, at.matrix)
		}
		p := newPart(b, row, col, g.M, g.N, width, args[1:]).in(at).point(0, 0, nil)
		g.Epilogue.fetch([]*Point{p})
		g.Epilogue.Apply(p, sum)
	}, nil)
	b.Do(ptx.Return, nil)
	return k, nil
}
