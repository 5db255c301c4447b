package passes

import (
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// canonicalize folds and simplifies until nothing changes. What is simplest is said by the operations' folders.
func canonicalize(s *State, op *ir.Op) error {
	_, err := rewrite.Greedy(s.Ctx, op, nil, rewrite.Options{Visit: s.Visit})
	return err
}
