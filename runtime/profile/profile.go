// Package profile finds out where the time of a program goes: it runs functions launch by launch, and gives a table by
// kernel and a trace for a viewer. It knows programs that can be traced, and nothing of devices.
package profile

import (
	"cmp"
	"slices"
	"time"

	"blutrain/runtime"
	"blutrain/runtime/synthetic"
)

// Profile is what was seen of some calls.
type Profile struct {
	Events []Event
	Total  time.Duration // of the calls, what lies between launches included
	start  time.Time
}

// Event is one launch, or a call as a whole (Function and no Kernel).
type Event struct {
	Function, Kernel, Location string
	Start, Duration            time.Duration // Start counts from the first event
	Flops                      float64
	Traffic                    runtime.Traffic
}

// CopyName stands for the kernel of copies, which have none.
const CopyName = "(copy)"

// Call runs a function and records its launches.
func (p *Profile) Call(program runtime.Tracer, c synthetic.Call) error {
	if p.Events == nil {
		p.start = time.Now()
	}
	whole := len(p.Events)
	p.Events = append(p.Events, Event{Function: c.Function, Start: time.Since(p.start)})
	_, err := program.Trace(c.Function, c.In, c.Scalars, func(s *runtime.Step, run func() error) error {
		e := Event{Function: c.Function, Kernel: cmp.Or(s.Kernel, CopyName), Location: s.Location, Flops: s.Flops, Start: time.Since(p.start)}
		err := run()
		e.Duration, e.Traffic = time.Since(p.start)-e.Start, s.Traffic
		p.Events = append(p.Events, e)
		return err
	})
	e := &p.Events[whole]
	e.Duration = time.Since(p.start) - e.Start
	p.Total += e.Duration
	return err
}

// Kernel sums up the launches of one kernel.
type Kernel struct {
	Name, Location string // the location of its first launch
	Launches       int
	Time           time.Duration
	Flops          float64
	Traffic        runtime.Traffic
}

// Kernels sums up, the kernel that took longest first.
func (p *Profile) Kernels() []Kernel {
	var all []Kernel
	place := map[string]int{}
	for _, e := range p.Events {
		if e.Kernel == "" {
			continue
		}
		i, known := place[e.Kernel]
		if !known {
			i = len(all)
			place[e.Kernel] = i
			all = append(all, Kernel{Name: e.Kernel, Location: e.Location})
		}
		k := &all[i]
		k.Launches++
		k.Time += e.Duration
		k.Flops += e.Flops
		k.Traffic.Add(e.Traffic)
	}
	slices.SortStableFunc(all, func(a, b Kernel) int { return cmp.Compare(b.Time, a.Time) })
	return all
}
