package passes

import (
	"blutrain/ir"
	"blutrain/passes/recompute"
)

// RecomputeOptions are the options of the pass recompute.
type RecomputeOptions struct {
	Mode    string `help:"how much of the forward part is computed again by the backward part instead of being kept" enum:"none,auto,full"`
	Budget  Bytes  `help:"memory for parameters, states and a function's own values, as in 6GiB, for which the cheapest mode is found; 0 is no limit"`
	Nearest bool   `help:"where the least memory is more than the budget, take that, and don't fail"`
	Target  string `help:"what is compiled for" enum:"cpu,cuda,ref"`
	Arch    string `help:"for which of its machines; empty: the first"`
}

// recomputeValues shortens the lives of values by computing them again where they are used late.
func recomputeValues(s *State, op *ir.Op, o RecomputeOptions) error {
	if op.Name() != "builtin.module" {
		return op.Errorf("recompute works on a module, since a budget is for all of its storage")
	}
	if o.Budget > 0 && o.Mode != string(recompute.None) {
		return op.Errorf("recompute: mode=%s and a budget exclude each other: a budget finds out by itself how much to recompute", o.Mode)
	}
	_, err := recompute.Run(s.Ctx, op, recompute.Options{Mode: recompute.Mode(o.Mode), Budget: int64(o.Budget), Nearest: o.Nearest, Target: recompute.TargetFor(o.Target, o.Arch)}, s.Visit)
	return err
}
