package tile

import (
	"blutrain/ir"
)

// Dot multiplies two blocks.
var Dot = define(ir.OpDef{
	Name:    "dot",
	Summary: "matrix product of two blocks",
	Description: "y = a b, or acc + a b. a is [m, k], or [k, m] with `ta`; b is [k, n], or [n, k] with `tb`. Products of f16 and bf16 are exact and added in f32; " +
		"the result is f32 for them, else of the operands' type.",
	Operands: []ir.OperandDef{{Name: "a", Type: floatBlock}, {Name: "b", Type: floatBlock}, {Name: "acc", Type: floatBlock, Arity: ir.Optional}},
	Attrs: []ir.AttrDef{
		{Name: "ta", Kind: ir.BoolKind, Optional: true, Default: false, Doc: "a is transposed"},
		{Name: "tb", Kind: ir.BoolKind, Optional: true, Default: false, Doc: "b is transposed"},
		{Name: "precision", Kind: ir.StringKind, Optional: true, Doc: "fp32, fp32-strict, tf32 or bf16: the promise the product keeps"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: floatBlock}},
	Traits:  ir.Pure,
	Infer:   inferDot,
	Verify:  verifyDot,
	Eval:    evalDot,
})

// Contract is a whole contraction.
var Contract = define(ir.OpDef{
	Name:    "contract",
	Summary: "a block of a matrix product, over all of the contracted dimension",
	Description: "y[i, j] = sum over k of lhs[lhs_at, plus i in the last dimension but one, k in the last] * rhs[rhs_at, plus j in the last dimension but one, k in the last]. " +
		"The contracted dimension is the last of both operands, whichever has stride 1; offsets are given for the others. The block is clipped where the operands end.\n\n" +
		"Operands may be several references of one shape each, planes: parts of a number that was split, say. The region, where it is not empty, computes what " +
		"one step of k adds: its arguments are a block [m, step] for each plane of lhs and a block [n, step] for each plane of rhs, clipped at the last step, and it " +
		"yields an [m, n] block. It may use blocks from around it. With an empty region there is one plane each and a step adds `tile.dot lhs, rhs {tb = true}`. " +
		"Steps are added in order in the result's type: `step` is also how often partial sums are promoted.",
	Operands: []ir.OperandDef{
		{Name: "lhs", Type: memRef, Arity: ir.Variadic}, {Name: "rhs", Type: memRef, Arity: ir.Variadic},
		{Name: "lhs_at", Type: index, Arity: ir.Variadic, Doc: "offsets in lhs, one for each dimension but the last"},
		{Name: "rhs_at", Type: index, Arity: ir.Variadic, Doc: "offsets in rhs, one for each dimension but the last"},
	},
	Attrs: []ir.AttrDef{
		{Name: "step", Kind: ir.I64Kind, Optional: true, Doc: "elements of the contracted dimension in a step; the target's choice where absent"},
		{Name: "precision", Kind: ir.StringKind, Optional: true, Doc: "fp32, fp32-strict, tf32 or bf16: the promise the product keeps"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: floatBlock}},
	Regions: []ir.RegionDef{{Name: "body", Arity: ir.Variadic, Doc: "without blocks, or one block"}},
	Traits:  ir.SegmentedOperand,
	Verify:  verifyContract,
	Eval:    evalContract,
})

// ContractOperands tells the operand groups of a contraction apart.
func ContractOperands(op *ir.Op) (lhs, rhs, lhsAt, rhsAt []*ir.Value) {
	return op.OperandGroup(0), op.OperandGroup(1), op.OperandGroup(2), op.OperandGroup(3)
}
