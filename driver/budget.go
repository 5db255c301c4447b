package driver

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/lower/binary"
	"blutrain/passes"
	"blutrain/passes/recompute"
)

// What is recomputed is chosen by an estimate, before kernels are cut and values get places. A memory budget is about the plan that
// comes of it: what bluc inspect --memory prints. So the program is planned on, as far as its memory is known, for one estimate after
// the other, until the plan fits that uses most of the budget.

// recomputation is the options of the pass recompute.
func (o Options) recomputation() string {
	text := "mode=" + cmp.Or(o.Recompute, "auto")
	if o.Budget != 0 && o.estimate != usualPlan {
		text = fmt.Sprintf("budget=%d nearest=true", cmp.Or(o.estimate, o.Budget))
	}
	text += " target=" + o.Target
	if o.Arch != "" {
		text += " arch=" + o.Arch
	}
	return text
}

// attempt is a plan of the program.
type attempt struct {
	limit    int64 // bytes that recomputation was told to stay within
	estimate int64 // bytes that it thought it would take
	binary.Plan
}

// needs is what of the budget the plan takes.
func (a attempt) needs() int64 { return a.Total + a.Scratch }

// error is how far the estimate is off.
func (a attempt) error() int64 { return a.needs() - a.estimate }

// mostAttempts bounds how often a program is planned to meet a budget: mostly three are enough, since estimates are off by little, and
// by the same for plans near each other.
const mostAttempts = 8

// usualPlan stands, in the place of a limit, for what is recomputed without a budget.
const usualPlan = -1

// noLimit is more than any program takes.
const noLimit = 1 << 50

// nearlyAll is the part of a budget that may be left over without looking for more that could be kept in memory.
const nearlyAll = 1.0 / 512

// slack is the part of a budget by which errors of estimates differ between plans.
const slack = 1.0 / 2048

// meetBudget finds the estimate for which the plan stays within the budget and is as near to it as can be. The module is what the phase
// that recomputes, of index i, begins with.
func (c *compilation) meetBudget(i int) error {
	if c.index("target") < 0 { // nothing is placed in memory: the estimate is all there is
		return nil
	}
	start := time.Now()
	defer func() {
		if c.Passes.Timing != nil {
			c.Passes.Timing.Add("(plans for the budget)", time.Since(start))
		}
	}()
	best, err := c.attempt(i, noLimit)
	if err == nil && best.needs() > c.Budget {
		var usual attempt
		if usual, err = c.attempt(i, usualPlan); err == nil {
			best, err = c.search(i, best, usual)
		}
	}
	if err == nil && best.needs() > c.Budget {
		err = recompute.TooLittle(best.Function, c.Budget, recompute.Needs{
			Params: best.Params, Gradients: best.Gradients, Others: best.Optimizer, Copies: best.Copies, Arena: best.Arena, Scratch: best.Scratch,
		})
	}
	c.estimate = best.limit
	return err
}

// search finds the plan that takes most of the budget, of those that fit, or the one that takes least. above is one that does not fit,
// usual the one without a budget.
func (c *compilation) search(i int, above, usual attempt) (attempt, error) {
	var best attempt // of those that fit, once there is one
	if usual.needs() <= c.Budget {
		best = usual
	} else if usual.estimate < above.estimate {
		above = usual
	}
	least := above
	limit := c.Budget - usual.error() + int64(slack*float64(c.Budget))
	for range mostAttempts {
		a, err := c.attempt(i, max(1, min(limit, above.estimate-1)))
		if err != nil {
			return a, err
		}
		if a.needs() < least.needs() {
			least = a
		}
		if a.needs() > c.Budget {
			if a.estimate > a.limit && best.limit == 0 {
				break // recomputation leads to no less, by its estimates
			}
			above, limit = a, a.estimate-1
			if best.limit == 0 {
				limit = min(limit, c.Budget-a.error())
			}
			continue
		}
		left := c.Budget - a.needs()
		if a.estimate == best.estimate || a.estimate+left <= a.limit || float64(left) < nearlyAll*float64(c.Budget) {
			return a, nil // nothing lies between this and what doesn't fit
		}
		best, limit = a, a.estimate+left
	}
	if best.limit != 0 {
		return best, nil
	}
	a, err := c.attempt(i, 1) // estimates are off: the plan for the least of them may take less than those nearer to the budget, or more
	if err == nil && least.needs() < a.needs() {
		a = least
	}
	return a, err
}

// attempt plans a copy of the module from phase i until its kernels are known, for an estimate of no more than limit if that can be.
func (c *compilation) attempt(i int, limit int64) (a attempt, err error) {
	try := *c
	try.estimate, try.DumpDir, try.Record = limit, "", nil
	try.Candidates = 0 // they have memory of their own while they are measured
	try.Passes = passes.Config{Shuffle: c.Passes.Shuffle, Seed: c.Passes.Seed}
	try.result = &Result{Ctx: c.result.Ctx, Module: c.result.Module.Clone(c.result.Ctx, map[*ir.Value]*ir.Value{})}
	a.limit = limit
	for ; try.result.Phase != "target"; i++ {
		if err := try.phase(i); err != nil {
			return a, err
		}
		if c.phases[i].recomputes() {
			a.estimate = estimateOf(try.result.Module, recompute.TargetFor(c.Target, c.Arch))
		}
	}
	a.Plan, err = binary.PlanOf(try.result.Module)
	return a, err
}

// recomputes reports whether a phase chooses what is recomputed.
func (p Phase) recomputes() bool { return strings.Contains(p.Passes, "$RECOMPUTE") }

// estimateOf is what the function of a module that needs most is estimated to, storage included.
func estimateOf(m *ir.Op, t recompute.Target) int64 {
	most := int64(0)
	for op := range m.Body().Ops() {
		if op.Is(fn.Func) {
			if bytes, ok := recompute.Estimate(op, t); ok {
				most = max(most, bytes)
			}
		}
	}
	return most + recompute.Storage(m, t)
}
