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
		return fmt.Errorf("lhs has %d %s axes, rhs has %d", len(l), what, len(r))
	}
	for i := range l {
		if lhs[l[i]] != rhs[r[i]] {
			return fmt.Errorf("%s axes disagree: axis %d of lhs (%s) has %d elements, axis %d of rhs (%s) has %d",
				what, l[i], ir.ShapeString(lhs), lhs[l[i]], r[i], ir.ShapeString(rhs), rhs[r[i]])
		}
	}
	return nil
}
