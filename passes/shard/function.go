package shard

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// What a function's arguments and results are for is said in lists of dictionaries, and their types are said again in
// the function's type: these keep all of them true.

// rankScalar is the argument of a function that says where its rank is (dtms.DPRank, CPRank, WorldRank), added where there
// is none.
func (s *sharder) rankScalar(f *ir.Op, name string) *ir.Value {
	for i, a := range f.Body().Args() {
		if blu.ArgPort(f, i) == (blu.Port{Kind: blu.ScalarAttr, Name: name}) {
			return a
		}
	}
	return blu.AddArg(s.c, f, blu.Port{Kind: blu.ScalarAttr, Name: name}, s.c.Tensor(nil, s.c.I32()), f.Loc())
}

// result is a result of a function: an operand of its terminator.
type result struct {
	blu.Port
	use *ir.Use
}

// results lists the results of a function.
func results(f *ir.Op) []result {
	end := f.Body().Terminator()
	rs := make([]result, end.NumOperands())
	for i := range rs {
		rs[i] = result{blu.ResultPort(f, i), end.OperandUse(i)}
	}
	return rs
}

// argument is the argument of a function with that port, or nil.
func argument(f *ir.Op, p blu.Port) *ir.Value {
	for i, a := range f.Body().Args() {
		if blu.ArgPort(f, i) == p {
			return a
		}
	}
	return nil
}

// straight refuses functions that are not straight-line code.
func straight(f *ir.Op) error {
	if f.Is(fn.Func) && len(f.Region(0).Blocks()) == 1 && f.Body().Terminator() != nil {
		return nil
	}
	return f.Errorf("shard: %s is not a function of straight-line code, as the phase train leaves it", ir.SymName(f))
}
