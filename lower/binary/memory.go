package binary

import (
	"blutrain/artifact"
	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/ir"
)

// Plan is what memory a program takes, as its manifest will say, and of which function the arena is.
type Plan struct {
	artifact.Memory
	Function *ir.Op // with the largest arena, nil: none has one
	Scratch  int64  // bytes beside the total: what the kernel works in that needs most; 0 before kernels are lowered
}

// PlanOf reads the plan off a module whose values have been placed in memory.
func PlanOf(module *ir.Op) (Plan, error) {
	var p Plan
	var m artifact.Manifest
	for op := range module.Body().Ops() {
		a := op.Attrs()
		if op.Is(blu.Param) || op.Is(blu.State) || op.Is(exec.State) {
			s, err := state(op)
			if err != nil {
				return p, err
			}
			m.States = append(m.States, s)
		}
		for _, kernel := range []string{"", "launch."} { // as the artifact names it, and before
			p.Scratch = max(p.Scratch, a.IntOr(kernel+"scratch", 0), a.IntOr(kernel+"workspace", 0)*a.IntOr(kernel+"blocks", 1))
		}
		arena := max(a.IntOr("mem.arena", 0), a.IntOr("arena", 0))
		if arena > p.Arena {
			p.Arena, p.Function = arena, op
		}
	}
	m.Functions = []artifact.Function{{Arena: p.Arena}}
	p.Memory = memory(&m)
	return p, nil
}
