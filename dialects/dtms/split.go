package dtms

import (
	"fmt"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Start and Wait are a collective in two halves, between which a program does other work. They have effects: they keep
// their order, and all ranks have the same one.

// Start begins a collective.
var Start = ir.Define("dtms", ir.OpDef{
	Name:    "start",
	Summary: "begins a collective",
	Description: "`op` is the name of the collective, whose attributes the others are. The results have the types of the collective's, but may be used by " +
		"one dtms.wait only, after which they are there.",
	Operands: []ir.OperandDef{{Name: "xs", Type: kinds.AnyTensor, Arity: ir.Variadic, Doc: "the collective's operands, not to be overwritten before the wait"}},
	Attrs: []ir.AttrDef{
		{Name: "op", Kind: ir.StringKind, Doc: "all_reduce, reduce_scatter, all_gather, all_to_all or permute"},
		groupAttr,
		{Name: "ranks", Kind: ir.I64Kind, Optional: true, Doc: ranksAttr.Doc},
		{Name: "shift", Kind: ir.I64Kind, Optional: true, Doc: shiftAttr.Doc},
	},
	Results: []ir.ResultDef{{Name: "fs", Type: kinds.AnyTensor, Arity: ir.Variadic, Doc: "what will be there"}},
	Infer: func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		name := in.Attrs.Str("op")
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no collective %q", name)
		}
		return infer(c, name, in)
	},
	Verify: verifyStart,
	Eval:   exchange,
})

// Wait ends a collective.
var Wait = ir.Define("dtms", ir.OpDef{
	Name:        "wait",
	Summary:     "ends a collective that was begun",
	Description: "Its operands are the results of one dtms.start, then the operands of that: they are in use until here. Its results are those of the collective.",
	Operands:    []ir.OperandDef{{Name: "xs", Type: kinds.AnyTensor, Arity: ir.Variadic, Doc: "the results of the start, then its operands"}},
	Results:     []ir.ResultDef{{Name: "ys", Type: kinds.AnyTensor, Arity: ir.Variadic}},
	Infer: func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		if len(in.Operands)%2 != 0 {
			return nil, fmt.Errorf("%d operands: expected the results of a start and as many operands of it", len(in.Operands))
		}
		types := make([]ir.Type, len(in.Operands)/2)
		for i := range types {
			types[i] = in.Operands[i].Type()
		}
		return types, nil
	},
	Verify: verifyWait,
	Eval: func(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		return in[:op.NumResults()], nil
	},
})

// WaitOf is the wait that ends what a start began, or nil.
func WaitOf(start *ir.Op) *ir.Op {
	for u := range start.Result(0).Uses() {
		if u.Owner().Name() == "dtms.wait" {
			return u.Owner()
		}
	}
	return nil
}

// StartOf is the start of what a wait ends, or nil.
func StartOf(wait *ir.Op) *ir.Op {
	if wait.NumOperands() == 0 {
		return nil
	}
	if op := wait.Operand(0).Op(); op != nil && op.Name() == "dtms.start" {
		return op
	}
	return nil
}

func verifyStart(op *ir.Op) error {
	for i, f := range op.Results() {
		if !f.HasOneUse() {
			return op.Errorf("dtms.start: result %d has %d uses, expected one, by its dtms.wait", i, f.NumUses())
		}
	}
	wait := WaitOf(op)
	for i, f := range op.Results() {
		for u := range f.Uses() {
			if u.Owner() != wait {
				return op.Errorf("dtms.start: result %d is used by %s, expected the dtms.wait of this start", i, u.Owner().Name())
			}
		}
	}
	return nil
}

func verifyWait(op *ir.Op) error {
	start := StartOf(op)
	if start == nil {
		return op.Errorf("dtms.wait: the first operand is no result of a dtms.start")
	}
	want := append(start.Results(), start.Operands()...)
	if got := op.Operands(); !slices.Equal(got, want) {
		return op.Errorf("dtms.wait: expected the results of one dtms.start, in order, then its operands").WithNote(start.Loc(), "begun here")
	}
	return nil
}
