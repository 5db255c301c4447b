package profile

import (
	"encoding/json"
	"io"
	"time"
)

// WriteTrace writes the events in the Trace Event Format, which ui.perfetto.dev and chrome://tracing show: complete
// events ("X") with times in microseconds, calls on one track, launches on another, and collectives, if any, on a third: where they
// overlap there, as they may, the viewer stacks them.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
func (p *Profile) WriteTrace(w io.Writer) error {
	const calls, launches, collectives = 1, 2, 3
	events := []traceEvent{
		{Name: "thread_name", Phase: "M", Process: 1, Thread: calls, Args: map[string]any{"name": "calls"}},
		{Name: "thread_name", Phase: "M", Process: 1, Thread: launches, Args: map[string]any{"name": "launches"}},
	}
	for _, e := range p.Events {
		t := traceEvent{Name: e.Kernel, Category: e.Function, Phase: "X", Process: 1, Thread: launches, Start: microseconds(e.Start), Duration: microseconds(e.Duration)}
		if e.Kernel == "" {
			t.Name, t.Thread = e.Function, calls
		} else {
			t.Args = map[string]any{"source": e.Location, "flops": e.Flops, "bytes_read": e.Traffic.Read, "bytes_written": e.Traffic.Written}
		}
		events = append(events, t)
	}
	if len(p.Flying) > 0 {
		events = append(events, traceEvent{Name: "thread_name", Phase: "M", Process: 1, Thread: collectives, Args: map[string]any{"name": "collectives"}})
	}
	for i, c := range p.Flying {
		args := map[string]any{"source": c.Location, "bytes": c.Bytes, "waited_us": microseconds(c.Waited)}
		// Events of one track must nest: an asynchronous pair ("b", "e") with an id of its own may overlap others.
		begin := traceEvent{Name: c.Name, Category: c.Function, Phase: "b", Process: 1, Thread: collectives, ID: i + 1, Start: microseconds(c.Start), Args: args}
		end := traceEvent{Name: c.Name, Category: c.Function, Phase: "e", Process: 1, Thread: collectives, ID: i + 1, Start: microseconds(c.Start + c.Duration)}
		events = append(events, begin, end)
	}
	return json.NewEncoder(w).Encode(struct {
		Events []traceEvent `json:"traceEvents"`
		Unit   string       `json:"displayTimeUnit"`
	}{events, "ms"})
}

type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	ID       int            `json:"id,omitempty"`
	Start    float64        `json:"ts"`
	Duration float64        `json:"dur"`
	Args     map[string]any `json:"args,omitempty"`
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
