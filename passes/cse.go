package passes

import (
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// cse merges equal pure operations, also across nested regions where the first one always runs before.
func cse(s *State, op *ir.Op) error {
	rewrite.MergeEqual(op, s.Visit)
	return nil
}
