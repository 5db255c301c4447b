package blu

import (
	"fmt"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Dot is a general product of tensors.
var Dot = define(ir.OpDef{
	Name:    "dot",
	Summary: "sums of products over contracted axes, for each batch",
	Description: "The batch axes of both operands pair up in the order given, and so do the contracted ones. The result has the batch axes, then the other " +
		"axes of lhs, then the other axes of rhs: `y[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k]`, however the axes are ordered in the operands. " +
		"A sum over no products is 0.",
	Operands: []ir.OperandDef{{Name: "lhs", Type: kinds.FloatTensor}, {Name: "rhs", Type: kinds.FloatTensor}},
	Attrs: []ir.AttrDef{
		{Name: "lhs_batch", Kind: ir.I64sKind, Doc: "batch axes of lhs"},
		{Name: "rhs_batch", Kind: ir.I64sKind, Doc: "batch axes of rhs, in the same order"},
		{Name: "lhs_contract", Kind: ir.I64sKind, Doc: "contracted axes of lhs"},
		{Name: "rhs_contract", Kind: ir.I64sKind, Doc: "contracted axes of rhs, in the same order"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:  ir.Pure | ir.Differentiable,
	Infer:   inferDot,
	Eval:    eval(evalDot),
})

// DotAxes is how the axes of one operand of a dot divide.
type DotAxes struct{ Batch, Contract, Free []int64 }

// DotOperandAxes tells the axes of both operands of a dot.
func DotOperandAxes(op *ir.Op) (lhs, rhs DotAxes) {
	a := op.Attrs()
	lhs = DotAxes{Batch: a.Ints("lhs_batch"), Contract: a.Ints("lhs_contract")}
	rhs = DotAxes{Batch: a.Ints("rhs_batch"), Contract: a.Ints("rhs_contract")}
	lhs.Free = axesComplement(len(op.Operand(0).Shape()), slices.Concat(lhs.Batch, lhs.Contract))
	rhs.Free = axesComplement(len(op.Operand(1).Shape()), slices.Concat(rhs.Batch, rhs.Contract))
	return lhs, rhs
}

func inferDot(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	lhs, rhs := in.Operands[0], in.Operands[1]
	lb, rb := in.Attrs.Ints("lhs_batch"), in.Attrs.Ints("rhs_batch")
	lc, rc := in.Attrs.Ints("lhs_contract"), in.Attrs.Ints("rhs_contract")
	if lhs.Elem() != rhs.Elem() {
		return nil, fmt.Errorf("lhs has elements of type %s, rhs of type %s: cast one of them", lhs.Elem(), rhs.Elem())
	}
	lAxes, rAxes := slices.Concat(lb, lc), slices.Concat(rb, rc)
	if err := axesOf("batch and contracted axes of lhs", lAxes, "lhs", lhs.Shape()); err != nil {
		return nil, err
	}
	if err := axesOf("batch and contracted axes of rhs", rAxes, "rhs", rhs.Shape()); err != nil {
		return nil, err
	}
	if err := pairAxes("batch", lhs.Shape(), lb, rhs.Shape(), rb); err != nil {
		return nil, err
	}
	if err := pairAxes("contracted", lhs.Shape(), lc, rhs.Shape(), rc); err != nil {
		return nil, err
	}
	shape := concatShapes(permute(lhs.Shape(), lb), without(lhs.Shape(), lAxes), without(rhs.Shape(), rAxes))
	return []ir.Type{c.Tensor(shape, lhs.Elem())}, nil
}

func pairAxes(what string, lhs, l, rhs, r []int64) error {
	if len(l) != len(r) {
		return fmt.Errorf("numbers of %s axes disagree: %d of lhs, %d of rhs", what, len(l), len(r))
	}
	for i := range l {
		if lhs[l[i]] != rhs[r[i]] {
			return fmt.Errorf("%s axes disagree: axis %d of lhs (%s) has %d elements, axis %d of rhs (%s) has %d",
				what, l[i], ir.ShapeString(lhs), lhs[l[i]], r[i], ir.ShapeString(rhs), rhs[r[i]])
		}
	}
	return nil
}

// evalDot brings both operands to [batch, free, contract] and multiplies row by row: every sum runs along memory.
func evalDot(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	out := resultTensor(op, 0)
	l, r := DotOperandAxes(op)
	lhs, rhs := in[0], in[1]
	batch, m, n, k := countAlong(lhs.Shape, l.Batch), countAlong(lhs.Shape, l.Free), countAlong(rhs.Shape, r.Free), countAlong(lhs.Shape, l.Contract)
	a := arranged(lhs, slices.Concat(l.Batch, l.Free, l.Contract))
	b := arranged(rhs, slices.Concat(r.Batch, r.Free, r.Contract))
	for i := range batch {
		matmulNT(out.Data[i*m*n:(i+1)*m*n], a[i*m*k:(i+1)*m*k], b[i*n*k:(i+1)*n*k], int(m), int(n), int(k))
	}
	return out, nil
}

// countAlong is the number of elements along some axes.
func countAlong(shape, axes []int64) int64 { return ir.NumElements(permute(shape, axes)) }

// arranged is a tensor's elements with its axes in that order; the tensor's own where they are.
func arranged(t *ir.Tensor, perm []int64) []float64 {
	if slices.Equal(perm, leadingAxes(len(perm))) {
		return t.Data
	}
	data := make([]float64, len(t.Data))
	gatherStrided(data, t.Data, permute(t.Shape, perm), permute(ir.RowMajor(t.Shape), perm), 0)
	return data
}
