package dtms

import (
	"fmt"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// The names of the collectives, which dtms.start has as its `op`.
const (
	NameAllReduce     = "all_reduce"
	NameReduceScatter = "reduce_scatter"
	NameAllGather     = "all_gather"
	NameAllToAll      = "all_to_all"
	NamePermute       = "permute"
)

// names lists them.
var names = []string{NameAllReduce, NameReduceScatter, NameAllGather, NameAllToAll, NamePermute}

var (
	groupAttr = ir.AttrDef{Name: "group", Kind: ir.StringKind, Doc: "who takes part: world, dp or cp"}
	ranksAttr = ir.AttrDef{Name: "ranks", Kind: ir.I64Kind, Doc: "the number of ranks of the group"}
	shiftAttr = ir.AttrDef{Name: "shift", Kind: ir.I64Kind, Doc: "how many ranks further each sends"}
)

// collective makes a table entry of an operation that all ranks of a group do together: results from operands one by one.
func collective(def ir.OpDef, elems ir.Constraint) *ir.OpDef {
	name := def.Name
	def.Operands = []ir.OperandDef{{Name: "xs", Type: elems, Arity: ir.Variadic, Doc: "one bucket, of one element type"}}
	def.Results = []ir.ResultDef{{Name: "ys", Type: elems, Arity: ir.Variadic}}
	def.Traits = ir.Pure
	def.Infer = func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) { return infer(c, name, in) }
	def.Eval = func(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) { return exchange(f, op, in) }
	return ir.Define("dtms", def)
}

// AllReduce adds up.
var AllReduce = collective(ir.OpDef{
	Name:        "all_reduce",
	Summary:     "the sum over the ranks of a group",
	Description: "y = the sum of every rank's x, added in the order of the ranks.",
	Attrs:       []ir.AttrDef{groupAttr},
}, kinds.NumberTensor)

// ReduceScatter adds up, and leaves each rank a block of the sum.
var ReduceScatter = collective(ir.OpDef{
	Name:        "reduce_scatter",
	Summary:     "a rank's own block of the sum over the ranks of a group",
	Description: "x has a leading dimension of `ranks` blocks. y, without that dimension, is block r of the sum of every rank's x, for rank r; added in the order of the ranks.",
	Attrs:       []ir.AttrDef{groupAttr, ranksAttr},
}, kinds.NumberTensor)

// AllGather puts the ranks' tensors next to each other.
var AllGather = collective(ir.OpDef{
	Name:        "all_gather",
	Summary:     "what every rank of a group has, in the order of the ranks",
	Description: "y has a leading dimension of `ranks` blocks: block r is the x of rank r.",
	Attrs:       []ir.AttrDef{groupAttr, ranksAttr},
}, kinds.AnyTensor)

// AllToAll transposes blocks and ranks.
var AllToAll = collective(ir.OpDef{
	Name:        "all_to_all",
	Summary:     "a block to every rank of a group, and one from each",
	Description: "x and y have a leading dimension of `ranks` blocks: block j of rank i's x becomes block i of rank j's y.",
	Attrs:       []ir.AttrDef{groupAttr, ranksAttr},
}, kinds.AnyTensor)

// Permute passes on along a ring.
var Permute = collective(ir.OpDef{
	Name:        "permute",
	Summary:     "what the rank `shift` places before has",
	Description: "Rank r sends x to rank (r + shift) mod `ranks`, and y is the x of rank (r - shift) mod `ranks`.",
	Attrs:       []ir.AttrDef{groupAttr, ranksAttr, shiftAttr},
}, kinds.AnyTensor)

// IsCollective reports whether op is one of the operations that the ranks of a group do together, Start and Wait not among
// them.
func IsCollective(op *ir.Op) bool {
	return op != nil && op.Def().DialectName() == "dtms" && slices.Contains(names, op.Def().Name)
}

// infer gives the result types of the collective of that name, and checks its attributes.
func infer(c *ir.Context, name string, in ir.InferInput) ([]ir.Type, error) {
	if err := checkAttrs(name, in.Attrs); err != nil {
		return nil, err
	}
	if len(in.Operands) == 0 {
		return nil, fmt.Errorf("nothing to communicate: expected at least one operand")
	}
	ranks := in.Attrs.IntOr("ranks", 0)
	types := make([]ir.Type, len(in.Operands))
	for i, x := range in.Operands {
		t, ok := x.Type().(*ir.TensorType)
		if !ok {
			return nil, fmt.Errorf("operand %d is a %s, not a tensor", i, x.Type())
		}
		if first := in.Operands[0].Elem(); t.Elem != first {
			return nil, fmt.Errorf("operand %d has elements of type %s, the first has %s: a bucket has one element type", i, t.Elem, first)
		}
		shape, err := resultShape(name, t.Shape, ranks)
		if err != nil {
			return nil, fmt.Errorf("operand %d: %w", i, err)
		}
		types[i] = c.Tensor(shape, t.Elem)
	}
	return types, nil
}

// checkAttrs refuses groups that don't exist, and numbers of ranks that no group has.
func checkAttrs(name string, attrs ir.Attrs) error {
	if g := attrs.Str("group"); !slices.Contains(Groups, g) {
		return fmt.Errorf("there is no group %q: expected world, dp or cp", g)
	}
	ranks, given := attrs.Int("ranks")
	if name == NameAllReduce {
		return nil
	}
	if !given || ranks < 1 || ranks > MaxRanks {
		return fmt.Errorf("ranks is %d: expected 1 to %d", ranks, int64(MaxRanks))
	}
	if shift, given := attrs.Int("shift"); name == NamePermute && !given {
		return fmt.Errorf("how far to send is missing: expected the attribute shift")
	} else if shift <= -ranks || shift >= ranks {
		return fmt.Errorf("shift is %d: expected less than the %d ranks, forwards or backwards", shift, ranks)
	}
	return nil
}

// resultShape is the shape of a result.
func resultShape(name string, shape []int64, ranks int64) ([]int64, error) {
	switch name {
	case NameAllGather:
		return append([]int64{ranks}, shape...), nil
	case NameReduceScatter, NameAllToAll:
		if len(shape) == 0 || shape[0] != ranks {
			return nil, fmt.Errorf("the first dimension of shape %v is not that of %d blocks, one a rank", shape, ranks)
		}
	}
	if name == NameReduceScatter {
		return shape[1:], nil
	}
	return shape, nil
}
