package exec

import (
	"blutrain/dialects/mem"
	"blutrain/ir"
)

// Collective begins a collective, Wait ends it. Launches and copies between them run at the same time.
var (
	Collective = ir.Define("exec", mem.CollectiveDef("collective"))
	Wait       = ir.Define("exec", mem.WaitDef("wait"))
)

// verifyCollectives holds that a function begins each collective once, and ends it once, after that.
func verifyCollectives(fn *ir.Op) error {
	under := map[int64]*ir.Op{} // nil: it has ended
	for op := range fn.Body().Ops() {
		id := op.Attrs().IntOr("id", 0)
		begun, known := under[id]
		switch op.Def() {
		case Collective:
			if known {
				return op.Errorf("exec.collective: there is a collective %d already", id)
			}
			under[id] = op
		case Wait:
			if begun == nil {
				return op.Errorf("exec.wait: no collective %d is under way", id)
			}
			under[id] = nil
		}
	}
	for op := range fn.Body().Ops() {
		if op.Is(Collective) && under[op.Attrs().IntOr("id", 0)] != nil {
			return op.Errorf("exec.collective: nothing waits for collective %d", op.Attrs().IntOr("id", 0))
		}
	}
	return nil
}
