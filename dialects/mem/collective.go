package mem

import (
	"fmt"
	"slices"

	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// Collective begins a collective on memory, Wait ends it: what dtms.start and dtms.wait become.
var (
	Collective = ir.Define("mem", CollectiveDef("collective"))
	Wait       = ir.Define("mem", WaitDef("wait"))
)

// CollectiveDef is the definition, but for the dialect, of an operation that begins a collective on memory.
func CollectiveDef(name string) ir.OpDef {
	return ir.OpDef{
		Name:    name,
		Summary: "begins a collective",
		Description: "The ranks of a group move, and for some operations add up, what is in memory: one source for each destination. From here to the wait of the same `id` " +
			"nothing may write the sources or touch the destinations. A source may be its destination for all_reduce. All places are row-major, without gaps.",
		Operands: []ir.OperandDef{{Name: "refs", Type: memRef, Arity: ir.Variadic, Doc: "sources, then as many destinations"}},
		Attrs: []ir.AttrDef{
			{Name: "op", Kind: ir.StringKind, Doc: "all_reduce, reduce_scatter, all_gather, all_to_all or permute"},
			{Name: "group", Kind: ir.StringKind, Doc: "who takes part: world, dp or cp"},
			{Name: "ranks", Kind: ir.I64Kind, Optional: true, Doc: "the number of ranks of the group; absent where it is known at run time only"},
			{Name: "shift", Kind: ir.I64Kind, Optional: true, Doc: "how many ranks further each sends, for permute"},
			{Name: "id", Kind: ir.I64Kind, Doc: "which collective of the function it is"},
		},
		Verify: verifyCollective,
	}
}

// WaitDef is the definition, but for the dialect, of an operation that ends a collective.
func WaitDef(name string) ir.OpDef {
	return ir.OpDef{
		Name:        name,
		Summary:     "ends a collective that was begun",
		Description: "What follows may read the destinations and write the sources.",
		Attrs:       []ir.AttrDef{{Name: "id", Kind: ir.I64Kind, Doc: "which collective of the function it is"}},
	}
}

func verifyCollective(op *ir.Op) error {
	if err := checkCollective(op); err != nil {
		return op.Errorf("%s: %v", op.Name(), err)
	}
	return nil
}

// checkCollective holds sources and destinations to what the operation makes of them.
func checkCollective(op *ir.Op) error {
	name, ranks := op.Attrs().Str("op"), op.Attrs().IntOr("ranks", 0)
	if !slices.Contains(dtms.Groups, op.Attrs().Str("group")) {
		return fmt.Errorf("there is no group %q", op.Attrs().Str("group"))
	}
	if ranks < 0 || ranks > dtms.MaxRanks || ranks == 0 && name != dtms.NameAllReduce {
		return fmt.Errorf("%d ranks: expected 1 to %d", ranks, int64(dtms.MaxRanks))
	}
	if shift := op.Attrs().IntOr("shift", 0); shift != 0 && (name != dtms.NamePermute || shift <= -ranks || shift >= ranks) {
		return fmt.Errorf("a shift of %d among %d ranks", shift, ranks)
	}
	n := op.NumOperands() / 2
	if n == 0 || op.NumOperands()%2 != 0 {
		return fmt.Errorf("%d operands: expected sources and as many destinations", op.NumOperands())
	}
	for i := range n {
		src, dst := op.Operand(i).Type().(*ir.MemRefType), op.Operand(n+i).Type().(*ir.MemRefType)
		if src.Elem != dst.Elem || src.Elem != op.Operand(0).Elem() {
			return fmt.Errorf("source %d has elements of type %s, its destination %s, the first source %s", i, src.Elem, dst.Elem, op.Operand(0).Elem())
		}
		if !Dense(src) || !Dense(dst) {
			return fmt.Errorf("source %d is %s, its destination %s: both must be row-major", i, src, dst)
		}
		if err := checkSizes(name, ranks, src.Shape, dst.Shape); err != nil {
			return fmt.Errorf("source %d: %w", i, err)
		}
	}
	return nil
}

// checkSizes holds the number of elements of a destination to that of its source.
func checkSizes(name string, ranks int64, src, dst []int64) error {
	from, to := ir.NumElements(src), ir.NumElements(dst)
	ok := from == to
	switch name {
	case dtms.NameAllReduce, dtms.NamePermute:
	case dtms.NameReduceScatter:
		ok = from%ranks == 0 && from/ranks == to
	case dtms.NameAllGather:
		ok = to%ranks == 0 && to/ranks == from
	case dtms.NameAllToAll:
		ok = ok && from%ranks == 0
	default:
		return fmt.Errorf("there is no collective %q", name)
	}
	if !ok {
		return fmt.Errorf("%s from %v to %v on %d ranks", name, src, dst, ranks)
	}
	return nil
}

// CallOf is the call that a collective on memory makes.
func CallOf(op *ir.Op) dtms.Call {
	a := op.Attrs()
	c := dtms.Call{Op: a.Str("op"), Group: a.Str("group"), Ranks: a.IntOr("ranks", 0), Shift: a.IntOr("shift", 0), Elem: op.Operand(0).Elem()}
	for i := range op.NumOperands() / 2 {
		c.Elems += ir.NumElements(op.Operand(i).Shape())
	}
	return c
}

// Dense reports whether a memref's elements lie one after the other, in row-major order.
func Dense(t *ir.MemRefType) bool {
	strides, _ := Layout(t)
	want := ir.RowMajor(t.Shape)
	for i, n := range t.Shape {
		if n > 1 && strides[i] != want[i] {
			return false
		}
	}
	return true
}
