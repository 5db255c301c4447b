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
	Flying []Collective
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

// Collective is a collective while it was under way, beside launches.
type Collective struct {
	Function, Name, Location string
	Start, Duration          time.Duration
	Waited                   time.Duration // how long launches stood still until it was done
	Bytes                    int64         // that the rank gave
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
		if s.Collective != nil {
			return p.collective(c.Function, s, run)
		}
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

// collective records a collective when its end has been waited for. The wait is an event among launches.
func (p *Profile) collective(function string, s *runtime.Step, run func() error) error {
	start := time.Since(p.start)
	if err := run(); err != nil || !s.Collective.Waits {
		return err
	}
	c := s.Collective
	name := c.Op + " over " + c.Group
	e := Event{Function: function, Kernel: "(wait for " + name + ")", Location: s.Location, Start: start, Duration: time.Since(p.start) - start}
	p.Events = append(p.Events, e)
	p.Flying = append(p.Flying, Collective{
		Function: function, Name: name, Location: s.Location, Start: c.Began.Sub(p.start), Duration: c.Ended.Sub(c.Began), Waited: e.Duration, Bytes: c.Bytes,
	})
	return nil
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
