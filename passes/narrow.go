package passes

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// narrowCollectives has ranks bring each other bfloat16 instead of float32 where that is all there is to bring: where all
// that reads what arrives rounds it, as products of precision bf16 do, or where what is sent is rounded already, as results
// of attention of that precision are. Only what a collective passes on unchanged is narrowed, no sums.
//
// It comes after the pass precision, which says what is rounded.
func narrowCollectives(s *State, op *ir.Op) error {
	b := blu.On(ir.NewBuilder(s.Ctx, nil))
	var moves []*ir.Op
	s.Walk(op, func(op *ir.Op) ir.WalkResult {
		if movesOnly(op) {
			moves = append(moves, op)
		}
		return ir.Advance
	})
	var narrow []*ir.Op // decided before anything is rewritten, since casts hide what is around them
	for _, op := range moves {
		if narrows(s.Ctx, op) {
			narrow = append(narrow, op)
		}
	}
	for _, op := range narrow {
		s.Visit(op)
		narrowCollective(b, op)
	}
	return nil
}

// movesOnly reports whether an operation is a collective whose results are elements of its operands.
func movesOnly(op *ir.Op) bool {
	return dtms.IsCollective(op) && (op.Is(dtms.Permute) || op.Is(dtms.AllToAll) || op.Is(dtms.AllGather))
}

// narrows reports whether all that a collective brings, which is of one element type, is as good in bfloat16.
func narrows(c *ir.Context, op *ir.Op) bool {
	for i, v := range op.Results() {
		if v.Elem() != ir.Type(c.F32()) || !readRounded(v) && !roundedBefore(op.Operand(i)) {
			return false
		}
	}
	return true
}

// readRounded reports whether everything that reads a value rounds it to bfloat16 first, or only passes it on to what does.
func readRounded(v *ir.Value) bool {
	for u := range v.Uses() {
		if op := u.Owner(); !rounds(op, u.Index()) && !(passesOn(op, u.Index()) && readRounded(passed(op, u.Index()))) {
			return false
		}
	}
	return true
}

// rounds reports whether an operation rounds an operand to bfloat16.
func rounds(op *ir.Op, operand int) bool {
	if op.Is(blu.Cast) {
		return isBF16(op.Result(0))
	}
	return op.Attrs().Str(blu.PrecisionAttr) == "bf16" && slices.Contains(blu.ProductOperands(op), operand)
}

// passesOn reports whether elements of an operand are elements of a result, unchanged.
func passesOn(op *ir.Op, operand int) bool {
	return op.Has(ir.View) || op.Is(blu.Concat) || op.Is(blu.Select) && operand > 0 || movesOnly(op)
}

// passed is the result that has an operand's elements.
func passed(op *ir.Op, operand int) *ir.Value {
	if movesOnly(op) {
		return op.Result(operand)
	}
	return op.Result(0)
}

// roundedBefore reports whether a value's elements are numbers of bfloat16, whatever their type.
func roundedBefore(v *ir.Value) bool {
	op := v.Op()
	switch {
	case op == nil:
		return false
	case op.Is(blu.Cast):
		return isBF16(op.Operand(0))
	case op.Is(blu.Attention), op.Is(blu.AttentionGrad):
		lse := op.Is(blu.Attention) && v == op.Result(1)
		return !lse && op.Attrs().Str(blu.PrecisionAttr) == "bf16"
	case movesOnly(op):
		return roundedBefore(op.Operand(slices.Index(op.Results(), v)))
	case op.Has(ir.View), op.Is(blu.Concat):
		return !slices.ContainsFunc(op.Operands(), func(x *ir.Value) bool { return !roundedBefore(x) })
	}
	return false
}

func isBF16(v *ir.Value) bool {
	t, ok := v.Elem().(*ir.FloatType)
	return ok && t.Kind == ir.BF16
}

// narrowCollective has a collective bring bfloat16.
func narrowCollective(b *blu.Builder, op *ir.Op) {
	again := op.Attr(blu.RecomputedAttr)
	cast := func(v *ir.Value, to ir.Type) *ir.Value {
		w := b.CastTo(v, to)
		if again != nil {
			w.Op().SetAttr(blu.RecomputedAttr, again)
		}
		return w
	}
	c := b.Ctx
	operands, types := op.Operands(), op.ResultTypes()
	b.Before(op).At(op.Loc())
	for i, v := range operands {
		operands[i] = cast(v, c.Float(ir.BF16))
		types[i] = c.Tensor(op.Result(i).Shape(), c.Float(ir.BF16))
	}
	narrow := b.CreateState(op.Def(), ir.OpState{Operands: operands, Attrs: op.Attrs(), Results: types})
	results := narrow.Results()
	for i, v := range results {
		results[i] = cast(v, c.F32())
	}
	op.ReplaceWith(results...)
}
