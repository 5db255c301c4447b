package kernels

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// singleSpec is the kernel of one operation that has a form of its own.
func (l *lowerer) singleSpec(g *group) (*spec, error) {
	op := g.root
	s := &spec{loc: op.Loc()}
	switch op.Def() {
	case blu.Attention:
		l.attentionSpec(s, op)
	case blu.AttentionGrad:
		l.attentionGradSpec(s, op, gradientSums(g))
	case blu.ScatterAdd, scatterInto:
		l.scatterSpec(s, op)
	case blu.Gather:
		l.gatherSpec(s, op)
	default:
		return nil, op.Errorf("%s has no kernel", op.Name())
	}
	s.refer = func(b *blu.Builder, args []*ir.Value) []*ir.Value {
		operands := make([]*ir.Value, len(args))
		for i, a := range args {
			operands[i] = b.ReshapeTo(a, op.Operand(i).Shape()...)
		}
		if op.Is(scatterInto) {
			return []*ir.Value{b.ReshapeTo(b.Add(operands[2], b.ScatterAdd(operands[0], operands[1], op.Result(0).Shape()[0])), s.outputs[0].shape...)}
		}
		n := b.CreateState(op.Def(), ir.OpState{Loc: op.Loc(), Operands: operands, Attrs: op.Attrs(), Results: op.ResultTypes()})
		out := n.Results()
		for i, v := range out {
			out[i] = b.ReshapeTo(v, s.outputs[i].shape...)
		}
		if sums := gradientSums(g); sums != nil {
			out = append(out, sums.refer(b, n.Results(), l.target.AttentionSumRows))
		}
		return out
	}
	k := keyWriter{l: l}
	k.ref(op.Def())
	for _, p := range append(s.inputs, s.outputs...) {
		k.ref(p.value.Elem())
		k.num(int64(len(p.shape)))
		k.num(p.shape...)
	}
	for _, a := range op.Attrs() {
		k.ref(a.Value)
	}
	if sums := gradientSums(g); sums != nil {
		k.num(sums.order[:]...)
	}
	s.key = string(k.b)
	return s, nil
}

func asIs(vs []*ir.Value) (out []port) {
	for _, v := range vs {
		out = append(out, port{value: v, shape: v.Shape()})
	}
	return out
}

func (s *spec) types(c *ir.Context) (ins, outs []*ir.MemRefType) {
	for _, p := range s.inputs {
		ins = append(ins, c.MemRef(p.shape, p.value.Elem()))
	}
	for _, p := range s.outputs {
		outs = append(outs, c.MemRef(p.shape, p.value.Elem()))
	}
	return ins, outs
}

// start begins the kernel of a spec.
func (l *lowerer) start(s *spec, grid, steps []int64) *writer {
	ins, outs := s.types(l.c)
	return newKernel(l.c, s.loc, ins, outs, grid, steps)
}

// gatherSpec copies rows of a table of any shape, as the rows of a matrix.
func (l *lowerer) gatherSpec(s *spec, op *ir.Op) {
	table, indices, y := op.Operand(0), op.Operand(1), op.Result(0)
	n, rows := ir.NumElements(indices.Shape()), table.Shape()[0]
	width := ir.NumElements(table.Shape()[1:])
	s.name = fmt.Sprintf("gather_%dx%d_of_%d", n, width, rows)
	s.inputs = []port{{value: table, shape: []int64{rows, width}}, {value: indices, shape: []int64{n}}}
	s.outputs = []port{{value: y, shape: []int64{n, width}}}
	s.build = func() *ir.Op {
		t := l.target
		cols := min(width, t.BlockElems)
		block := min(n, max(t.BlockElems/cols, 1))
		w := l.start(s, []int64{n, width}, []int64{block, cols})
		i, j := w.axes[0], w.axes[1]
		idx := w.load(w.ins[1], []*ir.Value{i}, 0, -1, block, 1)
		x := w.typed(tile.Gather, []*ir.Value{w.ins[0], idx, i, j}, tile.Block(w.c, block, cols, table.Elem()))
		w.store(x, w.outs[0], []*ir.Value{i, j}, 0, 1)
		w.end()
		return w.kernel
	}
}
