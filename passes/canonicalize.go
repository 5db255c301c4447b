package passes

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// canonicalize folds and simplifies until nothing changes. What is simplest is said by the operations' folders and by the
// patterns of their dialects.
func canonicalize(s *State, op *ir.Op) error {
	_, err := rewrite.Greedy(s.Ctx, op, blu.Canonical, rewrite.Options{Visit: s.Visit})
	return err
}
