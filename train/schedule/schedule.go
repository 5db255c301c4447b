// Package schedule gives the learning rate of each step. A schedule is described by a kind and named numbers, as a model's source
// names them and an artifact's manifest carries them; this package gives them meaning and refuses what has none.
package schedule

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"blutrain/artifact"
)

// Schedule is the learning rate as a function of the step.
type Schedule struct {
	kind                           string
	max, min, warmup, decay, steps float64
}

// parameters of each kind: needed, or optional with 0 as the default. Rates are per step of the optimizer; warmup, decay and
// steps are counted in steps.
var parameters = map[string]struct{ needed, optional []string }{
	"constant": {[]string{"max"}, []string{"warmup"}},
	"linear":   {[]string{"max", "steps"}, []string{"min", "warmup"}},
	"cosine":   {[]string{"max", "steps"}, []string{"min", "warmup"}},
	"wsd":      {[]string{"max", "steps", "decay"}, []string{"min", "warmup"}},
}

// New reads a description.
//
//	constant  warmup, then max
//	linear    warmup, then a straight line from max to min
//	cosine    warmup, then half a cosine from max to min (Loshchilov and Hutter, arXiv 1608.03983)
//	wsd       warmup, max until decay steps before the end, then 1 - sqrt from max to min (Hägele et al., arXiv 2405.18392)
func New(m artifact.Method) (Schedule, error) {
	known, ok := parameters[m.Kind]
	if !ok {
		return Schedule{}, fmt.Errorf("schedule %q is unknown (%s are known)", m.Kind, strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
	}
	for _, name := range known.needed {
		if _, ok := m.Params[name]; !ok {
			return Schedule{}, fmt.Errorf("schedule %s: %s is missing", m.Kind, name)
		}
	}
	all := slices.Concat(known.needed, known.optional)
	for _, name := range slices.Sorted(maps.Keys(m.Params)) {
		if !slices.Contains(all, name) {
			return Schedule{}, fmt.Errorf("schedule %s: %q is unknown (%s are known)", m.Kind, name, strings.Join(all, ", "))
		}
	}
	p := m.Params
	s := Schedule{m.Kind, p["max"], p["min"], p["warmup"], p["decay"], p["steps"]}
	if err := s.check(); err != nil {
		return Schedule{}, fmt.Errorf("schedule %s: %w", m.Kind, err)
	}
	return s, nil
}

func (s Schedule) check() error {
	if !(s.max > 0) || math.IsInf(s.max, 0) {
		return fmt.Errorf("max = %g is not a positive number", s.max)
	}
	if !(s.min >= 0 && s.min <= s.max) {
		return fmt.Errorf("min = %g is not between 0 and max = %g", s.min, s.max)
	}
	for _, n := range []struct {
		name  string
		value float64
	}{{"warmup", s.warmup}, {"decay", s.decay}, {"steps", s.steps}} {
		if !(n.value >= 0 && n.value < 1<<53) || n.value != math.Trunc(n.value) {
			return fmt.Errorf("%s = %g is not a whole number of steps", n.name, n.value)
		}
	}
	if s.kind == "constant" {
		return nil
	}
	if s.steps < 1 {
		return fmt.Errorf("steps = %g is not at least 1", s.steps)
	}
	if s.warmup+s.decay > s.steps {
		return fmt.Errorf("warmup = %g and decay = %g are longer than steps = %g", s.warmup, s.decay, s.steps)
	}
	return nil
}

// Steps is the length that the schedule was made for, or 0 when it has none.
func (s Schedule) Steps() int64 { return int64(s.steps) }

// LR is the learning rate of a step, counted from 1. During warmup it rises linearly and reaches max at step warmup; the decay
// begins at max with the step after. From step steps + 1 on it is min.
func (s Schedule) LR(step int64) float64 {
	done := float64(step - 1) // steps taken before this one
	if done < s.warmup {
		return s.max * (done + 1) / s.warmup
	}
	switch s.kind {
	case "linear":
		return s.between(1 - progress(done, s.warmup, s.steps))
	case "cosine":
		return s.between((1 + math.Cos(math.Pi*progress(done, s.warmup, s.steps))) / 2)
	case "wsd":
		return s.between(1 - math.Sqrt(progress(done, s.steps-s.decay, s.steps)))
	}
	return s.max
}

// between is min at 0 and max at 1.
func (s Schedule) between(x float64) float64 { return s.min + (s.max-s.min)*x }

// progress is where x is on the way from begin to end: 0 before, 1 after.
func progress(x, begin, end float64) float64 {
	switch {
	case x >= end:
		return 1
	case x <= begin:
		return 0
	}
	return (x - begin) / (end - begin)
}
