package ir

// WalkResult says how a walk goes on.
type WalkResult uint8

const (
	Advance WalkResult = iota
	Skip               // don't enter the regions of this operation
	Stop               // end the walk
)

// Walk visits op and everything nested in it, parents first, in order. The visited operation may be erased. It reports
// false when the walk was stopped.
func Walk(op *Op, visit func(*Op) WalkResult) bool {
	regions := op.Regions()
	switch visit(op) {
	case Stop:
		return false
	case Skip:
		return true
	}
	for _, r := range regions {
		for _, b := range r.blocks {
			for o := range b.Ops() {
				if !Walk(o, visit) {
					return false
				}
			}
		}
	}
	return true
}

// WalkPost visits everything nested in op, then op. The visited operation may be erased.
func WalkPost(op *Op, visit func(*Op)) {
	for _, r := range op.Regions() {
		for _, b := range r.blocks {
			for o := range b.Ops() {
				WalkPost(o, visit)
			}
		}
	}
	visit(op)
}
