package evaluate

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// Training is steps of some micro-batches, which ranks share: each has every Ranks-th, and the function for a step's last, where there is one,
// gets its last.
type Training struct {
	Steps, Micros, Ranks int
	Batch                func(number int) map[string]*ir.Tensor // of all steps, from 0 on
}

// History is what training leaves: outputs of each step, and the states after the last.
type History struct {
	Loss, Norm []float64
	States     map[string]*ir.Tensor
}

// Train trains as the rank of a number.
func (p *Program) Train(t Training, rank int) (h History, err error) {
	if _, err = p.Call("init", nil, map[string]float64{"seed": 5}); err != nil {
		return h, err
	}
	for step := range t.Steps {
		for i := rank; i < t.Micros; i += t.Ranks {
			scalars := map[string]float64{"first": 0, "seed": float64(i)}
			if i == rank {
				scalars["first"] = 1
			}
			if _, err = p.Call(p.accumulate(i+t.Ranks >= t.Micros), t.Batch(step*t.Micros+i), scalars); err != nil {
				return h, err
			}
		}
		out, err := p.Call("apply", nil, map[string]float64{"lr": 0.05, "step": float64(step + 1)})
		if err != nil {
			return h, err
		}
		h.Loss, h.Norm = append(h.Loss, out["loss"].Data[0]), append(h.Norm, out["grad_norm"].Data[0])
	}
	h.States = p.States
	return h, nil
}

// accumulate is the function for a micro-batch.
func (p *Program) accumulate(last bool) string {
	if p.interp.Symbol(blu.AccumulateLast) != nil && last {
		return blu.AccumulateLast
	}
	return "accumulate"
}

// OnRanks has each rank of a mesh do something with a program of its own, and gives what all of them leave, by rank.
func OnRanks[T any](c *ir.Context, module *ir.Op, dp, cp int, do func(p *Program, r *dtms.Rank) (T, error)) ([]T, error) {
	all := make([]T, dp*cp)
	return all, dtms.Evaluate(dp, cp, func(r *dtms.Rank) (err error) {
		all[r.World], err = do(NewProgram(c, module, r), r)
		return err
	})
}
