// Package tune measures the candidates of an artifact on a device and gives the table of the best: how `bluc compile --tuning` chooses
// afterwards. It knows candidates as kernels that take the same references and are to give the same results, not how they differ.
package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"blutrain/artifact"
	"blutrain/formats/tuning"
	"blutrain/runtime"
)

// Options of measuring.
type Options struct {
	Rounds int     // times that each candidate is timed for its median
	Least  float64 // what part of a step's time a choice's kernels must take to be worth measuring
	Seed   uint64
	Done   func(Row) error // is told of each choice when it has been measured
	Wrong  func(error)     // is told of each candidate that gives another result than the program's kernel
}

// Row is a choice that has been measured. Times are medians of one launch among many in a row, in microseconds.
type Row struct {
	tuning.Entry
	Launches int // in a step of training; where there is none, in all functions together
	Options  int // candidates that are right
}

// Gain is what a step is faster by, in microseconds.
func (r Row) Gain() float64 { return float64(r.Launches) * (r.DefaultMicros - r.Micros) }

// worth is by what part of its time a kernel must be faster than the program's to take its place: less is noise.
const worth = 0.01

// List is the candidates of an artifact.
func List(a *artifact.Artifact) (*tuning.Candidates, error) {
	text, ok := a.File(tuning.CandidatesName)
	if !ok {
		return nil, errors.New("it holds no candidates: compile it with bluc compile --candidates, for --target cuda")
	}
	return tuning.ParseCandidates(text)
}

// Run measures every choice. A candidate that doesn't give what the program's kernel gives is never chosen, and makes the end an
// error; the table is whole all the same. When the context ends it has what was measured until then, if anything was.
func Run(ctx context.Context, p runtime.Bencher, list *tuning.Candidates, o Options) (*tuning.Table, error) {
	m := p.Manifest()
	table := &tuning.Table{Arch: m.Arch, Device: p.DeviceName(), Compiler: m.Compiler}
	uses, err := usesOf(p, o.Seed)
	if err != nil {
		return nil, err
	}
	sites := uses.worth(list.Sites, o.Least)
	var kernels []string
	for _, s := range sites {
		for _, c := range s.Options {
			kernels = append(kernels, c.Kernel)
		}
	}
	if err := p.Load(kernels); err != nil {
		return nil, err
	}
	wrong := 0
	for i, s := range sites {
		if ctx.Err() != nil && i > 0 {
			return table, fmt.Errorf("%w: %d of %d choices are measured", context.Cause(ctx), i, len(sites))
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		row, faults, err := site(p, s, o.Rounds, o.Seed+uint64(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Key, err)
		}
		for _, f := range faults {
			o.Wrong(fmt.Errorf("%s: %w", s.Key, f))
		}
		wrong += len(faults)
		for _, k := range s.Kernels {
			row.Launches += uses.launches[k]
		}
		table.Entries = append(table.Entries, row.Entry)
		if err := o.Done(row); err != nil {
			return nil, err
		}
	}
	if wrong > 0 {
		return table, fmt.Errorf("candidates that are wrong: %d; that is a fault of the compiler", wrong)
	}
	return table, nil
}

// site measures one choice. faults are of candidates that are wrong.
func site(p runtime.Bencher, s tuning.Site, rounds int, seed uint64) (row Row, faults []error, err error) {
	kernels := make([]string, len(s.Options))
	for i, c := range s.Options {
		kernels[i] = c.Kernel
	}
	a, err := p.Alone(kernels, s.Normal, seed)
	if err != nil {
		return row, nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	var right []int
	for i, c := range s.Options {
		off, err := check(a, i, tolerance(p.Manifest().Precision))
		switch {
		case err != nil:
			return row, nil, fmt.Errorf("kernel %s (%s): %w", c.Kernel, c.Choice, err)
		case off != "" && i == 0:
			return row, nil, fmt.Errorf("kernel %s (%s): %s", c.Kernel, c.Choice, off)
		case off != "":
			faults = append(faults, fmt.Errorf("kernel %s (%s): %s", c.Kernel, c.Choice, off))
		default:
			right = append(right, i)
		}
	}
	micros, err := medians(a, right, rounds)
	if err != nil {
		return row, nil, err
	}
	best := 0
	for i, us := range micros {
		if us < micros[best] {
			best = i
		}
	}
	if micros[best] > (1-worth)*micros[0] {
		best = 0
	}
	row.Entry = tuning.Entry{Key: s.Key, Choice: s.Options[right[best]].Choice, Micros: micros[best], Default: s.Options[0].Choice, DefaultMicros: micros[0]}
	row.Options = len(right)
	return row, faults, nil
}

// A step of training runs where the device's power limits it, and clocks fall by a quarter: there, other kernels are the fastest than
// where each is launched alone on a device that has rested. So the device is kept busy first, and each time is of many launches in a row.
const (
	warming = 0.1   // seconds of launches before the first that is timed
	inARow  = 0.025 // seconds of launches that are timed together
	slow    = 1.5   // times the fastest, in the first round, that a candidate may take to be timed again
	mostRow = 2000  // launches in a row
)

// medians times some kernels in turns, so that what changes with time changes all of them alike: microseconds of a launch, infinite
// where a kernel is much too slow.
func medians(a runtime.Alone, kernels []int, rounds int) ([]float64, error) {
	counts, out := make([]int, len(kernels)), make([]float64, len(kernels))
	for i, k := range kernels {
		seconds, err := a.Time(k, 1)
		if err != nil {
			return nil, err
		}
		counts[i] = min(max(1, int(inARow/max(seconds, 1e-9))), mostRow)
	}
	for busy := 0.0; busy < warming; {
		seconds, err := a.Time(kernels[0], counts[0])
		if err != nil {
			return nil, err
		}
		busy += max(seconds, 1e-3)
	}
	times := make([][]float64, len(kernels))
	for range rounds {
		fastest := math.Inf(1)
		for i, k := range kernels {
			if math.IsInf(out[i], 1) {
				continue
			}
			seconds, err := a.Time(k, counts[i])
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], 1e6*seconds/float64(counts[i]))
			fastest = min(fastest, times[i][len(times[i])-1])
		}
		for i, t := range times {
			if i > 0 && t[0] > slow*fastest {
				out[i] = math.Inf(1)
			}
		}
	}
	for i, t := range times {
		if !math.IsInf(out[i], 1) {
			slices.Sort(t)
			out[i] = t[len(t)/2]
		}
	}
	return out, nil
}
