package rewrite

import "blutrain/ir"

// EraseDead takes away every operation inside root that has no effect and whose results nothing uses, users before what
// they use. It reports how many went.
func EraseDead(root *ir.Op) int {
	n := 0
	for _, r := range root.Regions() {
		for _, b := range r.Blocks() {
			for op := range b.OpsReversed() {
				if IsDead(op) {
					op.Erase()
					n++
				} else {
					n += EraseDead(op)
				}
			}
		}
	}
	return n
}
